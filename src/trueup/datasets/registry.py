"""Which public data sets there are, and what is known about each.

Counts are after conversion. Whether and from where a data set can be downloaded is its recipe:
files of a repository at one commit, their SHA-256, and the converter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.datasets import convert
from trueup.errors import TrueupError, listing, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Recipe:
    """How to make a data set of the files of its repository: (path, SHA-256) at a commit."""

    commit: str
    files: tuple[tuple[str, str], ...]
    convert: Callable[[Sequence[bytes]], convert.Tables]


@dataclass(frozen=True)
class Entry:
    """What is known about a data set; `print` it to read it.

    Attributes
    ----------
    name, description, citation : str
    repository : str
        Owner and name of the repository it is from.
    workers, questions, answers, truths : int
        Numbers of these; `truths` are questions with a known true value.
    recipe : Recipe or None
        How it is downloaded; None if it must be in a folder.
    """

    name: str
    description: str
    citation: str
    repository: str
    workers: int
    questions: int
    answers: int
    truths: int
    recipe: Recipe | None = None

    @property
    def address(self) -> str:
        """Where its repository is."""
        return f"https://github.com/{self.repository}"

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Numbers of workers, questions, answers, and questions with a known truth."""
        return self.workers, self.questions, self.answers, self.truths

    def __str__(self) -> str:
        how = "downloaded at first use" if self.recipe else "read from a folder only"
        return (
            f"{self.name}: {self.description}\n"
            f"{self.workers:,} workers, {self.questions:,} questions, {self.answers:,} answers, "
            f"truth of {self.truths:,} questions\n"
            f"Cite: {self.citation}\n"
            f"From: {self.address} ({how})"
        )


_ENTRIES = (
    Entry(
        name="emotions",
        description=(
            "How strongly 100 news headlines carry each of six emotions (0 to 100), and how "
            "pleasant they are (-100 to 100), rated on Mechanical Turk. Five blocks of questions, "
            "each answered by its own ten workers throughout. Most answers are exactly 0."
        ),
        citation=(
            "Snow, O'Connor, Jurafsky and Ng, Cheap and Fast - But is it Good?, EMNLP 2008; truth "
            "from Strapparava and Mihalcea, SemEval-2007 Task 14: Affective Text."
        ),
        repository="zhydhkcws/crowd_truth_infer",
        workers=38,
        questions=700,
        answers=7000,
        truths=700,
        recipe=Recipe(
            commit="8d216471071f09b9e474ee19f8d692447f982f88",
            files=(
                (
                    "datasets/f201_Emotion_FULL/answer.csv",
                    "8a33684760a7fc51980ddc2d19d157f9d0197bcc3611cc4a2c8cdb65fdaf1d1b",
                ),
                (
                    "datasets/f201_Emotion_FULL/truth.csv",
                    "0fdfa983818a3524ba572c7eb7a3fd6b314844105ae9449b630425faa3176be4",
                ),
            ),
            convert=convert.emotions,
        ),
    ),
    Entry(
        name="calories",
        description=(
            "Calories in 36 restaurant meals, guessed from photographs; each judge saw six of "
            "them. Guesses are skewed and on average some 320 too low."
        ),
        citation=(
            "Palley and Satopää, Boosting the Wisdom of Crowds Within a Single Judgment Problem, "
            "2021."
        ),
        repository="cran/metaggR",
        workers=505,
        questions=36,
        answers=3030,
        truths=36,
    ),
    Entry(
        name="groceries",
        description=(
            "Price in dollars of ten bundles of groceries, guessed by passers-by, all of whom "
            "answered all. Cheap bundles are overestimated and dear ones underestimated."
        ),
        citation=(
            "Palley and Soll, Extracting the Wisdom of Crowds When Information Is Shared, "
            "Management Science 65, 2019."
        ),
        repository="cran/metaggR",
        workers=49,
        questions=10,
        answers=490,
        truths=10,
    ),
    Entry(
        name="nflx_public",
        description=(
            "Quality of 79 distorted video clips made from nine films, on a scale from 1 to 5; "
            "every subject rated every clip. There is no truth; labels name the film."
        ),
        citation=(
            "Li and Bampis, Recover Subjective Quality Scores from Noisy Measurements, Data "
            "Compression Conference 2017."
        ),
        repository="Netflix/sureal",
        workers=26,
        questions=79,
        answers=2054,
        truths=0,
    ),
    Entry(
        name="population",
        description=(
            "Population of a city in a year, as claimed in the edit history of Wikipedia. Most "
            "claims are right and some are absurd (up to 6.6e18): use a robust method, or "
            'transform="log1p". Labels name city and year, with "?" for bytes that are not ASCII.'
        ),
        citation=(
            "Pasternack and Roth, Knowing What to Believe (when you already know something), "
            "COLING 2010; prepared as in Zhao and Han, A Probabilistic Model for Estimating "
            "Real-valued Truth from Conflicting Sources, QDB 2012."
        ),
        repository="daz45/population---truth-discovery",
        workers=2415,
        questions=1172,
        answers=4183,
        truths=277,
        recipe=Recipe(
            commit="35deffb890b23dd1c29404e87fbde5894a1ed694",
            files=(
                (
                    "data/population/population-new-new.txt",
                    "3e092dd61f59a0d138622c3a08119444d8b479b245a305c828b52b3062b52e7e",
                ),
                (
                    "data/population/population-gd.txt",
                    "33f80a98cbeab88ab67f584f747cbaf9273a07a51068c1810bf3b96e51483741",
                ),
            ),
            convert=convert.population,
        ),
    ),
    Entry(
        name="dots",
        description=(
            "Number of dots in 24 pictures. An answer is the middle of two guesses or of an "
            "interval. Large numbers are mostly underestimated."
        ),
        citation=(
            "Ugander, Drapeau and Guestrin, The Wisdom of Multiple Guesses, ACM Conference on "
            "Economics and Computation 2015."
        ),
        repository="rdrapeau/Wisdom-of-Multiple-Guesses-Scripts",
        workers=230,
        questions=24,
        answers=5218,
        truths=24,
        recipe=Recipe(
            commit="29e94413b7c9acea489e99458a245880ce8ceb88",
            files=(
                (
                    "ice_data/ice_2guess.csv",
                    "9ebc9e9850055c75e41fdc2bcc49939ffddebb19969a70c6b192904e541bfb09",
                ),
                (
                    "ice_data/ice_interval.csv",
                    "551813a552d9084ed958d2c7bcf1e769e3d713286748eca08894d79ce0a0ad9b",
                ),
            ),
            convert=convert.dots,
        ),
    ),
    Entry(
        name="pies",
        description=(
            "Percentage that a marked slice has in pie charts of five shapes; a question is a true "
            "percentage, and a worker's first trial with it counts. Some answers are those of the "
            "other slice, and one worker answered in degrees."
        ),
        citation=(
            "Kosara and Skau, Judgment Error in Pie Chart Variations, EuroVis 2016 (short papers)."
        ),
        repository="dwskau/pie-variations",
        workers=108,
        questions=47,
        answers=5074,
        truths=47,
        recipe=Recipe(
            commit="5042a9fa81b5273647c72d62ae6b826a1d809ed7",
            files=(
                (
                    "analysis/pie-variations-reshaped-unique.csv",
                    "9b93ec4304a2020bbbefa9aa20205f7cd1f37ca96d453ba07eac77f1940b4bed",
                ),
            ),
            convert=convert.pies,
        ),
    ),
)
REGISTRY = {entry.name: entry for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    """Return the names of the public data sets."""
    return tuple(REGISTRY)


def describe(name: str) -> Entry:
    """Return what is known about a public data set.

    Examples
    --------
    >>> print(describe("groceries"))
    groceries: Price in dollars of ten bundles of groceries, guessed by passers-by, all of whom answered all. ...
    49 workers, 10 questions, 490 answers, truth of 10 questions
    Cite: Palley and Soll, Extracting the Wisdom of Crowds When Information Is Shared, ...
    From: https://github.com/cran/metaggR (read from a folder only)
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    likely = nearest(str(name), names())
    hint = f"Did you mean {quoted(likely)}? " if likely else ""
    raise TrueupError(
        f"Data set {quoted(name)}: not found. {hint}The public ones are "
        f"{listing(names(), len(REGISTRY))}; one of yours is a folder: load(name, data=FOLDER) "
        "reads FOLDER/name/answers.csv."
    )

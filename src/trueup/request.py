"""What the caller asked for, checked once: how to read, what to do, and what is known about the questions.

Every door (memory, disk, Spark, the command line, compare, update, save, load, the report) hands a `Request` on. A new
keyword is a field of `ReadOptions`, `Plan` or `QuestionDataRequest` and a line of the typed dictionaries below; the
signatures of the public functions, the options of the command line, saved states and printed calls follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from trueup.algorithms.driver import check_limits
from trueup.algorithms.native import Native
from trueup.algorithms.question_rule import QuestionRule
from trueup.algorithms.registry import find
from trueup.algorithms.worker_fit import MAX_ITER, TOLERANCE
from trueup.answers.scale import Scale
from trueup.core.keywords import check_names, keyword, keywords_of
from trueup.core.parameters import SMALLEST, check_level, number, one_of
from trueup.core.sampling import check_seed
from trueup.engines.threads import check_threads
from trueup.errors import TrueupError, quoted
from trueup.io.question_data import QuestionDataRequest
from trueup.io.read_options import ReadOptions
from trueup.request_text import RunnableText, python_call, shell_command
from trueup.shrinkage.ebe import Identity
from trueup.shrinkage.registry import find as find_rule
from trueup.variance import check as check_variance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from trueup.algorithms.registry import Method
    from trueup.io.read_options import Duplicates
    from trueup.shrinkage.contract import ShrinkRule

#: What an estimate can be of, and the kinds of questions whose crowds err alike.
TARGETS = ("auto", "truth", "consensus")
KINDS = ("perception", "judgment", "forecast")
Transform = Literal["auto", "none", "proportional", "log", "log1p", "logit"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be done with the answers; see `trueup.estimate`."""

    method: Method = keyword(
        "auto",
        "Aggregation (first step): how the answers to a question become one number. auto lets held-out workers decide; "
        "parameters follow the name, as in subject_bias:nu0=0; FILE.py:CLASS is an algorithm of your own.",
        str,
    )
    shrink: str | ShrinkRule = keyword(
        "adaptive", "Shrinkage (second step): how the estimates move toward each other.", str
    )
    variance: Any = keyword(
        None,
        "How sure the first step is of each question: a rule, or a number.",
        str | None,
    )
    transform: Transform | None = keyword(
        "auto",
        "Scale on which the answers are combined. auto takes logarithms where errors grow in proportion to the value, "
        "proportional in any case; log takes them and estimates the typical instead of the average worker.",
        Literal["auto", "none", "proportional", "log", "log1p", "logit"],
    )
    bounds: tuple[float, float] | None = keyword(
        None, "LOW and HIGH: estimates and intervals stay inside.", tuple[float, float] | None
    )
    target: str = keyword(
        "auto",
        "What is estimated: the truth that workers guess at, or the consensus of infinitely many such workers; auto "
        "takes the consensus of ratings and the truth of everything else.",
        Literal["auto", "truth", "consensus"],
    )
    kind: str | None = keyword(
        None,
        "Kind of the questions, which the interval for the truth depends on.",
        Literal["perception", "judgment", "forecast"] | None,
    )
    bias: bool | Literal["auto"] = keyword(
        "auto",
        "Remove biases of workers: auto inside the native method where they are clear, on before any other method too, "
        "off never.",
        Literal["auto", "on", "off"],
    )
    caution: float | None = keyword(
        None,
        "Factor for the second step, above 0 and up to 1; by default the step of the target is taken as it is.",
        float | None,
    )
    level: float = keyword(0.95, "Level of the intervals.", float)
    max_iter: int = keyword(MAX_ITER, "Most iterations of the first step.", int)
    tol: float = keyword(
        TOLERANCE,
        "Move of a truth, in standard deviations, below which the first step ends.",
        float,
    )
    seed: int = keyword(0, "Seed for the random worker splits.", int)
    threads: int | None = keyword(
        None,
        "Number of threads; by default that of the processors. It changes the time alone.",
        int | None,
    )

    def __post_init__(self) -> None:
        """Check everything that can be checked before answers are read."""
        if not self.chooses:
            find(self.method)
        if self.caution is not None:
            number("caution", self.caution, SMALLEST, 1.0)
        check_level(self.level)
        one_of("target", self.target, TARGETS)
        if self.kind is not None:
            one_of("kind", self.kind, KINDS)
        if not isinstance(self.bias, bool | str) or self.bias not in (True, False, "auto"):
            raise TrueupError(
                f'found {quoted(self.bias)}, must be True, False or "auto".', argument="bias"
            )
        check_limits(self.max_iter, self.tol)
        check_seed(self.seed)
        check_threads(self.threads)
        check_variance(self.variance)
        self.rule  # noqa: B018  an unknown rule is an error here, not later
        self.scale  # noqa: B018  so is an unknown scale

    @cached_property
    def rule(self) -> ShrinkRule:
        """The shrink rule, which takes its step in full; `caution` is a share of it."""
        return find_rule(self.shrink)

    @cached_property
    def scale(self) -> Scale | None:
        """The scale on which the answers are combined; None: it is to be chosen."""
        if isinstance(self.transform, str) and self.transform == "auto":
            Scale(None, self.bounds)  # checks the bounds
            return None
        plain = isinstance(self.transform, str) and self.transform == "none"
        return Scale(None if plain else self.transform, self.bounds)

    @property
    def compares_scales(self) -> bool:
        """Whether the answers may choose the scale.

        Not where variances are given, which are those of the answers as they are, nor where a method other than native
        is asked for without a second step: then nothing rests on the scale, and a mean is to be the mean. A function
        sees the answers as they are.
        """
        given = self.variance is not None and not isinstance(self.variance, str)
        algorithm = None if self.chooses else find(self.method)
        if isinstance(algorithm, QuestionRule):
            return False
        named = algorithm is not None and not isinstance(algorithm, Native)
        return not given and not (named and isinstance(self.rule, Identity))

    @property
    def chooses(self) -> bool:
        """Whether the first step is chosen by held-out workers."""
        return isinstance(self.method, str) and self.method == "auto"

    @property
    def pools(self) -> bool:
        """Whether workers who err together count as one: only where the method is chosen, too."""
        return self.chooses

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of every run of a first step."""
        return {"max_iter": self.max_iter, "tol": self.tol, "threads": self.threads}


@dataclass(frozen=True, eq=False)
class Request:
    """All that was asked for.

    Attributes
    ----------
    read : ReadOptions
        How the answers are read.
    plan : Plan
        What is done with them.
    question_data : QuestionDataRequest
        What the caller knows about the questions, as it was given.
    source : object
        What the answers came from, if it can be named again: a path.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    plan: Plan = field(default_factory=Plan)
    question_data: QuestionDataRequest = field(default_factory=QuestionDataRequest)
    source: Any = None

    @classmethod
    def of(cls, function: str = "estimate", source: Any = None, **keywords: Any) -> Self:
        """Check keywords of a public function, and sort them into what they are about."""
        check_names(function, keywords, KEYWORDS)
        read = ReadOptions(**_among(keywords, READING))
        data = QuestionDataRequest(
            **_among(keywords, QUESTION_DATA),
            question=read.question,
            file_options=read.file_options,
        )
        return cls(read, Plan(**_among(keywords, PLAN)), data, source if is_named(source) else None)

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords with their values, in the order of the signature of `trueup.estimate`."""
        parts = (self.read, self.plan, self.question_data)
        return {
            name: next(getattr(part, name) for part in parts if hasattr(part, name))
            for name in ORDER
        }

    @property
    def given(self) -> dict[str, Any]:
        """The keywords whose values are not their defaults."""
        return {
            name: value
            for name, value in self.keywords.items()
            if not _is_default(value, KEYWORDS[name].default)
        }

    def as_call(self, function: str = "trueup.estimate", **extra: str) -> RunnableText:
        """Return the Python call that asks for the same; `extra` are more arguments, as text."""
        return python_call(function, self.source, self._shown, extra)

    def as_command(self, command: str = "estimate") -> RunnableText:
        """Return the command that asks for the same."""
        return shell_command(command, self.source, self._shown, KEYWORDS)

    @property
    def _shown(self) -> dict[str, Any]:
        """What was given, without ids of workers where these have pseudonyms."""
        given = self.given
        if self.read.anonymous and hasattr(given.get("worker_variance"), "items"):
            given["worker_variance"] = object()  # text cannot carry it
        return given


def is_named(source: Any) -> bool:
    """Tell whether text can say where the answers are: in files."""
    several = source if isinstance(source, list | tuple) else [source]
    return bool(several) and all(isinstance(each, str | PathLike) for each in several)


def _is_default(value: Any, default: Any) -> bool:
    """Tell whether a value is the default; an array, which compares element by element, never is."""
    return value is default or (type(value) is type(default) and bool(value == default))


def _among(given: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in names}


READING = keywords_of(ReadOptions)
PLAN = keywords_of(Plan)
QUESTION_DATA = keywords_of(QuestionDataRequest)
#: Every keyword, by name.
KEYWORDS = {**PLAN, **QUESTION_DATA, **READING}
#: Those of `trueup.estimate`, in the order in which its signature shows them.
ORDER = (
    "method", "shrink", "variance", "groups", "covariates", "gold", "transform", "bounds", "target", "kind", "bias",
    "caution", "worker_variance", "answer_variance", "duplicates", "level", "max_iter", "tol", "seed", "threads",
    "question", "worker", "answer", "panel", "anonymous", "decimal", "thousands", "strip_units", "skip_bad", "valid",
    "sep", "encoding", "skip_lines", "sheet", "worker_from", "from_format", "where", "wide", "sql",
)  # fmt: skip
#: Those that come after the positional arguments method, shrink and variance.
KEYWORD_ONLY = ORDER[3:]


# -- the same for type checkers, which cannot compute ------------------------------------------------


class ColumnKeywords(TypedDict, total=False):
    """Columns of a table of answers; see `trueup.estimate`."""

    question: str | Sequence[str]
    worker: str
    answer: str
    duplicates: Duplicates
    worker_variance: Any
    answer_variance: Any


class TextKeywords(TypedDict, total=False):
    """How delimited text and the numbers in it are written, and which of them are answers."""

    sep: str | None
    encoding: str | None
    skip_lines: int | None
    decimal: str | None
    thousands: str | None
    strip_units: bool
    skip_bad: bool
    valid: tuple[float, float] | None


class FileKeywords(TextKeywords, total=False):
    """How any file is read."""

    sheet: str | None
    worker_from: str | None
    from_format: str | None
    where: Any
    wide: bool | str | None
    sql: str | None


class ScaleKeywords(TypedDict, total=False):
    """The scale on which answers are combined."""

    transform: str | None
    bounds: tuple[float, float] | None


class LimitKeywords(TypedDict, total=False):
    """Limits of the first step, and the seed."""

    max_iter: int
    tol: float
    seed: int


class PlanKeywords(ScaleKeywords, LimitKeywords, total=False):
    """What is done with the answers, besides the two steps."""

    groups: Any
    covariates: Any
    gold: Any
    target: str
    kind: str | None
    bias: bool | str
    caution: float | None
    level: float


class ThreadKeywords(TypedDict, total=False):
    """Threads of this machine."""

    threads: int | None


class EstimateKeywords(PlanKeywords, ColumnKeywords, FileKeywords, ThreadKeywords, total=False):
    """All keywords of `trueup.estimate`."""

    anonymous: bool
    panel: str | None


class UpdateKeywords(FileKeywords, ThreadKeywords, total=False):
    """All keywords of `trueup.update` that are those of `trueup.estimate`."""

    anonymous: bool
    groups: Any
    covariates: Any
    gold: Any
    worker_variance: Any
    answer_variance: Any
    question: str | Sequence[str]
    worker: str
    answer: str


class DiskKeywords(PlanKeywords, ColumnKeywords, TextKeywords, ThreadKeywords, total=False):
    """All keywords of `trueup.disk.estimate` that are those of `trueup.estimate`."""

    anonymous: bool


class SparkKeywords(PlanKeywords, ColumnKeywords, TextKeywords, total=False):
    """All keywords of `trueup.spark.estimate` that are those of `trueup.estimate`."""


class CompareOnSparkKeywords(
    ScaleKeywords, LimitKeywords, ColumnKeywords, TextKeywords, total=False
):
    """All keywords of `trueup.spark.compare` that are those of `trueup.estimate`."""


class CompareOnDiskKeywords(CompareOnSparkKeywords, ThreadKeywords, total=False):
    """All keywords of `trueup.disk.compare` that are those of `trueup.estimate`."""

    anonymous: bool


class CompareKeywords(CompareOnDiskKeywords, FileKeywords, total=False):
    """All keywords of `trueup.compare` that are those of `trueup.estimate`."""


class RankKeywords(LimitKeywords, FileKeywords, ThreadKeywords, total=False):
    """All keywords of `trueup.rank` that are those of `trueup.estimate`."""

    level: float
    question: str | Sequence[str]
    worker: str
    answer: str
    duplicates: Duplicates
    anonymous: bool

"""Intervals for the consensus: few workers, few questions, sparse answers, biased and unequal workers, spammers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import seed_for
from evidence.points import ALLOWED, Point, share_error
from evidence.processes import run_tasks
from evidence.second_step.cell_tables import first_few
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.answers.answers import Answers
from trueup.pipeline.auto_method import CANDIDATES, choose
from trueup.pipeline.rough import rough_in_words
from trueup.pipeline.shrink import second_step
from trueup.report.page import PageTable, Section
from trueup.shrinkage import Adaptive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats

LEVEL = 0.95
#: Least and largest share of 95% intervals that should hold the truth, apart from chance.
RANGE = (0.93, 0.975)
METHODS = ("auto", "native", "mean", "median", "student_t", "subject_bias", "crh")
#: Smallest number of panels and of intervals of a cell with as many samples as this; fewer with fewer samples.
PANELS, INTERVALS, SAMPLES = 200, 2000, 100
SPAM_IN_WORDS = {
    "ten times": "spammers, 10 times the error",
    "uniform": "spammers, uniform error",
    "anywhere": "spammers who answer anything",
}
SPAMMERS, SPAM_FACTOR, SPAM_LIMIT = 0.2, 10.0, 10.0


@dataclass(frozen=True)
class PanelDesign:
    """Truths N(0, spread²) plus noise N(0, 1) of the workers.

    Attributes
    ----------
    workers, questions : int
        Size of a panel.
    each : int
        Number of workers who answer a question, drawn at random; 0: all of them.
    spread : float
        Standard deviation of the truths.
    bias : float
        Standard deviation of the biases.
    unequal : float
        Standard deviation of the logarithm of the standard deviations of the workers.
    spam : str
        The fifth of the workers who are spammers: errors "ten times" as large, errors "uniform" between -10 and 10, or
        answers "anywhere" between the lowest and the highest of the others, whatever the question.
    """

    workers: int
    questions: int
    each: int = 0
    spread: float = 1.0
    bias: float = 0.0
    unequal: float = 0.0
    spam: str = ""

    def draw(self, panels: int, seed: int) -> tuple[Answers, Floats]:
        """Simulate panels; return answers and truths, panels x questions."""
        rng = np.random.default_rng(seed)
        truth = self.spread * rng.normal(size=(panels, self.questions))
        shape = (panels, self.workers, self.questions)
        scale = np.exp(self.unequal * rng.normal(size=(panels, self.workers, 1)))
        spammer = np.arange(self.workers)[:, None] < SPAMMERS * self.workers
        error = scale * rng.normal(size=shape)
        if self.spam == "ten times":
            error *= np.where(spammer, SPAM_FACTOR, 1.0)
        elif self.spam == "uniform":
            error = np.where(spammer, rng.uniform(-SPAM_LIMIT, SPAM_LIMIT, shape), error)
        error += self.bias * rng.normal(size=(panels, self.workers, 1))
        answers = truth[:, None, :] + error
        if self.spam == "anywhere":
            others = np.where(spammer, np.nan, answers)
            low, high = (end(others, axis=(1, 2), keepdims=True) for end in (np.nanmin, np.nanmax))
            answers = np.where(spammer, rng.uniform(low, high, shape), answers)
        if self.each:
            order = rng.random(shape).argsort(axis=1).argsort(axis=1)
            answers = np.where(order < self.each, answers, np.nan)
        return Answers.from_matrix(answers), truth

    def __str__(self) -> str:
        text = f"{self.workers} x {self.questions}"
        text = f"{self.each} of {text}" if self.each else text
        more = [
            f"truths N(0, {self.spread:g}²)" if self.spread != 1 else "",
            f"biases N(0, {self.bias:g}²)" if self.bias else "",
            "unequal" if self.unequal else "",
            SPAM_IN_WORDS.get(self.spam, ""),
        ]
        return ", ".join([text, *filter(None, more)])


def few_workers() -> Iterator[PanelDesign]:
    """Yield the designs with two to five workers who are all alike."""
    for workers in range(2, 6):
        for questions in range(1, 6):
            yield PanelDesign(workers, questions)
    yield PanelDesign(3, 40)
    for spread in (0.3, 3.0):
        for workers, questions in ((2, 1), (3, 5), (5, 5), (3, 40)):
            yield PanelDesign(workers, questions, spread=spread)


def other_designs() -> Iterator[PanelDesign]:
    """Yield the designs with sparse answers, biases, unequal workers and spammers."""
    for each in range(2, 6):
        yield PanelDesign(10, 40, each=each)
    yield PanelDesign(20, 40, each=3)
    for bias in (0.5, 1.0):
        for workers in (3, 5, 10):
            for questions in (5, 20):
                yield PanelDesign(workers, questions, bias=bias)
    yield PanelDesign(10, 40, each=3, bias=1.0)
    for questions in (5, 20, 40):
        yield PanelDesign(10, questions, unequal=1.0)
    for spam in ("ten times", "uniform"):
        for workers in (10, 20):
            for questions in (5, 20):
                yield PanelDesign(workers, questions, spam=spam)


TABLES = {
    "Few workers who are alike": tuple(few_workers()),
    "Sparse answers, biases, unequal workers, spammers": tuple(other_designs()),
}
#: Spammers whose errors depend on the truth: what they say on average is not the truth.
BEYOND = tuple(PanelDesign(n, m, spam="anywhere") for n in (10, 20) for m in (5, 20))


def ends(answers: Answers, method: str) -> tuple[Floats, Floats, str]:
    """Return the ends of the intervals, and what is said about rough ones.

    The default chooses for one problem; for panels, it is what held-out workers of each have chosen.
    """
    if method == "auto":
        native, mean = (ends(answers, name) for name in CANDIDATES)
        chosen = choose(answers, CANDIDATES).chosen[answers.question_panel]
        lower, upper = (np.where(chosen == 0, native[end], mean[end]) for end in (0, 1))
        return lower, upper, native[2]
    # What `trueup.estimate` does for target consensus, without the interval for the truth, which takes far longer.
    aggregate = run(find(method), answers)
    moved = second_step(answers, aggregate, Adaptive())
    middle, width = moved.posterior.mean, moved.half_width(answers, LEVEL)
    return middle - width, middle + width, rough_in_words(moved, aggregate.facts)


def inside(answers: Answers, truth: Floats, method: str) -> tuple[Floats, str]:
    """Return the share of intervals of each panel that hold the truth, and what is said about rough ones."""
    lower, upper, rough = ends(answers, method)
    held = (lower <= truth.ravel()) & (truth.ravel() <= upper)
    return held.reshape(truth.shape).mean(axis=1), rough


def cell(design: PanelDesign, method: str, panels: int, seed: int) -> list[dict[str, Any]]:
    """Return the row of a design and method."""
    share, rough = inside(*design.draw(panels, seed_for(seed, design)), method)
    return [
        {
            "design": str(design),
            "method": method,
            "intervals": panels * design.questions,
            "inside": float(share.mean()),
            "error": float(share.std(ddof=1) / np.sqrt(panels)),
            "rough": bool(rough),
        }
    ]


def is_near(row: dict[str, Any], wanted: tuple[float, float]) -> bool:
    """Return whether the share of intervals of a row is in a range but for chance.

    The range is that of the full study, where cells may be two standard errors outside of it already. With few panels
    the standard error is known badly: it counts as at least that of independent intervals.
    """
    low, high = wanted
    error = max(row["error"], share_error(0.95, row["intervals"]))
    slack = (ALLOWED + 1.0) * error
    return bool(low - slack <= row["inside"] <= high + slack)


def consensus_intervals(context: Context) -> Section:
    """Measure the intervals for the consensus."""
    designs = [design for chosen in TABLES.values() for design in chosen]

    share = min(context.samples, SAMPLES) / SAMPLES
    fewest, intervals = ceil(share * PANELS), ceil(share * INTERVALS)

    def panels(design: PanelDesign) -> int:
        return context.samples if context.quick else max(-(-intervals // design.questions), fewest)

    def measure(name: str, chosen: Sequence[PanelDesign]) -> list[dict[str, Any]]:
        tasks = [
            (f"{design}, {method}", partial(cell, design, method, panels(design), context.seed))
            for design in chosen
            for method in METHODS
        ]
        return run_tasks(context, name, tasks)

    rows, beyond = measure("consensus_intervals", designs), measure("consensus_beyond", BEYOND)
    low, high = RANGE
    off = [
        row
        for row in rows
        if not low - 2 * row["error"] <= row["inside"] <= high + 2 * row["error"]
    ]
    context.points.append(
        Point(
            1, f"Consensus, {len(rows)} cells: 95% intervals that hold the truth, within two standard errors",
            f"{len(rows) - len(off)} cells; not: {first_few([*map(_words, off)])}", f"{low:.1%} to {high:.1%}",
            not off, all(is_near(row, RANGE) for row in off),
        )
    )  # fmt: skip
    cells = {(row["design"], row["method"]): row for row in (*rows, *beyond)}
    rough = [str(design) for design in designs if cells[str(design), METHODS[0]]["rough"]]
    marked = {id(row) for row in off}
    least, most = (choose(row["inside"] for row in rows) for choose in (min, max))

    def text(row: dict[str, Any]) -> str:
        mark = " (rough)" if row["rough"] else ""
        return f"{row['inside']:.3f} ± {row['error']:.3f}{' !' if id(row) in marked else ''}{mark}"

    return Section(
        title=f"Consensus: {least:.1%} to {most:.1%} of 95% intervals hold the truth",
        verdict=(
            f"Target: {low:.1%} to {high:.1%} within two standard errors. {len(rows) - len(off)} of {len(rows)} cells "
            "are there"
            + (f"; not: {'; '.join(_words(row) for row in off)}" if off else "")
            + f". Marked as rough: {'; '.join(rough) or 'none'} (workers x questions)."
        ),
        holds=not off,
        text=(
            "Simulated truths N(0, 1) unless said otherwise, noise of variance 1, `target=\"consensus\"`; at least "
            f"{intervals:,} intervals and {fewest} panels per cell. \"3 of 10 x 40\": each of 40 questions is answered "
            "by three of ten workers. Biases are drawn around 0, so that their mean is part of the error. Unequal: "
            "standard deviations exp(N(0, 1)). A fifth of the workers are spammers where said; uniform errors are "
            "between -10 and 10. Standard errors are over panels. \"!\": outside of the range. With fewer than three "
            "answers beyond the first of each question the intervals rest on one or two degrees of freedom. They hold "
            "what they say, but are so wide that estimates call them rough. The last table is no part of the target: "
            "spammers who answer anything, whatever the question, pull the answers of the whole crowd toward the "
            "middle. That is an error which workers share, and only the interval for the truth allows for it."
        ),
        tables=[
            PageTable(
                f"{title}: share of 95% intervals that hold the truth",
                ["workers x questions", *METHODS],
                [
                    [str(design), *(text(cells[str(design), method]) for method in METHODS)]
                    for design in chosen
                ],
            )
            for title, chosen in (*TABLES.items(), ("Beyond what is promised", BEYOND))
        ],
    )  # fmt: skip


def _words(row: dict[str, Any]) -> str:
    return f"{row['method']}, {row['design']} {row['inside']:.1%} ± {row['error']:.1%}"

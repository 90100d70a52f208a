"""Estimate: what came out, with where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.engines.memory import engine_of
from trueup.engines.protocol import Visit
from trueup.errors import counted, quoted
from trueup.io.frames_out import make_frame
from trueup.shrinkage import AdaptivePrior

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from trueup.algorithms.driver import Aggregate
    from trueup.algorithms.facts import Facts
    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept
    from trueup.io.question_data import Labels, QuestionData
    from trueup.io.table import Ids
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.pooling import Voices
    from trueup.pipeline.shrink import SecondStepResult
    from trueup.pipeline.solve import Plan
    from trueup.variance.bias import Biases

# How many questions `print` shows, and how much of an id.
SHOWN = 5
LONGEST_ID = 30
# Answers from which on a worker who always says the same is pointed out.
CONSTANT = 5
# Distance from their mean, relative to it, up to which answers are the same.
SAME = 1e-9
SAME_ANSWER = "always the same answer"
# Columns of the workers that may be unknown.
UNKNOWN_OF_WORKERS = ("variance", "bias", "flag")
SHARES_NOTHING = "shares no question with anybody"
# Parts a question belongs to with less than this probability are not listed.
SMALLEST_SHARE = 0.001


@dataclass(frozen=True)
class Diagnosis:
    """What was chosen and why, and what to be careful about.

    Attributes
    ----------
    method, shrink : str
        The two steps.
    why : str
        Why the method was chosen, if it was.
    voices : str
        Which workers err together and count as one, in words.
    second_step : str
        What the second step did, in words.
    gold : str
        What the known truths showed, in words.
    assumptions : tuple of str
        What the numbers rest on.
    warnings : tuple of str
        What may be wrong with them.
    """

    method: str
    shrink: str
    iterations: int
    settled: bool
    why: str = ""
    voices: str = ""
    second_step: str = ""
    gold: str = ""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        lines = [f"method {self.method}{why}, shrink {self.shrink}"]
        if self.voices:
            lines.append(self.voices)
        if self.iterations:
            rest = "" if self.settled else ", after which the truths had not come to rest"
            lines.append(counted(self.iterations, "iteration") + rest)
        lines += [text for text in (self.second_step, self.gold) if text]
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"assumed: {text}" for text in self.assumptions]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """The estimates of all questions and the verdict on all workers.

    Attributes
    ----------
    level : float
        Level of the intervals.
    estimate, lower, upper, std_error, base, base_std_error, shrinkage : arrays
        One number per question, in the order of the questions of `answers`, on the scale of the answers. NaN
        where it cannot be known.
    second_step : SecondStepResult
        Certainty of the first step, prior and posterior, on the scale on which the answers were combined.
    biases : Biases or None
        Biases of the workers, where they were asked for.
    calibration : Calibration or None
        The error that all workers share, where gold questions showed it.
    voices : Voices or None
        Who speaks for whom, where workers err together.
    plan, question_data : Plan, QuestionData
        What was asked for, and what the caller knew of the questions.
    """

    answers: Answers
    aggregate: Aggregate
    diagnosis: Diagnosis
    level: float
    estimate: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    base: Floats
    base_std_error: Floats
    shrinkage: Floats
    second_step: SecondStepResult
    biases: Biases | None = None
    groups: Labels | None = None
    calibration: Calibration | None = None
    voices: Voices | None = None
    plan: Plan | None = None
    question_data: QuestionData | None = None

    @cached_property
    def questions(self) -> Any:
        """Frame with a row per question, in the order of first appearance."""
        columns: dict[str, Any] = {
            **self._panel_column(self.answers.question_panel),
            "question": self.answers.question_ids,
            "estimate": self.estimate,
            "lower": self.lower,
            "upper": self.upper,
            "std_error": self.std_error,
            "base": self.base,
            "base_std_error": self.base_std_error,
            "shrinkage": self.shrinkage,
            "n_answers": self.answers.counts,
        }
        unknown = ("lower", "upper", "std_error", "base_std_error")
        return make_frame(self.answers.origin.kind, columns, null_columns=unknown)

    @cached_property
    def workers(self) -> Any:
        """Frame with a row per worker, in the order of first appearance."""
        columns = {**self._panel_column(self.answers.worker_panel), **self.worker_columns}
        return make_frame(self.answers.origin.kind, columns, null_columns=UNKNOWN_OF_WORKERS)

    @cached_property
    def worker_columns(self) -> dict[str, Any]:
        """The columns of `workers`."""
        ids = self.answers.worker_ids
        return worker_columns(self.aggregate, self.second_step, self.biases, ids, self.flag)

    @cached_property
    def partition(self) -> Any:
        """Frame with the parts a question belongs to and with which probability; None where no partition was found."""
        prior, sure = self.second_step.prior, self.second_step.certainty
        if not isinstance(prior, AdaptivePrior) or self.answers.n_panels > 1:
            return None
        columns: dict[str, Any]
        if prior.model[0].startswith("group") and self.groups is not None:
            labelled = np.flatnonzero(self.groups.codes >= 0)
            columns = {
                "question": self.answers.question_ids.take(labelled),
                "part": self.groups.ids.take(self.groups.codes[labelled]),
                "probability": np.ones(len(labelled)),
            }
            return make_frame(self.answers.origin.kind, columns)
        belongs = prior.partition(self.aggregate.x, sure.v)[0]
        if belongs is None:
            return None
        question, part = np.nonzero(belongs > SMALLEST_SHARE)
        columns = {
            "question": self.answers.question_ids.take(question),
            "part": part + 1,
            "probability": belongs[question, part],
        }
        return make_frame(self.answers.origin.kind, columns)

    @cached_property
    def flag(self) -> list[str | None]:
        """What is remarkable about each worker, or None."""
        return worker_flags(engine_of(self.answers), self.aggregate.facts)

    def _panel_column(self, panel: Any) -> dict[str, Ids | Any]:
        if self.answers.n_panels == 1 and self.answers.origin.panel_ids is None:
            return {}
        ids = self.answers.origin.panel_ids
        return {"panel": panel if ids is None else ids.take(panel)}

    def report(
        self, path: str | PathLike[str], *, command: str | None = None, truth: Any = None
    ) -> Path:
        """Write a report for people: one HTML file that works offline. See `trueup.report.sections.write_report`."""
        from trueup.report.write import write_report

        return write_report(self, path, command=command, truth=truth)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write this to a file, from which `trueup.load` and `trueup.update` go on. A state there already is replaced.

        The file holds data and no code: methods and rules are kept by their registered name.
        """
        from trueup.result.save import save

        return save(self, path)

    def plot(self, kind: str = "estimates") -> Any:
        """Return an altair chart of the "estimates", the "workers" or the "prior"."""
        from trueup.report.plot import plot

        return plot(self, kind)

    def _repr_html_(self) -> str:
        from trueup.report.card import card

        return card(self)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        answers, origin = self.answers, self.answers.origin
        lines = [
            f"{counted(answers.n_answers, 'answer')} of {counted(answers.n_workers, 'worker')} to "
            f"{counted(answers.n_questions, 'question')}"
            + (f" in {answers.n_panels:,} panels" if answers.n_panels > 1 else "")
        ]
        if origin.n_missing:
            lines.append(
                f"{origin.n_missing:,} of {origin.n_rows:,} rows dropped: no answer in them"
            )
        if origin.n_duplicates:
            lines.append(f"{counted(origin.n_duplicates, 'repeated answer')} merged")
        lines += [str(self.diagnosis), "", *self._table()]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """Show the first questions as text."""
        count = min(SHOWN, self.answers.n_questions)
        first = np.arange(count)
        percent = f"{100 * self.level:g}% interval"
        rows = [("question", "estimate", percent, "answers")]
        for name, j in zip(self.answers.question_ids.tolist(first), first.tolist(), strict=True):
            low, high = self.lower[j], self.upper[j]
            interval = "unknown" if np.isnan(low) else f"{low:.4g} to {high:.4g}"
            short = quoted(str(name), LONGEST_ID).strip('"')
            rows.append((short, f"{self.estimate[j]:.6g}", interval, f"{self.answers.counts[j]}"))
        widths = [max(len(row[c]) for row in rows) for c in range(4)]
        lines = [
            "  ".join(
                cell.ljust(width) if c == 0 else cell.rjust(width)
                for c, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        left = self.answers.n_questions - count
        return lines + ([f"... and {left:,} more"] if left else [])


def worker_columns(
    aggregate: Aggregate,
    moved: SecondStepResult,
    biases: Biases | None,
    ids: Ids,
    flag: list[str | None],
) -> dict[str, Any]:
    """Return the columns of the table of the workers."""
    facts, found = aggregate.facts, aggregate.bias
    # The bias that was taken off, by us or by the method; NaN where none was looked for.
    bias = np.full(facts.n_workers, np.nan) if found is None else found
    if biases is not None:
        bias = biases.value if found is None else biases.value + found
    # A variance is unknown where there is nothing to learn it from.
    known = aggregate.algorithm.needs_variance
    variance = aggregate.noise if known or moved.noise is None else moved.noise.variance
    variance = np.where((facts.spread(facts.overlap) > 0) | known, variance, np.nan)
    columns: dict[str, Any] = {
        "worker": ids,
        "weight": aggregate.weight,
        "variance": variance,
        "bias": bias,
        "n_answers": facts.n_answers.astype(np.int64),
        "flag": flag,
    }
    if biases is not None:
        columns["bias_std_error"] = biases.std_error
    return columns


def worker_flags(engine: Engine, facts: Facts) -> list[str | None]:
    """Return what is remarkable about each worker, or None."""

    def total(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        ones = np.ones(block.n_questions)
        sums = block.by_worker(block.values, ones) + block.by_worker(None, block.centre)
        return Visit(sums=sums[None])

    count = np.maximum(facts.n_answers, 1.0)
    mean = engine.sweep(total).sums[0] / count

    def away(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
        rest = (
            block.values + block.spread(block.centre) - mean[block.worker_slice].take(block.workers)
        )
        return Visit(sums=block.by_worker(np.abs(rest), np.ones(block.n_questions))[None])

    far = engine.sweep(away).sums[0] / count
    constant = (facts.n_answers >= CONSTANT) & (far <= SAME * np.abs(mean))
    words = np.array([None, SAME_ANSWER, SHARES_NOTHING], dtype=object)
    flags: list[str | None] = words[
        np.where(facts.informative == 0, 2, constant.astype(int))
    ].tolist()
    return flags

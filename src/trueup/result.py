"""Estimate: what came out, with where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.arrays import group_order, offsets, segment_max
from trueup.block import ROUNDING
from trueup.errors import counted, quoted
from trueup.io.results import make_frame
from trueup.shrinkage import BolderPrior

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Floats
    from trueup.bias import Biases
    from trueup.gold import Calibration
    from trueup.io.attributes import Labels
    from trueup.io.table import Ids
    from trueup.second_step import SecondStepResult

# How many questions `print` shows, and how much of an id.
SHOWN = 5
LONGEST_ID = 30
# Answers from which on a worker who always says the same is pointed out.
CONSTANT = 5
SAME_ANSWER = "always the same answer"
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
    second_step: str = ""
    gold: str = ""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        lines = [f"method {self.method}{why}, shrink {self.shrink}"]
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
        facts = self.aggregate.facts
        columns: dict[str, Any] = {
            **self._panel_column(self.answers.worker_panel),
            "worker": self.answers.worker_ids,
            "weight": self.aggregate.weight,
            "variance": self._noise,
            "bias": self._bias,
            "n_answers": facts.n_answers.astype(np.int64),
            "flag": self.flag,
        }
        if self.biases is not None:
            columns["bias_std_error"] = self.biases.std_error
        return make_frame(
            self.answers.origin.kind, columns, null_columns=("variance", "bias", "flag")
        )

    @cached_property
    def partition(self) -> Any:
        """Frame with the parts a question belongs to and with which probability; None where no partition was found."""
        prior, sure = self.second_step.prior, self.second_step.certainty
        if not isinstance(prior, BolderPrior) or self.answers.n_panels > 1:
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

    @property
    def _bias(self) -> Floats:
        """Bias of each worker that was taken off, by us or by the method; NaN where none was looked for."""
        found = self.aggregate.bias
        if self.biases is None:
            return np.full(self.answers.n_workers, np.nan) if found is None else found
        return self.biases.value if found is None else self.biases.value + found

    @property
    def _noise(self) -> Floats:
        """Variance of each worker, NaN where there is nothing to learn it from and it is not known."""
        facts, noise = self.aggregate.facts, self.second_step.noise
        known = self.aggregate.algorithm.needs_variance
        variance = self.aggregate.noise if known or noise is None else noise.variance
        return np.where((facts.spread(facts.overlap) > 0) | known, variance, np.nan)

    @cached_property
    def flag(self) -> list[str | None]:
        """What is remarkable about each worker, or None."""
        answers, facts = self.answers, self.aggregate.facts
        order = group_order(answers.workers, answers.n_workers)
        value = (answers.values + np.repeat(answers.centre, answers.counts))[order]
        mine = offsets(facts.n_answers.astype(np.int64))
        first = value[np.minimum(mine[:-1], len(value) - 1)]
        far = segment_max(np.abs(value - np.repeat(first, np.diff(mine))), mine)
        constant = (facts.n_answers >= CONSTANT) & (far <= ROUNDING * np.abs(first))
        alone = facts.informative == 0
        words = np.array([None, SAME_ANSWER, SHARES_NOTHING], dtype=object)
        flags: list[str | None] = words[np.where(alone, 2, constant.astype(int))].tolist()
        return flags

    def _panel_column(self, panel: Any) -> dict[str, Ids | Any]:
        if self.answers.n_panels == 1 and self.answers.origin.panel_ids is None:
            return {}
        ids = self.answers.origin.panel_ids
        return {"panel": panel if ids is None else ids.take(panel)}

    def report(
        self, path: str | PathLike[str], *, command: str | None = None, truth: Any = None
    ) -> Path:
        """Write a report for people: one HTML file that works offline. See `trueup.report.result.write_report`."""
        from trueup.report.result import write_report

        return write_report(self, path, command=command, truth=truth)

    def plot(self, kind: str = "estimates") -> Any:
        """Return an altair chart of the "estimates", the "workers" or the "prior"."""
        from trueup.report.result.plot import plot

        return plot(self, kind)

    def _repr_html_(self) -> str:
        from trueup.report.result.card import card

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
            lines.append(f"{origin.n_duplicates:,} repeated answers merged")
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

"""The numbers, names and words of an estimate that several sections of its report need, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.pipeline.diagnosis import size_in_words
from trueup.report.markup import Name, Rounded, decimals
from trueup.report.names import LONGEST, distinct, shown

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Problem
    from trueup.findings.agreement import Agreement
    from trueup.findings.answers import OddAnswers
    from trueup.findings.answers_needed import AnswersNeeded
    from trueup.findings.collection import Findings
    from trueup.findings.correlated import CorrelatedWorkers
    from trueup.findings.worker_table import WorkerTable
    from trueup.io.table import Ids
    from trueup.result.estimate import Estimate

# Most rows of a chart of questions or workers; of more, the first half of two orders is drawn.
MOST_DRAWN = 60
HALF = MOST_DRAWN // 2
ON_AXIS = 26  # characters of a name beside a chart
IN_TOOLTIP, WHOLE = 200, 600  # in a tooltip of a chart, and of a name in a table
DOMINANT = 0.5  # share of all questions' squared errors above which a single one decides
MOST_ROWS = 2000
FAR_APART = (
    30.0  # largest over smallest value from which on a common number of decimals says too little
)
ROWS_OF_MORE = 1000


@dataclass(frozen=True, eq=False)
class ReportData:
    """An estimate with what a report shows of it.

    Attributes
    ----------
    est : Estimate
    truth : array or None
        True value of each question, NaN where it is not known.
    unit_name : str
        Unit of the answers; empty where it was not given.
    findings : Findings or None
        What stands out; None: the findings of the estimate, as nobody asked for others.
    """

    est: Estimate
    truth: Floats | None = None
    unit_name: str = ""
    findings: Findings | None = None

    @property
    def found(self) -> Findings:
        """What stands out about workers and questions."""
        return self.est.findings if self.findings is None else self.findings

    @property
    def problem(self) -> Problem:
        """Numbers of questions, workers and answers, and their ids."""
        return self.est.problem

    @property
    def m(self) -> int:
        """Number of questions."""
        return self.problem.n_questions

    @property
    def is_single(self) -> bool:
        """Whether this is a single problem, and not several panels."""
        return self.problem.n_panels == 1

    @property
    def panel_names(self) -> list[object]:
        """Names of the panels; their numbers where they have none."""
        origin = getattr(self.problem, "origin", None)
        ids = None if origin is None else origin.panel_ids
        panels = np.arange(self.problem.n_panels)
        return list(panels.tolist() if ids is None else ids.tolist(panels))

    # -- findings, None where they cannot be known ----------------------------------------------------

    @property
    def worker_table(self) -> WorkerTable | None:
        """What stands out about each worker."""
        return self.found.workers if self.is_single else None

    @property
    def correlated(self) -> CorrelatedWorkers | None:
        """Workers with correlated errors or identical answers."""
        correlated = self.found.correlated if self.is_single else None
        return None if correlated is None or correlated.found.n_pairs == 0 else correlated

    @property
    def agreement(self) -> Agreement | None:
        """How well the workers agree."""
        agreement = self.found.agreement if self.is_single else None
        if agreement is None or not np.isfinite([agreement.one.value, agreement.mean.value]).all():
            return None
        return agreement

    @property
    def odd_answers(self) -> OddAnswers | None:
        """Single answers that do not fit what others say about the same question."""
        return self.found.answers if self.is_single else None

    @property
    def answers_needed(self) -> AnswersNeeded | None:
        """How many answers are missing where."""
        return self.found.answers_needed if self.is_single else None

    # -- names -------------------------------------------------------------------------------------

    def questions(self, indices: Ints, longest: int = LONGEST) -> list[str]:
        """Names of questions, no two alike."""
        return self._names(self.problem.question_ids, indices, self._panels(indices), longest)

    def question_cells(self, indices: Ints) -> list[Name]:
        """Names of questions as cells, which know the whole name."""
        return list(map(Name, self.questions(indices), self.questions(indices, WHOLE)))

    def worker_cells(self, indices: Ints) -> list[Name]:
        """Names of workers as cells, which know the whole name."""
        return list(map(Name, self.workers(indices), self.workers(indices, WHOLE)))

    def _panels(self, indices: Ints) -> Ints:
        panels: Ints = np.searchsorted(self.problem.panel_questions, indices, side="right") - 1
        return panels

    def workers(self, indices: Ints, longest: int = LONGEST) -> list[str]:
        """Names of workers, no two alike."""
        panels = self.problem.worker_panel[indices]
        return self._names(self.problem.worker_ids, indices, panels, longest)

    def _names(self, ids: Ids, indices: Ints, panels: Ints, longest: int) -> list[str]:
        names: list[object] = list(ids.tolist(indices))
        if not self.is_single:
            panel_names = self.panel_names
            names = [
                f"{shown(panel_names[panel], 30)} / {shown(name, 60)}"
                for panel, name in zip(panels.tolist(), names, strict=True)
            ]
        return distinct(names, longest)

    # -- numbers -----------------------------------------------------------------------------------

    @cached_property
    def moved(self) -> Floats:
        """How far each question was moved, in answer units."""
        return self.est.estimate - self.est.base

    @cached_property
    def is_gold(self) -> Bools:
        """Questions whose truth was given: their interval is a point."""
        gold = self.est.question_data.gold
        return np.zeros(self.m, dtype=bool) if gold is None else ~np.isnan(gold)

    @cached_property
    def half_width(self) -> Floats:
        """Half the width of the interval of each question, NaN where unknown."""
        return 0.5 * (self.est.upper - self.est.lower)

    @cached_property
    def margin(self) -> Floats:
        """The same as a share of the estimate where logarithms were combined, and intervals grow with the value."""
        return self.half_width / np.abs(self.est.estimate) if self.is_relative else self.half_width

    @property
    def is_relative(self) -> bool:
        """Whether margins of error are shares of the estimate."""
        return self.in_logarithms and bool((np.minimum(self.est.estimate, self.est.base) > 0).all())

    def say_margin(self, value: float) -> str:
        """Write a margin of error in a sentence."""
        return f"±{percent(value)}" if self.is_relative else f"±{self.say_length(value)}"

    @property
    def typical_margin(self) -> float:
        """Margin of error of the median question, those whose truth was given aside."""
        margin = self.margin[~self.is_gold]
        return float(np.nanmedian(margin if np.isfinite(margin).any() else self.margin))

    @property
    def gain(self) -> float:
        """Share by which the second step is expected to lower the mean squared error, NaN if unknown.

        It is unknown as well where a single question has most of the error: then it says nothing about the others.
        """
        v = self.est.second_step.certainty.v
        return float("nan") if is_dominated(v) else self.est.second_step.expected_gain

    @property
    def knows_intervals(self) -> bool:
        """Whether any interval is known."""
        return bool(np.isfinite(self.half_width).any())

    @cached_property
    def by_uncertainty(self) -> Ints:
        """Questions, the least certain first; those of unknown interval before all others."""
        margin = np.where(np.isnan(self.margin), np.inf, self.margin)
        return np.argsort(-margin, kind="stable")

    @cached_property
    def by_move(self) -> Ints:
        """Questions, those that were moved most first and gold questions last."""
        return np.argsort(-np.abs(np.where(self.is_gold, 0.0, self.moved)), kind="stable")

    @cached_property
    def typical_error(self) -> float:
        """Median standard error of the estimates, or else of anything in their unit."""
        for errors in (self.est.std_error, self.est.base_std_error):
            positive = errors[np.isfinite(errors) & (errors > 0)]
            if len(positive):
                return float(np.median(positive))
        return 0.01 * float(np.std(self.est.base))

    @cached_property
    def places(self) -> int | None:
        """Decimals of everything in answer units; None where values differ so much that each needs its own."""
        base = self.est.base
        if self.is_relative and base.max() > FAR_APART * base.min():
            return None
        return decimals(self.typical_error, float(np.abs(self.est.base).max(initial=0.0)))

    def rounded(self, values: Floats) -> list[Rounded]:
        """Write values in answer units as cells."""
        return [Rounded(value, self.places) for value in values.tolist()]

    def say(self, value: float) -> str:
        """Write a value in answer units in a sentence, with a digit less than in a table."""
        return str(Rounded(float(value), None if self.places is None else max(self.places - 1, 0)))

    def say_size(self, value: float) -> str:
        """Write a length in answer units with two significant digits, so that a small one does not become 0."""
        return f"{float(f'{value:.2g}'):,.10g}"

    def say_value(self, value: float) -> str:
        """Write a value with its unit in a sentence."""
        return self.with_unit(self.say(value))

    def say_length(self, value: float) -> str:
        """Write a length with its unit in a sentence."""
        return self.with_unit(self.say_size(value))

    def with_unit(self, text: str) -> str:
        """Add the unit of the answers, where it is known."""
        return f"{text} {self.unit_name}" if self.unit_name else text

    @property
    def digits(self) -> str:
        """Format of values in answer units in tooltips."""
        return ".5~g" if self.places is None else f",.{self.places}f"

    def sample(self, most: int, seed: int = 0) -> Ints:
        """Return all questions, or a random selection of them in order."""
        if self.m <= most:
            return np.arange(self.m)
        return np.sort(np.random.default_rng(seed).choice(self.m, most, replace=False))

    # -- words -------------------------------------------------------------------------------------

    @property
    def transform(self) -> str:
        """Transform of the answers before they were combined, "" for none."""
        return self.est.solution.scale.transform or ""

    @property
    def in_logarithms(self) -> bool:
        """Whether logarithms were combined: differences are proportions."""
        return self.transform in LOGARITHMS

    @property
    def unit(self) -> str:
        """Title of an axis in answer units."""
        return self.unit_name or "answer units"

    @property
    def inner_unit(self) -> str:
        """Title of an axis on the scale on which answers were combined."""
        if self.in_logarithms:
            return "logarithms of the answers"
        return f"{self.transform} of the answers" if self.transform else self.unit

    @property
    def basis(self) -> str:
        """What all numbers rest on, for captions."""
        return size_in_words(self.problem)

    @property
    def percent(self) -> str:
        """Level of the intervals."""
        return f"{100 * self.est.level:g}%"


def is_dominated(squares: Floats) -> bool:
    """Say whether one of several squared errors is larger than all others together.

    Examples
    --------
    >>> is_dominated(np.array([1.0, 2.0, 4.0])), is_dominated(np.ones(5))
    (True, False)
    """
    known = squares[np.isfinite(squares)]
    return len(known) > 1 and bool(known.max() > DOMINANT * known.sum())


def percent(share: float) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent(0.256), percent(0.004), percent(0.0), percent(1.0)
    ('26%', '0.4%', '0%', '100%')
    """
    return f"{share:.0%}" if abs(share) >= 0.0095 or share == 0 else f"{share:.1%}"


def brief(value: float) -> str:
    """Write a number that is not in answer units in a sentence.

    Examples
    --------
    >>> brief(3.79321), brief(12345.6), brief(0.00123456)
    ('3.79', '12,346', '0.00123')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.3g}"


def extremes(first: Ints, second: Ints, half: int = HALF) -> Ints:
    """Return the first of one order, and the first of a second order that are not among them."""
    taken = first[:half]
    return np.concatenate([taken, second[~np.isin(second, taken)][:half]])


def sentence(text: str) -> str:
    """Write a text as a sentence: with a capital letter and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")

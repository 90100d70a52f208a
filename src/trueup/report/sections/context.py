"""What several sections of a report need to know of an estimate, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueup.report.markup import Name, Rounded, decimals
from trueup.report.names import LONGEST, distinct, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.findings.agreement import Agreement
    from trueup.findings.answers_needed import AnswersNeeded
    from trueup.findings.correlated import CorrelatedWorkers
    from trueup.findings.worker_table import WorkerTable
    from trueup.result.estimate import Estimate

# Of a chart with a row for each question or worker, and of the two halves that are shown of more.
MOST_DRAWN = 60
HALF = MOST_DRAWN // 2
ON_AXIS = 26  # characters of a name beside a chart
MOST_ROWS = 2000
ROWS_OF_MORE = 1000
SPANS = {"log": "log scale", "log1p": "log scale", "logit": "log-odds scale"}


@dataclass(frozen=True, eq=False)
class Facts:
    """An estimate, seen by a report.

    Attributes
    ----------
    est : Estimate
    truth : array or None
        True value of each question, NaN where it is not known.
    """

    est: Estimate
    truth: Floats | None = None

    @property
    def m(self) -> int:
        """Number of questions."""
        return self.est.answers.n_questions

    @property
    def one(self) -> bool:
        """Whether this is one problem, and not many panels."""
        return self.est.answers.n_panels == 1

    # -- findings, None where they cannot be known ----------------------------------------------------

    @property
    def worker_table(self) -> WorkerTable | None:
        """What stands out about each worker."""
        return self.est.findings.workers if self.one else None

    @property
    def correlated(self) -> CorrelatedWorkers | None:
        """Workers who err together or copy one another."""
        found = self.est.findings.correlated if self.one else None
        return None if found is None or found.found.n_pairs == 0 else found

    @property
    def agreement(self) -> Agreement | None:
        """How well the workers agree."""
        found = self.est.findings.agreement if self.one else None
        if found is None or not np.isfinite([found.one.value, found.mean.value]).all():
            return None
        return found

    @property
    def answers_needed(self) -> AnswersNeeded | None:
        """How many answers are missing where."""
        return self.est.findings.answers_needed if self.one else None

    # -- names -------------------------------------------------------------------------------------

    def questions(self, at: Ints, longest: int = LONGEST) -> list[str]:
        """Names of questions, no two alike."""
        answers = self.est.answers
        return distinct(
            _in_panel(self, answers.question_ids.tolist(at), answers.question_panel[at]), longest
        )

    def workers(self, at: Ints, longest: int = LONGEST) -> list[str]:
        """Names of workers, no two alike."""
        answers = self.est.answers
        return distinct(
            _in_panel(self, answers.worker_ids.tolist(at), answers.worker_panel[at]), longest
        )

    # -- numbers -----------------------------------------------------------------------------------

    @cached_property
    def moved(self) -> Floats:
        """How far each question was moved, in answer units."""
        return self.est.estimate - self.est.base

    @cached_property
    def is_gold(self) -> Bools:
        """Questions that count as known: their interval is a point."""
        return np.asarray(self.est.std_error == 0.0)

    @cached_property
    def half_width(self) -> Floats:
        """Half the width of the interval of each question, NaN where unknown."""
        return 0.5 * (self.est.upper - self.est.lower)

    @property
    def knows_intervals(self) -> bool:
        """Whether any interval is known."""
        return bool(np.isfinite(self.half_width).any())

    @cached_property
    def by_doubt(self) -> Ints:
        """Questions, the least certain first; those of unknown interval before all others."""
        width = np.where(np.isnan(self.half_width), np.inf, self.half_width)
        return np.argsort(-width, kind="stable")

    @cached_property
    def typical_error(self) -> float:
        """Median standard error of the estimates, or of anything that has their unit."""
        for candidate in (self.est.std_error, self.est.base_std_error):
            known = candidate[np.isfinite(candidate) & (candidate > 0)]
            if len(known):
                return float(np.median(known))
        return 0.01 * float(np.std(self.est.base))

    @cached_property
    def places(self) -> int | None:
        """Decimals of everything in answer units."""
        return decimals(self.typical_error, float(np.abs(self.est.base).max(initial=0.0)))

    def rounded(self, values: Floats) -> list[Rounded]:
        """Write values in answer units as cells."""
        return [Rounded(value, self.places) for value in values.tolist()]

    def say(self, value: float) -> str:
        """Write a value in answer units in a sentence: a digit less than in a table says as much."""
        return str(Rounded(float(value), None if self.places is None else max(self.places - 1, 0)))

    def say_size(self, value: float) -> str:
        """Write a length in answer units, with two digits: it is not nothing even if it is small."""
        return f"{float(f'{value:.2g}'):,.10g}"

    @property
    def format(self) -> str:
        """The same for tooltips."""
        return ".5~g" if self.places is None else f",.{self.places}f"

    def sample(self, most: int, seed: int = 0) -> Ints:
        """Return all questions, or a random selection of them in order."""
        if self.m <= most:
            return np.arange(self.m)
        return np.sort(np.random.default_rng(seed).choice(self.m, most, replace=False))

    # -- words -------------------------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """Title of an axis in answer units."""
        return "answer units"

    @property
    def inner_unit(self) -> str:
        """Title of an axis on the scale on which answers were combined."""
        transform = self.est.solution.scale.transform
        return f"{transform} of the answers" if transform else self.unit

    @property
    def percent(self) -> str:
        """Level of the intervals."""
        return f"{100 * self.est.level:g}%"


def _in_panel(facts: Facts, ids: Sequence[object], panel: Ints) -> list[object]:
    answers = facts.est.answers
    if facts.one:
        return list(ids)
    numbers = answers.origin.panel_ids
    panels = panel.tolist() if numbers is None else numbers.tolist(panel)
    return [
        f"{shown(which, 30)} / {shown(name, 60)}" for which, name in zip(panels, ids, strict=True)
    ]


def named(names: Sequence[str]) -> list[Name]:
    """Return cells of names."""
    return [Name(name) for name in names]


def percent(share: float) -> str:
    """Write a share in words.

    Examples
    --------
    >>> percent(0.256), percent(0.004), percent(0.0), percent(1.0)
    ('26%', '0.4%', '0%', '100%')
    """
    return f"{share:.0%}" if abs(share) >= 0.0095 or share == 0 else f"{share:.1%}"


def brief(value: float) -> str:
    """Write a number in a sentence, where its unit has no usual number of decimals.

    Examples
    --------
    >>> brief(3.79321), brief(12345.6), brief(0.00123456)
    ('3.79', '12,346', '0.00123')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.3g}"


def extremes(first: Ints, second: Ints, half: int = HALF) -> Ints:
    """Return the first of one order and the first others of a second."""
    taken = first[:half]
    return np.concatenate([taken, second[~np.isin(second, taken)][:half]])

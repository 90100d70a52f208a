"""What the second step did: certainty, prior, posterior, and sums over the questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.variance.intervals import Width

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Bools, Floats
    from trueup.engines.protocol import Engine
    from trueup.shrinkage import Prior
    from trueup.shrinkage.adaptive_prior import PriorChoice
    from trueup.shrinkage.contract import Posterior
    from trueup.variance import Certainty, WorkerNoise

#: What estimates are moved toward, by the prior they have.
TOWARD = {
    "normal": "the overall mean",
    "mixture": "the centre of their cluster",
    "scale mixture": "the overall mean",
    "groups": "the mean of their group",
    "group means": "the mean of their group",
    "regression": "the value that the covariates predict",
}


@dataclass(frozen=True, eq=False)
class SecondStepResult:
    """What came out.

    Attributes
    ----------
    engine : Engine
        Keeps the vectors below: `vectors.POSTERIOR_MEAN`, `vectors.POSTERIOR_VARIANCE`, `vectors.SHRINKAGE` and
        `vectors.UNKNOWN`, and as `vectors.AGGREGATE_VARIANCE` the
        variance of the aggregate for intervals.
    posterior : Posterior
        Estimates and their variances.
    prior : Prior
        What was learned of the questions; it can be used on new ones.
    certainty : Certainty
        How sure the first step was.
    marks : array
        Above 0 for questions of which no variance can be known.
    alone : array
        Panels in which no question has two answers, so that workers cannot be compared.
    noise : WorkerNoise or None
        The noise of the workers, where it was needed.
    totals : Totals
        Sums over the questions of each panel.
    tried : tuple of str
        What the caller knew of the questions and no panel has used: "groups", "covariates".
    prior_choice : PriorChoice or None
        The prior of a single problem, where it was chosen by held-out workers, now or before.
    """

    engine: Engine
    posterior: Posterior
    prior: Prior
    certainty: Certainty
    marks: Floats
    alone: Bools
    noise: WorkerNoise | None
    totals: Totals
    tried: tuple[str, ...] = ()
    prior_choice: PriorChoice | None = None

    @property
    def unknown(self) -> Bools:
        """Questions of which no variance can be known."""
        return self.marks > 0

    def width(self, level: float) -> Width:
        """Return what says how wide the intervals are."""
        sure = self.certainty
        return Width(level, sure.interval_nu, sure.shift, sure.shift_nu)

    def std_error(self, answers: Answers) -> Floats:
        """Return the standard error of each estimate, NaN where it cannot be known.

        An error that all questions share through the biases of the workers is part of it.
        """
        shift = self.certainty.shift[answers.question_panel]
        return np.sqrt(np.where(self.unknown, np.nan, self.posterior.variance + shift))

    def half_width(self, answers: Answers, level: float) -> Floats:
        """Return half the width of the interval of each question."""
        panel = answers.question_panel
        quantile = self.width(level).quantile(
            self.posterior.variance, lambda each: each[panel], self.posterior.shrinkage
        )
        return quantile * self.std_error(answers)

    @property
    def models(self) -> list[str]:
        """What was believed of the true values of each panel, where the rule says."""
        model = getattr(self.prior, "model", None)
        return [] if model is None else list(model)

    @property
    def expected_gain(self) -> float:
        """Share by which the second step is expected to lower the mean squared error, NaN if unknown."""
        before, after = self.totals.before.sum(), self.totals.after.sum()
        if self.totals.unknown.any() or not np.isfinite(before) or before <= 0:
            return float("nan")
        return float(1.0 - after / before)

    @property
    def target(self) -> str:
        """What the estimates are moved toward, in words."""
        kinds = {TOWARD.get(model, model) for model in self.models} - {"none"}
        return " or ".join(sorted(kinds)) or "the overall mean"

    def __str__(self) -> str:
        return self.in_words(float(self.totals.shrinkage.sum()) / self.engine.problem.n_questions)

    def in_words(self, moved: float, *, independent: bool = True) -> str:
        """Say how far estimates were moved, and what that brings if workers err independently."""
        if moved == 0:
            text = "shrinkage (second step) changed no estimates"
            if self.totals.shrinkage.any():
                text += ": crowds like this one have mostly understated differences already"
        else:
            text = f"shrinkage (second step) moved estimates {moved:.1%} of the way toward {self.target} on average"
            gain = self.expected_gain
            if independent and gain > 0:
                text += f"; if workers err independently, this lowers the mean squared error by about {gain:.1%}"
        parts = [
            text,
            *(
                f"the {name} were not used: they did not predict held-out workers better"
                for name in self.tried
            ),
        ]
        if self.prior_choice is not None and self.prior_choice.changed:
            parts.append(
                f"the kind of prior was chosen earlier, from {self.prior_choice.answers:,} answers, and kept"
            )
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over the questions of each panel.

    Attributes
    ----------
    unknown : array
        Questions of which no variance can be known.
    pointless : array
        Questions whose posterior variance is not known.
    before, after : arrays
        Variances of the aggregates and of the estimates.
    shrinkage : array
        How far the questions were moved.
    past, farthest : arrays
        Questions that were moved past their centre, and the largest shrinkage.
    """

    unknown: Floats
    pointless: Floats
    before: Floats
    after: Floats
    shrinkage: Floats
    past: Floats
    farthest: Floats

    @classmethod
    def of(cls, sums: Floats, farthest: Floats) -> Totals:
        """Name the rows of a sweep."""
        unknown, pointless, before, after, shrinkage, past = sums
        return cls(unknown, pointless, before, after, shrinkage, past, farthest)

"""The contract of a second step: aggregates and their variances in, posterior out.

    prior     = rule.fit(x, v)
    posterior = prior.posterior(x, v)

A shrink rule sees neither workers nor answers. It handles many panels at once: `panels` tells where the questions of
each begin, and every panel gets a prior of its own. A fitted prior can be used on new questions of the same panels.

Further information comes as keywords, of which a rule uses those it can:

==============  ======================================================================================
`nu`            degrees of freedom behind the variances, one number per panel (default: infinite)
`v_interval`    variances for intervals where they should be more careful than `v`
`halves`        aggregates of random halves of the workers, on which alternatives to the normal prior are tried
`prior_choice`  the kind of prior that was chosen before, to be fitted without another trial
`groups`        number of the group of each question, -1 for none
`covariates`    a row of numbers for each question
==============  ======================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from trueup.core.arrays import segment_sum
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.core.arrays import Floats, Ints

Scalar = TypeVar("Scalar", bound=np.generic)

#: The square of the largest answer; sums of larger variances may overflow.
LARGEST_VARIANCE = 1e300


@dataclass(frozen=True, eq=False)
class Posterior:
    """The result of the second step for each question.

    Attributes
    ----------
    mean : array
        The estimates.
    variance : array
        Posterior variance, NaN where the rule gives a point estimate only.
    shrinkage : array
        How far each aggregate was moved: 0 not at all, 1 all the way to the centre, above 1 past it.
    """

    mean: Floats
    variance: Floats
    shrinkage: Floats

    def take(self, questions: Ints) -> Posterior:
        """Return the part for some questions."""
        return Posterior(self.mean[questions], self.variance[questions], self.shrinkage[questions])

    def replaced(self, questions: Ints, new: Posterior) -> Posterior:
        """Return a copy with another posterior of some questions."""
        copy = Posterior(self.mean.copy(), self.variance.copy(), self.shrinkage.copy())
        copy.mean[questions], copy.variance[questions] = new.mean, new.variance
        copy.shrinkage[questions] = new.shrinkage
        return copy


class Prior(Protocol):
    """The distribution of true values of each panel, as fitted by a rule."""

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Return the posterior of questions with aggregates `x` of variance `v`.

        `extra` may have `v_interval`, `groups` and `covariates` of these questions.
        """
        ...


@dataclass(frozen=True, eq=False)
class Halves:
    """Aggregates of random halves of the workers.

    Attributes
    ----------
    x, v : arrays, splits x 2 x questions
        Aggregate and variance by each half of each split; NaN where a question has no answer in the half.
    """

    x: Floats
    v: Floats

    def of(self, questions: Ints | slice) -> Halves:
        """Return the part for some questions."""
        return Halves(self.x[..., questions], self.v[..., questions])

    def first(self, splits: int) -> Halves:
        """Return the first so many splits."""
        return Halves(self.x[:splits], self.v[:splits])


class ShrinkRule:
    """A second step. Subclass it as a frozen dataclass of parameters."""

    name: ClassVar[str] = ""
    #: The variance rule to use with it by default.
    variance: ClassVar[str] = "moderated"
    #: Whether it tries alternatives to the normal prior on halves of the workers.
    needs_holdout: ClassVar[bool] = False

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any) -> Prior:
        """Fit a prior to aggregates `x` with variances `v`, for each panel.

        `extra` may have `nu`, `v_interval`, `halves`, `prior_choice`, `groups` and `covariates`, see above.
        """
        raise NotImplementedError


def _numbers(name: str, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TrueupError(f"{quoted(values)} is not an array of numbers.", argument=name) from None


@dataclass(frozen=True, eq=False)
class Panels:
    """Questions of several panels side by side, with sums over each panel.

    `starts` has one entry more than there are panels; panel b has the questions from its entry up to the next.
    """

    starts: Ints

    @classmethod
    def of(
        cls, x: Floats, v: Floats, panels: Ints | None, fitted_on: int | None = None
    ) -> tuple[Panels, Floats, Floats]:
        """Check aggregates and variances, and return them as arrays of equal length.

        A prior passes the number of panels it was `fitted_on`.
        """
        x, v = _numbers("x", x), _numbers("v", v)
        if x.ndim != 1:
            raise TrueupError(f"x: found {x.ndim} dimensions, expected one aggregate per question.")
        if v.shape not in ((), (1,), x.shape):
            raise TrueupError(f"v: found shape {v.shape}, expected one variance per question.")
        v = np.broadcast_to(v, x.shape)
        if not np.isfinite(x).all():
            raise TrueupError("x: aggregates must be finite.")
        if not ((v >= 0) & (v <= LARGEST_VARIANCE)).all():
            raise TrueupError(f"v: variances must be from 0 to {LARGEST_VARIANCE:g}.")
        panels = np.array([0, len(x)]) if panels is None else np.asarray(panels, dtype=np.int64)
        if panels[0] != 0 or panels[-1] != len(x) or (np.diff(panels) < 0).any():
            raise TrueupError(f"panels: must rise from 0 to the number of questions, {len(x)}.")
        if fitted_on not in (None, len(panels) - 1):
            raise TrueupError(
                f"panels: found {len(panels) - 1}, the prior was fitted on {fitted_on}."
            )
        return cls(panels), x, v

    @property
    def sizes(self) -> Floats:
        """Number of questions of each panel."""
        return np.diff(self.starts).astype(np.float64)

    def sum(self, values: Floats) -> Floats:
        """Return the sum over the questions of each panel."""
        return segment_sum(values, self.starts)

    def mean(self, values: Floats) -> Floats:
        """Return the mean over the questions of each panel, 0 for a panel without questions."""
        return self.sum(values) / np.maximum(self.sizes, 1.0)

    def repeat(self, per_panel: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the number of its panel for each question."""
        return np.repeat(per_panel, np.diff(self.starts))

    def centre(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the mean of each panel and the sum of squares around it.

        The sum is exactly 0 where all aggregates of a panel agree.
        """
        first = x[np.minimum(self.starts[:-1], max(len(x) - 1, 0))] if len(x) else self.sizes
        mean = first + self.mean(x - self.repeat(first))
        return mean, self.sum((x - self.repeat(mean)) ** 2)

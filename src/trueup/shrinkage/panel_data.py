"""What a rule may know of the questions besides aggregates and variances, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import expand, offsets
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.contract import Posterior, Prior

LARGEST_COVARIATE = 1e100  # whose square is still a number


@dataclass(frozen=True, eq=False)
class PanelData:
    """The questions of several panels with all that is known of them.

    Attributes
    ----------
    x, v : arrays
        Aggregates and their variances.
    starts : array
        Where the questions of each panel begin, and where the last ones end.
    nu : array
        Degrees of freedom of the variances of each panel.
    v_interval : array
        Variances for intervals, nowhere below `v`; `v` itself if there are no others.
    groups : array, optional
        Number of the group of each question, -1 for none.
    covariates : array, optional
        Questions x covariates.
    """

    x: Floats
    v: Floats
    starts: Ints
    nu: Floats
    v_interval: Floats
    groups: Ints | None = None
    covariates: Floats | None = None

    @classmethod
    def of(cls, x: Floats, v: Floats, starts: Ints, extra: Mapping[str, Any]) -> PanelData:
        """Check the keywords of a rule or prior and bring them into one shape."""
        groups, covariates = extra.get("groups"), extra.get("covariates")
        return cls(
            x,
            v,
            starts,
            degrees_of_freedom(extra.get("nu"), len(starts) - 1),
            interval_variance(v, extra.get("v_interval")),
            None if groups is None else _check_groups(groups, len(x)),
            None if covariates is None else _check_covariates(covariates, len(x)),
        )

    def positions(self, panels: Ints) -> Ints:
        """Return the positions of the questions of some panels."""
        return expand(self.starts[panels], np.diff(self.starts)[panels])

    def panels(self, panels: Ints) -> PanelData:
        """Return the questions of some panels."""
        starts = offsets(np.diff(self.starts)[panels])
        return self.take(self.positions(panels), starts, self.nu[panels])

    def take(self, positions: Ints, starts: Ints, nu: Floats) -> PanelData:
        """Return some of the questions, put into panels that begin at `starts`."""
        v = self.v[positions]
        return PanelData(
            self.x[positions],
            v,
            starts,
            nu,
            v if self.v_interval is self.v else self.v_interval[positions],
            None if self.groups is None else self.groups[positions],
            None if self.covariates is None else self.covariates[positions],
        )

    def posterior(self, prior: Prior, common: Posterior) -> Posterior:
        """Apply a prior; questions that it does not cover keep the posterior `common`."""
        return prior.posterior(
            self.x,
            self.v,
            panels=self.starts,
            v_interval=self.v_interval,
            groups=np.full(len(self.x), -1) if self.groups is None else self.groups,
            covariates=self.covariates,
            common=common,
        )


def interval_variance(v: Floats, v_interval: object) -> Floats:
    """Return the variances for intervals, nowhere below `v`; `v` itself if none exceeds it."""
    if v_interval is None or v_interval is v:
        return v
    careful = np.broadcast_to(np.asarray(v_interval, dtype=np.float64), v.shape)
    if not (np.isfinite(careful) & (careful >= 0)).all():
        raise TrueupError("v_interval: variances must be finite and not negative.")
    return v if (careful <= v).all() else np.maximum(v, careful)


def degrees_of_freedom(nu: object, panels: int) -> Floats:
    """Return one positive number for each panel, infinite by default."""
    numbers = np.asarray(np.inf if nu is None else nu, dtype=np.float64)
    if numbers.ndim > 1 or numbers.size not in (1, panels):
        raise TrueupError(f"nu: found {numbers.size} numbers for {panels} panels.")
    if not (numbers > 0).all():
        raise TrueupError("nu: must be positive.")
    return np.broadcast_to(numbers, (panels,))


def _check_groups(groups: object, questions: int) -> Ints:
    labels = np.asarray(groups)
    if labels.shape != (questions,) or labels.dtype.kind not in "iu":
        raise TrueupError(
            f"expected {questions} integers, one for each question.", argument="groups"
        )
    return labels.astype(np.int64, copy=False)


def _check_covariates(covariates: object, questions: int) -> Floats:
    z = np.asarray(covariates, dtype=np.float64)
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or len(z) != questions:
        raise TrueupError(
            f"found shape {z.shape}, expected {questions} rows.", argument="covariates"
        )
    if not (np.abs(z) < LARGEST_COVARIATE).all():
        raise TrueupError(
            f"must be finite numbers below {LARGEST_COVARIATE:g}.", argument="covariates"
        )
    return z

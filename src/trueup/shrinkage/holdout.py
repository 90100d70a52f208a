"""Whether an alternative prior is better than the normal one, judged by workers it has not seen.

The workers are split into halves A and B, several times. Both priors are fitted to the aggregates of half A and
predict those of half B, and the other way round. With `N_j` and `M_j` the predictions by the normal and the alternative
prior, `y_j` the target and `u_j = 1 / (v^B_j + mean v^A)`, averaged over splits and directions,

    g_j = u_j ( (N_j - y_j)^2 - (M_j - y_j)^2 ),    gain G = sum g_j,    z = G / sqrt(sum g_j^2)

Each half may have a bias, so the mean difference of the halves, weighted by u, is first subtracted from the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import offsets, segment_sum
from trueup.errors import TrueupError
from trueup.shrinkage.condense import condense
from trueup.shrinkage.expectation import fit_location, fit_scale, serial
from trueup.shrinkage.location_mixture import location_means
from trueup.shrinkage.mixture_search import FLOOR, SCALE_MIXTURE
from trueup.shrinkage.normal import Normal
from trueup.shrinkage.scale_mixture import scale_posterior
from trueup.shrinkage.tiles import CELLS, side_by_side, uncut_tiles

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.contract import Halves, Posterior
    from trueup.shrinkage.mixture_search import PreferredMixtures
    from trueup.shrinkage.panel_data import PanelData
    from trueup.shrinkage.tiles import Tile

LEAST = 8  # questions answered in both halves
LEAST_NOISE = 1e-300  # a smaller variance is none: its inverse is hardly a number


@dataclass(frozen=True, eq=False)
class HoldoutScore:
    """How an alternative did on each panel; NaN where it was not tried."""

    gain: Floats
    z: Floats


@dataclass(frozen=True, eq=False)
class HoldoutTrial:
    """All halves of some panels, each a panel of its own.

    Attributes
    ----------
    data : PanelData
        Aggregates and variances to fit to.
    target, precision : arrays
        Aggregates to predict, without the mean difference, and their weights u.
    panel : array
        The panel that each half belongs to.
    question : array
        Number of the question of each aggregate.
    normal : Posterior
        By the normal prior fitted to each half.
    bounds : array
        Where the questions of each panel begin, all panels included.
    turns : int
        Splits times directions.
    """

    data: PanelData
    target: Floats
    precision: Floats
    panel: Ints
    question: Ints
    normal: Posterior
    bounds: Ints
    turns: int

    @classmethod
    def of(cls, halves: Halves, data: PanelData, panels: Ints) -> HoldoutTrial | None:
        """Lay out the halves of some panels; return None if none has enough questions answered in both halves."""
        bounds = data.starts
        if halves.x.ndim != 3 or halves.x.shape[1:] != (2, bounds[-1]):
            raise TrueupError(
                f"halves: found shape {halves.x.shape}, expected splits x 2 x {bounds[-1]}."
            )
        if halves.v.shape != halves.x.shape:
            raise TrueupError(f"halves: x has shape {halves.x.shape}, v {halves.v.shape}.")
        sizes, positions = np.diff(bounds)[panels], data.positions(panels)
        everything = len(positions) == bounds[-1]
        x, v = (part if everything else part[..., positions] for part in (halves.x, halves.v))
        finite = np.isfinite(x) & np.isfinite(v)
        both: Bools = finite[:, 0] & finite[:, 1]
        panel = np.repeat(np.arange(len(panels)), sizes)
        # Of a large problem there are few splits, and a sample of the questions.
        tried, asked = both.any(axis=1), both.any(axis=0)
        if not tried.any():
            return None
        x, v = x[tried][..., asked], v[tried][..., asked]
        both = both[tried][:, asked]
        panel, positions = panel[asked], positions[asked]
        sizes = np.bincount(panel, minlength=len(panels))
        counts = np.stack([np.bincount(panel[split], minlength=len(panels)) for split in both])
        both &= np.repeat(counts >= LEAST, sizes, axis=1)
        counts = np.where(counts >= LEAST, counts, 0)
        mask = np.repeat(both[:, None, :], 2, axis=1)
        lengths = np.repeat(counts[:, None, :], 2, axis=1).ravel()
        if not lengths.any():
            return None
        used = lengths > 0
        panel = np.tile(panels, len(lengths) // len(panels))[used]
        lengths = lengths[used]
        starts = offsets(lengths)
        x_from, v_from, x_to, v_to = x[mask], v[mask], x[:, ::-1][mask], v[:, ::-1][mask]
        noise = v_to + np.repeat(segment_sum(v_from, starts) / lengths, lengths)
        u = np.divide(1.0, noise, out=np.zeros(len(noise)), where=noise > LEAST_NOISE)
        weight = np.maximum(segment_sum(u, starts), np.finfo(float).tiny)
        shift = segment_sum(u * (x_to - x_from), starts) / weight
        normal = Normal(caution=1.0).fit(x_from, v_from, panels=starts)
        question = np.broadcast_to(positions, mask.shape)[mask]
        half_data = data.take(question, starts, np.full(len(lengths), np.inf))
        return cls(
            data=replace(half_data, x=x_from, v=v_from, v_interval=v_from),
            target=x_to - np.repeat(shift, lengths),
            precision=u,
            panel=panel,
            question=question,
            normal=normal.posterior(x_from, v_from, panels=starts),
            bounds=bounds,
            turns=2 * len(halves.x),
        )

    def score(self, predicted: Floats) -> HoldoutScore:
        """Compare predictions with those of the normal prior, for each panel."""
        # (N - y)^2 - (M - y)^2, without subtracting two large squares
        step = self.normal.mean - predicted
        better = self.precision * step * (2.0 * (self.normal.mean - self.target) - step)
        count = int(self.bounds[-1])
        gains = np.bincount(self.question, better, minlength=count) / self.turns
        gain = segment_sum(gains, self.bounds)
        noise = np.sqrt(segment_sum(gains * gains, self.bounds))
        z = np.divide(gain, noise, out=np.zeros(len(gain)), where=noise > 0)
        tried = np.zeros(len(gain), dtype=bool)
        tried[self.panel] = True
        return HoldoutScore(np.where(tried, gain, np.nan), np.where(tried, z, np.nan))

    def mixtures(self, preferred: PreferredMixtures) -> Floats:
        """Predict by the mixture that each panel prefers, fitted anew to each half; elsewhere by the normal prior."""
        predicted = self.normal.mean.copy()
        kinds = preferred.kind[self.panel]
        for kind in np.unique(kinds[kinds > 0]):
            halves = np.flatnonzero(kinds == kind)
            positions = self.data.positions(halves)
            predicted[positions] = self._mixture(preferred, halves, positions)
        return predicted

    def _mixture(self, preferred: PreferredMixtures, halves: Ints, positions: Ints) -> Floats:
        """Predict by the mixture of one kind, fitted anew to each of these halves."""
        panel, x, v = self.panel[halves], self.data.x[positions], self.data.v[positions]
        is_scale = preferred.kind[panel[0]] == SCALE_MIXTURE
        predicted = np.empty(len(x))

        def predict(tile: Tile) -> None:
            rows, at = tile
            units, start = preferred.of(panel[rows])
            floor = FLOOR * np.median(v[at].reshape(len(rows), -1), axis=1)
            units = replace(units, floor=np.maximum(floor, units.floor))
            every = np.arange(len(rows))
            t, u = units.standardise(every, x[at], v[at])
            points, variances, number = condense(t, u)
            if is_scale:
                mixture = fit_scale(points, variances, start, number=number)
                mean = scale_posterior(t, u, mixture)[0]
            else:
                mixture = fit_location(points, variances, start, number=number, mapping=serial)
                mean = location_means(t, u, mixture)
            mean, _ = units.restore(every, mean, u)
            predicted[at] = mean.reshape(predicted[at].shape)

        starts = offsets(np.diff(self.data.starts)[halves])
        side_by_side(predict, uncut_tiles(starts, CELLS), len(x) // CELLS)
        return predicted

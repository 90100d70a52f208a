"""Whether a bolder prior is better than the normal one, by workers it has not seen.

The workers are split into halves A and B, several times. Both priors are fitted to the aggregates of half A and
predict those of half B, and the other way round. With `N_j` and `M_j` the predictions by the normal and the bolder
prior, `y_j` the target and `u_j = 1 / (v^B_j + mean v^A)`, averaged over splits and directions,

    g_j = u_j ( (N_j - y_j)^2 - (M_j - y_j)^2 ),    gain G = sum g_j,    z = G / sqrt(sum g_j^2)

The halves may have biases of their own, so their mean difference, weighted by u, is taken out of the target first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import expand, offsets, segment_sum
from trueup.errors import TrueupError
from trueup.shrinkage.expectation import alone, fit_location, fit_scale
from trueup.shrinkage.mixture import FLOOR, SCALE, Chosen, plug_in
from trueup.shrinkage.normal import Normal
from trueup.shrinkage.quadrature import CELLS, PanelUnits, side_by_side, tiles

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.shrinkage.contract import Halves, Posterior
    from trueup.shrinkage.quadrature import Tile

LEAST = 8  # questions answered in both halves
SMALL = 1 << 13  # questions of a half that is hardly worth a thread


@dataclass(frozen=True, eq=False)
class HoldoutScore:
    """How a bolder prior did on each panel; NaN where it was not tried."""

    gain: Floats
    z: Floats


@dataclass(frozen=True, eq=False)
class HoldoutTrial:
    """All halves of some panels, each a panel of its own.

    Attributes
    ----------
    x, v : arrays
        Aggregates and variances to fit to.
    target, precision : arrays
        What to predict, without the mean difference, and its weight u.
    panels : array
        Where each half begins.
    panel : array
        The panel that each half is of.
    question : array
        Which of all questions each entry is.
    normal : Posterior
        Of the normal prior fitted to each half.
    bounds : array
        Where the questions of each of all panels begin.
    turns : int
        Splits times directions.
    """

    x: Floats
    v: Floats
    target: Floats
    precision: Floats
    panels: Ints
    panel: Ints
    question: Ints
    normal: Posterior
    bounds: Ints
    turns: int

    @classmethod
    def of(cls, halves: Halves, bounds: Ints, rows: Ints) -> HoldoutTrial | None:
        """Lay out the halves of some panels; None where none has enough questions answered in both."""
        if halves.x.ndim != 3 or halves.x.shape[1:] != (2, bounds[-1]):
            raise TrueupError(
                f"halves: found shape {halves.x.shape}, expected splits x 2 x {bounds[-1]}."
            )
        if halves.v.shape != halves.x.shape:
            raise TrueupError(f"halves: x has shape {halves.x.shape}, v {halves.v.shape}.")
        sizes = np.diff(bounds)[rows]
        at = expand(bounds[rows], sizes)
        whole = len(at) == bounds[-1]
        x, v = (part if whole else part[..., at] for part in (halves.x, halves.v))
        finite = np.isfinite(x) & np.isfinite(v)
        both: Bools = finite[:, 0] & finite[:, 1]
        panel = np.repeat(np.arange(len(rows)), sizes)
        counts = np.stack([np.bincount(panel[here], minlength=len(rows)) for here in both])
        both &= np.repeat(counts >= LEAST, sizes, axis=1)
        counts = np.where(counts >= LEAST, counts, 0)
        mask = np.repeat(both[:, None, :], 2, axis=1)
        many = np.repeat(counts[:, None, :], 2, axis=1).ravel()
        if not many.any():
            return None
        used = many > 0
        panels = offsets(many[used])
        x_from, v_from, x_to, v_to = x[mask], v[mask], x[:, ::-1][mask], v[:, ::-1][mask]
        lengths = np.diff(panels)
        noise = v_to + np.repeat(segment_sum(v_from, panels) / lengths, lengths)
        u = np.divide(1.0, noise, out=np.zeros(len(noise)), where=noise > 0)
        weight = np.maximum(segment_sum(u, panels), np.finfo(float).tiny)
        shift = segment_sum(u * (x_to - x_from), panels) / weight
        normal = Normal(caution=1.0).fit(x_from, v_from, panels=panels)
        return cls(
            x=x_from,
            v=v_from,
            target=x_to - np.repeat(shift, lengths),
            precision=u,
            panels=panels,
            panel=np.tile(rows, len(many) // len(rows))[used],
            question=np.broadcast_to(at, mask.shape)[mask],
            normal=normal.posterior(x_from, v_from, panels=panels),
            bounds=bounds,
            turns=2 * len(x),
        )

    def score(self, predicted: Floats) -> HoldoutScore:
        """Compare predictions with those of the normal prior, for each of all panels."""
        # (N - y)^2 - (M - y)^2, without subtracting two large squares
        step = self.normal.mean - predicted
        better = self.precision * step * (2.0 * (self.normal.mean - self.target) - step)
        count = int(self.bounds[-1])
        each = np.bincount(self.question, better, minlength=count) / self.turns
        gain = segment_sum(each, self.bounds)
        noise = np.sqrt(segment_sum(each * each, self.bounds))
        z = np.divide(gain, noise, out=np.zeros(len(gain)), where=noise > 0)
        tried = np.zeros(len(gain), dtype=bool)
        tried[self.panel] = True
        return HoldoutScore(np.where(tried, gain, np.nan), np.where(tried, z, np.nan))

    def mixtures(self, chosen: Chosen) -> Floats:
        """Predict by the mixture that each panel prefers, fitted anew to each half; elsewhere by the normal prior."""
        predicted = self.normal.mean.copy()
        kinds = chosen.kind[self.panel]
        lengths = np.diff(self.panels)
        for kind in np.unique(kinds[kinds > 0]):
            mine = np.flatnonzero(kinds == kind)
            at = expand(self.panels[mine], lengths[mine])
            predicted[at] = self._mixture(chosen, mine, self.x[at], self.v[at])
        return predicted

    def _mixture(self, chosen: Chosen, mine: Ints, x: Floats, v: Floats) -> Floats:
        """Predict by the mixture of one kind, fitted anew to each of these halves."""
        scale_mixture = chosen.kind[self.panel[mine[0]]] == SCALE
        lengths = np.diff(self.panels)[mine]
        predicted = np.empty(len(x))

        def fit(tile: Tile) -> None:
            rows, pick = tile
            scale, start = chosen.of(self.panel[mine[rows]])
            v_here = v[pick].reshape(len(rows), -1)
            floor = FLOOR * np.median(v_here, axis=1)
            scale = PanelUnits(
                scale.centre, scale.unit, np.maximum(floor, scale.floor), scale.usable
            )
            t, u = scale.place(x[pick].reshape(len(rows), -1)), scale.spread(v_here)
            fit_anew = fit_scale if scale_mixture else partial(fit_location, crew=alone)
            found = fit_anew(t, u, start)
            mean = plug_in(t, u, found, shared_location=scale_mixture)
            mean = scale.centre[:, None] + scale.unit[:, None] * mean
            predicted[pick] = mean.reshape(predicted[pick].shape)

        room = max(CELLS // 4, int(lengths.max()))
        side_by_side(fit, tiles(offsets(lengths), room), len(x) // SMALL)
        return predicted

"""A normal prior around a regression on covariates of the questions.

    t_j ~ N(theta_j, c v_j),  theta_j ~ N(z_j' beta, tau2),  beta flat,  p(tau2) ~ 1 / (tau2 + v0)

with an intercept in `z_j`. Given tau2 (and c), with `W = diag(w_j)`, `w_j = 1 / (c v_j + tau2)`, beta has the normal
posterior with mean `b = (Z'WZ)^-1 Z'Wt` and covariance `(Z'WZ)^-1`; integrating it out leaves the restricted likelihood

    log L(tau2) = 1/2 sum log w_j - 1/2 log det Z'WZ - 1/2 sum w_j (t_j - z_j' b)^2

(Patterson and Thompson, Biometrika 1971). Given tau2 and beta a true value has mean `B_j z_j'beta + (1 - B_j) t_j` and
variance `c v_j (1 - B_j)`, `B_j = c v_j w_j`; hence

    e_j   = E[ B_j z_j'b + (1 - B_j) t_j ]
    var_j = E[ c v_j (1 - B_j) + B_j^2 z_j' (Z'WZ)^-1 z_j ] + Var[ B_j z_j'b + (1 - B_j) t_j ]

over tau2 and c, by the quadrature of the normal prior, which is the case of an intercept alone (Fay and Herriot, JASA
1979).

Covariates are standardised and turned into an orthogonal basis by a singular value decomposition: columns that are
constant or combinations of others add no direction to it.

All products are taken over blocks of questions, so small that BLAS does not start its threads for them: a fit is
thousands of small products, and threads wait for each other longer than they work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.shrinkage.contract import Panels
from trueup.shrinkage.quadrature import (
    HIGHEST,
    POINTS,
    PanelGrid,
    at_each_point,
    fit_grids,
    integrate,
    read_posterior,
)
from trueup.shrinkage.tiles import CELLS, uncut_tiles
from trueup.shrinkage.units import PanelUnits

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.panel_data import PanelData
    from trueup.shrinkage.quadrature import Integral, Moved
    from trueup.shrinkage.tiles import Positions

LEAST_FREE = 4  # questions less covariates and intercept
ALONE = 1 << 18  # multiplications up to which BLAS takes a matrix product on one thread
INDEPENDENT = 1e-8  # smallest singular value of an independent direction, relative to the largest


@dataclass(frozen=True, eq=False)
class Basis:
    """The directions that the covariates of each panel span.

    Attributes
    ----------
    middle, spread : arrays
        Mean and standard deviation of each covariate, panels x covariates.
    turn : array
        From the standardised row with a leading 1 to the basis, panels x (covariates + 1) x (covariates + 1). Columns
        beyond the rank are 0.
    rank : array
        Number of directions in use.
    """

    middle: Floats
    spread: Floats
    turn: Floats
    rank: Ints

    @classmethod
    def fit(cls, covariates: Floats, starts: Ints) -> Basis:
        """Find the basis of each panel; panels with too few questions have rank 0."""
        count, width = len(starts) - 1, covariates.shape[1]
        basis = cls(
            np.zeros((count, width)),
            np.ones((count, width)),
            np.zeros((count, width + 1, width + 1)),
            np.zeros(count, dtype=np.int64),
        )
        enough = np.diff(starts) >= width + 1 + LEAST_FREE
        for rows, positions in uncut_tiles(starts, CELLS // (width + 1), enough):
            basis._put(rows, covariates[positions].reshape(len(rows), -1, width))
        return basis

    def _put(self, rows: Ints, z: Floats) -> None:
        """Find the basis of panels x questions x covariates."""
        spread = z.std(axis=1)
        # The spread of a constant column is rounding error.
        constant = spread <= INDEPENDENT * np.abs(z).max(axis=1)
        self.middle[rows], self.spread[rows] = z.mean(axis=1), np.where(constant, np.inf, spread)
        _, values, turned = np.linalg.svd(_triangle(self._standardise(rows, z)))
        used = values > INDEPENDENT * values[:, :1]
        size = np.sqrt(z.shape[1]) / np.where(used, values, np.inf)
        self.turn[rows] = np.swapaxes(turned, 1, 2) * size[:, None, :]
        self.rank[rows] = used.sum(axis=1)

    def _standardise(self, rows: Ints, z: Floats) -> Floats:
        scaled = (z - self.middle[rows, None]) / self.spread[rows, None]
        return np.concatenate([np.ones((*z.shape[:2], 1)), scaled], axis=2)

    def place(self, rows: Ints, z: Floats) -> Floats:
        """Return the covariates of some panels in the basis, panels x questions x directions."""
        z = z.reshape(len(rows), -1, z.shape[-1])
        return self._standardise(rows, z) @ self.turn[rows]


@dataclass(frozen=True, eq=False)
class Regression:
    """A normal prior around a regression, for each panel."""

    basis: Basis
    grid: PanelGrid
    careful: PanelGrid

    @classmethod
    def fit(cls, data: PanelData) -> Regression | None:
        """Fit; return None if no panel has enough questions, or covariates that vary."""
        x, starts, z = data.x, data.starts, data.covariates
        if z is None:
            return None
        basis = Basis.fit(z, starts)
        enough = basis.rank > 1
        if not enough.any():
            return None
        width = z.shape[1] + 1

        def fit(v: Floats, c: Floats) -> PanelGrid:
            def fit_tile(rows: Ints, positions: Positions, t: Floats, u: Floats) -> Integral:
                return _fit_tile(t, u, basis.place(rows, z[positions]), basis.rank[rows], c[rows])

            units = PanelUnits.fit(x, v, starts)
            return PanelGrid.fit(
                fit_tile,
                x,
                v,
                starts,
                replace(units, usable=units.usable & enough),
                beta=(width,),
                precision=(width, width),
                entries=CELLS // (4 * width),
            )

        return cls(basis, *fit_grids(fit, data.v, data.v_interval, data.nu))

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        """Move the aggregates; `common` is the posterior of panels without a regression."""
        if extra.get("covariates") is None:
            raise TrueupError(
                "this prior was fitted with them and needs them here.", argument="covariates"
            )
        z: Floats = extra["covariates"]

        def read(grid: PanelGrid, rows: Ints, positions: Positions, x: Floats, v: Floats) -> Moved:
            across = np.swapaxes(self.basis.place(rows, z[positions]), 1, 2)
            centre = grid.beta[rows] @ across
            centre_variance = np.square(grid.precision[rows] @ across[:, None]).sum(axis=2)
            return grid.read(rows, x, v, centre, centre_variance)

        grids, units = (self.grid, self.careful), self.grid.units
        width = z.shape[1] + 1
        entries = min(CELLS // (POINTS * width), ALONE // (max(POINTS, width) * width))
        own = read_posterior(read, grids, units, x, v, panels, extra, entries=entries)
        common: Posterior | None = extra.get("common")
        if common is None:
            return own
        by_panel, *_ = Panels.of(x, v, panels)
        moved = np.flatnonzero(by_panel.repeat(units.usable))
        return common.replaced(moved, own.take(moved))


def _blocks(values: Floats, rows: int) -> Floats:
    """Return panels x blocks x `rows` questions x ..., the last block filled up with zeros."""
    count, questions, *rest = values.shape
    missing = -questions % rows
    if missing:
        values = np.concatenate([values, np.zeros((count, missing, *rest))], axis=1)
    return values.reshape(count, -1, rows, *rest)


def _triangle(z: Floats) -> Floats:
    """Return matrices with at most as many rows as columns that have the singular values and directions of `z`.

    The triangular factors of blocks of questions, put together and factored again (Demmel, Grigori, Hoemmen and
    Langou, SIAM Journal on Scientific Computing 2012).
    """
    width = z.shape[2]
    while z.shape[1] > width:
        rows = min(2 * width, z.shape[1])
        z = np.asarray(np.linalg.qr(_blocks(z, rows), mode="r")).reshape(len(z), -1, width)
    return z


def _fit_tile(t: Floats, u: Floats, z: Floats, rank: Ints, c: Floats) -> Integral:
    """Integrate over tau2; covariates `z` are in a basis whose unused directions are 0."""
    count, questions, width = z.shape
    across = np.swapaxes(z, 1, 2)
    # A 1 on the diagonal of an unused direction: it changes no determinant and gets coefficient 0.
    unused = np.arange(width) >= rank[:, None]
    ridge = np.zeros((count, width, width))
    ridge[:, np.arange(width), np.arange(width)] = unused
    rows = min(questions, max(ALONE // width**2, 1))
    z_blocks = _blocks(z, rows)
    across_blocks = np.swapaxes(z_blocks, 2, 3)

    def around(w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        gram = ((across_blocks * _blocks(w, rows)[:, :, None]) @ z_blocks).sum(axis=1)
        gram += ridge
        # 1e-14 of the diagonal keeps the matrix positive definite where a few questions outweigh all others.
        size = np.einsum("pii->pi", gram).max(axis=1)
        gram[:, np.arange(width), np.arange(width)] += 1e-14 * size[:, None]
        factor = np.linalg.cholesky(gram)
        root = np.linalg.inv(factor)
        half = root @ (across @ (w * t)[:, :, None])
        beta = (np.swapaxes(root, 1, 2) @ half)[..., 0]
        left = t - (z @ beta[:, :, None])[..., 0]
        logs = np.log(np.einsum("pii->pi", factor))
        # Only the directions in use count in the determinant.
        return beta, root, (w * left * left).sum(axis=1), np.where(unused, 0.0, logs).sum(axis=1)

    def fit_point(s: Floats) -> tuple[Floats, ...]:
        w = 1.0 / (u + s[:, None])
        beta, root, rss, logs = around(w)
        return 0.5 * np.log(w).sum(axis=1) - logs, rss, beta, root

    flat = 1.0 / u
    spread = around(flat)[2] / flat.sum(axis=1)
    return integrate(
        at_each_point(fit_point),
        free=(questions - rank).astype(np.float64),
        power=1.0,
        high=HIGHEST * np.maximum(spread, np.median(u, axis=1)),
        c=c,
    )

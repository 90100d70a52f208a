"""A normal prior around a regression on what else is known of the questions.

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

Covariates are standardised, and what they span is kept in an orthogonal basis from a singular value decomposition:
columns that are constant or combinations of others add no direction to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.shrinkage.contract import Panels, Posterior
from trueup.shrinkage.quadrature import (
    CELLS,
    HIGHEST,
    POINTS,
    Nodes,
    PanelUnits,
    integrate,
    interval_variance,
    levels,
    posterior,
    read_nodes,
    tiles,
)

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints

LEAST_FREE = 4  # questions less covariates and intercept
INDEPENDENT = 1e-8  # smallest singular value of a direction of its own, relative to the largest
LARGEST = 1e100  # covariates beyond that are not numbers one can square


def check_covariates(covariates: object, questions: int) -> Floats:
    """Return a row of numbers for each question."""
    z = np.asarray(covariates, dtype=np.float64)
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or len(z) != questions:
        raise TrueupError(f"covariates: found shape {z.shape}, expected {questions} rows.")
    if not (np.abs(z) < LARGEST).all():
        raise TrueupError(f"covariates: must be finite numbers below {LARGEST:g}.")
    return z


@dataclass(frozen=True, eq=False)
class Basis:
    """What the covariates of each panel span.

    Attributes
    ----------
    middle, spread : arrays
        Mean and standard deviation of each covariate, panels x covariates.
    turn : array
        From the standardised row with a leading 1 to the basis, panels x (covariates + 1) x (covariates + 1). Columns
        beyond the rank are 0.
    rank : array
        Directions in use.
    """

    middle: Floats
    spread: Floats
    turn: Floats
    rank: Ints

    @classmethod
    def of(cls, z: Floats) -> Basis:
        """Find the basis of panels x questions x covariates."""
        questions = z.shape[1]
        middle = z.mean(axis=1)
        spread = z.std(axis=1)
        # What is left of a constant column is rounding.
        constant = spread <= INDEPENDENT * np.abs(z).max(axis=1)
        spread = np.where(constant, np.inf, spread)
        rows = cls._rows(z, middle, spread)
        _, values, turned = np.linalg.svd(rows, full_matrices=False)
        used = values > INDEPENDENT * values[:, :1]
        size = np.sqrt(questions) / np.where(used, values, np.inf)
        turn = np.swapaxes(turned, 1, 2) * size[:, None, :]
        return cls(middle, spread, turn, used.sum(axis=1))

    @staticmethod
    def _rows(z: Floats, middle: Floats, spread: Floats) -> Floats:
        scaled = (z - middle[:, None, :]) / spread[:, None, :]
        return np.concatenate([np.ones((*z.shape[:2], 1)), scaled], axis=2)

    def place(self, z: Floats) -> Floats:
        """Return the covariates in the basis, panels x questions x directions."""
        return self._rows(z, self.middle, self.spread) @ self.turn

    def rows(self, panels: Ints) -> Basis:
        """Return the basis of some of the panels."""
        return Basis(self.middle[panels], self.spread[panels], self.turn[panels], self.rank[panels])


@dataclass(frozen=True, eq=False)
class PlaneGrid:
    """The quadrature of each panel, with the regression at each point.

    Attributes
    ----------
    scale, nodes
        Units and points.
    beta : array
        Coefficients in the basis, panels x points x directions.
    root : array
        Inverse of the Cholesky factor of `Z'WZ`, panels x points x directions x directions.
    """

    scale: PanelUnits
    nodes: Nodes
    beta: Floats
    root: Floats

    @classmethod
    def fit(
        cls, x: Floats, v: Floats, z: Floats, panels: Ints, basis: Basis, enough: Bools, c: Floats
    ) -> PlaneGrid:
        """Fit all panels that have enough questions."""
        count, width = len(panels) - 1, z.shape[1] + 1
        scale = PanelUnits.ragged(x, v, panels)
        scale = PanelUnits(scale.centre, scale.unit, scale.floor, scale.usable & enough)
        s, weight, c_mean = (np.zeros((count, POINTS)) for _ in range(3))
        beta = np.zeros((count, POINTS, width))
        root = np.zeros((count, POINTS, width, width))
        room = max(CELLS // (4 * width), int(np.diff(panels).max(initial=0)))
        for rows, at in tiles(panels, room, scale.usable):
            here, shape = scale.rows(rows), (len(rows), -1)
            directions = basis.rows(rows)
            nodes, (beta[rows], root[rows]) = _fit_plane(
                here.place(x[at].reshape(shape)),
                here.spread(v[at].reshape(shape)),
                directions.place(z[at].reshape(len(rows), -1, z.shape[1])),
                directions.rank,
                c[rows],
            )
            s[rows], weight[rows], c_mean[rows] = nodes.s, nodes.weight, nodes.c
        return cls(scale, Nodes(s, weight, c_mean), beta, root)

    def read(
        self, rows: Ints, x: Floats, v: Floats, placed: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and shrinkage of questions, panels x questions, with covariates in the basis."""
        across = np.swapaxes(placed, 1, 2)
        centre = self.beta[rows] @ across
        behind = np.empty(centre.shape)
        for g in range(POINTS):
            behind[:, g] = ((self.root[rows, g] @ across) ** 2).sum(axis=1)
        return read_nodes(self.scale.rows(rows), self.nodes.rows(rows), x, v, centre, behind)


def _fit_plane(
    t: Floats, u: Floats, z: Floats, rank: Ints, c: Floats
) -> tuple[Nodes, tuple[Floats, ...]]:
    """Integrate over tau2; covariates are in a basis whose unused directions are 0."""
    count, questions, width = z.shape
    across = np.swapaxes(z, 1, 2)
    # An unused direction has a 1 of its own: it changes no determinant and has coefficient 0.
    unused = np.arange(width) >= rank[:, None]
    ridge = np.zeros((count, width, width))
    ridge[:, np.arange(width), np.arange(width)] = unused

    def around(w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        gram = (across * w[:, None, :]) @ z
        gram += ridge
        # One part in 1e14 of the diagonal keeps the factor alive where a few questions outweigh all others.
        size = np.einsum("pii->pi", gram).max(axis=1)
        gram[:, np.arange(width), np.arange(width)] += 1e-14 * size[:, None]
        factor = np.linalg.cholesky(gram)
        root = np.linalg.inv(factor)
        half = root @ (across @ (w * t)[:, :, None])
        beta = (np.swapaxes(root, 1, 2) @ half)[..., 0]
        left = t - (z @ beta[:, :, None])[..., 0]
        logs = np.log(np.einsum("pii->pi", factor))
        # Only the directions in use have a share in the determinant.
        return beta, root, (w * left * left).sum(axis=1), np.where(unused, 0.0, logs).sum(axis=1)

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        fit, rss = np.empty(s.shape), np.empty(s.shape)
        beta = np.empty((*s.shape, width))
        root = np.empty((*s.shape, width, width))
        for g in range(s.shape[1]):
            w = 1.0 / (u + s[:, g : g + 1])
            beta[:, g], root[:, g], rss[:, g], logs = around(w)
            fit[:, g] = 0.5 * np.log(w).sum(axis=1) - logs
        return fit, rss, (beta, root)

    flat = 1.0 / u
    spread = around(flat)[2] / flat.sum(axis=1)
    return integrate(
        sums,
        free=(questions - rank).astype(np.float64),
        power=1.0,
        high=HIGHEST * np.maximum(spread, np.median(u, axis=1)),
        c=c,
    )


@dataclass(frozen=True, eq=False)
class Regression:
    """A normal prior around a regression, for each panel."""

    basis: Basis
    grid: PlaneGrid
    careful: PlaneGrid

    @classmethod
    def fit(
        cls,
        x: Floats,
        v: Floats,
        panels: Ints,
        covariates: Floats,
        *,
        nu: Floats | None = None,
        v_interval: Floats | None = None,
    ) -> Regression | None:
        """Fit; None if no panel has enough questions, or covariates that say anything."""
        count, width = len(panels) - 1, covariates.shape[1]
        basis = Basis(
            np.zeros((count, width)),
            np.ones((count, width)),
            np.zeros((count, width + 1, width + 1)),
            np.zeros(count, dtype=np.int64),
        )
        sizes = np.diff(panels)
        for rows, pick in tiles(panels, max(CELLS // (width + 1), int(sizes.max(initial=0)))):
            if sizes[rows[0]] < width + 1 + LEAST_FREE:
                continue
            here = Basis.of(covariates[pick].reshape(len(rows), -1, width))
            basis.middle[rows], basis.spread[rows] = here.middle, here.spread
            basis.turn[rows], basis.rank[rows] = here.turn, here.rank
        enough = basis.rank > 1
        if not enough.any():
            return None
        c = levels(np.full(count, np.inf) if nu is None else nu)
        grid = PlaneGrid.fit(x, v, covariates, panels, basis, enough, c)
        careful = grid
        if v_interval is not None or c.shape[1] > 1:
            wide = v if v_interval is None else v_interval
            one = np.ones((count, 1))
            careful = PlaneGrid.fit(x, wide, covariates, panels, basis, enough, one)
        return cls(basis, grid, careful)

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any
    ) -> Posterior:
        """Move the aggregates."""
        by_panel, x, v = Panels.of(x, v, panels)
        if known.get("covariates") is None:
            raise TrueupError("covariates: this prior was fitted with them, and needs them here.")
        z: Floats = known["covariates"]

        def reader(grid: PlaneGrid) -> Any:
            def read(
                rows: Ints, at: Ints | slice, x: Floats, v: Floats
            ) -> tuple[Floats, Floats, Floats]:
                here = z[at].reshape(len(rows), -1, z.shape[1])
                return grid.read(rows, x, v, self.basis.rows(rows).place(here))

            return read

        return posterior(
            reader(self.grid),
            None if self.careful is self.grid else reader(self.careful),
            x,
            v,
            interval_variance(v, known.get("v_interval")),
            by_panel.starts,
            usable=self.grid.scale.usable,
        )

"""Location mixtures: true values in a few clusters.

    theta_j ~ sum_k pi_k N(mu_k, tau2)

A location mixture is averaged over its common variance as the normal prior is, with the means fitted anew at each value
of it and the REML term `-1/2 sum_k log sum_j R_jk w_j`. The weights `R_jk` with which a question belongs to each
component are a soft partition of the questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage.condense import condense
from trueup.shrinkage.expectation import (
    LONGEST,
    PIECE,
    TINY,
    Components,
    log_density,
    pieces_of,
    threaded,
    unscaled,
)
from trueup.shrinkage.quadrature import Nodes, PanelGrid, integrate, read_posterior
from trueup.shrinkage.tiles import CELLS

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage.contract import Posterior
    from trueup.shrinkage.expectation import MapPieces, Piece
    from trueup.shrinkage.panel_data import PanelData
    from trueup.shrinkage.quadrature import Integral, Moved, Sums
    from trueup.shrinkage.tiles import Positions
    from trueup.shrinkage.units import PanelUnits

HIGHEST = 1e2  # end of the grid of tau2, relative to the spread around the nearest mean
INNER_ROUNDS = 2  # in which the means are fitted anew at each value of tau2
NARROW = 0.1  # standard deviation of log tau2 below which a few points are as good as the grid
EXACT = 1e-13  # error, relative to derivatives of what is averaged, at which points are enough
NEGLIGIBLE = 1e-12  # weight of a point of the grid that is skipped
REACH = 3  # points to each side that are evaluated at a time
NOTHING = 35.0  # log units below the peak at which a density no longer adds a digit


@dataclass(frozen=True, eq=False)
class LocationMixture:
    """Location mixtures with the same number of components, averaged over their common variance.

    Attributes
    ----------
    grid : PanelGrid
        Values of tau2 and the means of the components at each, panels x points x components.
    pi : array
        Shares, panels x components.
    """

    grid: PanelGrid
    pi: Floats

    @classmethod
    def fit(
        cls, data: PanelData, units: PanelUnits, start: Components, near: float | None = None
    ) -> LocationMixture:
        """Average over the variance, from mixtures fitted by expectation maximisation.

        `near` is `log_tau2` of nearly the same questions, near which the variance is searched first.
        """
        parts = start.pi.shape[1]
        grid = PanelGrid.fit(
            lambda rows, _, t, u: _average(t, u, start.rows(rows), near),
            data.x,
            data.v,
            data.starts,
            units,
            beta=(parts,),
            precision=(parts,),
            entries=CELLS // 8,
        )
        return cls(grid, start.pi)

    @property
    def log_tau2(self) -> float:
        """Mean of log tau2 of the first panel, in its units."""
        nodes = self.grid.nodes
        return float(nodes.weight[0] @ np.log(nodes.s[0]))

    def posterior(
        self, x: Floats, v: Floats, *, panels: Ints | None = None, **extra: Any
    ) -> Posterior:
        entries = min(2 * PIECE // int(self.pi.shape[1]), 2 * LONGEST)
        return read_posterior(
            LocationMixture.read,
            (self, self),
            self.grid.units,
            x,
            v,
            panels,
            extra,
            entries=entries,
        )

    def read(self, rows: Ints, positions: Positions, x: Floats, v: Floats) -> Moved:
        """Return mean, variance and shrinkage of questions, panels x questions."""
        grid, nodes = self.grid, self.grid.nodes
        t, u = grid.units.standardise(rows, x, v)
        log_pi = _log(self.pi[rows])
        mean, within, between, shrinkage = (np.zeros(t.shape) for _ in range(4))
        so_far = np.zeros((len(rows), 1))
        for g in self._points(rows):
            p, s = nodes.weight[rows, g][:, None], nodes.s[rows, g][:, None]
            mu, precision = grid.beta[rows, g], grid.precision[rows, g]
            w = 1.0 / (u + s)
            r, total, _, pairs = unscaled(t, w, log_pi, mu)
            b = u * w
            sums = np.stack([mu, 1.0 / precision], axis=1) @ r
            sums /= total[:, None]
            # Squared distance of the components that a question may belong to from their mean: half that of pairs.
            np.matmul(0.5 * (mu[:, :, None] - mu[:, None, :]) ** 2, r, out=pairs)
            pairs *= r
            distance = pairs.sum(axis=1) / total**2
            within += p * (b * s + b * b * (sums[:, 1] + distance))
            shrinkage += p * b
            e = s * w * t + b * sums[:, 0]
            so_far += p
            step = e - mean
            mean += step * p / np.maximum(so_far, NEGLIGIBLE)
            # Both have the same sign, except for rounding where components are very far apart.
            between += p * np.maximum(step * (e - mean), 0.0)
        return *grid.units.restore(rows, mean, within + between), np.minimum(shrinkage, 1.0)

    def membership(self, rows: Ints, x: Floats, v: Floats) -> Floats:
        """Return the soft partition, panels x components x questions."""
        grid, nodes = self.grid, self.grid.nodes
        t, u = grid.units.standardise(rows, x, v)
        log_pi = _log(self.pi[rows])
        result = np.zeros((len(rows), self.pi.shape[1], t.shape[1]))
        weight = np.zeros((len(rows), 1, 1))
        for g in self._points(rows):
            w = 1.0 / (u + nodes.s[rows, g][:, None])
            p = nodes.weight[rows, g][:, None, None]
            r, total, *_ = unscaled(t, w, log_pi, grid.beta[rows, g])
            result += p / total[:, None] * r
            weight += p
        return result / weight

    def _points(self, rows: Ints) -> Ints:
        """Return the points of the grid that matter."""
        return np.flatnonzero(self.grid.nodes.weight[rows].max(axis=0) > NEGLIGIBLE)


def location_means(t: Floats, u: Floats, components: Components) -> Floats:
    """Return posterior means of panels x questions by mixtures taken as known, in units of the panels."""
    tau2 = components.tau2[:, :1]
    w = 1.0 / (u + tau2)
    r, total, *_ = unscaled(t, w, _log(components.pi), components.mu)
    centre = (components.mu[:, None, :] @ r)[:, 0] / total
    return w * (tau2 * t + u * centre)


def _log(pi: Floats) -> Floats:
    return np.log(np.maximum(pi, TINY))


def _average(t: Floats, u: Floats, start: Components, near: float | None) -> Integral:
    """Integrate a location mixture of each row over its variance."""
    t, u, number = condense(t, u)
    count, questions = t.shape
    parts = start.pi.shape[1]
    at_once = max(1, CELLS // (count * questions * parts))
    log_pi = _log(start.pi)
    nearest = np.full(t.shape, np.inf)
    for k in range(parts):
        np.minimum(nearest, (t - start.mu[:, k : k + 1]) ** 2, out=nearest)

    def sums(s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
        points = s.shape[1]
        fit = np.empty(s.shape)
        mu, precision = (np.empty((*s.shape, parts)) for _ in range(2))
        with threaded() as map_pieces:
            for begin in range(0, points, at_once):
                batch = slice(begin, min(begin + at_once, points))
                some = batch.stop - begin
                # Each panel at each value of s is a row of its own.
                w = (1.0 / (u[:, None, :] + s[:, batch, None])).reshape(-1, questions)
                rows_t, means, shares = (
                    part if some == 1 else np.repeat(part, some, axis=0)
                    for part in (t, start.mu, log_pi)
                )
                numbers = None if number is None else np.repeat(number, some, axis=0)
                for turn in range(INNER_ROUNDS + 1):
                    density, total = _weigh(rows_t, w, numbers, shares, means, map_pieces)
                    weight = np.maximum(total[..., 0], np.finfo(float).tiny)
                    if turn < INNER_ROUNDS:
                        means = np.where(total[..., 0] > 0, total[..., 1] / weight, means)
                fit[:, batch] = (density - 0.5 * np.log(weight).sum(axis=1)).reshape(-1, some)
                mu[:, batch] = means.reshape(-1, some, parts)
                precision[:, batch] = weight.reshape(-1, some, parts)
        return fit, np.zeros(s.shape), (mu, precision)

    high = HIGHEST * np.maximum(np.average(nearest, axis=1, weights=number), 1.0)
    at_grid = sums if near is None or count > 1 else partial(_sums_near, sums, near)
    nodes, fitted = integrate(at_grid, free=2.0, power=1.0, high=high, c=np.ones((count, 1)))
    return _fewer_points(nodes, fitted, sums)


def _sums_near(sums: Sums, near: float, s: Floats) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Return the sums of a single panel at those points of the grid where its density does not vanish.

    They are searched from `near` outwards. The grid stays the same, and so does the result.
    """
    log_s, points = np.log(s[0]), s.shape[1]
    fit = np.full(s.shape, -np.inf)
    fitted: tuple[Floats, ...] = ()

    def evaluate(begin: int, end: int) -> None:
        nonlocal fitted
        fit[:, begin:end], _, new = sums(s[:, begin:end])
        fitted = fitted or tuple(np.ones((1, points, *part.shape[2:])) for part in new)
        for all_points, part in zip(fitted, new, strict=True):
            all_points[:, begin:end] = part

    nearest = int(np.abs(log_s - near).argmin())
    begin, end = max(nearest - REACH, 0), min(nearest + REACH + 1, points)
    evaluate(begin, end)
    while True:
        least = fit.max() - NOTHING
        below, above = begin > 0 and fit[0, begin] > least, end < points and fit[0, end - 1] > least
        if below:
            begin, last = max(begin - REACH, 0), begin
            evaluate(begin, last)
        if above:
            first, end = end, min(end + REACH, points)
            evaluate(first, end)
        if not below and not above:
            return fit, np.zeros(s.shape), fitted


def _fewer_points(nodes: Nodes, fitted: tuple[Floats, ...], sums: Sums) -> Integral:
    """Replace the grid by a few Gaussian nodes where the density in log s is narrow.

    They integrate polynomials exactly (Golub and Welsch, Mathematics of Computation 1969), and over so small a range
    the integrand differs from one only by rounding: n nodes leave `n! / (2n)! spread^2n` of its derivative of order 2n.
    The other points get no weight.
    """
    log_s = np.log(nodes.s)
    middle = (nodes.weight * log_s).sum(axis=1, keepdims=True)
    spread = np.sqrt((nodes.weight * (log_s - middle) ** 2).sum(axis=1, keepdims=True))
    rows = np.flatnonzero(spread < NARROW)
    if len(rows) == 0:
        return nodes, fitted
    points, weight = nodes.s.copy(), nodes.weight.copy()
    weight[rows] = 0.0
    most = 0
    for row in rows:
        z = (log_s[row] - middle[row]) / spread[row]
        enough = _enough_points(float(spread[row, 0]))
        basis = np.sqrt(nodes.weight[row])[None]
        for _ in range(enough - 1):
            new = z * basis[-1]
            for _ in range(2):  # twice, to remove what rounding left
                new -= (basis @ new) @ basis
            basis = np.vstack([basis, new / np.sqrt(new @ new)])
        place, vector = np.linalg.eigh((basis * z) @ basis.T)
        points[row, :enough] = np.exp(middle[row] + spread[row] * place)
        weight[row, :enough] = vector[0] ** 2
        most = max(most, enough)
    for old, new in zip(fitted, sums(points[:, :most])[2], strict=True):
        old[rows, :most] = new[rows]
    return Nodes(points, weight, nodes.c), fitted


def _enough_points(spread: float) -> int:
    """Return the number of Gaussian nodes that are enough for a density this narrow."""
    number = 2
    while factorial(number) / factorial(2 * number) * spread ** (2 * number) > EXACT:
        number += 1
    return number


def _weigh(
    t: Floats,
    w: Floats,
    number: Floats | None,
    log_pi: Floats,
    mu: Floats,
    map_pieces: MapPieces,
) -> tuple[Floats, Floats]:
    """Return the log likelihood of rows of questions, up to a constant, and sums of `R w` and `R w t`."""

    def sums_of(piece: Piece) -> tuple[Floats, Floats]:
        rows, at = piece
        t_piece, w_piece = t[rows, at], w[rows, at]
        r, total, peak, _ = unscaled(t_piece, w_piece, log_pi[rows], mu[rows])
        density = log_density(total, w_piece, peak)
        by = w_piece / total
        if number is not None:
            by *= number[rows, at]
            density *= number[rows, at]
        return density.sum(axis=1), r @ np.stack([by, by * t_piece], axis=2)

    fit, sums = np.zeros(len(t)), np.zeros((*mu.shape, 2))
    pieces = pieces_of(len(t), t.shape[1], mu.shape[1])
    for (rows, _), (density, part) in zip(pieces, map_pieces(sums_of, pieces), strict=True):
        fit[rows] += density
        sums[rows] += part
    return fit, sums

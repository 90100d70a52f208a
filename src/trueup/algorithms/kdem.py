"""KDEm: the truth is the highest point of a kernel density of the answers, weighted by worker.

Wan et al., From truth discovery to trustworthy opinion discovery, KDD 2016. Answers are standardised per
question, z_ij, with bandwidth `h_j = median |z - median z|`. With shares `w_ij = c_i / sum c` and the kernel
`K(u) = exp(-u^2)`:

    norm_ij = K(0) - 2 sum_l w_lj K((z_i - z_l)/h) + sum_l sum_l' w_lj w_l'j K((z_l - z_l')/h)
    c_i     = -log( [(1/k_i) sum_j norm_ij/k_j] / sum_i' sum_j norm_i'j/k_j )
    truth   = densest mode of sum_i w_ij K((y - z_ij)/h)

The weights do not depend on the truths, so the modes are computed once, at the end. Every question has its own
bandwidth, as the authors intended; tied modes are averaged. The cost of a question is the square of its number of
answers, or proportional to that number if it is very large (binned density).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueup.algorithms.contract import Algorithm, State
from trueup.core.arrays import rectangles
from trueup.core.parameters import number, one_of

if TYPE_CHECKING:
    from trueup.algorithms.contract import Kind
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints

SHIFT_STEPS = 500
SHIFT_TOLERANCE = 1e-10
TIE = 1e-9  # densities within this share of the highest are tied
SAME_MODE = 1e-4  # largest distance between two ends at the same mode, in bandwidths
SMALLEST_WEIGHT = 1e-12  # for questions that nobody else answered
PAIRS = 1 << 18  # number of pairs of answers processed at a time, so that they fit in the cache

BINS_PER_BANDWIDTH = 8
REACH = 6.25  # bandwidths beyond which a kernel is zero to the last digit
TOP = 0.98  # share of the highest density above which a bin is a starting point


@dataclass(frozen=True)
class KDEm(Algorithm):
    """Truths at the mode of a weighted kernel density.

    Parameters
    ----------
    kernel : {"authors", "gaussian"}
        `exp(-u^2)` as in the authors' code, or the textbook `exp(-u^2/2)`.
    binned_above : int
        Largest number of answers of a question whose density is computed exactly; above it bins are used.
    """

    kernel: Literal["authors", "gaussian"] = "authors"
    binned_above: int = 2000

    name = "kdem"
    truth_free = True

    def __post_init__(self) -> None:
        one_of("kernel", self.kernel, ("authors", "gaussian"))
        number("binned_above", self.binned_above, 0)

    @property
    def kind(self) -> Kind:
        return "robust"

    def tally(self, block: Block, state: State, x: Floats) -> Floats:
        share = block.answer_weights(state["weight"])
        norm = np.zeros(len(share))
        for rows, positions in rectangles(block.indptr, PAIRS, square=True):
            z, w, h, varied = self._standardise(block, share, rows, positions)
            if varied.any():
                density = self._densities(z, w, h)
                inner = np.sum(w * density, axis=1, keepdims=True)
                norm[positions[varied]] = np.maximum(1.0 - 2.0 * density + inner, 0.0)
        return block.by_worker(norm, block.informative / block.counts)[None]

    def update(self, state: State, sums: Floats) -> State:
        facts = state.facts
        total = facts.spread(facts.panel_sum(sums[0]))
        mean = sums[0] / np.maximum(facts.n_informative, 1.0)
        share = np.divide(mean, total, out=np.ones(len(total)), where=total > 0)
        weight = np.maximum(-np.log(np.maximum(share, np.finfo(float).tiny)), 0.0)
        none = facts.spread(facts.panel_sum(weight * facts.informative)) <= 0
        weight = np.maximum(weight, SMALLEST_WEIGHT)
        return state.replace(weight=facts.weigh(np.where(none, 1.0, weight)))

    def truths(self, block: Block, state: State) -> Floats:
        share = block.answer_weights(state["weight"])
        x = block.by_question(share * block.values)
        for rows, positions in rectangles(block.indptr, PAIRS, square=True):
            z, w, h, varied = self._standardise(block, share, rows, positions)
            if varied.any():
                mode = self._modes(z, w, h)
                questions = rows[varied]
                x[questions] = block.mean[questions] + block.std[questions] * mode
        return x

    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        """Return `w_ij K_ij / sum`: the mode is the weighted mean with these shares."""
        share = block.answer_weights(state["weight"])
        result = share.copy()
        for rows, positions in rectangles(block.indptr):
            z, w, h, varied = self._standardise(block, share, rows, positions)
            if varied.any():
                questions = rows[varied]
                mode = (x[questions] - block.mean[questions]) / block.std[questions]
                pull = w * np.exp(-(((mode[:, None] - z) / h) ** 2))
                total = pull.sum(axis=1, keepdims=True)
                # Between tied modes of a narrow kernel all kernels are 0: the shares stay as they are.
                result[positions[varied]] = np.divide(pull, total, out=w.copy(), where=total > 0)
        return result

    def noise(self, state: State, ss: Floats, freedom: Floats) -> Floats:
        return state.facts.variance(ss, state.facts.n_informative)

    def _standardise(
        self, block: Block, share: Floats, rows: Ints, positions: Ints
    ) -> tuple[Floats, Floats, Floats, Bools]:
        """Return z, w and h of the questions whose answers vary, and a mask of these questions."""
        varied = block.std[rows] > 0
        rows, positions = rows[varied], positions[varied]
        z = (block.values[positions] - block.mean[rows, None]) / block.std[rows, None]
        deviation = np.abs(z - np.median(z, axis=1, keepdims=True))
        h = np.median(deviation, axis=1, keepdims=True) + 1e-10
        if self.kernel == "gaussian":
            h = h * np.sqrt(2.0)
        return z, share[positions], h, varied

    def _densities(self, z: Floats, w: Floats, h: Floats) -> Floats:
        """Return the density at every answer, in units of a kernel's height."""
        if z.shape[1] > self.binned_above:
            return np.stack([_binned(*row)[0] for row in zip(z, w, h[:, 0], strict=True)])
        return _density(z, z, w, h)

    def _modes(self, z: Floats, w: Floats, h: Floats) -> Floats:
        """Return the densest mode of each row."""
        if z.shape[1] > self.binned_above:
            return np.array([_binned_mode(*row) for row in zip(z, w, h[:, 0], strict=True)])
        return _best(*_climb(z, z, w, h), h)


def _density(y: Floats, z: Floats, w: Floats, h: Floats) -> Floats:
    """Return the density at the points `y` of each row."""
    u = y[:, :, None] - z[:, None, :]
    u *= 1.0 / h[:, :, None]
    np.multiply(u, u, out=u)
    np.negative(u, out=u)
    np.exp(u, out=u)
    density: Floats = np.matmul(u, w[:, :, None])[:, :, 0]
    return density


def _climb(y: Floats, z: Floats, w: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Climb by mean shift from the points `y` of each row; return the end points and the density there.

    The mean shift `y -> M(y)`, with M(y) the mean of the answers weighted by the kernel at y, ends where M(y) = y. Its
    slope there is 2/h^2 times the variance weighted by the kernel. Where the slope is clearly below 1, around a mode,
    Newton's step `(M(y) - y) / (1 - slope)` converges in a few steps instead of hundreds.
    """
    end, height = y.copy(), np.zeros(y.shape)
    left = np.arange(len(y))
    moments = np.stack([w, w * z, w * z * z], axis=2)
    z, inverse = z[:, None, :], (1.0 / h)[:, :, None]
    for _ in range(SHIFT_STEPS):
        u = y[:, :, None] - z
        u *= inverse
        np.multiply(u, u, out=u)
        np.negative(u, out=u)
        np.exp(u, out=u)
        total, first, second = np.matmul(u, moments).transpose(2, 0, 1)
        divisor = np.where(total > 0, total, 1.0)  # if all weights are 0 the point stays
        mean = np.where(total > 0, first / divisor, y)
        slope = 2.0 * np.maximum(second / divisor - mean * mean, 0.0) / (h * h)
        shift = mean - y
        limit = 0.5 * h
        faster = np.minimum(np.maximum(shift / np.maximum(1.0 - slope, 0.05), -limit), limit)
        new = y + np.where(slope < 0.95, faster, shift)
        moving = (np.abs(new - y) > SHIFT_TOLERANCE).any(axis=1)
        if moving.all():  # the last rows may take hundreds of steps
            y = new
            continue
        done = ~moving
        end[left[done]], height[left[done]] = new[done], total[done]
        left, y, total = left[moving], new[moving], total[moving]
        if len(left) == 0:
            return end, height
        z, h, moments, inverse = z[moving], h[moving], moments[moving], inverse[moving]
    end[left], height[left] = y, total
    return end, height


def _best(end: Floats, height: Floats, h: Floats) -> Floats:
    """Return the densest end point of each row, or the mean of the tied modes.

    End points close to each other belong to one mode, at their mean: on a flat top a climb stops a little before the
    middle, from either side.
    """
    tied = height >= (1.0 - TIE) * height.max(axis=1, keepdims=True)
    order = np.argsort(np.where(tied, end, np.inf), axis=1)
    end, tied = np.take_along_axis(end, order, axis=1), np.take_along_axis(tied, order, axis=1)
    fresh = tied.copy()
    fresh[:, 1:] &= (end[:, 1:] - end[:, :-1]) > SAME_MODE * h
    mode = np.cumsum(fresh, axis=1) - 1
    rows = np.arange(len(end))[:, None]
    members = np.zeros(end.shape)
    np.add.at(members, (rows, mode), tied)
    part = tied / members[rows, mode] / fresh.sum(axis=1, keepdims=True)
    first = end[:, :1]
    mean: Floats = first[:, 0] + np.sum((end - first) * part, axis=1)
    return mean


def _binned(z: Floats, w: Floats, h: float) -> tuple[Floats, Floats, Floats]:
    """Return the density at every answer, the bins in use, and the density there.

    The weight of an answer is split between the two bins next to it. Gaps wider than a kernel are shortened, so that
    the number of bins is bounded by the number of answers, however far they spread.
    """
    width = h / BINS_PER_BANDWIDTH
    place = z / width  # bins are multiples of the width, symmetric under reflection
    low = np.floor(place).astype(np.int64)
    upper = place - low
    bins, where = np.unique(np.concatenate([low, low + 1]), return_inverse=True)
    below, above = where[: len(z)], where[len(z) :]
    reach = int(REACH * BINS_PER_BANDWIDTH)
    line = np.concatenate([[0], np.cumsum(np.minimum(np.diff(bins), reach + 1))])
    mass = np.zeros(line[-1] + 1)
    np.add.at(mass, line[below], w * (1.0 - upper))
    np.add.at(mass, line[above], w * upper)
    kernel = np.exp(-((np.arange(-reach, reach + 1) / BINS_PER_BANDWIDTH) ** 2))
    smooth = np.convolve(mass, kernel, mode="same") if len(mass) > len(kernel) else None
    if smooth is None:
        smooth = np.convolve(mass, kernel)[reach : reach + len(mass)]
    density = smooth[line]
    at_answers = density[below] * (1.0 - upper) + density[above] * upper
    return at_answers, bins * width, density


def _binned_mode(z: Floats, w: Floats, h: float) -> float:
    """Return the densest mode: climb from the densest bins with the exact density."""
    _, points, density = _binned(z, w, h)
    peak = density >= TOP * density.max()
    peak[1:] &= density[1:] >= density[:-1]
    peak[:-1] &= density[:-1] >= density[1:]
    start = points[peak][None]
    width = np.array([[h]])
    return float(_best(*_climb(start, z[None], w[None], width), width)[0])

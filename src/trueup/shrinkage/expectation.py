"""Mixtures of normal priors by expectation maximisation, for many panels at once.

    location mixture   theta_j ~ sum_k pi_k N(mu_k, tau2)
    scale mixture      theta_j ~ sum_k pi_k N(mu, tau2_k), two components

Aggregates have known variances `v_j`. Given the responsibilities `R_jk`, with `w_jk = 1 / (v_j + tau2_k)`,

    pi_k   = mean_j R_jk
    mu_k   = sum_j R_jk w_jk t_j / sum_j R_jk w_jk
    tau2_k = max(0, sum_j R_jk w_jk^2 ((t_j - mu_k)^2 - v_j) / sum_j R_jk w_jk^2)

where sums also run over k for a parameter that the components share. With equal variances this is the exact
maximisation step; with unequal ones the last line is a step of Fisher's scoring method. Dempster, Laird and Rubin, JRSS
B 1977.

A panel that has settled leaves the computation, so that a batch costs as much as its panels one by one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.shrinkage.buffers import Scratch
from trueup.shrinkage.tiles import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from trueup.core.arrays import Bools, Floats, Ints

ROUNDS = 50
#: A panel has settled when a round gains less log likelihood than this, in total or, if larger, per question.
GAIN, GAIN_EACH = 1e-3, 1e-6
FIRST_STOP = 5  # round from which a panel may settle
MOMENT_ROUNDS = 30
TINY = 1e-300
LOG_TWO_PI = float(np.log(2.0 * np.pi))
#: Most numbers in a temporary array, and most questions: few enough to stay in the cache, enough to keep threads busy.
PIECE, LONGEST = 1 << 17, 1 << 14
SEVERAL = 3  # pieces from which on starting threads pays off
NEAR = 150.0  # exponents up to which nothing underflows, even squared
scratch = Scratch()

#: Some panels, and some of their questions.
Piece: TypeAlias = tuple[slice, slice]
#: Calls a function with every piece and returns the results in order, as `map` does.
MapPieces: TypeAlias = "Callable[[Callable[[Piece], Any], list[Piece]], Iterable[Any]]"
#: The log likelihood at some parameters, and the next ones.
Step: TypeAlias = "Callable[..., tuple[Floats, tuple[Floats, Floats, Floats]]]"


@dataclass(frozen=True, eq=False)
class Components:
    """Mixtures, panels x components, with the log likelihood of each panel."""

    pi: Floats
    mu: Floats
    tau2: Floats
    fit: Floats

    @classmethod
    def empty(cls, count: int, parts: int) -> Components:
        """Return room for mixtures to be filled in."""
        pi, mu, tau2 = (np.zeros((count, parts)) for _ in range(3))
        return cls(pi, mu, tau2, np.zeros(count))

    def rows(self, panels: Ints | Bools) -> Components:
        """Return some of the panels."""
        return Components(self.pi[panels], self.mu[panels], self.tau2[panels], self.fit[panels])

    def put(self, panels: Ints, new: Components) -> None:
        """Fill in the mixtures of some panels, with as many components or fewer."""
        used = new.pi.shape[1]
        self.pi[panels, :used], self.mu[panels, :used] = new.pi, new.mu
        self.tau2[panels, :used], self.fit[panels] = new.tau2, new.fit


@contextmanager
def threaded() -> Iterator[MapPieces]:
    """Give a map over pieces that starts threads where there are several."""
    with ThreadPoolExecutor(processors()) as pool:

        def map_pieces(do: Callable[[Piece], Any], pieces: list[Piece]) -> Iterable[Any]:
            return map(do, pieces) if len(pieces) < SEVERAL else pool.map(do, pieces)

        yield map_pieces


@contextmanager
def serial() -> Iterator[MapPieces]:
    """Give a map over pieces in this thread, for callers that run on threads themselves."""
    yield map


def pieces_of(count: int, questions: int, parts: int) -> list[Piece]:
    """Cut panels x questions into pieces: several panels, or part of the questions of one."""
    room = max(1, min(PIECE // parts, LONGEST))
    rows = max(1, room // questions)
    most = -(-questions // -(-questions // room))  # parts of about the same length
    return [
        (slice(row, row + rows), slice(at, at + most))
        for row in range(0, count, rows)
        for at in range(0, questions, most)
    ]


def fit_location(
    t: Floats,
    u: Floats,
    start: Components,
    needed: Floats | None = None,
    number: Floats | None = None,
    mapping: Callable[[], AbstractContextManager[MapPieces]] = threaded,
) -> Components:
    """Fit location mixtures to panels x questions, from a start.

    `number` says how many questions each stands for, see `condense`.

    Gains get smaller from round to round. So a panel is given up if its log likelihood would stay below `needed` even
    with the last gain in each of the remaining rounds. `mapping` is `threaded` or `serial`.
    """
    with mapping() as map_pieces:
        return _settle(t, u, number, start, needed, partial(_location_step, map_pieces))


def fit_scale(
    t: Floats,
    u: Floats,
    start: Components,
    needed: Floats | None = None,
    number: Floats | None = None,
) -> Components:
    """Fit scale mixtures to panels x questions, from a start; see `fit_location`."""
    return _settle(t, u, number, start, needed, _scale_step)


def _settle(
    t: Floats,
    u: Floats,
    number: Floats | None,
    start: Components,
    needed: Floats | None,
    step: Step,
) -> Components:
    """Repeat expectation and maximisation until each panel has settled."""
    needed = np.full(len(t), -np.inf) if needed is None else needed
    pi, mu, tau2 = start.pi.copy(), start.mu.copy(), start.tau2.copy()
    done = Components(pi.copy(), mu.copy(), tau2.copy(), np.full(len(t), -np.inf))
    alive = np.arange(len(t))
    before = np.full(len(t), -np.inf)
    least = np.maximum(GAIN, GAIN_EACH * questions_of(t, number))
    for turn in range(ROUNDS):
        fit, new = step(t, u, number, pi, mu, tau2)
        stop = np.full(len(t), turn == ROUNDS - 1)
        if turn + 1 >= FIRST_STOP:
            gain = fit - before
            stop |= ~(gain >= least) | (fit + (ROUNDS - 1 - turn) * gain < needed)
        if stop.any():
            done.put(alive[stop], Components(pi[stop], mu[stop], tau2[stop], fit[stop]))
            if stop.all():
                break
            go = ~stop
            alive, t, u, fit, needed = alive[go], t[go], u[go], fit[go], needed[go]
            least, number = least[go], None if number is None else number[go]
            new = (new[0][go], new[1][go], new[2][go])
        before = fit
        pi, mu, tau2 = new
    return done


def questions_of(t: Floats, number: Floats | None) -> Floats:
    """Return the number of questions of each panel."""
    return np.full(len(t), float(t.shape[1])) if number is None else number.sum(axis=1)


def _location_step(
    map_pieces: MapPieces,
    t: Floats,
    u: Floats,
    number: Floats | None,
    pi: Floats,
    mu: Floats,
    tau2: Floats,
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the log likelihood, and the parameters after one step."""
    count, questions = t.shape
    log_pi = np.log(np.maximum(pi, TINY))

    def sums_of(piece: Piece) -> tuple[Floats, Floats, Floats]:
        rows, at = piece
        some = None if number is None else number[rows, at]
        return _location_sums(
            t[rows, at], u[rows, at], some, log_pi[rows], mu[rows], tau2[rows, :1]
        )

    fit, more, sums = np.zeros(count), np.zeros((count, 2)), np.zeros((*mu.shape, 5))
    pieces = pieces_of(count, questions, mu.shape[1])
    # In the order of the pieces, so that the number of threads changes nothing.
    for (rows, _), parts in zip(pieces, map_pieces(sums_of, pieces), strict=True):
        for total, part in zip((fit, sums, more), parts, strict=True):
            total[rows] += part
    every = questions_of(t, number)
    fit -= 0.5 * every * LOG_TWO_PI
    one, w, w_t, w2, w2_t = np.moveaxis(sums, 2, 0)
    new_mu = np.where(w > TINY, w_t / np.maximum(w, TINY), mu)
    # The squares are around the old means; sums give the correction for the new ones.
    step = new_mu - mu
    above = more[:, 0] + (step * (step * w2 - 2.0 * (w2_t - mu * w2))).sum(axis=1)
    new_tau2 = np.maximum(above / more[:, 1], 0.0)[:, None]
    return fit, (one / every[:, None], new_mu, np.broadcast_to(new_tau2, mu.shape))


def _location_sums(
    t: Floats, u: Floats, number: Floats | None, log_pi: Floats, mu: Floats, tau2: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the sums over some questions, panels x questions, that a step needs.

    The log likelihood without log(2 pi); with weights `R_jk` those of 1, w, wt, w^2 and w^2 t, panels x components; and
    `sum_j w_j^2 (sum_k R_jk (t_j - mu_k)^2 - u_j)` and `sum_j w_j^2`.
    """
    count, questions = t.shape
    w = 1.0 / (u + tau2)
    r, total, peak, square = unscaled(t, w, log_pi, mu)
    fit = log_density(total, w, peak)
    # R itself is never computed: its sums are divided by the total.
    by = scratch("by", count, 5, questions)
    np.divide(1.0 if number is None else number, total, out=by[:, 0])
    np.multiply(by[:, 0], w, out=by[:, 1])
    np.multiply(by[:, 1], t, out=by[:, 2])
    np.multiply(by[:, 1:3], w[:, None], out=by[:, 3:])
    sums = r @ by.swapaxes(1, 2)
    square *= r
    away = -2.0 * square.sum(axis=1) * by[:, 1]
    w *= w
    if number is not None:
        w *= number
        fit *= number
    more = np.stack([(away - w * u).sum(axis=1), w.sum(axis=1)], axis=1)
    return fit.sum(axis=1), sums, more


def unscaled(
    t: Floats, w: Floats, log_pi: Floats, mu: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return numerator and denominator of `R` for location mixtures, with two by-products.

    These are the logarithm of the number by which both were divided, and `-w (t - mu)^2 / 2`. Arrays with components
    are scratch, valid until the next call in the same thread.
    """
    shape = (*mu.shape, t.shape[1])
    r, square = scratch("r", *shape), scratch("square", *shape)
    np.subtract(t[:, None, :], mu[:, :, None], out=square)
    square *= square
    square *= (-0.5 * w)[:, None, :]
    peak = np.zeros(t.shape)
    if _are_near(t, w, mu, square) and log_pi.min(initial=0.0) > -NEAR:
        np.exp(square, out=r)
        r *= np.exp(log_pi)[:, :, None]
    else:
        np.add(log_pi[:, :, None], square, out=r)
        r.max(axis=1, out=peak)
        r -= peak[:, None]
        np.exp(r, out=r)
    return r, r.sum(axis=1), peak, square


def _are_near(t: Floats, w: Floats, mu: Floats, square: Floats) -> bool:
    """Return whether no exponent underflows; ends of ranges nearly always say it without a look at every one."""
    if not t.size:
        return True
    farthest = max(t.max() - mu.min(), mu.max() - t.min())
    return bool(0.5 * farthest**2 * w.max() < NEAR or square.min() > -NEAR)


def log_density(total: Floats, w: Floats, peak: Floats) -> Floats:
    """Return the logarithm of the mixed density of each question, up to log(2 pi) / 2, from what `unscaled` returns."""
    peak += 0.5 * np.log(total * total * w)
    return peak


def scale_responsibilities(
    t: Floats, u: Floats, pi: Floats, mu: Floats, tau2: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return `R` and `w` for scale mixtures, and the logarithm of the mixed density up to log(2 pi) / 2."""
    w = 1.0 / (u[:, None, :] + tau2[:, :, None])
    r = np.repeat((t - mu[:, :1])[:, None, :] ** 2, pi.shape[1], axis=1)
    r *= w
    r -= np.log(w)
    r *= -0.5
    r += np.log(np.maximum(pi, TINY))[:, :, None]
    peak = r.max(axis=1)
    r -= peak[:, None]
    np.exp(r, out=r)
    total = r.sum(axis=1)
    r /= total[:, None]
    peak += np.log(total)
    return r, w, peak


def _scale_step(
    t: Floats, u: Floats, number: Floats | None, pi: Floats, mu: Floats, tau2: Floats
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the log likelihood, and the parameters after one step."""
    questions = questions_of(t, number)
    r, w, density = scale_responsibilities(t, u, pi, mu, tau2)
    if number is not None:
        r *= number[:, None]
        density *= number
    fit = density.sum(axis=1) - 0.5 * questions * LOG_TWO_PI
    new_pi = r.sum(axis=2) / questions[:, None]
    r *= w
    total = r.sum(axis=1)
    new_mu = ((total * t).sum(axis=1) / np.maximum(total.sum(axis=1), TINY))[:, None]
    r *= w
    weight = r.sum(axis=2)
    above = (r @ ((t - new_mu) ** 2 - u)[:, :, None])[..., 0]
    new_tau2 = np.where(weight > TINY, np.maximum(above / np.maximum(weight, TINY), 0.0), tau2)
    return fit, (new_pi, np.broadcast_to(new_mu, mu.shape), new_tau2)


def fit_one(t: Floats, u: Floats, number: Floats | None = None) -> Floats:
    """Return the log likelihood of one normal prior for each panel, fitted by moments; see `fit_location`."""
    n = np.ones_like(t) if number is None else number
    questions = questions_of(t, number)
    middle = (n * t).sum(axis=1) / questions
    spread = (n * ((t - middle[:, None]) ** 2 - u)).sum(axis=1) / questions
    tau2 = np.maximum(spread, 0.0)
    for _ in range(MOMENT_ROUNDS):
        w = 1.0 / (u + tau2[:, None])
        weight = n * w
        middle = (weight * t).sum(axis=1) / weight.sum(axis=1)
        weight *= w
        error = (t - middle[:, None]) ** 2 - u
        new = np.maximum((weight * error).sum(axis=1) / weight.sum(axis=1), 0.0)
        settled = np.abs(new - tau2) <= 1e-12 * (new + tau2)
        tau2 = new
        if settled.all():
            break
    w = 1.0 / (u + tau2[:, None])
    middle = (n * w * t).sum(axis=1) / (n * w).sum(axis=1)
    density = n * (np.log(w) - w * (t - middle[:, None]) ** 2)
    fit: Floats = 0.5 * (density.sum(axis=1) - questions * LOG_TWO_PI)
    return fit

"""Mixtures of normal priors by expectation maximisation, for many panels at once.

    location mixture   theta_j ~ sum_k pi_k N(mu_k, tau2)
    scale mixture      theta_j ~ sum_k pi_k N(mu, tau2_k), two components

Aggregates have known variances `v_j`. Given the responsibilities `R_jk`, with `w_jk = 1 / (v_j + tau2_k)`,

    pi_k   = mean_j R_jk
    mu_k   = sum_j R_jk w_jk t_j / sum_j R_jk w_jk
    tau2_k = max(0, sum_j R_jk w_jk^2 ((t_j - mu_k)^2 - v_j) / sum_j R_jk w_jk^2)

where sums run over k as well for what the components share. With equal variances this is the exact maximisation step;
with unequal ones the last line is a step of Fisher's scoring method. Dempster, Laird and Rubin, JRSS B 1977.

A panel that no longer gains leaves the computation, so that a batch costs what its panels cost one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.arrays import Bools, Floats, Ints

ROUNDS = 50
GAIN = 1e-3  # of the log likelihood, below which a panel has settled
FIRST_STOP = 5  # round from which a panel may settle
MOMENT_ROUNDS = 30
TINY = 1e-300
LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Components:
    """Mixtures, panels x components, with the log likelihood of each panel."""

    pi: Floats
    mu: Floats
    tau2: Floats
    fit: Floats

    @classmethod
    def empty(cls, count: int, parts: int) -> Components:
        """Return room for mixtures that are yet to be found."""
        pi, mu, tau2 = (np.zeros((count, parts)) for _ in range(3))
        return cls(pi, mu, tau2, np.zeros(count))

    def rows(self, panels: Ints | Bools) -> Components:
        """Return some of the panels."""
        return Components(self.pi[panels], self.mu[panels], self.tau2[panels], self.fit[panels])


def responsibilities(square: Floats, w: Floats, pi: Floats) -> tuple[Floats, Floats]:
    """Return `R` and the logarithm of the mixed density of each question, up to log(2 pi) / 2.

    Parameters
    ----------
    square : array
        `(t - mu)^2`, panels x components x questions. Overwritten.
    w : array
        Precision of the same shape, or with one component that stands for all.
    pi : array
        Panels x components.
    """
    r = square
    r *= w
    if w.shape[1] > 1:
        r -= np.log(w)
    r *= -0.5
    r += np.log(np.maximum(pi, TINY))[:, :, None]
    peak = r.max(axis=1)
    r -= peak[:, None]
    np.exp(r, out=r)
    total = r.sum(axis=1)
    r /= total[:, None]
    peak += np.log(total)
    if w.shape[1] == 1:
        peak += 0.5 * np.log(w[:, 0])
    return r, peak


def fit_location(
    t: Floats, u: Floats, start: Components, needed: Floats | None = None
) -> Components:
    """Fit location mixtures to panels x questions, from a start.

    A panel whose log likelihood would stay below `needed` even if it went on to gain as much in every round as in the
    last one is left where it is: gains get smaller from round to round.
    """
    return _settle(t, u, start, needed, shared_location=False)


def fit_scale(t: Floats, u: Floats, start: Components, needed: Floats | None = None) -> Components:
    """Fit scale mixtures to panels x questions, from a start; see `fit_location`."""
    return _settle(t, u, start, needed, shared_location=True)


def _settle(
    t: Floats, u: Floats, start: Components, needed: Floats | None, *, shared_location: bool
) -> Components:
    """Repeat both steps until each panel has settled."""
    needed = np.full(len(t), -np.inf) if needed is None else needed
    pi, mu, tau2 = start.pi.copy(), start.mu.copy(), start.tau2.copy()
    done = Components(pi.copy(), mu.copy(), tau2.copy(), np.full(len(t), -np.inf))
    alive = np.arange(len(t))
    before = np.full(len(t), -np.inf)
    step = _scale_step if shared_location else _location_step
    for turn in range(ROUNDS):
        fit, new = step(t, u, pi, mu, tau2)
        stop = np.full(len(t), turn == ROUNDS - 1)
        if turn + 1 >= FIRST_STOP:
            gain = fit - before
            stop |= ~(gain >= GAIN) | (fit + (ROUNDS - 1 - turn) * gain < needed)
        if stop.any():
            at = alive[stop]
            done.pi[at], done.mu[at], done.tau2[at] = pi[stop], mu[stop], tau2[stop]
            done.fit[at] = fit[stop]
            if stop.all():
                break
            go = ~stop
            alive, t, u, fit, needed = alive[go], t[go], u[go], fit[go], needed[go]
            new = (new[0][go], new[1][go], new[2][go])
        before = fit
        pi, mu, tau2 = new
    return done


def _location_step(
    t: Floats, u: Floats, pi: Floats, mu: Floats, tau2: Floats
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the log likelihood, and the parameters after one step."""
    questions = t.shape[1]
    w = 1.0 / (u + tau2[:, :1])
    square = t[:, None, :] - mu[:, :, None]
    square *= square
    r, each = responsibilities(square, w[:, None, :], pi)
    fit = each.sum(axis=1) - 0.5 * questions * LOG_TWO_PI
    sums = r @ np.stack([np.ones_like(t), w, w * t], axis=2)
    new_mu = np.where(sums[..., 1] > TINY, sums[..., 2] / np.maximum(sums[..., 1], TINY), mu)
    square = t[:, None, :] - new_mu[:, :, None]
    square *= square
    square *= r
    w *= w
    above = (square.sum(axis=1) * w).sum(axis=1) - (w * u).sum(axis=1)
    new_tau2 = np.maximum(above / w.sum(axis=1), 0.0)[:, None]
    return fit, (sums[..., 0] / questions, new_mu, np.broadcast_to(new_tau2, mu.shape))


def _scale_step(
    t: Floats, u: Floats, pi: Floats, mu: Floats, tau2: Floats
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the log likelihood, and the parameters after one step."""
    questions = t.shape[1]
    w = 1.0 / (u[:, None, :] + tau2[:, :, None])
    square = np.repeat((t - mu[:, :1])[:, None, :] ** 2, pi.shape[1], axis=1)
    r, each = responsibilities(square, w, pi)
    fit = each.sum(axis=1) - 0.5 * questions * LOG_TWO_PI
    new_pi = r.sum(axis=2) / questions
    r *= w
    total = r.sum(axis=1)
    new_mu = ((total * t).sum(axis=1) / np.maximum(total.sum(axis=1), TINY))[:, None]
    r *= w
    weight = r.sum(axis=2)
    above = (r @ ((t - new_mu) ** 2 - u)[:, :, None])[..., 0]
    new_tau2 = np.where(weight > TINY, np.maximum(above / np.maximum(weight, TINY), 0.0), tau2)
    return fit, (new_pi, np.broadcast_to(new_mu, mu.shape), new_tau2)


def fit_one(t: Floats, u: Floats) -> Floats:
    """Return the log likelihood of one normal prior for each panel, fitted by moments."""
    middle = t.mean(axis=1)
    tau2 = np.maximum(t.var(axis=1) - u.mean(axis=1), 0.0)
    for _ in range(MOMENT_ROUNDS):
        w = 1.0 / (u + tau2[:, None])
        middle = (w * t).sum(axis=1) / w.sum(axis=1)
        w *= w
        error = (t - middle[:, None]) ** 2 - u
        new = np.maximum((w * error).sum(axis=1) / w.sum(axis=1), 0.0)
        settled = np.abs(new - tau2) <= 1e-12 * (new + tau2)
        tau2 = new
        if settled.all():
            break
    w = 1.0 / (u + tau2[:, None])
    middle = (w * t).sum(axis=1) / w.sum(axis=1)
    each = np.log(w) - w * (t - middle[:, None]) ** 2
    fit: Floats = 0.5 * (each.sum(axis=1) - t.shape[1] * LOG_TWO_PI)
    return fit

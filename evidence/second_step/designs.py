"""Designs that `trueup.simulate` does not have: other noise, uneven questions, groups and covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evidence.second_step.bayes import normal
from trueup.answers.answers import Answers
from trueup.study.harness import losses_of, ratio_error, seed_of
from trueup.study.sources import Drawn, Sampled

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats, Ints

GROUPS, GROUP_SD, INSIDE_SD = 5, 5.0, 0.5
SLOPE = 2.0


class SimulatedPanels(NamedTuple):
    """Answers (panels x workers x questions), truths (panels x questions) and, if known, the Bayes estimates."""

    answers: Floats
    truth: Floats
    bayes: Floats | None = None


@dataclass(frozen=True)
class Design:
    """A source of panels that a function simulates.

    `knows` returns groups or covariates of the m questions of a panel, the same for all panels.
    """

    name: str
    make: Callable[[np.random.Generator, int, int, int], SimulatedPanels]
    knows: Callable[[int], dict[str, Any]] | None = None

    def fits(self, n: int, m: int) -> bool:
        """Return whether the size is positive: any such panel can be simulated."""
        return n >= 1 and m >= 1

    def draw(self, panels: int, n: int, m: int, seed: int) -> Drawn:
        """Simulate panels."""
        made = self.make(np.random.default_rng(seed), panels, n, m)
        return Drawn(Answers.from_matrix(made.answers), made.truth.ravel())

    def known(self, drawn: Drawn) -> dict[str, Any]:
        """Return the groups or covariates of the questions."""
        if self.knows is None:
            return {}
        panels = drawn.answers.n_panels
        of_panel = self.knows(drawn.answers.n_questions // panels)
        return {name: np.concatenate([value] * panels) for name, value in of_panel.items()}

    def bayes_ratio(self, panels: int, n: int, m: int, seed: int) -> tuple[float, float]:
        """Return the ratio of risks of the Bayes rule after the plain mean, and its standard error; NaN if unknown."""
        made = self.make(np.random.default_rng(seed_of(seed, self, n, m)), panels, n, m)
        if made.bayes is None:
            return float("nan"), float("nan")
        borders = np.arange(panels + 1) * m
        x, truth = np.nanmean(made.answers, axis=1).ravel(), made.truth.ravel()
        base, losses = losses_of(borders, x, truth), losses_of(borders, made.bayes.ravel(), truth)
        return float(losses.mean() / base.mean()), ratio_error(losses, base)


@dataclass(frozen=True, eq=False)
class Labelled(Sampled):
    """Sub-panels of real answers whose questions have a group each."""

    labels: Ints | None = None

    def known(self, drawn: Drawn) -> dict[str, Any]:
        """Return the group of each question."""
        source = drawn.answers.question_source
        assert source is not None  # noqa: S101  set for panels
        assert self.labels is not None  # noqa: S101  always given
        return {"groups": self.labels[source]}


def _variances(rng: np.random.Generator, panels: int, n: int) -> Floats:
    """Draw worker variances N(1, 0.5²), at least 0.05."""
    return np.maximum(rng.normal(1.0, 0.5, (panels, n)), 0.05)


def _answers(
    rng: np.random.Generator, truth: Floats, n: int, errors: Callable[..., Floats] | None = None
) -> tuple[Floats, Floats]:
    """Return answers of n workers to all questions, and the variances of the workers."""
    panels, m = truth.shape
    variance = _variances(rng, panels, n)
    error = (errors or rng.standard_normal)((panels, n, m))
    return truth[:, None, :] + np.sqrt(variance)[:, :, None] * error, variance


def uneven(scale: float) -> Callable[[np.random.Generator, int, int, int], SimulatedPanels]:
    """Return a design with 1 to 100 answers per question, log-uniform."""

    def make(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
        truth = rng.normal(0.0, scale, (panels, m))
        x, variance = _answers(rng, truth, n)
        counts = np.exp(rng.uniform(0.0, np.log(101.0), (panels, m))).astype(int)
        order = rng.random((panels, n, m)).argsort(axis=1).argsort(axis=1)
        given = order < counts[:, None, :]
        x = np.where(given, x, np.nan)
        v = (variance[:, :, None] * given).sum(axis=1) / counts**2
        return SimulatedPanels(x, truth, normal(scale)(np.nanmean(x, axis=1).ravel(), v.ravel()))

    return make


def heavy_noise(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate errors with Student's distribution, three degrees of freedom."""
    truth = rng.normal(size=(panels, m))

    def errors(size: tuple[int, ...]) -> Floats:
        drawn: Floats = rng.standard_t(3, size) / np.sqrt(3.0)
        return drawn

    return SimulatedPanels(_answers(rng, truth, n, errors)[0], truth)


def spammers(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate 30% spammers, whose answers are uniform between -10 and 10."""
    truth = rng.normal(size=(panels, m))
    x, _ = _answers(rng, truth, n)
    spam = rng.random((panels, n, 1)) < 0.3
    return SimulatedPanels(np.where(spam, rng.uniform(-10.0, 10.0, x.shape), x), truth)


def gross(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate gross errors: one answer in twenty has 15 times the error."""
    truth = rng.normal(size=(panels, m))

    def errors(size: tuple[int, ...]) -> Floats:
        large = rng.random(size) < 0.05
        return rng.standard_normal(size) * np.where(large, 15.0, 1.0)

    return SimulatedPanels(_answers(rng, truth, n, errors)[0], truth)


def one_exact(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate one worker without errors among others with errors of variance 1."""
    truth = rng.normal(size=(panels, m))
    error = rng.normal(size=(panels, n, m))
    error[:, 0] = 0.0
    return SimulatedPanels(truth[:, None, :] + error, truth)


def grouped(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate five groups with different means."""
    group = group_labels(m)["groups"]
    centre = rng.normal(0.0, GROUP_SD, (panels, GROUPS))[:, group]
    truth = centre + rng.normal(0.0, INSIDE_SD, (panels, m))
    x, variance = _answers(rng, truth, n)
    v = (variance.sum(axis=1) / n**2)[:, None]
    away = x.mean(axis=1) - centre
    return SimulatedPanels(x, truth, centre + INSIDE_SD**2 / (INSIDE_SD**2 + v) * away)


def plain(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate truths N(0, 1), independent of groups and covariates."""
    truth = rng.normal(size=(panels, m))
    x, variance = _answers(rng, truth, n)
    v = np.repeat(variance.sum(axis=1) / n**2, m)
    return SimulatedPanels(x, truth, normal(1.0)(x.mean(axis=1).ravel(), v))


def sloped(rng: np.random.Generator, panels: int, n: int, m: int) -> SimulatedPanels:
    """Simulate truths linear in the covariate, with residual standard deviation 0.5."""
    line = SLOPE * covariate(m)["covariates"][:, 0]
    truth = line + rng.normal(0.0, INSIDE_SD, (panels, m))
    x, variance = _answers(rng, truth, n)
    v = (variance.sum(axis=1) / n**2)[:, None]
    return SimulatedPanels(
        x, truth, line + INSIDE_SD**2 / (INSIDE_SD**2 + v) * (x.mean(axis=1) - line)
    )


def group_labels(m: int) -> dict[str, Any]:
    """Return the groups of a panel: five runs of questions of equal length."""
    return {"groups": np.arange(m) * GROUPS // m}


def covariate(m: int) -> dict[str, Any]:
    """Return a number for each question: normal quantiles, in a fixed random order."""
    from scipy.special import ndtri

    z = np.random.default_rng(m).permutation(ndtri((np.arange(m) + 0.5) / m))
    return {"covariates": z[:, None]}

"""Simulated answers of workers of known competence to questions of known truth.

The model is that of the truth discovery literature (additive, worker-wise Gaussian, "AWG"),
`x_ij = t_j + b_i + sigma_i e_ij`, with variations that break the assumptions of the algorithms: other noise, biased
workers, spammers, errors that all workers share, missing answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from trueup.answers.answers import Answers
from trueup.answers.build import centred_values
from trueup.answers.origin import Origin
from trueup.core.arrays import narrow, offsets
from trueup.core.parameters import LARGEST, number, one_of, yes_or_no
from trueup.core.sampling import generator
from trueup.errors import TrueupError, quoted
from trueup.io.table import Ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.core.arrays import Bools, Floats, Ints

Truth = Literal[
    "constant",
    "normal",
    "uniform",
    "exponential",
    "heavy",
    "clustered",
    "two_points",
    "mostly_zero",
]
Variance = Literal["fixed", "square", "normal", "inverse_gamma"]
Noise = Literal["normal", "laplace", "student", "exponential"]

CLUSTERS = (0.0, 10.0, 30.0)
CLUSTER_SD = 0.3
TWO_POINTS = (0.0, 3.0)
ZEROS, REST_SD = 0.9, 5.0
# Number of entries of the table questions x workers from which answering workers are drawn at a time.
TABLE = 1 << 24


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated answers and the parameters behind them; unpacks to `answers, truth`.

    Attributes
    ----------
    answers : Answers
    truth : array
        True value of each question, in the order of the questions of `answers`.
    worker_variance, bias : arrays
        Variance and bias of each worker.
    spammer : array
        Whether each worker is a spammer, who answers without looking at the question.
    """

    answers: Answers
    truth: Floats
    worker_variance: Floats
    bias: Floats
    spammer: Bools

    def __iter__(self) -> Iterator[Any]:
        return iter((self.answers, self.truth))


def simulate(
    workers: int = 10,
    questions: int = 50,
    *,
    panels: int = 1,
    truth: Truth | Any = "normal",
    truth_mean: float = 0.0,
    truth_scale: float = 1.0,
    variance: Variance | Any = "normal",
    variance_scale: float = 1.0,
    as_std: bool = False,
    noise: Noise = "normal",
    centred: bool = True,
    bias: float = 0.0,
    spammers: float = 0.0,
    correlation: float = 0.0,
    density: float = 1.0,
    answers_per_question: int | None = None,
    seed: int = 0,
) -> Simulation:
    """Draw truths, workers and answers.

    Parameters
    ----------
    workers, questions, panels : int
        Size of a panel, and number of independent panels.
    truth : {"normal", "constant", "uniform", "exponential", "heavy", "clustered", "two_points", "mostly_zero"} or array
        Distribution of the true values around `truth_mean` with standard deviation `truth_scale`
        ("exponential": `truth_mean` plus exponential values of mean `truth_scale`; "heavy": Student t with 2 degrees
        of freedom, times `truth_scale`; "clustered": three clusters at 0, 10 and 30 times `truth_scale` above
        `truth_mean`; "two_points": 0 or 3 times `truth_scale` above it; "mostly_zero": nine tenths at `truth_mean`,
        the rest normal with standard deviation 5 times `truth_scale`). Or the true values, of one panel or of all.
    variance : {"normal", "fixed", "square", "inverse_gamma"} or array
        Distribution of the worker variances, times `variance_scale`: normal with mean 1 and standard deviation 0.5,
        truncated to positive values; all 1; the squares 1, 4, 9, ...; inverse gamma with mean 1 and shape 3. Or the
        variances, of one panel or of all.
    as_std : bool
        Interpret `variance` as standard deviations.
    noise : {"normal", "laplace", "student", "exponential"}
        Shape of the errors, scaled to the worker's variance ("student": 4 degrees of freedom).
    centred : bool
        False: exponential errors keep their positive mean.
    bias : float
        Standard deviation of the constant biases of the workers.
    spammers : float
        Probability that a worker is a spammer, who answers a random question of the panel instead.
    correlation : float
        Share of the error variance that is common to all workers of a panel on a question.
    density : float
        Probability that a worker answers a question; every question gets at least one answer.
    answers_per_question : int, optional
        Give every question this many answers by random workers, whatever the density.
    seed : int

    Examples
    --------
    >>> answers, truth = simulate(workers=5, questions=20, seed=1)
    >>> answers
    Answers(20 questions, 5 workers, 100 answers)
    """
    _whole("workers", workers)
    _whole("questions", questions)
    _whole("panels", panels)
    if answers_per_question is not None:
        _whole("answers_per_question", answers_per_question, most=workers)
    number("truth_mean", truth_mean, -LARGEST)
    number("truth_scale", truth_scale)
    number("variance_scale", variance_scale)
    number("bias", bias)
    number("spammers", spammers, most=1.0)
    number("correlation", correlation, most=1.0)
    number("density", density, most=1.0)
    truth_scale, bias = truth_scale + 0.0, bias + 0.0  # numpy refuses a scale of -0.0
    one_of("noise", noise, get_args(Noise))
    yes_or_no("as_std", as_std)
    yes_or_no("centred", centred)
    rng = generator(seed)
    m, n = panels * questions, panels * workers
    true = _truths(rng, truth, truth_mean, truth_scale, panels, questions)
    spread = _variances(rng, variance, panels, workers) * variance_scale
    if as_std:
        spread = spread**2
    biases = rng.normal(0.0, bias, n) if bias else np.zeros(n)
    spammer = rng.random(n) < spammers

    counts, worker = _answerers(rng, m, workers, density, answers_per_question)
    question = np.repeat(np.arange(m), counts)
    worker += (question // questions) * workers
    error = _noise(rng, noise, len(worker))
    if correlation:
        shared = _noise(rng, noise, m)[question]
        error = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * error
    if noise == "exponential" and not centred:
        error += 1.0
    target = question
    if spammer.any():
        random = question - question % questions + rng.integers(0, questions, len(worker))
        target = np.where(spammer[worker], random, question)
    answer = true[target] + biases[worker] + np.sqrt(spread)[worker] * error

    indptr = offsets(counts)
    relative = centred_values(answer, indptr)
    single = panels == 1
    return Simulation(
        Answers(
            indptr=indptr,
            workers=narrow(worker, n),
            values=relative.values,
            centre=relative.centre,
            panel_questions=np.arange(panels + 1) * questions,
            panel_workers=np.arange(panels + 1) * workers,
            question_source=None if single else np.tile(np.arange(questions), panels),
            worker_source=None if single else np.tile(np.arange(workers), panels),
            origin=Origin(Ids(np.arange(questions)), Ids(np.arange(workers)), n_rows=len(worker)),
        ),
        true,
        spread,
        biases,
        spammer,
    )


def _whole(name: str, value: object, most: float = np.inf) -> None:
    if not (isinstance(value, int | np.integer) and 1 <= value <= most):
        limit = "" if np.isinf(most) else f", at most the number of workers, {most}"
        raise TrueupError(
            f"found {quoted(value)}, must be a whole number from 1 on{limit}.", argument=name
        )


def _user_values(name: str, values: Any, size: int, panels: int) -> Floats:
    """Check numbers from the caller: the same for all panels, or for each panel."""
    try:
        array = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise TrueupError("found values that are not numbers.", argument=name) from None
    if len(array) == size:
        array = np.tile(array, panels)
    if len(array) != size * panels:
        raise TrueupError(
            f"found {len(array)} numbers, expected {size} (or of each panel).", argument=name
        )
    fits = np.abs(array) <= LARGEST
    if not fits.all():
        raise TrueupError(
            f"found {array[~fits][0]}, must be numbers from {-LARGEST:g} to {LARGEST:g}.",
            argument=name,
        )
    return array


def _truths(
    rng: np.random.Generator,
    truth: Any,
    mean: float,
    scale: float,
    panels: int,
    questions: int,
) -> Floats:
    size = panels * questions
    if not isinstance(truth, str):
        return _user_values("truth", truth, questions, panels)
    match truth:
        case "constant":
            return np.full(size, mean)
        case "normal":
            return rng.normal(mean, scale, size)
        case "uniform":
            return rng.uniform(mean - np.sqrt(3.0) * scale, mean + np.sqrt(3.0) * scale, size)
        case "exponential":
            return mean + rng.exponential(scale, size)
        case "heavy":
            return mean + scale * rng.standard_t(2, size)
        case "clustered":
            centre = rng.choice(CLUSTERS, size)
            return rng.normal(mean + scale * centre, scale * CLUSTER_SD)
        case "two_points":
            return mean + scale * rng.choice(TWO_POINTS, size)
        case "mostly_zero":
            is_nonzero = rng.random(size) >= ZEROS
            return mean + scale * is_nonzero * rng.normal(0.0, REST_SD, size)
    raise TrueupError(
        f"{quoted(truth)} is not one of {', '.join(get_args(Truth))}, or an array.",
        argument="truth",
    )


def _variances(
    rng: np.random.Generator,
    variance: Any,
    panels: int,
    workers: int,
) -> Floats:
    size = panels * workers
    if not isinstance(variance, str):
        array = _user_values("variance", variance, workers, panels)
        if (array < 0).any():
            raise TrueupError("must not be negative.", argument="variance")
        return array
    if variance == "fixed":
        return np.ones(size)
    if variance == "square":
        return np.tile(np.arange(1.0, workers + 1) ** 2, panels)
    if variance == "inverse_gamma":
        return 2.0 / rng.gamma(3.0, 1.0, size)
    if variance == "normal":
        drawn = rng.normal(1.0, 0.5, size)
        while (low := drawn <= 0).any():
            drawn[low] = rng.normal(1.0, 0.5, np.count_nonzero(low))
        return drawn
    raise TrueupError(
        f"{quoted(variance)} is not one of {', '.join(get_args(Variance))}, or an array.",
        argument="variance",
    )


def _noise(rng: np.random.Generator, noise: Noise, size: int) -> Floats:
    """Draw errors with mean 0 and variance 1."""
    if noise == "normal":
        return rng.standard_normal(size)
    if noise == "laplace":
        return rng.laplace(0.0, math.sqrt(0.5), size)
    if noise == "student":
        return math.sqrt(0.5) * rng.standard_t(4, size)
    return rng.standard_exponential(size) - 1.0


def _answerers(
    rng: np.random.Generator, m: int, workers: int, density: float, each: int | None
) -> tuple[Ints, Ints]:
    """Draw who answers what: the number of answers to each question, and its workers in order."""
    if each == workers or (each is None and density >= 1.0):
        return np.full(m, workers), np.tile(np.arange(workers), m)
    drawn = np.full(m, each) if each is not None else rng.binomial(workers, density, m)
    counts = np.maximum(drawn, 1)
    indptr = offsets(counts)
    worker = np.empty(indptr[-1], dtype=np.int64)
    for k in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == k)
        worker[indptr[rows][:, None] + np.arange(k)] = _distinct(rng, len(rows), workers, k)
    return counts, worker


def _distinct(rng: np.random.Generator, rows: int, workers: int, k: int) -> Ints:
    """Draw `k` distinct workers for each row, sorted."""
    if k == workers:
        return np.tile(np.arange(workers), (rows, 1))
    if k * k <= workers:
        # Few out of many: draw with replacement, then draw rows with a repetition again.
        drawn = np.sort(rng.integers(0, workers, (rows, k)), axis=1)
        again = np.arange(rows)
        while len(again := again[(np.diff(drawn[again], axis=1) == 0).any(axis=1)]):
            drawn[again] = np.sort(rng.integers(0, workers, (len(again), k)), axis=1)
        return drawn
    most = max(1, TABLE // workers)
    parts = [
        np.sort(np.argpartition(rng.random((min(most, rows - at), workers)), k - 1, axis=1)[:, :k])
        for at in range(0, rows, most)
    ]
    return np.concatenate(parts)

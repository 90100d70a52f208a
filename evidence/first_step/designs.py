"""Simulated answers: alike and unequal workers, biases, gross errors, spammers, errors in proportion, one typing error.

A design returns panels x workers x questions, NaN where a worker did not answer, and the truths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trueup.answers.answers import Answers
from trueup.study.sources import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats

    Errors = Callable[[np.random.Generator, tuple[int, int, int]], Floats]

#: Number of workers for each answer to a question: every worker answers a third of the questions.
WORKERS_PER_ANSWER = 3
GROSS_SHARE, GROSS_FACTOR = 0.05, 15.0
SPAMMERS, SPAM_LIMIT = 0.3, 10.0
WILD_SHARE, WILD_FACTOR = 0.2, 100.0
#: Standard deviation of the logarithm of the standard deviation of unequal workers.
UNEQUAL = 0.5


class SimulatedAnswers(NamedTuple):
    """Answers (panels x workers x questions) and truths (panels x questions)."""

    answers: Floats
    truth: Floats

    @property
    def drawn(self) -> Drawn:
        """The same as panels of `Answers`."""
        return Drawn(Answers.from_matrix(self.answers), self.truth.ravel())


@dataclass(frozen=True)
class ErrorDesign:
    """Truths N(0, 1) plus errors; each question is answered by some of the workers, drawn at random.

    `pool` is the number of workers for each answer to a question: 1 are complete panels, and as many as there are
    questions make most workers answer one or none.
    """

    name: str
    errors: Errors
    pool: int = WORKERS_PER_ANSWER

    def draw(self, panels: int, answers_each: int, questions: int, seed: int) -> SimulatedAnswers:
        """Simulate panels."""
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(panels, questions))
        errors = self.errors(rng, (panels, answers_each * self.pool, questions))
        order = rng.random(errors.shape).argsort(axis=1).argsort(axis=1)
        answers = np.where(order < answers_each, truth[:, None, :] + errors, np.nan)
        return SimulatedAnswers(answers, truth)


def normal(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw errors of workers who are all alike."""
    return rng.normal(size=shape)


def unequal(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw errors of workers with lognormal standard deviations."""
    scale = np.exp(rng.normal(0.0, UNEQUAL, (*shape[:2], 1)))
    return scale * rng.normal(size=shape)


def biased(spread: float, rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw errors with biases of the workers of this standard deviation, and noise of standard deviation 1."""
    return rng.normal(0.0, spread, (*shape[:2], 1)) + rng.normal(size=shape)


def gross(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw normal errors; one in twenty is 15 times as large."""
    return rng.normal(size=shape) * np.where(rng.random(shape) < GROSS_SHARE, GROSS_FACTOR, 1.0)


def student(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw errors with Student's distribution, three degrees of freedom."""
    return rng.standard_t(3, shape)


def spam(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw errors: uniform between -10 and 10 for three workers in ten, normal for the others."""
    spammer = rng.random((*shape[:2], 1)) < SPAMMERS
    return np.where(spammer, rng.uniform(-SPAM_LIMIT, SPAM_LIMIT, shape), rng.normal(size=shape))


def wild(rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw normal errors; one worker in five has 100 times the standard deviation of the others."""
    is_wild = rng.random((*shape[:2], 1)) < WILD_SHARE
    return rng.normal(size=shape) * np.where(is_wild, WILD_FACTOR, 1.0)


NORMAL = ErrorDesign("normal", normal)
DESIGNS = (
    NORMAL,
    ErrorDesign("unequal workers", unequal),
    ErrorDesign("biases, sd 0.3", partial(biased, 0.3)),
    ErrorDesign("biases, sd 0.7", partial(biased, 0.7)),
    ErrorDesign("5% gross errors", gross),
    ErrorDesign("Student t3 errors", student),
    ErrorDesign("30% spammers", spam),
    ErrorDesign("one worker in five at 100 times the sd", wild, pool=50),
)


@dataclass(frozen=True)
class Proportional:
    """Positive truths exp(N(4, spread)), and answers that are off by a random factor.

    The logarithm of the factor is normal with standard deviation `error`, and its mean is 1: the truth is what the
    average worker says, the plain mean of the answers is unbiased for it, and so is the way back from logarithms.
    """

    spread: float
    error: float

    def draw(self, panels: int, workers: int, questions: int, seed: int) -> SimulatedAnswers:
        """Simulate complete panels."""
        rng = np.random.default_rng(seed)
        truth = np.exp(rng.normal(4.0, self.spread, (panels, questions)))
        noise = rng.normal(-0.5 * self.error**2, self.error, (panels, workers, questions))
        return SimulatedAnswers(truth[:, None, :] * np.exp(noise), truth)


def additive(panels: int, workers: int, questions: int, seed: int) -> SimulatedAnswers:
    """Simulate positive answers with errors that do not grow with the value: truths N(50, 10²), noise N(0, 5²)."""
    rng = np.random.default_rng(seed)
    truth = np.maximum(rng.normal(50.0, 10.0, (panels, questions)), 20.0)
    noise = rng.normal(0.0, 5.0, (panels, workers, questions))
    return SimulatedAnswers(np.maximum(truth[:, None, :] + noise, 1.0), truth)


class TypedAnswers(NamedTuple):
    """Answers (workers x questions), truths, and worker and question of the typing error."""

    answers: Floats
    truth: Floats
    worker: int
    question: int


def with_typo(seed: int, *, typo: bool = True) -> TypedAnswers:
    """Simulate heights in centimetres, of which one was typed with a digit too many.

    40 truths N(172, 8²), 8 workers with biases N(0, 1.5²) and standard deviations of about 4, nine tenths of the
    answers given, in whole centimetres; one answer is ten times what was meant.
    """
    rng = np.random.default_rng(seed)
    workers, questions = 8, 40
    truth = rng.normal(172.0, 8.0, questions)
    bias = rng.normal(0.0, 1.5, (workers, 1))
    scale = 4.0 * np.exp(rng.normal(0.0, 0.4, (workers, 1)))
    answers = np.round(truth + bias + scale * rng.normal(size=(workers, questions)))
    given = rng.random((workers, questions)) < 0.9
    # Two answers to every question at least.
    given[:2] |= given.sum(axis=0) < 2
    answers[~given] = np.nan
    at = rng.choice(np.flatnonzero(given))
    worker, question = divmod(int(at), questions)
    if typo:
        answers[worker, question] *= 10.0
    return TypedAnswers(answers, truth, worker, question)

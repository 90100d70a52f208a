"""A sample of the questions, where there are very many.

With more than two million answers or fifty thousand questions, correlated workers are looked for in a sample of the
questions with about a hundred answers per worker: copying shows in a hundred shared questions as well as in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.engines.question_sample import sample_questions
from trueup.variance.correlated.shared_questions import FEWEST

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine

#: Numbers of answers and of questions above which a sample of the questions is drawn.
MANY, MANY_QUESTIONS = 2_000_000, 50_000
#: Answers per worker in the sample, and the least and most answers of all workers.
EACH, ENOUGH, MOST_ANSWERS = 100, 100_000, 500_000


@dataclass(frozen=True, eq=False)
class AnswerSample:
    """The answers to a sample of the questions, or to all of them.

    Attributes
    ----------
    answers : Answers
        The answers, in memory.
    workers : array
        Number of each of their workers among all workers.
    n_workers : int
        Number of all workers.
    note : str
        Says that it is a sample, if it is one.
    """

    answers: Answers
    workers: Ints
    n_workers: int
    note: str = ""

    def for_all(self, values: Floats, empty: float) -> Floats:
        """Return values of the sampled workers as values of all workers, `empty` for the others."""
        result = np.full(self.n_workers, empty)
        result[self.workers] = values
        return result


def sample_answers(engine: Engine, seed: int = 0) -> AnswerSample:
    """Bring the answers to a sample of the questions into memory, or all answers where there are not too many.

    Which questions are drawn follows from their ids and the seed, so every engine draws the same ones.
    """
    problem = engine.problem
    size = sample_size(problem.n_answers, problem.n_questions, problem.n_workers)
    drawn = sample_questions(engine, seed, size)
    answers = engine.gather(None if drawn.limit is None else drawn.inside, drawn.reads)
    if answers is problem:
        return AnswerSample(answers, np.arange(problem.n_workers), problem.n_workers)
    note = ""
    if answers.n_questions < problem.n_questions:
        note = f"Based on a sample of {answers.n_questions:,} of {problem.n_questions:,} questions."
    workers = problem.worker_ids.index_of(answers.worker_ids)
    return AnswerSample(answers, workers, problem.n_workers, note)


def sample_size(n_answers: int, n_questions: int, n_workers: int) -> int:
    """Return the number of questions to sample from a problem of this size."""
    if n_answers <= MANY and n_questions <= MANY_QUESTIONS:
        return n_questions
    wanted = min(max(EACH * n_workers, ENOUGH), MOST_ANSWERS)
    return min(max(n_questions * wanted // n_answers, FEWEST), n_questions)

"""What an engine must do: hand every block to a function, add up what comes back, and keep what belongs to questions.

Numbers per worker and per panel come back to the caller; numbers per question stay with the engine, under a name, and
are handed to the next visit that asks for them. So a problem may be larger than memory, or live on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.answers.answers import Answers
    from trueup.answers.block import Block
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.vectors import QuestionVectors
    from trueup.io.columns import IdNames
    from trueup.io.table import Ids

#: Named vectors over the questions of a block.
Kept: TypeAlias = "dict[str, Floats]"


@dataclass(frozen=True)
class Visit:
    """What a visit to a block brings back.

    Attributes
    ----------
    sums : array or None
        Rows of sums per worker of the block; added up over blocks.
    panel_sums : array or None
        Rows of sums per panel of the block; added up over blocks.
    panel_peaks : array or None
        One number per panel of the block; the largest over blocks is kept.
    questions : dict
        Named vectors with one number per question; kept by the engine.
    rows : dict
        Named arrays about a few questions of the block, which are brought together, block after block: their first
        side is joined.
    """

    sums: Floats | None = None
    panel_sums: Floats | None = None
    panel_peaks: Floats | None = None
    questions: Kept | None = None
    rows: dict[str, Floats] | None = None


@dataclass(frozen=True)
class Sweep:
    """The reduced result of a pass over all blocks; what no visit brought has no rows, or is 0."""

    sums: Floats
    panel_sums: Floats
    panel_peaks: Floats
    rows: dict[str, Floats] = field(default_factory=dict)


class Problem(Protocol):
    """What is known of the answers without looking at them; `trueup.Answers` in memory.

    Attributes
    ----------
    panel_questions, panel_workers : arrays
        Panel b has the questions and the workers from entry b up to entry b+1.
    worker_panel, worker_rank : arrays
        Panel of each worker, and its place among all ids in order.
    worker_variance : array or None
        Known variance of each worker, NaN where unknown.
    question_ids, counts : Ids, array
        Ids of the questions, and their numbers of answers; an error where they are not on this machine. `counts_of`
        looks at those of some questions alone.
    names : IdNames
        What questions and workers are called: the columns that hold their ids.
    unit : str
        The unit that was stripped from the answers; empty where they have none.
    n_rows, n_missing, n_duplicates : int
        Rows read, rows without an answer, answers that repeat a worker on a question.
    """

    # ruff: noqa: D102  they are described above
    @property
    def n_questions(self) -> int: ...
    @property
    def n_workers(self) -> int: ...
    @property
    def n_answers(self) -> int: ...
    @property
    def n_panels(self) -> int: ...
    @property
    def panel_questions(self) -> Ints: ...
    @property
    def panel_workers(self) -> Ints: ...
    @property
    def worker_panel(self) -> Ints: ...
    @property
    def worker_rank(self) -> Ints: ...
    @property
    def worker_ids(self) -> Ids: ...
    @property
    def question_ids(self) -> Ids: ...
    @property
    def counts(self) -> Ints: ...
    def counts_of(self, questions: Ints) -> Ints: ...
    @property
    def worker_variance(self) -> Floats | None: ...
    @property
    def names(self) -> IdNames: ...
    @property
    def unit(self) -> str: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_missing(self) -> int: ...
    @property
    def n_duplicates(self) -> int: ...


class Journal(Protocol):
    """Where a loop writes down how far it came."""

    def load(self, key: str) -> dict[str, Any] | None:
        """Return the arrays written last under a key, if there are any."""
        ...

    def save(self, key: str, arrays: dict[str, Any]) -> None:
        """Write arrays down under a key."""
        ...


class Engine(Protocol):
    """A place where blocks of questions are kept and visited."""

    @property
    def problem(self) -> Problem:
        """What is known of the answers without looking at them."""
        ...

    @property
    def question_vectors(self) -> QuestionVectors:
        """The groups and covariates that came with the answers, and are kept already."""
        ...

    @property
    def journal(self) -> Journal | None:
        """Where a loop writes down how far it came, if runs on this engine can be resumed."""
        ...

    @property
    def n_workers(self) -> int:
        """Number of workers that visits see."""
        ...

    @property
    def answer_variance(self) -> float:
        """Mean variance of the answers that visits see, where those of single answers are known, else NaN."""
        ...

    def sweep(
        self,
        visit: Callable[[Block, Kept], Visit],
        reads: Sequence[str] = (),
        *,
        answers: bool = True,
    ) -> Sweep:
        """Visit every block, hand it what earlier visits kept of its questions, reduce the results.

        Sums are added in the order of the blocks, so that the number of threads changes nothing.

        Parameters
        ----------
        visit : callable
            Given a block and the vectors that it reads. It must depend on nothing else, so that it can be run again.
        reads : sequence of str
            Names of the vectors. One that the visit writes itself is what the visit before it wrote, and is not there
            the first time, nor when a visit is repeated to recover what was lost.
        answers : bool
            False: the visit looks at no answer, only at counts, centres and vectors, and they need not be read.
        """
        ...

    def changed(
        self,
        change: Callable[[Block, Kept], Block],
        reads: Sequence[str] = (),
        *,
        workers: int | None = None,
        answer_variance: float | None = None,
    ) -> Engine:
        """Return an engine over other blocks with the same questions, and the same vectors kept of them.

        Parameters
        ----------
        change : callable
            Given a block and the vectors that it reads, returns another block. It must depend on nothing else.
        reads : sequence of str
            Names of the vectors.
        workers : int, optional
            Number of workers of the other blocks, where it changes.
        answer_variance : float, optional
            Mean variance of their answers, where it changes.
        """
        ...

    def keep(self, name: str, values: Floats | float) -> None:
        """Keep a vector over all questions, or one number for all."""
        ...

    def kept(self, name: str) -> Floats:
        """Return a vector over all questions that visits have kept; an error where they are not on this machine."""
        ...

    def draw(self, seed: int) -> None:
        """Keep `vectors.DRAW`: for each question a number that looks random and follows from its id and the seed."""
        ...

    def gather(
        self, inside: Callable[[Block, Kept], Bools] | None = None, reads: Sequence[str] = ()
    ) -> Answers:
        """Return the answers to those questions of which `inside` says so, or to all, as a problem in memory."""
        ...

"""Rows that were set aside because their answer cannot be used, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from trueup.errors import counted


class Reject(NamedTuple):
    """A row that was set aside.

    Attributes
    ----------
    row
        Its number in the table, from 0.
    place
        Where that is, such as "line 7"; empty where it cannot be said.
    question, worker
        The ids that stand there, if any.
    answer
        What stands there for an answer.
    why
        What is wrong with it.
    """

    row: int
    place: str
    question: Any
    worker: Any
    answer: Any
    why: str


@dataclass(frozen=True)
class Rejects:
    """All rows that were set aside.

    Attributes
    ----------
    rows : tuple of Reject
        Each of them, in order; empty where only their number is known, as in an estimate that was loaded.
    counts : dict
        How many there are of each kind.
    """

    rows: tuple[Reject, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, rows: list[Reject]) -> Rejects:
        """Count rows by kind."""
        return cls(tuple(rows), tuple(Counter(each.why for each in rows).most_common()))

    def __len__(self) -> int:
        return sum(count for _, count in self.counts)

    def __add__(self, other: Rejects) -> Rejects:
        counts = Counter(dict(self.counts))
        counts.update(dict(other.counts))
        return Rejects(self.rows + other.rows, tuple(counts.most_common()))

    def account(self, n_rows: int) -> str:
        """Say how many rows were set aside and why."""
        kinds = ", ".join(f"{why} ({count:,})" for why, count in self.counts)
        return f"{len(self):,} of {counted(n_rows, 'row')} set aside: {kinds}"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The rows as columns of a table; ids and what stood there as text."""
        texts = ("question", "worker", "answer")
        return {
            name: [
                None if value is None else str(value) if name in texts else value
                for value in (getattr(each, name) for each in self.rows)
            ]
            for name in Reject._fields
        }

"""How far a loop came, written down after every iteration where the engine has a journal.

A run that was killed goes on after its last finished iteration. The entry has the state of the workers before and after
the last update: truths are not written down, those before it are found again in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm, Facts
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Journal


@dataclass(frozen=True, eq=False)
class Entry:
    """Where a loop stood: updates done, what was believed of the workers before and after the last, and the panels."""

    steps: int
    before: dict[str, Floats]
    after: dict[str, Floats]
    iterations: Ints
    moved: Floats
    active: Bools


@dataclass(frozen=True, eq=False)
class Diary:
    """The entry of one loop in the journal of an engine, if it has one."""

    journal: Journal | None
    key: str

    @classmethod
    def of(
        cls, engine: Engine, algorithm: Algorithm, facts: Facts, *, max_iter: int, tol: float
    ) -> Diary:
        """Open the diary of a loop; the same loop over the same answers has the same."""
        if engine.journal is None:
            return cls(None, "")
        digest = sha256(repr((algorithm, max_iter, tol)).encode())
        for each in fields(facts):
            value = getattr(facts, each.name)
            digest.update(f"{each.name}:".encode() + np.asarray(value).tobytes())
        return cls(engine.journal, digest.hexdigest()[:32])

    def read(self) -> Entry | None:
        """Return the last entry, if there is one."""
        found = None if self.journal is None else self.journal.load(self.key)
        if found is None:
            return None
        before, after = (
            {name[len(when) :]: each for name, each in found.items() if name.startswith(when)}
            for when in ("before:", "after:")
        )
        return Entry(
            int(found["steps"]),
            before,
            after,
            found["iterations"],
            found["moved"],
            found["active"],
        )

    def write(self, entry: Entry) -> None:
        """Write down where the loop stands."""
        if self.journal is None:
            return
        self.journal.save(
            self.key,
            {
                "steps": np.array(entry.steps),
                **{f"before:{name}": each for name, each in entry.before.items()},
                **{f"after:{name}": each for name, each in entry.after.items()},
                "iterations": entry.iterations,
                "moved": entry.moved,
                "active": entry.active,
            },
        )

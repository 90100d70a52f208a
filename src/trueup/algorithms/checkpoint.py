"""Checkpoints of the loop: saved after every iteration where the engine has a journal.

A run that was killed resumes after its last finished iteration. A checkpoint holds the state of the workers before and
after the last update. Truths are not saved: one pass computes those before the update again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.facts import Facts
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.engines.protocol import Engine, Journal


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Progress of a loop: number of updates, worker vectors before and after the last one, status of the panels."""

    steps: int
    before: dict[str, Floats]
    after: dict[str, Floats]
    iterations: Ints
    moved: Floats
    active: Bools


@dataclass(frozen=True, eq=False)
class CheckpointStore:
    """Loads and saves the checkpoint of one loop in the journal of an engine; does nothing without a journal."""

    journal: Journal | None
    key: str

    @classmethod
    def of(
        cls, engine: Engine, algorithm: Algorithm, facts: Facts, *, max_iter: int, tol: float
    ) -> CheckpointStore:
        """Return the store of a loop; the same loop over the same answers has the same key."""
        if engine.journal is None:
            return cls(None, "")
        digest = sha256(repr((algorithm, max_iter, tol)).encode())
        for field in fields(facts):
            value = getattr(facts, field.name)
            # What is no array has no bytes but an address, which is another one in every process.
            content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            digest.update(f"{field.name}:".encode() + content)
        return cls(engine.journal, digest.hexdigest()[:32])

    def load(self) -> Checkpoint | None:
        """Return the last checkpoint, if there is one."""
        arrays = None if self.journal is None else self.journal.load(self.key)
        if arrays is None:
            return None
        before, after = (
            {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            for prefix in ("before:", "after:")
        )
        return Checkpoint(
            int(arrays["steps"]),
            before,
            after,
            arrays["iterations"],
            arrays["moved"],
            arrays["active"],
        )

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint in place of the last one."""
        if self.journal is None:
            return
        self.journal.save(
            self.key,
            {
                "steps": np.array(checkpoint.steps),
                **{f"before:{name}": array for name, array in checkpoint.before.items()},
                **{f"after:{name}": array for name, array in checkpoint.after.items()},
                "iterations": checkpoint.iterations,
                "moved": checkpoint.moved,
                "active": checkpoint.active,
            },
        )

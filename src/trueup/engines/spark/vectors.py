"""How to make a number of each question again: for engines that keep no vectors.

A vector over questions is what some visit to their block wrote, and a visit depends on nothing but its block and the
vectors it read. So it is enough to remember the visits: a *recipe* is the visit that wrote a vector, the recipes of
what it read, and the changes its block had gone through by then. Wherever a block is, its vectors can be had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trueup.core.sampling import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Kept, Visit


@dataclass(frozen=True)
class Number:
    """The same number for all questions."""

    value: float


@dataclass(frozen=True)
class Draw:
    """A number that looks random and follows from the id of the question."""

    seed: int


@dataclass(frozen=True)
class StoredVector:
    """A vector that is stored with the questions."""

    name: str


@dataclass(frozen=True, eq=False)
class Layer:
    """Blocks after a change to those of the layer below; the lowest has those that are stored."""

    change: Callable[[Block, Kept], Block] | None = None
    reads: Mapping[str, Recipe] = field(default_factory=dict)
    below: Layer | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """A visit to the blocks of a layer, and the recipes of what it reads."""

    visit: Callable[[Block, Kept], Visit]
    reads: Mapping[str, Recipe]
    layer: Layer

    def without(self, names: set[str]) -> Step:
        """Return the step as it is repeated: what it writes it does not read, so that recipes do not grow."""
        left = {name: recipe for name, recipe in self.reads.items() if name not in names}
        return Step(self.visit, left, self.layer)


@dataclass(frozen=True, eq=False)
class Written:
    """What a step wrote under a name."""

    step: Step
    name: str


Recipe: TypeAlias = Number | Draw | StoredVector | Written


def frozen(function: Any) -> Any:
    """Return a function that sees the variables around it as they are now, also if they are given new values later.

    >>> def make():
    ...     x = 1
    ...     now = frozen(lambda: x)
    ...     x = 2
    ...     return now
    >>> make()()
    1
    """
    return _frozen(function, {})


def _frozen(function: Any, done: dict[int, Any]) -> Any:
    if not isinstance(function, FunctionType) or function.__closure__ is None:
        return function
    if id(function) not in done:
        cells = tuple(CellType() for _ in function.__closure__)
        copy = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            cells,
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        done[id(function)] = copy
        for old, new in zip(function.__closure__, cells, strict=True):
            try:
                new.cell_contents = _frozen(old.cell_contents, done)
            except ValueError:  # a variable that has no value yet
                continue
    return done[id(function)]


class BlockVectors:
    """A block, and all that recipes make of it, each made once.

    Parameters
    ----------
    block : Block
        As it is stored.
    hashes : array
        Hash of the id of each of its questions.
    stored : mapping
        Vectors that are stored with them.
    """

    def __init__(
        self, block: Block, hashes: NDArray[np.uint64], stored: Mapping[str, Floats]
    ) -> None:
        self._block, self._hashes, self._stored = block, hashes, stored
        self._made: dict[Any, Any] = {}

    def block(self, layer: Layer) -> Block:
        """Return the block of a layer."""
        if layer.change is None or layer.below is None:
            return self._block
        if layer not in self._made:
            self._made[layer] = layer.change(self.block(layer.below), self.kept(layer.reads))
        block: Block = self._made[layer]
        return block

    def kept(self, recipes: Mapping[str, Recipe]) -> Kept:
        """Return vectors by their recipes."""
        return {name: self._vector(recipe) for name, recipe in recipes.items()}

    def visit(self, step: Step) -> Visit:
        """Make a visit."""
        if step not in self._made:
            self._made[step] = step.visit(self.block(step.layer), self.kept(step.reads))
        visit: Visit = self._made[step]
        return visit

    def _vector(self, recipe: Recipe) -> Floats:
        match recipe:
            case Number(value):
                return np.full(self._block.n_questions, value)
            case Draw(seed):
                return drawn(self._hashes, seed)
            case StoredVector(name):
                return self._stored[name]
            case Written(step, name):
                return np.asarray((self.visit(step).questions or {})[name], dtype=np.float64)

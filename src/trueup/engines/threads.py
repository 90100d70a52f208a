"""Threads that visit blocks: results come in order, and few are under way at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
Result = TypeVar("Result")


def check_threads(threads: object) -> None:
    """Check that `threads` is None or a whole number from 1 on."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise TrueupError(
            f"found {quoted(threads)}, must be a whole number from 1 on.", argument="threads"
        )


def load_libraries() -> None:
    """Load what visits use before threads need it: an import that two threads wait for may never end."""
    import scipy.sparse
    import scipy.special  # noqa: F401


def in_turn(
    do: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = 2
) -> Iterator[Result]:
    """Call a function with each item on several threads, and yield the results in order.

    At most `ahead` items per thread are under way, so that results which wait for their turn take little memory.
    """
    if threads == 1:
        yield from map(do, items)
        return
    load_libraries()
    waiting: list[Any] = []
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(do, item))
                if len(waiting) > ahead * threads:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()

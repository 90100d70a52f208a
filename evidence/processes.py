"""Tasks of a part, run in several processes; finished ones are not run again."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from trueup.core.progress import Progress
from trueup.study.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evidence.second_step.context import Context

    Rows = list[dict[str, Any]]
    Task = Callable[[], Rows]


def run_tasks(context: Context, part: str, tasks: Sequence[tuple[str, Task]]) -> Rows:
    """Run tasks that return rows, except finished ones; keep and return the rows in the order of the tasks.

    A task is a name and a function that can be pickled. The small version runs in this process.
    """
    store = Store(context.finished, part)
    by_key = {
        f"{name}, {context.samples} samples, seed {context.seed}": task for name, task in tasks
    }
    todo = {key: task for key, task in by_key.items() if store.find(key) is None}
    with Progress(part, len(todo), shown=context.progress) as bar:
        for key, rows in _results(todo, 1 if context.quick else context.processes):
            store.keep(key, rows)
            bar.step(key)
    context.rows[part] = [row for key in by_key for row in store.find(key) or []]
    return context.rows[part]


def _results(tasks: Mapping[str, Task], processes: int) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of each task as soon as they are there."""
    if processes < 2 or len(tasks) < 2:
        for key, task in tasks.items():
            yield key, task()
        return
    start_anew = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=start_anew) as pool:
        keys = {pool.submit(task): key for key, task in tasks.items()}
        for done in as_completed(keys):
            yield keys[done], done.result()

"""Files that hold the answers of one worker each, who is named by the file or by its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.core.parameters import one_of
from trueup.errors import AnswersError
from trueup.io.formats import find_format
from trueup.io.readers.streams import STDIN
from trueup.io.series import library

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trueup.io.readers.source import Source
    from trueup.io.series import Series

#: The column that such files get.
WORKER = "worker"


def check_worker_from(worker_from: Any, paths: Sequence[Path], sql: str | None) -> None:
    """Check that workers can be named by files."""
    one_of("worker_from", worker_from, ("file", "folder"))
    if sql is not None or any(str(path) == STDIN for path in paths):
        raise AnswersError(
            "needs files with names, and this is a database or standard input.",
            argument="worker_from",
            remedy="Leave it out.",
        )


def worker_of(path: Path, worker_from: str) -> str:
    """Return the worker whose answers are in a file.

    Examples
    --------
    >>> worker_of(Path("panel/gpt-4.1.csv.gz"), "file"), worker_of(Path("panel/gpt-4.1.csv"), "folder")
    ('gpt-4.1', 'panel')
    """
    if worker_from == "folder":
        return path.absolute().parent.name
    packed = find_format(path.stem) is not None and find_format(path) is not None
    return Path(path.stem).stem if packed else path.stem


def with_worker(source: Source, worker: str) -> Source:
    """Return a source with a further column that names the worker in every row."""
    if WORKER in source.names:
        raise AnswersError(
            f'{source.label}: has a column "{WORKER}" already.',
            argument="worker_from",
            remedy="Leave it out, or rename the column.",
        )

    def load(names: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        others = [name for name in names if name != WORKER] or source.names[:1]
        columns = source.load(others, [name for name in ids if name != WORKER])
        if WORKER in names:
            columns[WORKER] = _repeated(worker, columns[others[0]])
        return {name: columns[name] for name in names}

    def settle(name: str, ids: Series) -> Series:
        return ids if name == WORKER else source.settle(name, ids)

    return replace(source, names=[*source.names, WORKER], load=load, settle=settle)


def _repeated(text: str, like: Series) -> Series:
    """Return a column that holds one text in every row, of the library and length of another column."""
    if library(like) == "pyarrow":
        pyarrow = need("pyarrow", "files")
        return pyarrow.chunked_array([pyarrow.repeat(text, len(like))], pyarrow.string())
    return np.full(len(like), text, dtype=object)

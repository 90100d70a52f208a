"""Where long loops write down how far they came, so that a run that was killed can go on from there."""

from __future__ import annotations

import os
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.engines.disk.folder import JOURNAL, as_one, clear_journal, folder_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What reading a file that is cut short or was written by something else can raise.
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class DiskJournal:
    """Named arrays under keys, each in a file that is always whole.

    Parameters
    ----------
    folder : Path
        The working folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)

    def load(self, key: str) -> dict[str, NDArray[Any]] | None:
        """Return what was saved last under this key; a damaged file counts as none."""
        try:
            with self._path(key).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except DAMAGED:
            return None

    def save(self, key: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Put these arrays in the place of what was saved under this key before."""
        objects = [name for name, array in arrays.items() if array.dtype.hasobject]
        if objects:
            raise TypeError(f"{objects[0]}: Python objects are not data.")
        with folder_errors(self._folder), as_one(self._path(key)) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())

    def clear(self) -> None:
        """Forget everything."""
        clear_journal(self._folder)

    def _path(self, key: str) -> Path:
        return self._folder / JOURNAL.replace("*", sha256(key.encode()).hexdigest()[:32])

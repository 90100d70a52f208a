"""Store of the finished cells of a study, from which a stopped run resumes.

The file has one line of JSON per finished task: a key with everything the result depends on, and its rows. If the
process dies while writing, the last line is incomplete; it is ignored, and its task runs again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trueup.io.atomic import atomic_write


class Store:
    """Rows by key, stored in a file, or in memory only if there is no folder."""

    def __init__(self, folder: str | os.PathLike[str] | None, name: str) -> None:
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._path = None if folder is None else Path(folder) / f"{name}.cells.jsonl"
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            complete = []
            for line in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                self._rows[entry["key"]] = entry["rows"]
                complete.append(line)
            # Remove an incomplete last line, so that nothing is appended to it.
            with atomic_write(self._path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in complete), encoding="utf-8")

    def find(self, key: str) -> list[dict[str, Any]] | None:
        """Return the rows stored under a key, if any."""
        return self._rows.get(key)

    def keep(self, key: str, rows: list[dict[str, Any]]) -> None:
        """Store rows under a key; they are on disk when this returns."""
        self._rows[key] = rows
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "rows": rows}) + "\n")
            file.flush()
            os.fsync(file.fileno())

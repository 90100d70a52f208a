"""Finished cells of a study, kept so that a run that was stopped can go on.

A file with one line of JSON per finished task: what it depended on, and its rows. A line is written whole or, if the
process dies in the middle of it, is the last one and not understood, and the task is run again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trueup.io.atomic import atomic_write


class Store:
    """Rows by key, in a file of a folder; or in memory only, without a folder."""

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
            # What was cut off must not have the next line written behind it.
            with atomic_write(self._path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in complete), encoding="utf-8")

    def find(self, key: str) -> list[dict[str, Any]] | None:
        """Return the rows kept under a key."""
        return self._rows.get(key)

    def keep(self, key: str, rows: list[dict[str, Any]]) -> None:
        """Keep rows under a key, on disk before anything else happens."""
        self._rows[key] = rows
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "rows": rows}) + "\n")
            file.flush()
            os.fsync(file.fileno())

"""Write tables of results as CSV, or as Parquet if pyarrow is installed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.core.libraries import need
from trueup.errors import TrueupError
from trueup.io.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


def write_table(rows: Sequence[dict[str, Any]], path: str | PathLike[str]) -> Path:
    """Write rows to a .csv or .parquet file atomically."""
    path = Path(path)
    if not rows:
        raise TrueupError(f"rows: there are none to write to {path.name}.")
    with atomic_write(path) as temporary:
        if path.suffix == ".parquet":
            pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
            parquet.write_table(pyarrow.Table.from_pylist(list(rows)), temporary)
        elif path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        else:
            raise TrueupError(f"{path.name} must end in .csv or .parquet.", argument="path")
    return path

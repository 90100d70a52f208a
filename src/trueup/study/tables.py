"""Tables of results as files: CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError, need

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


def write_table(rows: Sequence[dict[str, Any]], path: str | PathLike[str]) -> Path:
    """Write rows to a .csv or .parquet file, under a temporary name first so that no half-written file is left."""
    path = Path(path)
    if not rows:
        raise TrueupError(f"rows: there are none to write to {path.name}.")
    temporary = path.with_name(f".{path.name}.new")
    if path.suffix == ".parquet":
        pyarrow, parquet = need("pyarrow", "files"), need("pyarrow.parquet", "files")
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), temporary)
    elif path.suffix == ".csv":
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        raise TrueupError(f"path: {path.name} must end in .csv or .parquet.")
    temporary.replace(path)
    return path

"""Frames of every library, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable


def relation(columns: dict[str, Any]) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(pa.table(columns))


FRAMES: dict[str, tuple[Callable[[Any], Any], type]] = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "polars lazy": (pl.LazyFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
    "duckdb": (relation, duckdb.DuckDBPyRelation),
    "dict": (dict, pd.DataFrame),
}


def rows(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    return {name: frame[name].tolist() for name in frame.columns}

"""The type that ids have in their own library, in words, so that ids from a file get it again.

A file holds values alone: without this a categorical column would come back as text, and 8-bit numbers as 64-bit ones.
Only types of the vocabulary below are made, whatever a file says, and only where no value changes.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.io.archive import check
from trueup.io.series import ARROW_NUMBERS, Series, dtype_name, library, to_list
from trueup.io.table import Ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS = r"(u?int(8|16|32|64)|float(16|32|64))"
UNITS = {"s": "s", "ms": "ms", "us": "us", "μs": "us", "ns": "ns"}
#: Times with a unit, and perhaps a zone, in the words of each library.
TIMES = {
    "pandas": re.compile(r"datetime64\[(s|ms|us|ns)(?:, ([\w/+:.-]+))?\]"),
    "polars": re.compile(
        r"Datetime\(time_unit='(ms|us|μs|ns)', time_zone=(?:None|'([\w/+:.-]+)')\)"
    ),
    "pyarrow": re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([\w/+:.-]+))?\]"),
}
#: Other types that are made by name.
PLAIN = {
    "pandas": re.compile(rf"{NUMBERS}|(?:U?Int(8|16|32|64)|Float(32|64))|boolean|string"),
    "polars": re.compile(
        r"U?Int(8|16|32|64|128)|Float32|Binary|Decimal\(precision=(\d+), scale=(\d+)\)"
    ),
    "pyarrow": re.compile(
        r"u?int(8|16|32|64)|halffloat|float|large_string|large_binary|date64\[ms\]"
        r"|decimal(128|256)\((\d+), (\d+)\)|fixed_size_binary\[(\d+)\]"
    ),
}
#: Types of few values that are kept once.
CODED = {
    "pandas": re.compile("category"),
    "polars": re.compile(r"Categorical|Enum\(.*\)", re.DOTALL),
    "pyarrow": re.compile(r"dictionary<values=(string|int64), indices=int32, ordered=0>"),
}
LONGEST = 100


def type_of(ids: Ids) -> list[str] | None:
    """Return library and type of ids; None where plain values say all."""
    where = library(ids.values)
    if where == "numpy":
        return None
    name = dtype_name(ids.values)
    if CODED[where].fullmatch(name):
        ordered = where == "pandas" and ids.values.dtype.ordered
        return [where, "Enum" if name.startswith("Enum") else name + " ordered" * ordered]
    known = TIMES[where].fullmatch(name) or PLAIN[where].fullmatch(name)
    return [where, name] if known and len(name) <= LONGEST else None


def categories_of(ids: Ids) -> Ids | None:
    """Return the categories of ids in their order, used or not; None where the ids have none."""
    values = ids.values
    match type_of(ids):
        case ["pandas", "category" | "category ordered"]:
            return Ids(import_module("pandas").Series(values.cat.categories))
        case ["polars", "Enum"]:
            return Ids(values.dtype.categories)
    return None


def times_of(ids: Ids) -> NDArray[Any] | None:
    """Return ids that are times to the unit in which they are kept, in UTC; None for other ids."""
    values = ids.values
    where = library(values)
    found = TIMES[where].fullmatch(dtype_name(values)) if where in TIMES else None
    if found is None:
        return None
    unit = UNITS[found[1]]
    match where:
        case "pandas":
            numbers = np.asarray(values.array.asi8)
        case "polars":
            numbers = values.to_physical().to_numpy()
        case _:
            numbers = np.asarray(values.cast("int64").to_numpy(zero_copy_only=False))
    return numbers.astype(np.int64).view(f"M8[{unit}]")


def retyped(ids: Ids, about: Any, categories: Ids | None) -> Ids:
    """Give ids the type that a file names; they stay as they are where that cannot be."""
    if about is None:
        return ids
    check(isinstance(about, list) and len(about) == 2, "the types of its ids")
    where, name = about
    check(where in TIMES and isinstance(name, str), "the types of its ids")
    times = TIMES[where].fullmatch(name)
    coded = CODED[where].fullmatch(name.removesuffix(" ordered")) or name == "Enum"
    check(times or coded or PLAIN[where].fullmatch(name), "the types of its ids")
    if times:
        check(ids.values.dtype == np.dtype(f"M8[{UNITS[times[1]]}]"), "the types of its ids")
    if find_spec(where) is None:
        return Ids(_in_zone(ids.values, times[2])) if times and times[2] else ids
    try:
        if times:
            return Ids(_times(where, ids.values, UNITS[times[1]], times[2]))
        values = _coded(where, name, ids, categories) if coded else _plain(where, name, ids)
        return Ids(values) if to_list(values) == ids.tolist() else ids
    except Exception:
        check(not times, "the types of its ids")
        return ids


def _in_zone(times: NDArray[Any], zone: str) -> NDArray[Any]:
    """Return times of a zone without a library that knows zones."""
    info, start = zoneinfo.ZoneInfo(zone), dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)  # noqa: UP017
    moments = times.astype("M8[us]").astype(np.int64).tolist()
    values = [(start + dt.timedelta(microseconds=each)).astimezone(info) for each in moments]
    return np.fromiter(values, dtype=object, count=len(values))


def _times(where: str, times: NDArray[Any], unit: str, zone: str | None) -> Series:
    module = import_module(where)
    match where:
        case "pandas":
            series = module.Series(times)
            return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)
        case "polars":
            return module.Series(times.astype(np.int64)).cast(module.Datetime(unit, zone))
        case _:
            return module.array(times.astype(np.int64)).cast(module.timestamp(unit, zone))


def _plain(where: str, name: str, ids: Ids) -> Series:
    module, values = import_module(where), ids.tolist()
    sizes = [int(each) for each in re.findall(r"\d+", name)]
    match where:
        case "pandas":
            return module.Series(values).astype(name)
        case "polars":
            kind = module.Decimal(*sizes) if name.startswith("Decimal") else getattr(module, name)
            return module.Series(values=values, dtype=kind)
    if name.startswith("decimal"):
        kind = getattr(module, f"decimal{sizes[0]}")(*sizes[1:])
    elif name.startswith("fixed_size_binary"):
        kind = module.binary(sizes[0])
    else:
        plain = ARROW_NUMBERS.get(name, name.partition("[")[0])
        kind = getattr(module, plain)()
    if name == "halffloat":
        return module.array(np.asarray(values, dtype=np.float16))
    return module.array(values, type=kind)


def _coded(where: str, name: str, ids: Ids, categories: Ids | None) -> Series:
    module, values = import_module(where), ids.tolist()
    match where:
        case "pandas" if categories is not None:
            known = module.Index(module.Series(categories.values))
            kind = module.CategoricalDtype(known, ordered=name.endswith("ordered"))
            return module.Series(module.Categorical(values, dtype=kind))
        case "polars" if name == "Enum" and categories is not None:
            return module.Series(values=values, dtype=module.Enum(categories.tolist()))
        case "polars":
            return module.Series(values=values, dtype=module.Categorical)
        case _:
            return module.array(values).dictionary_encode()

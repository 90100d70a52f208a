"""Ids of any library as plain arrays: to save them in a file, and to join those of two inputs.

Whole numbers, other numbers, truth values and times are arrays of their own type. Everything else is Python objects,
except many texts, which stay in pyarrow where it is installed, since a million objects are slow. In a file, texts are
one run of UTF-8 with the position where each id ends; ids of other or mixed types are text together with the type of
each. They are read back equal and of the same type, or cannot be saved at all.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sys
import uuid
import zoneinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.sampling import letters_of
from trueup.errors import TrueupError, quoted
from trueup.io.archive import check
from trueup.io.id_types import categories_of, retyped, times_of, type_of
from trueup.io.series import array_of, concat, dtype_name, library, to_list
from trueup.io.table import CompositeIds, Ids, concatenated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from trueup.core.arrays import Ints

# What messages call ids, by the kind of their array.
KINDS = {
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "numbers",
    "b": "truth values",
    "M": "times",
}
TEXT, OTHER = "text", "values of other types"
#: Number of texts from which on pyarrow is worth its import.
MANY = 10_000
#: Bytes that all texts of a pyarrow array can have together, unless its type is a large one.
MOST_LETTERS = 2**31 - 1


def plain(ids: Ids) -> NDArray[Any]:
    """Return ids as an array: of numbers, truth values or times, else of Python objects."""
    values = ids.values
    match library(values):
        case "numpy" if values.dtype.kind in KINDS:
            return np.asarray(values)
        case "pandas" if isinstance(values.dtype, np.dtype) and values.dtype.kind in KINDS:
            return np.asarray(values.to_numpy())
        case "polars" if values.dtype.is_integer() and not str(values.dtype).endswith("128"):
            return np.asarray(values.to_numpy())
        case "pyarrow" if sys.modules["pyarrow"].types.is_integer(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(array_of(to_list(values)))


# -- joining -------------------------------------------------------------------------------------------------


def joined(old: Ids, new: Ids, argument: str) -> tuple[Ints, Ids]:
    """Return the code of each new id, and all ids: the old ones, then those that are new.

    Raises
    ------
    TrueupError
        When they are not of the same type: 1 and "1" are different ids.
    """
    if isinstance(old, CompositeIds) or isinstance(new, CompositeIds):
        return _joined_keys(old, new, argument)
    found = _joined_texts(old, new)
    if found is not None:
        return found
    known, more = plain(old), plain(new)
    known_is, more_is = _kind(known), _kind(more)
    alike = library(old.values), dtype_name(old.values)
    typed = alike[0] != "numpy" and alike == (library(new.values), dtype_name(new.values))
    if known_is != more_is:
        fitting = _fitting(known, more)
        if fitting is None:
            first = quoted(Ids(more).tolist(np.arange(1))[0])
            raise TrueupError(
                f"the ids so far are {known_is}, those of the new answers {more_is} (first {first}).",
                argument=argument,
                remedy='Give ids of the same type: 1 and "1" are different.',
            )
        more = fitting
    code = _index(known, more)
    fresh = np.flatnonzero(code < 0)
    code[fresh] = len(known) + np.arange(len(fresh))
    if not len(fresh):
        return code, old if typed else Ids(known)
    if typed:
        return code, Ids(concat(old.values, new.take(fresh).values))
    both = np.concatenate([known, more[fresh]])
    if both.dtype.kind != known.dtype.kind:
        # Signed and unsigned integers, for example, have no common type that holds them all.
        both = np.concatenate([known.astype(object), more[fresh].astype(object)])
    return code, Ids(both)


def _joined_keys(old: Ids, new: Ids, argument: str) -> tuple[Ints, Ids]:
    """Join ids that several columns name."""
    sizes = [len(ids.columns) if isinstance(ids, CompositeIds) else 1 for ids in (old, new)]
    if sizes[0] != sizes[1]:
        raise TrueupError(
            f"{sizes[0]} column{'s' * (sizes[0] > 1)} named each so far, and {sizes[1]} in the new answers.",
            argument=argument,
            remedy="Name the same columns.",
        )
    for mine, more in zip(old.columns, new.columns, strict=True):  # type: ignore[attr-defined]
        joined(mine, more, argument)  # types that differ are an error
    code = old.index_of(new)
    fresh = np.flatnonzero(code < 0)
    code[fresh] = len(old) + np.arange(len(fresh))
    return code, concatenated(old, new.take(fresh)) if len(fresh) else old


def _joined_texts(old: Ids, new: Ids) -> tuple[Ints, Ids] | None:
    """Join texts of pyarrow with new texts; None if either are something else."""
    known = _arrow_texts(old.values)
    if known is None:
        return None
    arrow: Any = sys.modules["pyarrow"]
    more = _arrow_texts(new.values)
    if more is None:
        texts = plain(new)
        if _kind(texts) != TEXT:
            return None
        try:
            more = arrow.array(texts.tolist(), type=arrow.large_string())
        except UnicodeEncodeError:
            return None  # half of a surrogate pair, which only Python accepts as text
    found = import_module("pyarrow.compute").index_in(more, value_set=known)
    code = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    fresh = np.flatnonzero(code < 0)
    code[fresh] = len(known) + np.arange(len(fresh))
    if not len(fresh):
        return code, old
    return code, Ids(_smaller(arrow.concat_arrays([known, more.take(arrow.array(fresh))])))


def _arrow_texts(values: Any) -> Any:
    """Return texts of pyarrow as one array of large strings; None for other ids."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is None or letters_of(values) is None:
        return None
    if isinstance(values, arrow.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(arrow.large_string())


def _smaller(texts: Any) -> Any:
    """Return large strings of pyarrow as plain strings, unless they are too long for that."""
    arrow: Any = sys.modules["pyarrow"]
    return texts.cast(arrow.string()) if texts.nbytes <= MOST_LETTERS else texts


def _kind(array: NDArray[Any]) -> str:
    """Return what messages call ids of this type."""
    if array.dtype.kind != "O":
        return KINDS[array.dtype.kind]
    types = set(map(type, array))
    if types == {str}:
        return TEXT
    return KINDS["i"] if types == {int} else OTHER


def _fitting(known: NDArray[Any], more: NDArray[Any]) -> NDArray[Any] | None:
    """Convert new ids to the type of the known ones if nothing is lost, else return None.

    A missing value, for example, turns a column of whole numbers into other numbers.
    """
    if _kind(known) == OTHER or _kind(more) == OTHER:
        # Columns of mixed types keep their values as they are.
        return np.asarray(array_of(more.tolist())).astype(object)
    if known.dtype.kind in "iu" and more.dtype.kind == "f":
        whole = np.abs(more) < 2.0**53
        whole &= more == np.rint(more)
        return more.astype(np.int64) if whole.all() else None
    if known.dtype.kind == "f" and more.dtype.kind in "iu":
        wide = more.astype(np.float64)
        return wide if (np.abs(wide) < 2.0**53).all() else None
    return None


def _index(known: NDArray[Any], more: NDArray[Any]) -> Ints:
    """Return the position of each value among the known ones, -1 for new ones."""
    if known.dtype.kind != more.dtype.kind or known.dtype.kind == "O":
        return Ids(known).index_of(more.tolist() if more.dtype.kind in "iufb" else list(more))
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, more, sorter=order), len(known) - 1)
    found = order[place]
    return np.where(known[found] == more, found, -1).astype(np.int64)


# -- saving --------------------------------------------------------------------------------------------------


def _time_text(time: dt.datetime) -> str:
    """Write a time with its zone by name, where that has one: an offset alone would be another zone."""
    zone = getattr(time.tzinfo, "key", None)
    return (
        time.isoformat()
        if zone is None
        else f"{time.replace(tzinfo=None).isoformat()}/{time.fold}/{zone}"
    )


def _time_of(text: str) -> dt.datetime:
    time, *zone = text.split("/", 2)
    found = dt.datetime.fromisoformat(time)
    if not zone:
        return found
    fold, key = zone
    return found.replace(tzinfo=zoneinfo.ZoneInfo(key), fold=int(fold))


_TYPES: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "text": (str, str, str),
    "int": (int, str, int),
    "float": (float, float.hex, float.fromhex),
    "bool": (bool, str, {"True": True, "False": False}.__getitem__),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.datetime, _time_text, _time_of),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "uuid": (uuid.UUID, str, uuid.UUID),
}
NAMES = tuple(_TYPES)


def pack(name: str, ids: Ids) -> dict[str, NDArray[Any]]:
    """Return ids as members of an archive: arrays of numbers only."""
    if isinstance(ids, CompositeIds):
        members: dict[str, NDArray[Any]] = {}
        for number, (values, codes) in enumerate(zip(ids.columns, ids.codes, strict=True)):
            members |= pack(f"{name}-{number}", values)
            members[f"{name}-{number}.codes"] = codes.astype(np.int64)
        return members
    found = letters_of(ids.values)
    if found is not None:
        letters, borders = found
        here = letters[borders[0] : borders[-1]]
        return {f"{name}.text": here, f"{name}.ends": borders[1:] - borders[0]}
    times = times_of(ids)
    array = plain(ids) if times is None else times
    if array.dtype.kind in KINDS:
        return {name: array.astype(array.dtype.newbyteorder("="))}
    values = array.tolist()
    tags = {kind: NAMES.index(tag) for tag, (kind, _, _) in _TYPES.items()}
    try:
        tag = np.array([tags[type(value)] for value in values], dtype=np.uint8)
    except KeyError as error:
        (strange,) = error.args
        raise TrueupError(
            f"save: {name} ids of type {quoted(strange.__name__)} cannot be kept in a file. Make them text or whole "
            "numbers before estimating."
        ) from None
    write = [each[1] for each in _TYPES.values()]
    texts = [
        write[one](value).encode("utf-8", "surrogatepass")
        for one, value in zip(tag.tolist(), values, strict=True)
    ]
    members = {
        f"{name}.text": np.frombuffer(b"".join(texts), dtype=np.uint8),
        f"{name}.ends": np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))),
    }
    if tag.any():
        members[f"{name}.types"] = tag
        back = unpack(name, members).tolist()
        for before, after in zip(values, back, strict=True):
            zones = getattr(before, "tzinfo", None), getattr(after, "tzinfo", None)
            if before != after or str(zones[0]) != str(zones[1]):
                raise TrueupError(
                    f"save: the {name} id {quoted(before)} cannot be kept in a file as it is. Make it text."
                )
    return members


def pack_types(name: str, ids: Ids) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Return the type of each column of ids in its library, and members of an archive with the categories."""
    columns = ids.columns if isinstance(ids, CompositeIds) else (ids,)
    members: dict[str, NDArray[Any]] = {}
    for number, column in enumerate(columns):
        categories = categories_of(column)
        if categories is not None:
            members |= pack(f"{name}-{number}.categories", categories)
    return [type_of(column) for column in columns], members


def unpack_types(name: str, types: Any, ids: Ids, members: Mapping[str, NDArray[Any]]) -> Ids:
    """Give ids the types that `pack_types` packed."""
    if types is None:
        return ids
    columns = ids.columns if isinstance(ids, CompositeIds) else (ids,)
    check(isinstance(types, list) and len(types) == len(columns), "the types of its ids")
    typed = []
    for number, (column, about) in enumerate(zip(columns, types, strict=True)):
        part = f"{name}-{number}.categories"
        known = any(member.startswith(part) for member in members)
        typed.append(retyped(column, about, unpack(part, members) if known else None))
    return CompositeIds(typed, ids.codes) if isinstance(ids, CompositeIds) else typed[0]


def unpack(name: str, members: Mapping[str, NDArray[Any]]) -> Ids:
    """Return the ids that `pack` packed."""
    if f"{name}-0.codes" in members:
        return _unpacked_keys(name, members)
    if name in members:
        return _distinct(members[name], name)
    ends = members[f"{name}.ends"]
    check(ends.dtype == np.int64, f"ids of {name}")
    letters = members[f"{name}.text"]
    check(letters.dtype == np.uint8, f"ids of {name}")
    starts = np.concatenate([[0], ends[:-1]])
    last = int(ends[-1]) if len(ends) else 0
    check((ends >= starts).all() and last == len(letters) and starts[0] == 0, f"ids of {name}")
    if len(ends) >= MANY and f"{name}.types" not in members:
        texts = _texts_of(letters, ends)
        if texts is not None:
            several = len(texts.unique())
            check(several == len(texts), f"ids of {name} are not distinct")
            return Ids(texts)
    text = letters.tobytes()
    borders = zip(starts.tolist(), ends.tolist(), strict=True)
    values: list[Any] = [text[a:b].decode("utf-8", "surrogatepass") for a, b in borders]
    types = members.get(f"{name}.types")
    if types is not None:
        check(types.dtype == np.uint8 and len(types) == len(values), f"ids of {name}")
        read = [each[2] for each in _TYPES.values()]
        values = [read[one](value) for one, value in zip(types.tolist(), values, strict=True)]
    return _distinct(np.fromiter(values, dtype=object, count=len(values)), name)


def _unpacked_keys(name: str, members: Mapping[str, NDArray[Any]]) -> Ids:
    columns: list[Ids] = []
    codes: list[NDArray[Any]] = []
    while (part := f"{name}-{len(columns)}.codes") in members:
        ids, code = unpack(part.removesuffix(".codes"), members), members[part]
        check(code.dtype == np.int64 and code.ndim == 1, f"ids of {name}")
        check(len(code) == len(codes[0] if codes else code), f"ids of {name}")
        check(bool(((code >= 0) & (code < len(ids))).all()), f"ids of {name}")
        columns.append(ids)
        codes.append(code)
    keys = CompositeIds(columns, codes)
    check(len(set(keys.values)) == len(keys), f"ids of {name} are not distinct")
    return keys


def _texts_of(letters: NDArray[np.uint8], ends: Ints) -> Any:
    """Return texts stored one after another as an array of pyarrow; None without pyarrow, or if they are no UTF-8."""
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        return None
    borders = np.concatenate([[0], ends])
    buffers = [None, arrow.py_buffer(borders), arrow.py_buffer(letters)]
    texts = arrow.Array.from_buffers(arrow.large_string(), len(ends), buffers)
    try:
        texts.validate(full=True)
    except arrow.ArrowInvalid:
        return None
    return _smaller(texts)


def _distinct(array: NDArray[Any], name: str) -> Ids:
    check(array.dtype.kind not in "fM" or (array == array).all(), f"ids of {name}")
    several = len(np.unique(array)) if array.dtype.kind != "O" else len(set(array.tolist()))
    check(several == len(array), f"ids of {name} are not distinct")
    return Ids(array)

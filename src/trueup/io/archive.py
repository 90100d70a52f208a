"""Arrays and a description in one file: versioned, checked, data and not code.

The file is a zip of uncompressed .npy members and `meta.json`, which lists the SHA-256 of every member. Whatever the
file holds, reading it allocates no more memory than its own size, uses no member's name as a path and executes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, quoted
from trueup.io.atomic import errors_name
from trueup.io.output_set import output_set

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

META = "meta.json"
ENDING = ".npy"
LARGEST_META = 1 << 24
MOST_MEMBERS = 256
LONGEST_PATH = 200
# Bytes before the name of a member, and the most bytes of the header of an array.
LOCAL_HEADER, LONGEST_HEADER = 30, 1 << 17
# Numbers, truth values and times; no objects, which would be code.
KINDS = "iufbM"
# A fixed time, so that the same arrays always make the same file.
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
REMEDY = "Take a copy, or estimate again from all answers."


def write_archive(
    path: str | os.PathLike[str],
    name: str,
    version: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Path:
    """Write arrays and a description to a file, completely or not at all.

    Parameters
    ----------
    path
        An existing file is replaced once the new one is complete.
    name, version
        The format of the file and its version.
    meta
        The description, in values that JSON can hold.
    """
    target = Path(path)
    if target.is_dir():
        raise TrueupError(f"{shown(target)} is a folder.", argument="path", remedy="Name a file.")
    members = {}
    with (
        errors_name(target),
        output_set([target]) as names,
        zipfile.ZipFile(names[target], "w", zipfile.ZIP_STORED) as archive,
    ):
        for member, array in arrays.items():
            members[member] = _write(archive, member + ENDING, array)
        about = {"format": name, "version": version, **meta, "members": members}
        text = json.dumps(about, allow_nan=False, indent=1)
        archive.writestr(_entry(META), text.encode("utf-8"))
    return target


def is_archive(path: Path, name: str) -> bool:
    """Return whether a file is an archive of this format, whatever its version and its arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(META).file_size > LARGEST_META:
                return False
            about = json.loads(archive.read(META))
    except BROKEN:
        return False
    return isinstance(about, dict) and about.get("format") == name


def _write(archive: zipfile.ZipFile, member: str, array: NDArray[Any]) -> str:
    content = io.BytesIO()
    array = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(content, np.lib.format.header_data_from_array_1_0(array))
    digest = hashlib.sha256()
    with archive.open(_entry(member), "w", force_zip64=True) as file:
        for part in (content.getvalue(), array.view(np.uint8).data):
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=FIXED_TIME)


def read_archive(
    path: str | os.PathLike[str],
    name: str,
    version: int,
    *,
    oldest: int | None = None,
    without: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_archive` wrote with this name, in versions from `oldest` to `version`.

    Arrays named in `without` are neither read nor checked.

    Raises
    ------
    TrueupError
        When there is no such file, or it is damaged or something else.
    """
    source = Path(path)
    try:
        if not source.is_file():
            found = "is no plain file" if source.exists() else "not found"
            raise TrueupError(f"File {shown(source)}: {found}. Check the name and the folder.")
        with source.open("rb") as file:
            return _read(source, file, name, (oldest or version, version), without)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TrueupError(f"File {shown(source)}: cannot be read ({reason}).") from error


def _read(
    source: Path, file: Any, name: str, versions: tuple[int, int], without: Collection[str]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            entries = _entries(archive, size)
            meta = json.loads(archive.read(META))
            check(isinstance(meta, dict) and meta.get("format") == name, "it is no such file")
            _check_version(source, meta.get("version"), *versions)
            members = meta.get("members")
            check(isinstance(members, dict), "its list of members is missing")
            check({META, *(each + ENDING for each in members)} == entries, "members are missing")
            arrays = {}
            for member in [each for each in members if each not in without]:
                content = _content(file, archive.getinfo(member + ENDING))
                differs = hashlib.sha256(content.data).hexdigest() != members[member]
                check(not differs, f"{quoted(member)} differs")
                arrays[member] = _array(content, member)
            return meta, arrays
    except TrueupError:
        raise
    except zipfile.BadZipFile as error:
        text = str(error)
        known = "it is no such file" if "not a zip file" in text else "a checksum differs"
        raise damaged(source, known) from error
    except Damage as error:
        raise damaged(source, str(error)) from error
    except BROKEN as error:
        raise damaged(source, "it cannot be understood") from error


def _check_version(source: Path, found: Any, oldest: int, known: int) -> None:
    if isinstance(found, int) and found > known:
        raise TrueupError(
            f"File {shown(source)}: written by a newer trueup (version {found} of the format, this one knows {known}). "
            "Update trueup."
        )
    check(isinstance(found, int), "its version is not known")
    if found < oldest:
        raise TrueupError(
            f"File {shown(source)}: written by an older trueup, whose states are not read. "
            "Estimate again from all answers."
        )


#: What Python raises when a file is not what it claims to be.
BROKEN = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


class Damage(Exception):  # noqa: N818  says what is wrong without a suffix
    """A file is damaged; the message says how."""


def check(fine: object, otherwise: str) -> None:
    """Raise `Damage` unless a condition holds."""
    if not fine:
        raise Damage(otherwise)


def damaged(path: str | os.PathLike[str], reason: str) -> TrueupError:
    """Build the error for a file that cannot be used."""
    return TrueupError(f"File {shown(path)}: damaged or no state of trueup ({reason}). {REMEDY}")


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a message."""
    return quoted(os.fspath(path), LONGEST_PATH)


def _entries(archive: zipfile.ZipFile, size: int) -> set[str]:
    """Return the names of all members; check first that they are no larger than the file."""
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    check(len(entries) <= MOST_MEMBERS and len(names) == len(entries), "too many members")
    for entry in entries:
        plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
        check(plain and entry.file_size == entry.compress_size, "members are compressed")
    check(sum(entry.file_size for entry in entries) <= size, "members are larger than the file")
    check(META in names and archive.getinfo(META).file_size <= LARGEST_META, "no description")
    return names


def _content(file: Any, entry: zipfile.ZipInfo) -> NDArray[np.uint8]:
    """Return the bytes of a member, read directly into the memory that its array will use.

    `zipfile` would copy them and compute a checksum of its own, which SHA-256 makes superfluous.
    """
    file.seek(entry.header_offset)
    header = file.read(LOCAL_HEADER)
    check(len(header) == LOCAL_HEADER and header[:4] == b"PK\x03\x04", "a member is missing")
    # The name and extra fields are between the header of an entry and its bytes.
    file.seek(sum(struct.unpack_from("<HH", header, 26)), os.SEEK_CUR)
    content = np.empty(entry.file_size, dtype=np.uint8)
    check(file.readinto(content.data) == len(content), "a member is cut short")
    return content


def _array(content: NDArray[np.uint8], member: str) -> NDArray[Any]:
    """Return the array of a member: of numbers only, and of the size that its header states."""
    file = io.BytesIO(content[:LONGEST_HEADER].tobytes())
    check(np.lib.format.read_magic(file) == (1, 0), f"{quoted(member)} is no array")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    start = file.tell()
    plain = dtype.kind in KINDS and dtype.names is None and dtype.isnative and not by_column
    check(plain and len(shape) == 1, f"{quoted(member)} is no plain array")
    check(shape[0] * dtype.itemsize == len(content) - start, f"{quoted(member)} is cut short")
    array = np.frombuffer(content, dtype, offset=start)
    if not array.flags.aligned:
        array = array.copy()
    if dtype.kind == "b":
        # Any other byte would be neither true nor false.
        check((array.view(np.uint8) <= 1).all(), f"{quoted(member)} holds odd values")
    return array


def vector(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    size: int,
    *,
    unknown: bool = False,
    open_end: bool = False,
) -> NDArray[np.float64]:
    """Return numbers, one for each of so many things; all finite, unless they may be unknown."""
    array = arrays[name]
    check(array.dtype == np.float64 and len(array) == size, f"{quoted(name)} has the wrong size")
    fine = np.isfinite(array)
    if unknown or open_end:
        fine |= (np.isnan(array) & unknown) | ((array == np.inf) & open_end)
    check(fine.all(), f"{quoted(name)} holds no numbers")
    return array


def whole(value: Any) -> int:
    """Return a count."""
    check(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63, "a count")
    return int(value)


def printable(value: Any) -> str:
    """Return a text of characters that can be shown."""
    check(isinstance(value, str) and value.replace("\n", "").isprintable(), "a text")
    return str(value)


def texts(values: Any) -> list[str]:
    """Return a list of names."""
    check(isinstance(values, list) and all(isinstance(each, str) for each in values), "names")
    return list(values)

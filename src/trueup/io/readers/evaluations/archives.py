"""Members of zip archives, also of those packed by zstd, which `zipfile` reads only from Python 3.14 on."""

from __future__ import annotations

import struct
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from trueup.core.libraries import need
from trueup.errors import AnswersError, TrueupError
from trueup.io.limits import check_bytes
from trueup.io.readers.source import one_line, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"PK\x03\x04"
#: The number of zstd among the ways to pack a member.
ZSTD = 93
# Bytes of the header in front of a member; two numbers at its end tell how long its name and extra field are.
_LOCAL_HEADER, _LENGTHS = 30, "<HH"
_DAMAGED = (zipfile.BadZipFile, EOFError, zlib.error, struct.error, ValueError, NotImplementedError)
_ENCRYPTED = 0x1


class Archive:
    """An open zip archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file)
        self.names = self._zip.namelist()

    def read(self, name: str) -> bytes:
        """Return the bytes of a member.

        Raises
        ------
        AnswersError
            When they are damaged, or too many.
        MissingExtra
            When it is packed by zstd and pyarrow is not installed.
        """
        entry = self._zip.getinfo(name)
        check_bytes(entry.file_size, "unpacks to")
        if entry.flag_bits & _ENCRYPTED:
            raise AnswersError("cannot be read: it needs a password. Write it without one.")
        try:
            if entry.compress_type != ZSTD:
                return self._zip.read(entry)
            content = self._unpack(entry)
        except TrueupError:
            raise
        except _DAMAGED as error:
            raise _damaged(error) from error
        if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
            raise _damaged(f"{name} is not what it was")
        return content

    def _unpack(self, entry: zipfile.ZipInfo) -> bytes:
        pyarrow = need("pyarrow", "files")
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        self._file.seek(sum(struct.unpack(_LENGTHS, header[-4:])), 1)
        packed = self._file.read(entry.compress_size)
        try:
            # Not `Codec.decompress`, which stops at the end of the first of several frames.
            stream = pyarrow.input_stream(pyarrow.BufferReader(packed), compression="zstd")
            return bytes(stream.read(entry.file_size + 1))
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(error) from error


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a zip archive.

    Raises
    ------
    AnswersError
        When it cannot be read as one.
    """
    try:
        with path.open("rb") as file:
            try:
                archive = Archive(file)
            except _DAMAGED as error:
                raise _damaged(error) from error
            yield archive
    except OSError as error:
        raise unreadable(error) from error


def _damaged(error: object) -> AnswersError:
    return AnswersError(
        f"cannot be read ({one_line(error)}): the archive is cut short or damaged. Write it again."
    )

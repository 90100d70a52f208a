"""Text files: encodings, byte order marks, compression."""

from __future__ import annotations

import codecs
import gzip
import io
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, cast

from trueup.errors import AnswersError, option, quoted
from trueup.io.leftovers import prefix, remove_dead
from trueup.io.limits import read_pieces
from trueup.io.readers.source import UNREADABLE, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = 1 << 16
GZIP = b"\x1f\x8b"
NOT_UTF8 = "is not UTF-8 text. Save it with the encoding UTF-8."
SAVED_IN = "Pass the encoding it was saved in as " + option("encoding")
UTF8 = ("utf-8", "utf-8-sig", "ascii")
# Those of UTF-32 first, since one of them begins with one of UTF-16.
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def check_encoding(encoding: object) -> str | None:
    """Return the plain name of an encoding of text that Python knows; raise an error for any other."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(cast("str", encoding)).name
        io.TextIOWrapper(
            io.BytesIO(), encoding=name
        ).close()  # raises an error for rot13 and the like
    except (LookupError, TypeError, ValueError):
        raise AnswersError(
            f"found {quoted(encoding)}, which is no encoding of text.",
            argument="encoding",
            remedy='Common ones are "utf-8", "utf-16", "latin-1" and "cp1252".',
        ) from None
    return name


@dataclass(frozen=True)
class Text:
    """A text file: where it is and how its bytes become characters.

    Attributes
    ----------
    path
        The file.
    encoding
        The name of its encoding; for UTF-8 the one that skips a byte order mark.
    given
        Whether the caller named the encoding.
    packed
        Whether it is compressed by gzip.
    head
        Its first bytes, uncompressed.
    """

    path: Path
    encoding: str
    given: bool
    packed: bool
    head: bytes

    @classmethod
    def of(cls, path: Path, encoding: str | None = None) -> Text:
        """Find encoding and compression from the first bytes of a file."""
        try:
            with path.open("rb") as file:
                packed = path.name.lower().endswith(".gz") or file.read(2) == GZIP
            with open_bytes(path, packed) as file:
                head = file.read(HEAD)
        except UNREADABLE as error:
            raise unreadable(error) from error
        name = encoding or next((BOMS[bom] for bom in BOMS if head.startswith(bom)), "utf-8")
        name = "utf-8-sig" if name == "utf-8" else name
        text = cls(path, name, encoding is not None, packed, head)
        if name in UTF8 and b"\0" in head:
            raise text.has_nul()
        return text

    @contextmanager
    def open(self) -> Iterator[TextIO]:
        """Open it for reading, line ends as they are; what cannot be read raises `AnswersError`."""
        try:
            with (
                self.open_bytes() as raw,
                io.TextIOWrapper(raw, encoding=self.encoding, newline="") as file,
            ):
                yield file
        except UnicodeError as error:
            raise self.not_decoded() from error
        except UNREADABLE as error:
            raise unreadable(error) from error

    def open_bytes(self) -> IO[bytes]:
        """Open its bytes, uncompressed."""
        return open_bytes(self.path, self.packed)

    @property
    def is_utf8(self) -> bool:
        """Whether DuckDB can read it: text and file name are UTF-8."""
        try:
            str(self.path).encode()
        except UnicodeError:
            return False
        return self.encoding in UTF8

    @contextmanager
    def as_utf8(self) -> Iterator[Text]:
        """Yield the same text in UTF-8, from a temporary copy where needed."""
        if self.is_utf8:
            yield self
            return
        remove_dead(Path(tempfile.gettempdir()))
        with tempfile.TemporaryDirectory(prefix=prefix()) as folder:
            copy = Path(folder) / "text"
            with self.open() as file, copy.open("w", encoding="utf-8", newline="") as out:
                out.writelines(read_pieces(file))
            yield replace(self, path=copy, encoding="utf-8", packed=False)

    def has_nul(self) -> AnswersError:
        """Build the error for a NUL byte among the first bytes."""
        at = self.head.index(0)
        likely = _utf16_order(self.head)
        remedy: str = "It is damaged, or no text at all: write it again as text."
        if likely:
            remedy = f"It looks like {likely}: pass " + option("encoding", likely) + "."
        line = 1 + self.head[:at].count(10)
        error = AnswersError(f"line {line} holds a NUL byte.", remedy=remedy)
        return error.mended_by({"encoding": likely}) if likely else error

    def not_decoded(self) -> AnswersError:
        """Build the error for bytes that are not text in this encoding; name the first such line."""
        found = self._first_bad()
        name = "UTF-8" if self.encoding in UTF8 else self.encoding
        if found is None:
            if name == "UTF-8":
                return AnswersError(NOT_UTF8)
            return AnswersError(f"is not {name} text.", remedy=SAVED_IN)
        number, line, byte = found
        says = f"line {number} is not {name} text (byte 0x{byte:02x})."
        if name != "UTF-8" or self.given:
            return AnswersError(says, remedy=SAVED_IN)
        likely = _guess_western(line)
        reads = quoted(line.decode(likely, errors="replace").strip("\r\n"))
        return AnswersError(
            says,
            remedy=f"It looks like {likely}, in which that line reads {reads}: pass "
            + option("encoding", likely)
            + ", or save the file as UTF-8.",
        ).mended_by({"encoding": likely})

    def _first_bad(self) -> tuple[int, bytes, int] | None:
        """Return the number of the first line that cannot be decoded, its bytes, and the first bad byte."""
        decoder = codecs.getincrementaldecoder(self.encoding)()
        lines = 0
        try:
            with self.open_bytes() as file:
                while True:
                    piece = file.read(HEAD)
                    try:
                        lines += decoder.decode(piece, final=not piece).count("\n")
                    except UnicodeDecodeError as error:
                        before, rest = error.object[: error.start], error.object[error.start :]
                        line = before[before.rfind(b"\n") + 1 :] + rest.partition(b"\n")[0]
                        lines += before.decode(self.encoding, errors="ignore").count("\n")
                        return 1 + lines, line, rest[0]
                    if not piece:
                        return None
        except (UnicodeError, *UNREADABLE):
            return None


def open_bytes(path: Path, packed: bool) -> IO[bytes]:
    """Open the bytes of a file, uncompressed."""
    return cast("IO[bytes]", gzip.open(path, "rb") if packed else path.open("rb"))


def _guess_western(line: bytes) -> str:
    """Guess the encoding of Western text: only that of Windows has characters at 0x80 to 0x9f."""
    if not any(0x80 <= byte <= 0x9F for byte in line):
        return "latin-1"
    try:
        line.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _utf16_order(head: bytes) -> str | None:
    """Guess the byte order of UTF-16 without a byte order mark; None if it does not look like UTF-16."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    most, least = max(even, odd), min(even, odd)
    if most < len(head) / 4 or least > most / 4:
        return None
    return "utf-16-be" if even > odd else "utf-16-le"

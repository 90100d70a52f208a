"""The working folder: what is in it, who may use it, and what to say when it cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trueup.errors import TrueupError, quoted
from trueup.io.atomic import atomic_write
from trueup.io.leftovers import prefix, remove_dead
from trueup.io.readers.source import LONGEST_PATH, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

LOCK = "trueup.lock"
META = "meta.json"
JOURNAL = "journal-*.npz"
# All names that an ingest writes; nothing else is ever removed, as a folder may hold other things, even the sources.
ANSWERS = (
    *("indptr.i64", "workers.i32", "values.f64", "precision.f64", "centre.f64", "std.f64"),
    *("hash.u64", "question_ids.parquet", "worker_ids.parquet", "worker_variance.f64"),
    *("group.i32", "group_labels.parquet", "covariate-*.f64", "gold.f64", META, f"{META}.new"),
)
SPOOL = ("bucket-*.arrow", "unpacked-*", "duckdb_temp*")
VECTORS = ("*.f64", "*.f64.new")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Folder:
    """A working folder, held by one run at a time.

    Parameters
    ----------
    path : path, optional
        Made if it is not there. By default a new one among the temporary files, removed when it is closed.

    Attributes
    ----------
    answers, spool, vectors : Path
        The finished ingest; what an ingest needs on the way; what an engine keeps of the questions.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.temporary = path is None
        try:
            if path is None:
                remove_dead(Path(tempfile.gettempdir()))
                self.path = Path(tempfile.mkdtemp(prefix=prefix()))
            else:
                self.path = Path(path).absolute()
                self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_writable(Path(path or tempfile.gettempdir()), error) from error
        self.answers, self.spool = self.path / "answers", self.path / "spool"
        self.vectors = self.path / "vectors"
        lock = _locked(self.path)
        self._close = weakref.finalize(self, _release, lock, self.path if self.temporary else None)

    def close(self) -> None:
        """Let others use it; a temporary one is removed."""
        self._close()

    def clear(self) -> None:
        """Remove what an ingest and runs after it have written, the mark of its completeness first."""
        with folder_errors(self.path):
            (self.answers / META).unlink(missing_ok=True)
            clear_journal(self.path)
            _empty(self.answers, ANSWERS)
            _empty(self.vectors, VECTORS)
        self.clear_spool()

    def clear_spool(self) -> None:
        """Remove what an ingest needed on the way."""
        with folder_errors(self.path):
            _empty(self.spool, SPOOL)

    def make(self) -> None:
        """Make the folders inside."""
        with folder_errors(self.path):
            for inside in (self.answers, self.spool, self.vectors):
                inside.mkdir(exist_ok=True)


def clear_journal(folder: Path) -> None:
    """Remove what loops have written down of how far they came."""
    with folder_errors(folder):
        for path in folder.glob(JOURNAL):
            path.unlink(missing_ok=True)


def _empty(folder: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    with suppress(OSError):  # something that is not ours is still in it
        folder.rmdir()


def _locked(folder: Path) -> int:
    """Take the lock, which the end of this process gives back, however it ends."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise not_writable(folder, error) from error
    try:
        import fcntl
    except ImportError:  # pragma: no cover  no such locks on this system
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        who = f" (process {holder})" if holder.isdecimal() else ""
        raise TrueupError(
            f"Folder {shown(folder)}: in use by another run{who}. Wait until it is done, or choose another folder."
        ) from error
    except OSError as error:
        os.close(handle)
        raise not_writable(folder, error) from error
    with suppress(OSError):  # only for the message above
        os.truncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def _release(lock: int, temporary: Path | None) -> None:
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)


def shown(folder: Path) -> str:
    """Name a folder in a message."""
    return quoted(str(folder), LONGEST_PATH)


def not_writable(folder: Path, error: Exception) -> TrueupError:
    """Say in a line why something could not be written into a folder."""
    code = getattr(error, "errno", None)
    if code in FULL or "no space left" in str(error).lower():
        return TrueupError(
            f"Folder {shown(folder)}: the disk is full. Free some space, or choose a folder on another disk; "
            "what was written there for this run is removed."
        )
    reason = quoted(getattr(error, "strerror", None) or "") if code else one_line(error)
    return TrueupError(
        f"Folder {shown(folder)}: cannot be written ({reason}). Choose a folder that can be, or change its permissions."
    )


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Turn what the system says about writing into one clear line about this folder."""
    try:
        yield
    except TrueupError:
        raise
    except OSError as error:
        raise not_writable(folder, error) from error


@contextmanager
def as_one(path: Path) -> Iterator[IO[Any]]:
    """Open a file that takes its name when it is complete; the old one stays if it never is."""
    # Leftovers of a run that was killed have a name that `Folder.clear` knows.
    new = path.with_name(path.name + ".new")
    with atomic_write(path, new) as temporary, temporary.open("wb") as file:
        yield file

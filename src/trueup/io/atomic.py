"""Write a file completely or not at all: under a temporary name, which is renamed at the end."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import TrueupError, quoted
from trueup.io.leftovers import own_path, remove

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def atomic_write(path: str | os.PathLike[str], temporary: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` on success, remove it on failure.

    Readers of `path` see the old file or the new one, never a part. What is written may also be a folder, as long as
    there is none of that name yet.

    Parameters
    ----------
    path
        The file to write. A link stays a link: the file it points to is replaced. Who may read and write it stays as
        it was.
    temporary
        A temporary path in the same folder, where leftovers of a killed process must have a known name.
        By default a name of this process.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "note.txt")) as temporary:
    ...         _ = temporary.write_text("done")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['note.txt']
    """
    target = plain_target(path)
    if temporary is None:
        temporary = own_path(target.parent)
    try:
        begin_private(target, temporary)
        yield temporary
        keep_permissions(target, temporary)
        temporary.replace(target)
    except BaseException:
        remove(temporary)
        raise


def plain_target(path: str | os.PathLike[str]) -> Path:
    """Return the file behind a path, which may be a link.

    Raises
    ------
    TrueupError
        When it is a device, a pipe or a socket: a renamed file would take its place.
    """
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # a NUL byte
        raise TrueupError(f"{quoted(os.fspath(path))} cannot be written ({error}).") from error
    with errors_name(path):
        special = target.exists() and not (target.is_file() or target.is_dir())
    if special:
        raise TrueupError(
            f"{quoted(os.fspath(path))} is no plain file.", remedy="Choose another name."
        )
    return target


def begin_private(target: Path, temporary: Path) -> None:
    """Make the temporary file of one that is replaced, readable by nobody else while it is written."""
    if target.is_file():
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with suppress(OSError):  # writing to it says what is wrong
            os.close(os.open(temporary, flags, 0o600))


def keep_permissions(target: Path, temporary: Path) -> None:
    """Give a finished file the permissions of the one that it replaces; a new one has those of new files."""
    try:
        before, mine = target.stat(), temporary.stat()
    except OSError:
        return
    if not stat.S_ISREG(before.st_mode):
        return
    if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError, AttributeError):  # only the superuser may give files away
            os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


@contextmanager
def errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors of the operating system name this file, the one the user knows, instead of a temporary one."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number else str(error)
        raise OSError(number, reason, str(path)) from error

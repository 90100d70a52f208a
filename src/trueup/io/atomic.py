"""Write a file completely or not at all: under a temporary name, which is renamed at the end."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

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
        The file to write. A link stays a link: the file it points to is replaced.
    temporary
        A temporary path in the same folder, where leftovers of a killed process must have a known name.
        By default a random one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "note.txt")) as temporary:
    ...         _ = temporary.write_text("done")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['note.txt']
    """
    target = Path(os.path.realpath(path))
    if temporary is None:
        # The short name fits wherever `path` does.
        temporary = target.with_name(f".trueup-{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        import shutil  # slow to import, and rarely needed

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # the first error says more
            path.unlink(missing_ok=True)


@contextmanager
def errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors of the operating system name this file, the one the user knows, instead of a temporary one."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number else str(error)
        raise OSError(number, reason, str(path)) from error

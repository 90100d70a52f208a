"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name to write to; it becomes `path` if all goes well, else it is removed.

    Whoever reads `path` meanwhile, and whatever happens, sees the old file or the new one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(Path(folder, "note.txt")) as temporary:
    ...         _ = temporary.write_text("done")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['note.txt']
    """
    # A link stays a link: what it points to is replaced. The short name fits wherever `path` does.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".trueup-{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

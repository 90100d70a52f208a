"""Temporary files and folders whose names say which process made them, so that those of a dead one can be removed."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Endings of a file that is being written, and of the list of files that take their names together.
UNFINISHED, TOGETHER = ".tmp", ".set"
# Hidden beside outputs, and without an ending among the temporary files of the system.
_OURS = re.compile(r"\.?trueup-([0-9a-f]{8})-([1-9][0-9]{0,9})-[0-9a-z_]+(?:\.tmp|\.set)?")


def prefix() -> str:
    """Return how names of this process begin."""
    return f"trueup-{_machine()}-{os.getpid()}-"


def own_path(folder: Path, ending: str = UNFINISHED) -> Path:
    """Return a new name of this process in a folder, hidden and short enough to fit wherever an output does."""
    return folder / f".{prefix()}{secrets.token_hex(4)}{ending}"


def dead(folder: Path, ending: str = "") -> Iterator[Path]:
    """Yield what processes of this machine and user that are no longer there have left in a folder.

    Only names that `own_path` and `prefix` give, and never links. Where nothing tells whether a process is alive
    (Windows; another machine or container), its files stay.
    """
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.endswith(ending)]
    except OSError:
        return
    for entry in entries:
        found = _OURS.fullmatch(entry.name)
        if found is None or found[1] != _machine() or _alive(int(found[2])):
            continue
        with suppress(OSError):  # removed by another run at this moment
            if not entry.is_symlink() and _is_mine(entry.stat(follow_symlinks=False)):
                yield Path(entry.path)


def remove(path: Path) -> None:
    """Remove a file or a folder; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # the error before says more
            path.unlink(missing_ok=True)


def remove_dead(folder: Path) -> None:
    """Remove what dead processes have left among the temporary files of the system."""
    for path in dead(folder):
        remove(path)


@cache
def _machine() -> str:
    """Return a short name of the machine, or container, within which a number means one process."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  no path, but a name
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:8]


def _alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere `os.kill` would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is there, but another user's
        return True
    return True


def _is_mine(about: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()

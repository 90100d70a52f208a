"""Vega, Vega-Lite and Vega-Embed as one script.

Putting them together takes vl-convert three seconds, so the script is kept in the folder named by the environment
variable `TRUEUP_CACHE`, or `trueup` where the system keeps such files. Without a place to keep it, it is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.core.libraries import need
from trueup.io.atomic import atomic_write

if TYPE_CHECKING:
    from types import ModuleType

CACHE = "TRUEUP_CACHE"


def bundle() -> str:
    """Return the script, with its names kept to itself.

    Raises
    ------
    MissingExtra
        When vl-convert-python is not installed.
    """
    return _kept(need("vl_convert", "report"))


@cache
def _kept(convert: ModuleType) -> str:
    path = _folder() / f"vega-{convert.__version__}.js"
    script = _read(path)
    if script is None:
        script = f"(function(){{{convert.javascript_bundle()}\n}})();"
        _keep(path, script)
    return script


def _folder() -> Path:
    if named := os.environ.get(CACHE):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/trueup").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "trueup"


def _read(path: Path) -> str | None:
    """Return what was kept, or None where it is not there or not whole."""
    try:
        head, _, script = path.read_bytes().partition(b"\n")
    except (OSError, RuntimeError):
        return None
    if head.decode("ascii", "replace") != _head(script):
        return None
    return script.decode("utf-8")


def _keep(path: Path, script: str) -> None:
    content = script.encode("utf-8")
    with contextlib.suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temporary:
            temporary.write_bytes(_head(content).encode("ascii") + b"\n" + content)


def _head(content: bytes) -> str:
    return f"// sha256 {hashlib.sha256(content).hexdigest()}"

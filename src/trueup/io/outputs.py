"""Output files, checked before any long computation starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import TrueupError, quoted
from trueup.io.readers.source import LONGEST_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def check_outputs(
    outputs: Mapping[str, Path | None], endings: Sequence[str], inputs: Sequence[Path] = ()
) -> None:
    """Check that files can be written, before any long computation starts.

    Parameters
    ----------
    outputs
        Files by the argument or option that names them.
    endings
        Endings that a file may have.
    inputs
        Files that must not be overwritten.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        shown = quoted(str(path), LONGEST_PATH)
        if path.suffix.lower() not in endings:
            raise TrueupError(f"{shown} must end in {' or '.join(endings)}.", argument=option)
        try:
            fault = _fault(path)
            real = os.path.realpath(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TrueupError(f"{shown} cannot be written ({reason}).", argument=option) from error
        if fault:
            raise TrueupError(fault.format(shown), argument=option)
        if real in taken:
            raise TrueupError(
                f"{shown} is used already.", argument=option, remedy="Choose another name."
            )
        taken.add(real)


def _fault(path: Path) -> str:
    """Return why a file cannot be written, with {} for its name; nothing if it can."""
    if path.is_dir():
        return "{} is a folder. Name a file, or remove the folder."
    if path.exists() and not path.is_file():
        return "{} is no plain file. Choose another name."
    if not path.parent.is_dir():
        return "there is no folder for {}. Make it first."
    # Files are written under a temporary name and renamed, so the folder must be writable.
    folder = Path(os.path.realpath(path)).parent
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        return "{} cannot be written: its folder takes no files. Choose another, or change its permissions."
    return ""

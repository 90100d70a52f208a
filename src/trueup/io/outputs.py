"""Files that are to be written, looked at before anything long is begun."""

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
    """Refuse files that could not be written, before anything long is begun.

    Parameters
    ----------
    outputs
        Files by the argument or option that names them.
    endings
        What a file may be.
    inputs
        Files that must not be overwritten.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        shown = quoted(str(path), LONGEST_PATH)
        if path.suffix.lower() not in endings:
            raise TrueupError(f"{option}: {shown} must end in {' or '.join(endings)}.")
        try:
            fault = _fault(path)
            real = os.path.realpath(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TrueupError(f"{option}: {shown} cannot be written ({reason}).") from error
        if fault:
            raise TrueupError(f"{option}: {fault.format(shown)}")
        if real in taken:
            raise TrueupError(f"{option}: {shown} is used already. Choose another name.")
        taken.add(real)


def _fault(path: Path) -> str:
    """Say what keeps a file from being written, its name left open."""
    if path.is_dir():
        return "{} is a folder. Name a file, or remove the folder."
    if path.exists() and not path.is_file():
        return "{} is no plain file. Choose another name."
    if not path.parent.is_dir():
        return "there is no folder for {}. Make it first."
    # A file takes its name when it is whole, so it is the folder that must let it in.
    folder = Path(os.path.realpath(path)).parent
    effective = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
        return "{} cannot be written: its folder takes no files. Choose another, or change its permissions."
    return ""

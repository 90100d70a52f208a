"""Libraries that only some installations have: import them when needed, look them up when loaded."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from trueup.errors import MissingExtra

if TYPE_CHECKING:
    from types import ModuleType


def loaded(name: str) -> ModuleType | None:
    """Return a library if something has already imported it.

    A value of a library's type can only exist once that library is loaded, so type checks never need to import one.
    """
    return sys.modules.get(name)


def release_unused() -> None:
    """Give back the memory that pyarrow keeps for later, if it is loaded."""
    pyarrow = loaded("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


def need(module: str, extra: str) -> ModuleType:
    """Import a package that only some installations have.

    Parameters
    ----------
    module
        Dotted name of the module.
    extra
        The extra of this library that installs it.

    Raises
    ------
    MissingExtra
        When it cannot be imported, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f'Package {package}: not installed. Run: pip install "trueup[{extra}]"'
        raise MissingExtra(message) from error

"""Load data sets by name, from a folder, the cache or the internet."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.datasets.download import download
from trueup.datasets.folder import ANSWERS, LAYOUT, LONGEST_PATH, load_folder
from trueup.datasets.registry import REGISTRY, describe
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from os import PathLike

    from trueup.datasets.dataset import Dataset

DATA = "TRUEUP_DATA"


def load(name: str, *, data: str | PathLike[str] | None = None, **options: Any) -> Dataset:
    """Load a data set by its name.

    If `data` is given, only that folder is searched. Otherwise the data set is read from the first of these that has
    it: the folder named by the environment variable `TRUEUP_DATA`, the cache of downloaded data sets, its public
    repository. In a folder, data set `name` is the subfolder of that name with the files that `load_folder` reads; it
    need not be in the registry.

    Parameters
    ----------
    name
        One of `names()`, or the name of your own data set's folder.
    data
        A folder with one subfolder per data set.
    **options
        As for `Answers.from_file`: `duplicates`, `sep`, ...

    Raises
    ------
    TrueupError
        If the data set is not found anywhere; the message says what to do.
    """
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise TrueupError(
            f"name: found {quoted(name)}, must be the name of a data set. "
            "Read any folder with trueup.datasets.load_folder(path)."
        )
    dataset = load_folder(_find(name, data), **options)
    if name not in REGISTRY:
        return replace(dataset, name=name)
    entry = REGISTRY[name]
    return replace(
        dataset,
        name=name,
        description=entry.description,
        source=entry.address,
        citation=entry.citation,
    )


def _find(name: str, data: str | PathLike[str] | None) -> Path:
    if data is not None:
        if found := _inside(data, name, "data"):
            return found
        shown = quoted(str(data), LONGEST_PATH)
        if (Path(data) / ANSWERS).is_file():
            advice = "It is itself a data set: read it with trueup.datasets.load_folder."
        else:
            advice = f"The folder {quoted(name)} in it must hold {LAYOUT}."
        raise TrueupError(f"data: folder {shown} has no {quoted(f'{name}/{ANSWERS}')}. {advice}")
    root = os.environ.get(DATA)
    if root and (found := _inside(root, name, DATA)):
        return found
    if describe(name).recipe is None:
        raise TrueupError(
            f"Data set {quoted(name)}: cannot be downloaded by trueup, only read from a folder. "
            f"Make a folder {quoted(name)} with {LAYOUT}, from {describe(name).address}, "
            f"and name the folder it is in with data= or the environment variable {DATA}."
        )
    return download(name)


def _inside(root: str | PathLike[str], name: str, argument: str) -> Path | None:
    """Return the subfolder of a data set, or None if the folder does not have it."""
    if not Path(root).is_dir():
        raise TrueupError(
            f"{quoted(str(root), LONGEST_PATH)} is not a folder.",
            argument=argument,
            remedy="Name a folder with one subfolder per data set.",
        )
    folder = Path(root) / name
    return folder if (folder / ANSWERS).is_file() else None

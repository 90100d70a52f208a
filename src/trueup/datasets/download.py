"""Download public data sets from their repositories, check and convert them, and cache the result."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from trueup.core.libraries import need
from trueup.datasets.folder import ANSWERS, LONGEST_PATH
from trueup.datasets.registry import describe
from trueup.errors import TrueupError, quoted
from trueup.io.atomic import atomic_write

if TYPE_CHECKING:
    from os import PathLike

    from trueup.datasets.convert import Tables
    from trueup.datasets.registry import Entry, Recipe

BASE = "https://raw.githubusercontent.com"
CACHE = "TRUEUP_CACHE"
TIMEOUT = 30.0  # seconds without a reply from the server
# Version of the converted files. Increase it when a converter changes its output.
VERSION = 1


def download(
    name: str, *, files: str | PathLike[str] | None = None, base: str | None = None
) -> Path:
    """Download a data set, unless it is in the cache, and return its folder.

    The cache is the folder named by the environment variable `TRUEUP_CACHE`, by default the folder `trueup` among the
    caches of the platform.

    Parameters
    ----------
    name
        One of `names()`.
    files
        A folder with files of the repository that were downloaded by hand. Nothing is downloaded then.
    base
        Address to use in place of https://raw.githubusercontent.com, such as a mirror. Files are expected below it at
        OWNER/REPOSITORY/COMMIT/PATH.

    Raises
    ------
    TrueupError
        If the download fails or a file does not have the expected checksum. Nothing is left in the cache then.
    """
    entry = describe(name)
    recipe = entry.recipe
    if recipe is None:
        raise TrueupError(
            f"Data set {quoted(name)}: cannot be downloaded by trueup. Get it from {entry.address}."
        )
    cache = _cache()
    folder = cache / f"{name}-{recipe.commit[:12]}-{VERSION}"
    if (folder / ANSWERS).is_file():
        return folder
    contents = []
    for path, sha256 in recipe.files:
        content = (
            _fetch(entry, recipe, path, base or BASE)
            if files is None
            else _read_local(entry, path, Path(files))
        )
        _check_sum(entry, path, content, sha256)
        contents.append(content)
    _store(_convert(entry, recipe, contents), folder)
    return folder


def _cache() -> Path:
    folder = os.environ.get(CACHE) or need("pooch", "datasets").os_cache("trueup")
    return Path(folder).expanduser()


def _fetch(entry: Entry, recipe: Recipe, path: str, base: str) -> bytes:
    pooch = need("pooch", "datasets")
    requests = need("requests", "datasets")
    address = "/".join((base.rstrip("/"), entry.repository, recipe.commit, quote(path)))
    content = io.BytesIO()
    try:
        pooch.HTTPDownloader(progressbar=False, timeout=TIMEOUT)(address, content, None)
    except requests.RequestException as error:
        if error.response is not None:
            error.response.close()
            reason = f"the server answered {error.response.status_code}"
        elif isinstance(error, requests.exceptions.ChunkedEncodingError):
            reason = "the transfer broke off"
        elif isinstance(error, requests.Timeout) or "timed out" in str(error):
            reason = f"the server was silent for {TIMEOUT:g} seconds"
        else:
            reason = f"no connection ({type(error).__name__})"
        raise TrueupError(
            f"Data set {quoted(entry.name)}: could not be downloaded from {entry.address}, "
            f"{reason}. {_by_hand(entry, recipe)}"
        ) from error
    return content.getvalue()


def _by_hand(entry: Entry, recipe: Recipe) -> str:
    paths = ", ".join(path for path, _ in recipe.files)
    return (
        f"Try again; or download {paths} at commit {recipe.commit[:12]} by hand into a folder and "
        f'run trueup.datasets.download("{entry.name}", files=FOLDER); or, with a converted copy in '
        f"FOLDER/{entry.name}, set TRUEUP_DATA=FOLDER."
    )


def _read_local(entry: Entry, path: str, folder: Path) -> bytes:
    file = folder / Path(path).name
    try:
        return file.read_bytes()
    except OSError as error:
        raise TrueupError(
            f"files: {quoted(str(file), LONGEST_PATH)} cannot be read ({error.strerror}). "
            f"It is {path} of {entry.address}."
        ) from error


def _check_sum(entry: Entry, path: str, content: bytes, sha256: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise TrueupError(
            f"Data set {quoted(entry.name)}: the file {path} is not the expected one, its "
            f"SHA-256 begins with {digest[:12]}, not {sha256[:12]}. Nothing of it was kept. It may "
            f"have been changed in transit, by a proxy or a login page: get it another way from "
            f"{entry.address}, or set TRUEUP_DATA to a folder with a copy."
        )


def _convert(entry: Entry, recipe: Recipe, contents: list[bytes]) -> Tables:
    """Convert the files, and check that the result has the described size."""
    try:
        tables = recipe.convert(contents)
        counts = tables.counts
    except (ValueError, LookupError) as error:
        raise TrueupError(
            f"Data set {quoted(entry.name)}: the files are not in the form expected "
            f"({quoted(str(error), LONGEST_PATH)}). This is an error in trueup: please report it."
        ) from error
    if counts != entry.counts:
        raise TrueupError(
            f"Data set {quoted(entry.name)}: found {counts} workers, questions, answers and true "
            f"values, expected {entry.counts}. This is an error in trueup: please report it."
        )
    return tables


def _store(tables: Tables, folder: Path) -> None:
    """Write the tables to a folder that appears complete or not at all."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder) as temporary:
            temporary.mkdir()
            tables.write(temporary)
    except OSError as error:
        if (folder / ANSWERS).is_file():
            return  # another process has stored the same data
        raise TrueupError(
            f"Folder {quoted(str(folder), LONGEST_PATH)}: cannot be written ({error.strerror}). "
            f"Fix that, or name another folder with the environment variable {CACHE}."
        ) from error

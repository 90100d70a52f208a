"""Folders of logs or of forecasts: all files in them that are of one format of evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.errors import quoted
from trueup.io.formats import JSON, PARQUET, TEXT, find_format
from trueup.io.paths import Paths
from trueup.io.readers.delimited import Layout
from trueup.io.readers.evaluations.documents import read_document
from trueup.io.readers.evaluations.formats import find_evaluation, recognise
from trueup.io.readers.evaluations.hubverse import is_hub
from trueup.io.readers.evaluations.judgments import ENDINGS, is_judgments
from trueup.io.readers.evaluations.names import HUBVERSE
from trueup.io.readers.source import LONGEST_PATH, label_of, labelled, unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.io.readers.evaluations.formats import Evaluation

#: How names of logs end that are archives.
ARCHIVE = ".eval"


def open_folders(given: Paths, from_format: str | None, encoding: str | None) -> Paths:
    """Put the files of a folder in its place; one without files of an evaluation stays, and is an error later."""
    if not any(_is_folder(path) for path in given.paths):
        return given
    paths: list[Path] = []
    for path in given.paths:
        inside = _inside(path, from_format, encoding) if _is_folder(path) else []
        paths += inside or [path]
    folder = next(path for path in given.paths if _is_folder(path))
    return Paths(paths, given.label or _label(folder))


def _label(folder: Path) -> str:
    return f"Folder {quoted(str(folder), LONGEST_PATH)}"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # opening it says what is wrong


def _inside(folder: Path, from_format: str | None, encoding: str | None) -> list[Path]:
    """Return the files of the first format that is found, in sorted order."""
    try:
        files = sorted(
            path
            for path in folder.rglob("*")
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        )
    except OSError as error:
        raise unreadable(error).labelled(_label(folder)) from error
    if from_format != HUBVERSE:
        documents = [
            path for path in files if path.suffix.lower() == ARCHIVE or find_format(path) is JSON
        ]
        wanted: Any = None if from_format is None else find_evaluation(from_format)
        found = _of_one_format(documents, wanted, encoding)
        if found or from_format is not None:
            return found
    tables = [path for path in files if find_format(path) in (TEXT, PARQUET)]
    hubs = [path for path in tables if is_hub(_names(path))]
    if hubs or from_format is not None:
        return hubs
    texts = [path for path in files if find_format(path) is TEXT or path.suffix.lower() in ENDINGS]
    return [path for path in texts if is_judgments(path, encoding)]


def _of_one_format(
    paths: list[Path], wanted: Evaluation | None, encoding: str | None
) -> list[Path]:
    """Return the files of a format, by default that of the first that has one; others are something else."""
    found: list[Path] = []
    for path in paths:
        with labelled(label_of(path.name)):
            evaluation = recognise(path, encoding)
            if evaluation is None:
                if path.suffix.lower() == ".json":
                    read_document(path, encoding)  # one that is broken may be a log
                continue
        wanted = wanted or evaluation
        if evaluation.matches is wanted.matches:
            found.append(path)
    return found


def _names(path: Path) -> list[str]:
    file_format = find_format(path)
    with labelled(label_of(path.name)):
        return [] if file_format is None else file_format.open(path, Layout(), path.name).names

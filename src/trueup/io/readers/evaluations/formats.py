"""The formats of evaluations: one table, and how files of them are found and read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trueup.errors import AnswersError, option, quoted
from trueup.io.readers.evaluations import (
    argilla,
    deepeval,
    inspect_logs,
    label_studio,
    promptfoo,
)
from trueup.io.readers.evaluations.archives import MAGIC
from trueup.io.readers.evaluations.documents import peek, read_document
from trueup.io.readers.evaluations.records import Records
from trueup.io.readers.source import labelled, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trueup.io.readers.source import Source


@dataclass(frozen=True)
class Evaluation:
    """A format of documents.

    Attributes
    ----------
    name
        What it is called, also by callers.
    matches
        Tells whether a document is of this format.
    read
        Reads a document.
    asked
        Whether files are read in this way only if a caller says so.
    finish
        Settles what only all documents together tell.
    """

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, Records], None]
    asked: bool = False
    finish: Callable[[Records], None] = lambda _records: None


INSPECT = Evaluation(
    "inspect", inspect_logs.is_log, inspect_logs.read_log, finish=inspect_logs.finish
)
EVALUATIONS = (
    INSPECT,
    Evaluation("promptfoo", promptfoo.is_results, promptfoo.read_results),
    Evaluation(
        "promptfoo-all",
        promptfoo.is_results,
        partial(promptfoo.read_results, every=True),
        asked=True,
    ),
    Evaluation("deepeval", deepeval.is_test_run, deepeval.read_test_run),
    Evaluation("label-studio", label_studio.is_tasks, label_studio.read_tasks),
    Evaluation("argilla", argilla.is_records, argilla.read_records),
)


def find_evaluation(name: str) -> Evaluation:
    """Return the format of documents of this name."""
    return next(each for each in EVALUATIONS if each.name == name)


def recognise(path: Path, encoding: str | None) -> Evaluation | None:
    """Find the format of a file by its content; None if it is none of these."""
    if read_head(path).startswith(MAGIC):
        return INSPECT if inspect_logs.is_archive_of_log(path) else None
    document = peek(path, encoding)
    found = [each for each in EVALUATIONS if not each.asked and each.matches(document)]
    return found[0] if found else None


def read_evaluation(
    evaluation: Evaluation,
    files: Sequence[tuple[Path, str, str]],
    label: str,
    encoding: str | None,
) -> Source:
    """Read files of one format as one table.

    Parameters
    ----------
    evaluation
        The format.
    files
        Path, label and name of each.
    label
        What messages call them together.
    encoding
        Encoding of their text.
    """
    records = Records(several=len(files) > 1)
    for path, label, name in files:
        records.file = name
        with labelled(label):
            if read_head(path).startswith(MAGIC) and evaluation is INSPECT:
                inspect_logs.read_archive(path, records)
                continue
            document = read_document(path, encoding)
            if not evaluation.matches(document):
                raise AnswersError(
                    f"is not of the format {quoted(evaluation.name)}.",
                    remedy="Read files of one format at a time."
                    if records.several
                    else "Leave out " + option("from_format", None) + ", or name another format.",
                )
            evaluation.read(document, records)
    evaluation.finish(records)
    with labelled(label):
        return records.source(evaluation.name)

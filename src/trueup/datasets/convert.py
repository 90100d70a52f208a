"""Convert the files of public repositories to one format.

Each converter takes the contents of the files and returns the same tables. Workers become w1, w2, ... and, where the
source has no ids for them, questions become 1, 2, ..., both in order of first appearance. Rows without an answer are
dropped. If a worker answered a question several times, the first answer is kept. Answers are not clipped, rescaled or
cleaned.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.io.number_text import MISSING_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Tables:
    """A data set ready to be written: rows of (question, worker, answer), and values by question."""

    answers: Sequence[tuple[str, str, float]]
    truth: Mapping[str, float]
    blocks: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Numbers of workers, questions, answers, and questions with a known truth."""
        questions, workers, _ = zip(*self.answers, strict=True)
        return len(set(workers)), len(set(questions)), len(self.answers), len(self.truth)

    def write(self, folder: Path) -> None:
        """Write the files that `load_folder` reads."""
        answers = ((question, worker, _text(answer)) for question, worker, answer in self.answers)
        _write(folder / "answers.csv", ("question", "worker", "answer"), answers)
        truth = ((question, _text(value)) for question, value in self.truth.items())
        _write(folder / "truth.csv", ("question", "truth"), truth)
        if self.blocks is not None:
            _write(folder / "blocks.csv", ("question", "block"), self.blocks.items())
        if self.labels is not None:
            _write(folder / "labels.csv", ("question", "label"), self.labels.items())


# -- one function per source -----------------------------------------------------------------------


def emotions(files: Sequence[bytes]) -> Tables:
    """Convert two files with the usual columns. Questions with the same workers form a block."""
    answers, ids = _collect(
        (question, worker, _number(answer))
        for question, worker, answer in _columns(files[0], "question", "worker", "answer")
    )
    workers: dict[str, set[str]] = {}
    for question, worker, _ in answers:
        workers.setdefault(question, set()).add(worker)
    numbers: dict[frozenset[str], str] = {}
    blocks = {
        question: numbers.setdefault(frozenset(who), str(len(numbers) + 1))
        for question, who in workers.items()
    }
    truth = _truth((key, _number(true)) for key, true in _columns(files[1], "question", "truth"))
    return Tables(answers, {key: truth[key] for key in ids if key in truth}, blocks=blocks)


def population(files: Sequence[bytes]) -> Tables:
    """Convert claims (city_year, contributor, population, year) and truth (city, year, population).

    The text has gone through several encodings. Each byte counts as one character, so that different names stay
    different, and is shown as "?" if it is not ASCII.
    """
    claims = (line.split("\t")[:3] for line in _lines(files[0]))
    answers, ids = _collect(
        ((city_year, contributor, _number(count)) for city_year, contributor, count in claims),
        renumber=True,
    )
    facts = (line.rsplit(",", 2) for line in _lines(files[1]))
    truth = _truth(
        (f"{city.strip(' ')}_{year.strip(' ')}", _number(count)) for city, year, count in facts
    )
    return Tables(
        answers,
        {number: truth[name] for name, number in ids.items() if name in truth},
        labels={n: name.encode("ascii", "replace").decode("ascii") for name, n in ids.items()},
    )


def dots(files: Sequence[bytes]) -> Tables:
    """Convert pairs of guesses: the answer is their mean. A picture is identified by its true count."""
    answers, ids = _collect(
        (
            (true, user, _middle(_number(guess), _number(guess_2)))
            for file in files
            for true, user, guess, guess_2 in _columns(
                file, "answer", "user_id", "guess", "guess_2"
            )
        ),
        renumber=True,
    )
    return Tables(answers, {number: float(true) for true, number in ids.items()})


def pies(files: Sequence[bytes]) -> Tables:
    """Convert trials, sorted by their order. A question is identified by its true percentage."""
    columns = ("workerID", "totalSequence", "correct-ans", "ans-trial")
    trials = sorted(_columns(files[0], *columns), key=lambda trial: (trial[0], float(trial[1])))
    answers, ids = _collect(
        ((true, worker, _number(answer)) for worker, _, true, answer in trials), renumber=True
    )
    return Tables(answers, {number: float(true) for true, number in ids.items()})


#: Converter of each data set that can be downloaded.
CONVERTERS: dict[str, Callable[[Sequence[bytes]], Tables]] = {
    "emotions": emotions,
    "population": population,
    "dots": dots,
    "pies": pies,
}


# -- helpers ---------------------------------------------------------------------------------------


def _collect(
    rows: Iterable[tuple[str, str, float | None]], *, renumber: bool = False
) -> tuple[list[tuple[str, str, float]], dict[str, str]]:
    """Drop missing answers, recode ids and group by question; also return the new question ids by old id."""
    ids: dict[str, str] = {}
    workers: dict[str, str] = {}
    by_question: dict[str, dict[str, float]] = {}
    for key, name, answer in rows:
        if answer is None:
            continue
        question = ids.setdefault(key, str(len(ids) + 1) if renumber else key)
        worker = workers.setdefault(name, f"w{len(workers) + 1}")
        by_question.setdefault(question, {}).setdefault(worker, answer)
    answers = [
        (question, worker, answer)
        for question, by_worker in by_question.items()
        for worker, answer in by_worker.items()
    ]
    return answers, ids


def _truth(rows: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Keep the first true value of each question."""
    truth: dict[str, float] = {}
    for key, value in rows:
        if value is not None:
            truth.setdefault(key, value)
    return truth


def _columns(file: bytes, *names: str) -> Iterator[list[str]]:
    """Read some columns of a CSV file with a header; bytes that are not UTF-8 stay distinct."""
    text = file.decode("utf-8-sig", errors="surrogateescape")
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader)
    columns = [header.index(name) for name in names]
    return ([row[column] for column in columns] for row in reader if row)


def _lines(file: bytes) -> Iterator[str]:
    """Read lines of single-byte text. `str.splitlines` would also split at bytes inside a name."""
    lines = (line.rstrip(b"\r") for line in file.split(b"\n"))
    return (line.decode("latin-1") for line in lines if line)


def _number(text: str) -> float | None:
    text = text.strip()
    return None if text.lower() in MISSING_TEXTS else float(text)


def _middle(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)

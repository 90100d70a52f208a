"""Logs of Inspect AI: what scorers, often judges, gave to the samples of a task.

A scorer with a model of its own is that judge; any other goes by its name. A scorer that is used twice is listed as
`NAME` and `NAME1`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import AnswersError
from trueup.io.readers.evaluations.archives import open_archive
from trueup.io.readers.evaluations.documents import parse
from trueup.io.readers.evaluations.records import numbered, objects, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trueup.io.readers.evaluations.records import Records

#: What grades in letters are worth: correct, partly correct, incorrect, no answer.
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
#: Where an archive keeps what the log is about; the second is that of an evaluation that did not finish.
HEADERS = ("header.json", "_journal/start.json")
SAMPLES = "samples/"
#: Scorers that ask the model of a role unless they are given one, and that role.
ROLE_OF = {"model_graded_qa": "grader", "model_graded_fact": "grader"}

#: Why a score is missing of a scorer that the evaluation lists.
NOT_SCORED = "scorer gave no score"


class Scorer(NamedTuple):
    """Who gave a score, and by what, where one judge grades by several things."""

    worker: str
    metric: str
    judge: bool


def is_log(document: Any) -> bool:
    """Tell whether a document is a log."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("eval"), dict)
        and ("samples" in document or {"version", "status"} <= document.keys())
    )


def is_archive_of_log(path: Path) -> bool:
    """Tell whether a zip archive is a log."""
    with open_archive(path) as archive:
        return any(name in HEADERS for name in archive.names)


def read_log(log: Any, records: Records) -> None:
    """Read a log that is one document."""
    samples = log.get("samples")
    if not isinstance(samples, list):
        raise AnswersError(
            "is a log without samples. Write it with all of them, not only its header."
        )
    _read(log["eval"], objects(samples), records)


def read_archive(path: Path, records: Records) -> None:
    """Read a log that is an archive, one sample after another."""
    with open_archive(path) as archive:
        header = next((name for name in HEADERS if name in archive.names), None)
        about = parse(archive.read(header), header) if header else None
        if not isinstance(about, dict) or not isinstance(about.get("eval"), dict):
            raise AnswersError("is not an archive of a log: it does not say what was evaluated.")
        names = [
            each for each in archive.names if each.startswith(SAMPLES) and each.endswith(".json")
        ]

        def samples() -> Iterator[dict[str, Any]]:
            for name in names:
                sample = parse(archive.read(name), name)
                yield sample if isinstance(sample, dict) else {}

        _read(about["eval"], samples(), records)


def finish(records: Records) -> None:
    """Settle what only all logs together tell: tasks and metrics that questions differ in, and runs."""
    kept = [row for row in records.rows if row.get("worker") is not None]
    by_judge: dict[Any, set[Any]] = {}
    for row in kept:
        if row["judge"]:
            by_judge.setdefault(row["worker"], set()).add(row["metric"])
    several = any(len(metrics) > 1 for metrics in by_judge.values())
    parts = ["item", "system"]
    if len(records.distinct("task")) > 1:
        parts.append("task")
    if several or any(row["key"] is not None for row in kept):
        parts.append("metric")
    for row in records.rows:
        _settle(row, several=several, metrics="metric" in parts)
    records.question = tuple(parts)


def _settle(row: dict[str, Any], *, several: bool, metrics: bool) -> None:
    """Name what a score is about: the key of a score with several values, where needed behind its scorer."""
    scorer, key, judge = row.get("metric"), row.pop("key", None), row.pop("judge", False)
    if not metrics or scorer is None:
        row["metric"] = None
    elif key is None:
        row["metric"] = scorer
    else:
        row["metric"] = f"{scorer}/{key}" if judge and several else str(key)


def _read(about: dict[str, Any], samples: Any, records: Records) -> None:
    scorers = _scorers(about)
    ids = {"system": text_at(about, "model"), "task": text_at(about, "task")}
    evaluated = tuple(ids.values())
    before = last = records.runs.get(
        evaluated, 0
    )  # further logs of a task and model are further runs
    for number, sample in enumerate(samples, 1):
        place, item = f"sample {number}", sample.get("id")
        epoch = sample.get("epoch")
        run = before + (epoch if isinstance(epoch, int) and 0 < epoch < 2**31 else 1)
        last = max(last, run)
        scores = sample.get("scores")
        why = _fault(sample)
        if not isinstance(scores, dict) or not scores:
            add(records, place, None, why or "sample without scores", item=item, run=run, **ids)
            continue
        for name, score in scores.items():
            scorer = scorers.get(name) or Scorer(name, name, judge=False)
            value = score.get("value") if isinstance(score, dict) else None
            for key, each in _values(value):
                add(
                    records, place, GRADES.get(each, each) if isinstance(each, str) else each, why,
                    item=item, run=run, worker=scorer.worker, metric=scorer.metric, key=key,
                    judge=scorer.judge, **ids,
                )  # fmt: skip
        for name, scorer in scorers.items():
            # A scorer that fails, or returns none, leaves no entry.
            if not why and name not in scores:
                add(
                    records, place, None, NOT_SCORED, item=item, run=run, worker=scorer.worker,
                    metric=scorer.metric, judge=scorer.judge, **ids,
                )  # fmt: skip
    records.runs[evaluated] = last


def add(records: Records, place: str, value: Any, why: str, **ids: Any) -> None:
    """Add a score together with what `finish` needs."""
    key, judge = ids.pop("key", None), ids.pop("judge", False)
    records.add(place, value, why=why, **ids)
    records.rows[-1] |= {"key": key, "judge": judge}


def _fault(sample: dict[str, Any]) -> str:
    if sample.get("error"):
        return "sample failed"
    return "sample was invalidated" if sample.get("invalidation") else ""


def _values(value: Any) -> list[tuple[Any, Any]]:
    """Return the values of a score, each with its key if there are several."""
    if isinstance(value, dict):
        return list(value.items()) or [(None, None)]
    if isinstance(value, list):
        return list(enumerate(value, 1)) or [(None, None)]
    return [(None, value)]


def _scorers(about: dict[str, Any]) -> dict[str, Scorer]:
    """Return who stands behind each name of a score."""
    named: dict[str, Scorer] = {}
    seen: Counter[tuple[Any, str]] = Counter()
    for entry in objects(about.get("scorers")):
        base = (text_at(entry, "name") or "").rpartition("/")[2]
        name, count = base, 1
        while name in named:
            name, count = f"{base}{count}", count + 1
        judge = _judge(base, entry, about)
        named[name] = (
            Scorer(name, base, judge=False)
            if judge is None
            else Scorer(judge, numbered(base, judge, seen), judge=True)
        )
    return named


def _judge(scorer: str, entry: dict[str, Any], about: dict[str, Any]) -> str | None:
    """Return the model behind a scorer: its own, by name or with settings, else that of its role in the evaluation."""
    own = text_at(entry, "options", "model") or text_at(entry, "options", "model", "model")
    options = entry.get("options")
    if own is not None or (isinstance(options, dict) and options.get("model") is not None):
        return own  # a list of models votes, and none of them is the judge
    role = text_at(entry, "options", "model_role") or ROLE_OF.get(scorer)
    return text_at(about, "model_roles", role, "model") if role else None

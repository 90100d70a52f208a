"""Any file of an evaluation, through the whole public surface: valid, broken and hostile ones of every format."""

from __future__ import annotations

import copy
import csv
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evaluation_files as files
import trueup
from commands import run
from fuzz_strategies import COVERED, attempt, examples, sound, write_covered
from trueup.io.readers.evaluations.formats import EVALUATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

for needed in ("pandas", "pyarrow", "duckdb", "cyclopts"):
    pytest.importorskip(needed, reason="needs the test dependencies")


@pytest.fixture(scope="module", autouse=True)
def count_what_was_covered() -> Iterator[None]:
    yield
    write_covered()


# -- valid files -----------------------------------------------------------------------------------

SCORES = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 3)), st.integers(-40, 40), min_size=1, max_size=16
).map(lambda cells: {pair: value / 4 for pair, value in cells.items()})
Cells = dict[tuple[int, int], float]


def by_question(cells: Cells) -> dict[int, dict[int, float]]:
    """Return the scores of each question by worker."""
    found: dict[int, dict[int, float]] = {}
    for (question, worker), value in cells.items():
        found.setdefault(question, {})[worker] = value
    return found


def inspect_log(cells: Cells) -> Any:
    names = sorted({worker for _, worker in cells})
    scorers = [{"name": f"judge{w}", "options": {"model": f"m/{w}"}} for w in names]
    samples = [
        {"id": q, "epoch": 1, "scores": {f"judge{w}": {"value": v} for w, v in row.items()}}
        for q, row in by_question(cells).items()
    ]
    return {
        "version": 2, "status": "success", "eval": {"model": "o3", "task": "t", "scorers": scorers},
        "plan": {}, "results": {}, "stats": {}, "samples": samples, "reductions": [],
    }  # fmt: skip


def promptfoo(cells: Cells) -> Any:
    results = [
        {
            "provider": {"id": "o3", "label": ""},
            "testIdx": q,
            "promptIdx": 0,
            "vars": {"q": str(q)},
            "gradingResult": {
                "componentResults": [
                    {"score": v, "assertion": {"type": "llm-rubric", "provider": f"judge{w}"}}
                    for w, v in row.items()
                ]
            },
        }
        for q, row in by_question(cells).items()
    ]
    return {"evalId": "x", "results": {"version": 3, "results": results}, "config": {}}


def deepeval(cells: Cells) -> Any:
    cases = [
        {
            "name": f"case {q}",
            "metricsData": [
                {"name": "right", "score": v, "evaluationModel": f"judge{w}"}
                for w, v in row.items()
            ],
        }
        for q, row in by_question(cells).items()
    ]
    return {"testFile": "t.py", "testCases": cases}


def label_studio(cells: Cells) -> Any:
    def annotation(worker: int, value: float) -> dict[str, Any]:
        result = {"type": "number", "from_name": "q", "to_name": "x", "value": {"number": value}}
        return {"completed_by": worker, "result": [result], "was_cancelled": False}

    return [
        {"id": q, "data": {}, "annotations": [annotation(w, v) for w, v in row.items()]}
        for q, row in by_question(cells).items()
    ]


def argilla(cells: Cells) -> Any:
    return [
        {
            "id": f"r{q}",
            "fields": {},
            "responses": {"q": [{"value": v, "user_id": f"u{w}"} for w, v in row.items()]},
        }
        for q, row in by_question(cells).items()
    ]


VALID: dict[str, Callable[[Cells], Any]] = {
    "inspect": inspect_log,
    "promptfoo": promptfoo,
    "deepeval": deepeval,
    "label-studio": label_studio,
    "argilla": argilla,
}


def test_every_format_of_documents_is_tried() -> None:
    assert {each.name for each in EVALUATIONS} - {"promptfoo-all"} == set(VALID)


def write_hub(home: Path, cells: Cells) -> Path:
    """Write forecasts, a folder per model."""
    models: dict[int, list[tuple[Any, ...]]] = {}
    for (task, model), value in cells.items():
        row = ("2024-11-23", "wk inc", task, "US", "median", "NA", value)
        models.setdefault(model, []).append(row)
    for model, rows in models.items():
        path = home / "model-output" / f"m{model}" / f"2024-11-23-m{model}.csv"
        path.parent.mkdir(parents=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([files.HUB_COLUMNS, *rows])
    return home / "model-output"


@examples(40)
@given(cells=SCORES, family=st.sampled_from([*VALID, "archive", "packed archive", "hubverse"]))
def test_scores_of_valid_files_are_all_read(cells: Cells, family: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if family == "hubverse":
            path = write_hub(folder, cells)
        elif family in VALID:
            path = files.write_json(folder / "log.json", VALID[family](cells))
        else:
            path = files.write_archive(
                folder / "log.eval", inspect_log(cells), zstd=family == "packed archive"
            )
        how: dict[str, Any] = {"from_format": "hubverse"} if family == "hubverse" else {}
        est = attempt(f"estimate from {family}", lambda: trueup.estimate(path, "mean", **how))
    assert est is not None
    sound(est)
    assert sorted(est.answers.answers.tolist()) == sorted(cells.values())
    assert est.answers.n_questions == len({question for question, _ in cells})
    assert est.answers.n_workers == len({worker for _, worker in cells})


# -- broken and hostile files ----------------------------------------------------------------------

DOCUMENTS = {
    "inspect": files.inspect_log(),
    "promptfoo": files.promptfoo(),
    "promptfoo-old": files.promptfoo(2),
    "deepeval": files.deepeval(),
    "label-studio": files.label_studio(),
    "argilla": files.argilla(),
    "argilla-flat": files.argilla(flat=True),
}
#: What may stand where something else was meant.
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 0.5, 2**70, 10**400, 1e308, float("inf"), float("nan"), "", " ", "C", "0.5", "1e400", "=1+1",
    "<b>", "a\nb", "\u202e", "\ud800", "a@b.org", [], {}, [[]], {"id": []}, [None], [{"value": {}}], {"": None},
)  # fmt: skip


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return all places of a document: what holds something, and under which key."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in list(inside):
        found.append((document, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """Draw a document with up to four changes: replaced, removed, doubled or renamed parts."""
    document = json.loads(json.dumps(DOCUMENTS[draw(st.sampled_from(sorted(DOCUMENTS)))]))
    for _ in range(draw(st.integers(0, 4))):
        every = places(document)
        if not every:
            break
        holder, key = every[draw(st.integers(0, len(every) - 1))]
        strange = copy.deepcopy(draw(st.sampled_from(STRANGE)))
        match draw(st.sampled_from(("replace", "remove", "rename", "double"))):
            case "replace":
                holder[key] = strange
            case "remove":
                del holder[key]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case _ if isinstance(holder, dict):
                holder[str(strange)[:50]] = holder.pop(key)
    return document


DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=2)), max_size=2)


def damaged(content: bytes, damage: list[tuple[float, bytes]], end: float) -> bytes:
    """Overwrite some bytes, and cut the rest off where `end` says so."""
    for where, new in damage:
        at = int(where * len(content))
        content = content[:at] + new + content[at + len(new) :]
    return content[: int(2 * (end - 0.5) * len(content))] if end > 0.5 else content


BEFORE = {"question": ["before"], "worker": ["somebody"], "answer": [1.0]}
READERS = ("estimate", "rank", "compare", "diagnose_all", "update", "command", "rank command")


def use(path: Path, what: str, how: dict[str, Any]) -> None:
    """Do something with a file: the result is sound, or one line says why there is none."""
    if what.endswith("command"):
        words = ["rank", str(path), "--by", "system"] if what[0] == "r" else ["estimate", str(path)]
        if "from_format" in how:
            words += ["--from", how["from_format"]]
        code, out, err = run(*words, "--skip-bad", "--format", "json")
        assert code in (0, 1, 2), (code, out, err)
        assert code == 0 or (err.startswith("trueup: ") and err.count("\n") == 1), err
        assert "unexpected" not in err, err
        if code == 0:
            json.loads(out)
        return
    how = {**how, "skip_bad": True}
    calls: dict[str, Callable[[], Any]] = {
        "estimate": lambda: trueup.estimate(path, **how),
        "rank": lambda: trueup.rank(path, by="system", item="item", **how),
        "compare": lambda: trueup.compare(path, methods=["mean", "crh"], **how),
        "diagnose_all": lambda: trueup.diagnose_all(path, panels=4, **how),
        "update": lambda: trueup.update(trueup.estimate(BEFORE, "mean"), path, **how),
    }
    found = attempt(f"{what} an evaluation", calls[what])
    if found is not None:
        assert len(str(found)) > 0
        if what == "estimate":
            sound(found)


@examples(60)
@given(
    document=documents(),
    damage=DAMAGE,
    end=st.floats(0, 0.6),
    what=st.sampled_from(READERS),
    named=st.none() | st.sampled_from([each.name for each in EVALUATIONS]),
    name=st.sampled_from(["log.json", "log.jsonl", "log.eval", "log"]),
)
def test_any_document_is_read_or_refused(
    document: Any,
    damage: list[tuple[float, bytes]],
    end: float,
    what: str,
    named: str | None,
    name: str,
) -> None:
    how: dict[str, Any] = {} if named is None else {"from_format": named}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(damaged(json.dumps(document).encode(), damage, end))
        use(path, what, how)
    COVERED["broken document"] += 1


@examples(25)
@given(
    document=documents(),
    packed=st.booleans(),
    header=st.booleans(),
    damage=DAMAGE,
    end=st.floats(0, 0.6),
    what=st.sampled_from(READERS),
)
def test_any_archive_is_read_or_refused(
    document: Any,
    packed: bool,
    header: bool,
    damage: list[tuple[float, bytes]],
    end: float,
    what: str,
) -> None:
    log = document if isinstance(document, dict) else {}
    log = {"eval": {}, **log}
    if not isinstance(log.get("samples"), list):
        log["samples"] = [log.get("samples")]
    with tempfile.TemporaryDirectory() as folder:
        path = files.write_archive(Path(folder, "log.eval"), log, zstd=packed, header=header)
        path.write_bytes(damaged(path.read_bytes(), damage, end))
        use(path, what, {})
    COVERED["broken archive"] += 1


@examples(20)
@given(
    ending=st.sampled_from([".csv", ".parquet"]),
    victim=st.floats(0, 0.999),
    damage=DAMAGE,
    end=st.floats(0, 0.6),
    how=st.sampled_from([{"from_format": "hubverse"}, {"worker_from": "folder"}, {}]),
    what=st.sampled_from(("estimate", "compare", "diagnose_all", "command")),
)
def test_any_folder_of_forecasts_is_read_or_refused(
    ending: str,
    victim: float,
    damage: list[tuple[float, bytes]],
    end: float,
    how: dict[str, Any],
    what: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = files.hub(Path(folder), ending)
        every = sorted(home.rglob(f"*{ending}"))
        path = every[int(victim * len(every))]
        path.write_bytes(damaged(path.read_bytes(), damage, end))
        use(home, what, {} if what == "command" else how)
    COVERED["broken forecasts"] += 1

"""Every format of evaluations through every command: told by its content, hostile ids whole, broken files refused."""

from __future__ import annotations

import csv
import json
import struct
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import trueup
from commands import need_cli, printed, refusal
from evaluation_files import HOSTILE, HUB_COLUMNS, write_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

need_cli()

#: Ids that are text, whatever they look like.
IDS = (*HOSTILE[:4], "'+1' & </td><img src=x onerror=alert(1)>", "naïve, ☃\u2028;\t")
JUDGES = ('<b onmouseover="alert(2)">judge</b>', "=1+1", 'j"\n2', "plain")
SYSTEMS = ("<svg/onload=alert(3)>", '@SUM(A1) "b"')
MODELS = ("<b>alpha", "=beta", 'ga"mma')


def grade(item: int, system: int, judge: int) -> float:
    """Return a score between 0 and 1."""
    return round(0.1 + 0.1 * item + 0.07 * system + 0.03 * ((3 * item + 2 * judge + system) % 5), 3)


def inspect(folder: Path) -> Path:
    """Write logs of two systems, one as an archive."""
    home = folder / "logs"
    home.mkdir()
    for s, system in enumerate(SYSTEMS):
        names = ["qa", *(f"qa{i}" for i in range(1, len(JUDGES)))]
        samples = [
            {
                "id": item, "epoch": 1,
                "scores": {name: {"value": grade(j, s, i)} for i, name in enumerate(names)},
            }
            for j, item in enumerate(IDS)
        ]  # fmt: skip
        scorers = [{"name": "qa", "options": {"model": judge}} for judge in JUDGES]
        about = {"model": system, "task": "t", "scorers": scorers}
        log: dict[str, Any] = {"version": 2, "status": "success", "eval": about, "samples": samples}
        if s:
            write_archive(home / "b.eval", log)
        else:
            (home / "a.json").write_text(json.dumps(log))
    return home


def promptfoo(folder: Path) -> Path:
    """Write results of two systems; tests go by numbers, so the hostile texts are metrics."""

    def component(j: int, s: int, i: int) -> dict[str, Any]:
        asked = {"type": "llm-rubric", "provider": JUDGES[i], "metric": IDS[j]}
        return {"score": grade(j, s, i), "pass": True, "reason": "", "assertion": asked}

    results = [
        {
            "testIdx": j, "promptIdx": 0, "provider": {"id": system},
            "gradingResult": {"componentResults": [component(j, s, i) for i in range(len(JUDGES))]},
        }
        for j in range(len(IDS))
        for s, system in enumerate(SYSTEMS)
    ]  # fmt: skip
    return written(folder, {"results": {"version": 3, "results": results}})


def deepeval(folder: Path) -> Path:
    """Write a test run."""
    cases = [
        {
            "name": item,
            "metricsData": [
                {"name": "m", "score": grade(j, 0, i), "evaluationModel": judge}
                for i, judge in enumerate(JUDGES)
            ],
        }
        for j, item in enumerate(IDS)
    ]
    return written(folder, {"testCases": cases})


def label_studio(folder: Path) -> Path:
    """Write tasks."""

    def result(j: int, i: int) -> list[dict[str, Any]]:
        rating = {"rating": grade(j, 0, i)}
        return [{"type": "rating", "from_name": "quality", "value": rating}]

    tasks = [
        {
            "id": item,
            "data": {},
            "annotations": [
                {"completed_by": judge, "result": result(j, i)} for i, judge in enumerate(JUDGES)
            ],
        }
        for j, item in enumerate(IDS)
    ]
    return written(folder, tasks)


def argilla(folder: Path) -> Path:
    """Write records."""
    records = [
        {
            "id": item,
            "fields": {},
            "responses": {
                "quality": [
                    {"value": grade(j, 0, i), "user_id": judge} for i, judge in enumerate(JUDGES)
                ]
            },
        }
        for j, item in enumerate(IDS)
    ]
    return written(folder, records)


def hubverse(folder: Path) -> Path:
    """Write a hub; folders are named by the models."""
    home = folder / "model-output"
    for i, model in enumerate(MODELS):
        (home / model).mkdir(parents=True)
        with (home / model / "2024-11-23.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(HUB_COLUMNS)
            for j, item in enumerate(IDS):
                writer.writerow(("2024-11-23", item, 0, "US", "median", "NA", grade(j, 0, i)))
    return home


def written(folder: Path, document: Any) -> Path:
    """Write a document under a name that tells nothing."""
    path = folder / "scores.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


class Format(NamedTuple):
    """A format: how files of it are made, where its hostile ids come back, who answers, and what systems it has."""

    make: Callable[[Path], Path]
    column: str
    workers: tuple[str, ...] = JUDGES
    systems: tuple[str, ...] = ()


FORMATS = {
    "inspect": Format(inspect, "item", systems=SYSTEMS),
    "promptfoo": Format(promptfoo, "metric", systems=SYSTEMS),
    "deepeval": Format(deepeval, "item"),
    "label-studio": Format(label_studio, "item"),
    "argilla": Format(argilla, "item"),
    "hubverse": Format(hubverse, "target", workers=MODELS),
}
DOCUMENTS = [name for name in FORMATS if name not in ("inspect", "hubverse")]
every_format = pytest.mark.parametrize("name", FORMATS)


def ids(path: Path, column: str) -> set[str]:
    """Return a column of a table in JSON."""
    document = json.loads(path.read_text("utf-8"))
    if isinstance(document, dict):
        document = document["workers" if column == "worker" else "questions"]
    return {row[column] for row in document}


def harmless(page: str) -> None:
    """Check that nothing of an id is markup in a page."""
    for text in (*IDS, *JUDGES, *SYSTEMS, *MODELS):
        if "<" in text:
            assert text not in page


@every_format
def test_estimates(tmp_path: Path, name: str) -> None:
    kind = FORMATS[name]
    source = kind.make(tmp_path)
    made = {each: tmp_path / each for each in ("t.json", "w.json", "r.html", "s.trueup", "t.csv")}
    count = len(IDS) * max(1, len(kind.systems))
    text = printed(
        "estimate", source, "-o", made["t.json"], "--workers", made["w.json"], "--report", made["r.html"],
        "--save", made["s.trueup"], "--duplicates", "mean",
    )  # fmt: skip
    told = (
        f"{count * len(kind.workers)} answers from {len(kind.workers)} workers to {count} questions"
    )
    assert told in text
    assert ids(made["t.json"], kind.column) == set(IDS)
    assert ids(made["w.json"], "worker") == set(kind.workers)
    if kind.systems:
        assert ids(made["t.json"], "system") == set(SYSTEMS)
    again = trueup.load(made["s.trueup"])
    assert set(again.answers.worker_ids.tolist()) == set(kind.workers)
    page = made["r.html"].read_text("utf-8")
    harmless(page)
    assert "script&gt;alert(1)" in page or r"script\u003ealert(1)" in page
    # The same when the format is named, and no formula in what a spreadsheet opens.
    assert told in printed("estimate", source, "--from", name, "-o", made["t.csv"])
    with made["t.csv"].open(newline="", encoding="utf-8") as file:
        cells = {row[kind.column] for row in csv.DictReader(file)}
    assert not {cell for cell in cells if cell[:1] in "=+-@"}
    assert {cell.removeprefix("'") for cell in cells} == {each.removeprefix("'") for each in IDS}


@every_format
def test_diagnoses(tmp_path: Path, name: str) -> None:
    source = FORMATS[name].make(tmp_path)
    for command in ("diagnose", "doctor"):
        text = printed(command, source)
        assert f"from {len(FORMATS[name].workers)} workers" in text
        # An id with a line end does not begin a line of its own.
        assert "\n2" not in text
    printed("diagnose", source, "--report", tmp_path / "d.html")
    harmless((tmp_path / "d.html").read_text("utf-8"))


@every_format
def test_ranks(tmp_path: Path, name: str) -> None:
    kind = FORMATS[name]
    source = kind.make(tmp_path)
    if not kind.systems:
        said = refusal("rank", source, "--by", "system", "-o", tmp_path / "out.json")
        assert 'Column "system"' in said
        assert not (tmp_path / "out.json").exists()
        return
    out, page = tmp_path / "out.json", tmp_path / "rank.html"
    printed("rank", source, "--by", "system", "--item", "item", "-o", out, "--report", page)
    assert ids(out, "system") == set(SYSTEMS)
    harmless(page.read_text("utf-8"))


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("command", ["estimate", "diagnose", "doctor"])
@pytest.mark.parametrize("fault", ["cut", "deep", "other"])
def test_broken_documents(tmp_path: Path, name: str, command: str, fault: str) -> None:
    path = FORMATS[name].make(tmp_path)
    options = ["--from", name]
    whole = path.read_bytes()
    if fault == "cut":
        path.write_bytes(whole[: len(whole) * 2 // 3])
    elif fault == "deep":
        path.write_bytes(whole.replace(b"[", b"[" + b"[" * 100_000 + b"]" * 100_000 + b",", 1))
    else:
        options = ["--from", next(each for each in DOCUMENTS if each != name)]
    check_refused(command, path, *options)
    if fault != "other":
        check_refused(command, path)


@pytest.mark.parametrize("command", ["estimate", "diagnose", "doctor"])
@pytest.mark.parametrize("fault", ["cut", "huge", "lying", "deep", "other"])
def test_broken_archives(
    tmp_path: Path, command: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = inspect(tmp_path) / "b.eval"
    whole = path.read_bytes()
    options: tuple[str, ...] = ("--from", "inspect")
    if fault == "cut":
        path.write_bytes(whole[: len(whole) * 2 // 3])
    elif fault == "huge":
        monkeypatch.setattr("trueup.io.limits.memory", lambda: 1_000_000)
        add_member(path, " " * 2_000_000 + "{}")
    elif fault == "lying":  # it says that it is small
        add_member(path, " " * 2_000_000 + "{}")
        path.write_bytes(claiming(path, 10))
    elif fault == "deep":
        add_member(path, "[" * 100_000 + "]" * 100_000)
    else:
        options = ("--from", "promptfoo")
    check_refused(command, path, *options)
    if fault != "other":
        check_refused(command, path)


@pytest.mark.parametrize("command", ["estimate", "diagnose", "doctor"])
def test_a_hub_is_no_document(tmp_path: Path, command: str) -> None:
    home = hubverse(tmp_path)
    check_refused(command, next(home.rglob("*.csv")), "--from", "deepeval")
    check_refused(command, written(tmp_path, [{"question": 1, "worker": 2}]), "--from", "hubverse")


def add_member(path: Path, content: str) -> None:
    """Add a sample to an archive."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/9_epoch_1.json", content)


def claiming(path: Path, size: int) -> bytes:
    """Return an archive whose last member says that it unpacks to so many bytes."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        central = archive.start_dir
    found = data.rindex(b"PK\x01\x02", central)
    struct.pack_into("<I", data, found + 24, size)
    return bytes(data)


def check_refused(command: str, path: Path, *options: str) -> None:
    """Check that a command ends with one line that names the file, and writes nothing."""
    before = {each: each.stat().st_mtime_ns for each in path.parent.rglob("*")}
    outputs: tuple[str | Path, ...] = ()
    if command != "doctor":
        outputs = ("--report", path.parent / "r.html")
    if command == "estimate":
        outputs += ("-o", path.parent / "t.csv", "--save", path.parent / "s.trueup")
    said = refusal(command, path, *options, *outputs)
    assert path.name in said
    assert len(said) < 1000
    assert {each: each.stat().st_mtime_ns for each in path.parent.rglob("*")} == before

"""Small files in the forms that evaluations leave them, each with all that makes such files hard to read."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

#: Texts that are data, whatever they look like.
HOSTILE = (
    "=HYPERLINK(1)", "<script>alert(1)</script>", 'a "quote"', "two\nlines", "x" * 5000, "'); DROP TABLE x;--",
)  # fmt: skip
JUDGES = ("openai/gpt-4.1", "anthropic/claude")
BOSS = "boss@example.org"


def score(value: Any) -> dict[str, Any]:
    """Return a score as Inspect writes it."""
    return {"value": value, "answer": "half an emoji \ud83d", "explanation": "=1+1"}


def inspect_log(model: str = "openai/o3", task: str = "facts", **more: Any) -> dict[str, Any]:
    """Return a log with two judges by one scorer, letters as grades, repeated epochs, failures and a plain scorer."""
    qa = {"name": "model_graded_qa", "options": {"model": JUDGES[0]}}
    scorers = [
        qa,
        {**qa, "options": {"model": JUDGES[1]}},
        {"name": "inspect_ai/match", "options": {}},
    ]
    names = ("model_graded_qa", "model_graded_qa1", "match")
    grades = {
        1: ("C", "P", 1),
        2: ("I", "N", 0.25),
        "s3": (0.75, "C", True),
        HOSTILE[0]: ("C", "oops", None),
        HOSTILE[3]: (float("nan"), "0.5", "I"),
    }
    samples: list[dict[str, Any]] = [
        {
            "id": key,
            "epoch": 1,
            "input": "\ud800",
            "target": "x",
            "scores": {name: score(value) for name, value in zip(names, values, strict=True)},
        }
        for key, values in grades.items()
    ]
    samples += [
        {"id": 4, "epoch": 1, "scores": None},
        {"id": 5, "epoch": 1, "scores": {}, "error": {"message": "out of memory"}},
        {"id": 6, "epoch": 1, "scores": {"match": score(1)}, "invalidation": {"author": BOSS}},
        {"id": 7, "epoch": 1, "scores": {"match": None}},
    ]
    return {
        "version": 2, "status": "success", "eval": {"model": model, "task": task, "scorers": scorers},
        "plan": {}, "results": {}, "stats": {}, "samples": samples, "reductions": [], **more,
    }  # fmt: skip


def promptfoo(version: int = 3) -> dict[str, Any]:
    """Return results of two systems by two judges: rubrics twice, plain assertions, sets, prompts and failures."""

    def rubric(judge: Any, value: Any, **more: Any) -> dict[str, Any]:
        assertion = {"type": "llm-rubric", "value": "{{x}}", "provider": judge, **more}
        return {"pass": True, "score": value, "reason": "<b>", "assertion": assertion}

    def result(test: int, system: Any, components: Any, prompt: int = 0) -> dict[str, Any]:
        grading = {"pass": True, "score": 1, "componentResults": components}
        found = {
            "provider": system,
            "vars": {"q": f"q{test}"},
            "cost": 0.01,
            "gradingResult": grading,
        }
        return found | ({"testIdx": test, "promptIdx": prompt} if version == 3 else {})

    labelled = {"id": "openai:o3", "label": HOSTILE[2]}
    plain = {"pass": True, "score": 1, "assertion": {"type": "contains", "value": "x"}}
    custom = {"pass": True, "score": 0.3, "assertion": {"type": "python", "metric": "tone"}}
    grader = {"id": "google:gemini", "config": {"temperature": 0}}
    results: list[dict[str, Any]] = []
    for test in range(3):
        for number, system in enumerate((labelled, {"id": "anthropic:claude", "label": ""})):
            base = 0.2 * test + 0.1 * number
            results.append(
                result(
                    test,
                    system,
                    [
                        rubric("openai:gpt-4.1", base, metric="accuracy"),
                        rubric(grader, base + 0.1, metric="accuracy"),
                        rubric("openai:gpt-4.1", base + 0.2),
                        rubric("openai:gpt-4.1", base + 0.3),
                        {"score": 1, "componentResults": [rubric(grader, base + 0.15)]},
                        plain,
                        custom,
                    ],
                )
            )
    results.append(
        {"provider": "openai:o3", "error": "timeout", "gradingResult": None, "testIdx": 9}
    )
    results.append(result(4, labelled, [rubric("openai:gpt-4.1", None, metric="accuracy")]))
    results.append(result(5, labelled, []))
    if version == 3:
        return {
            "evalId": "x",
            "results": {"version": 3, "results": results, "stats": {}},
            "config": {},
        }
    return {"version": 2, "results": results, "table": {}, "stats": {}}


def deepeval() -> dict[str, Any]:
    """Return a test run by two judges, with errors, missing scores, a metric without model and names that repeat."""

    def metric(
        judge: Any, value: Any, name: str = "Correctness [GEval]", **more: Any
    ) -> dict[str, Any]:
        return {
            "name": name,
            "score": value,
            "evaluationModel": judge,
            "evaluationCost": 0.002,
            **more,
        }

    cases = [
        {
            "name": "test_case",
            "order": order,
            "input": "\udfff",
            "metricsData": [
                metric("gpt-4.1", 0.2 + 0.2 * order),
                metric("claude", 0.3 + 0.2 * order),
                metric("gpt-4.1", 0.9, "Bias"),
                metric(None, 1.0, "Exact Match"),
            ],
        }
        for order in range(3)
    ]
    failed = metric("claude", 0.7, error="rate limit")
    cases.append(
        {"name": "test_case", "order": 3, "metricsData": [failed, metric("gpt-4.1", None)]}
    )
    cases.append({"name": "test_case", "order": 4, "metricsData": None})
    return {"testFile": "t.py", "testCases": cases, "conversationalTestCases": []}


def label_studio() -> list[dict[str, Any]]:
    """Return tasks with two questions each, gold, cancelled annotations, e-mail addresses and predictions."""

    def result(value: Any, kind: str = "rating", name: str = "quality") -> dict[str, Any]:
        return {"type": kind, "from_name": name, "to_name": "text", "value": {kind: value}}

    def annotation(who: Any, *results: Any, **more: Any) -> dict[str, Any]:
        return {"completed_by": who, "result": list(results), "was_cancelled": False, **more}

    tasks: list[dict[str, Any]] = [
        {
            "id": 100 + number,
            "data": {"text": HOSTILE[1]},
            "annotations": [
                annotation(7, result(3 + number % 2), result(10.5 * number, "number", "length")),
                annotation({"id": 8, "email": BOSS}, result(4), result(["bad"], "choices", "tags")),
            ],
            "predictions": [{"model_version": HOSTILE[0], "score": 0.9, "result": [result(2)]}],
        }
        for number in range(3)
    ]
    tasks[0]["annotations"] += [
        annotation(9, result(5), ground_truth=True),
        annotation(10, result(1), was_cancelled=True),
        annotation({"email": BOSS}, result(1)),
        annotation(BOSS, result(1)),
        annotation(11),
    ]
    tasks[1]["predictions"].append({"model_version": None, "result": [result(2)]})
    return tasks


def argilla(*, flat: bool = False) -> list[dict[str, Any]]:
    """Return records in one of the two forms, with drafts, texts as values, an e-mail address and suggestions."""
    records: list[dict[str, Any]] = []
    for number in range(3):
        given: list[dict[str, Any]] = [
            {"value": 2 + number, "user_id": "6f0c"},
            {"value": 3, "user_id": "77aa"},
            {"value": 1, "user_id": "88bb", "status": "discarded"},
            {"value": 4, "user_id": BOSS},
            {"value": None, "user_id": "99cc"},
        ]
        record: dict[str, Any] = {"id": f"r{number}", "fields": {"text": HOSTILE[4]}}
        if flat:
            record |= {
                "quality.responses": [each["value"] for each in given],
                "quality.responses.users": [each["user_id"] for each in given],
                "quality.responses.status": [each.get("status", "submitted") for each in given],
                "quality.suggestion": 5,
                "quality.suggestion.agent": "judge",
                "tone.responses": ["warm"],
                "tone.users": ["6f0c"],
            }
        else:
            record |= {
                "responses": {"quality": given, "tone": [{"value": "warm", "user_id": "6f0c"}]},
                "suggestions": {"quality": {"value": 5, "agent": "judge", "score": None}},
            }
        records.append(record)
    records.append(
        {"id": "r9", "fields": {}, "responses": {}} | ({"x.responses": []} if flat else {})
    )
    return records


HUB_COLUMNS = (
    "reference_date",
    "target",
    "horizon",
    "location",
    "output_type",
    "output_type_id",
    "value",
)


def hub_rows(model: int) -> list[tuple[Any, ...]]:
    """Return forecasts of a model: some as medians, some as quantiles, some both, beside probabilities."""
    rows: list[tuple[Any, ...]] = []
    for horizon in (0, 1):
        for location in ("01", "US"):
            task = ("2024-11-23", "wk inc flu hosp", horizon, location)
            base = 100.0 * (1 + horizon) + 7 * model
            if model != 1:
                rows.append((*task, "median", "NA", base))
            rows += [
                (*task, "quantile", level, base + 50 * (level - 0.5))
                for level in (0.025, 0.5, 0.975)
            ]
            rows += [(*task, "pmf", "high", 0.4), (*task, "mean", "NA", base + 3)]
    return rows


def hub(folder: Path, ending: str = ".csv") -> Path:
    """Write a folder of forecasts of three models."""
    home = folder / "model-output"
    for number, model in enumerate(("alpha-base", "beta=1", "gamma")):
        (home / model).mkdir(parents=True)
        path = home / model / f"2024-11-23-{model}{ending}"
        rows = hub_rows(number)
        if ending == ".csv":
            lines = [",".join(map(str, row)) for row in [HUB_COLUMNS, *rows]]
            path.write_text("\n".join(lines) + "\n")
        else:
            columns = {
                name: [str(row[i]) if name == "output_type_id" else row[i] for row in rows]
                for i, name in enumerate(HUB_COLUMNS)
            }
            pa.parquet.write_table(pa.table(columns), path)
    (home / "README.md").write_text("not a forecast")
    return home


def write_json(path: Path, document: Any) -> Path:
    """Write a document; half characters stay escapes, as JSON has them."""
    path.write_text(json.dumps(document, indent=1))
    return path


def write_archive(
    path: Path, log: dict[str, Any], *, zstd: bool = False, header: bool = True
) -> Path:
    """Write a log as an archive, packed by deflate or, as newer ones are, by zstd."""
    about = {name: value for name, value in log.items() if name != "samples"}
    members: dict[str, Any] = {"_journal/start.json": {"version": 2, "eval": log["eval"]}}
    members |= {
        f"samples/{number}_epoch_1.json": each for number, each in enumerate(log["samples"])
    }
    members |= {"summaries.json": [], **({"header.json": about} if header else {})}
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_STORED if zstd else zipfile.ZIP_DEFLATED
    ) as archive:
        for name, content in members.items():
            text = json.dumps(content).encode()
            archive.writestr(name, _frames(text) if zstd else text)
    if zstd:
        _mark_zstd(path, {name: json.dumps(content).encode() for name, content in members.items()})
    return path


def _frames(text: bytes) -> bytes:
    """Pack bytes in two frames, as writers with a limit for a frame do."""
    codec, half = pa.Codec("zstd"), len(text) // 2
    return b"".join(codec.compress(part, asbytes=True) for part in (text[:half], text[half:]))


def _mark_zstd(path: Path, members: dict[str, bytes]) -> None:
    """Say in the headers of stored members that they are packed by zstd, and what they were before."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entries, central = archive.infolist(), archive.start_dir
    for entry in entries:
        text = members[entry.filename]
        for start, method, crc, size in (
            (entry.header_offset, 8, 14, 22),
            (central, 10, 16, 24),
        ):
            struct.pack_into("<H", data, start + method, 93)
            struct.pack_into("<I", data, start + crc, zlib.crc32(text))
            struct.pack_into("<I", data, start + size, len(text))
        name, extra, comment = struct.unpack_from("<HHH", data, central + 28)
        central += 46 + name + extra + comment
    path.write_bytes(data)

"""Files that evaluations leave: every score goes to its question, judge and run, and what is left out is counted."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from evaluation_files import (
    BOSS,
    HOSTILE,
    JUDGES,
    argilla,
    deepeval,
    hub,
    inspect_log,
    label_studio,
    promptfoo,
    write_archive,
    write_json,
)
from input_files import message_of, rows_of
from trueup.errors import AnswersError, MissingExtra
from trueup.io.question_data import QuestionDataRequest
from trueup.io.readers.evaluations.formats import EVALUATIONS
from trueup.io.readers.evaluations.names import DOCUMENTS, HUBVERSE, TABLE
from trueup.io.readers.files import open_source, read_file
from trueup.request import KEYWORDS

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("duckdb")


def counts(table: Any) -> dict[str, int]:
    """Return how many rows were left out for each reason."""
    return dict(table.rejects.counts)


def test_the_names_are_the_same_everywhere() -> None:
    assert tuple(each.name for each in EVALUATIONS) == DOCUMENTS
    literal = KEYWORDS["from_format"].option
    values = {value for part in literal.__args__ for value in getattr(part, "__args__", ())}
    assert values == {*DOCUMENTS, HUBVERSE, TABLE}


# -- Inspect -----------------------------------------------------------------------------------------


INSPECT_ROWS = {
    ((1, "openai/o3"), JUDGES[0], 1.0),
    ((1, "openai/o3"), JUDGES[1], 0.5),
    ((1, "openai/o3"), "match", 1.0),
    ((2, "openai/o3"), JUDGES[0], 0.0),
    ((2, "openai/o3"), JUDGES[1], 0.0),
    ((2, "openai/o3"), "match", 0.25),
    (("s3", "openai/o3"), JUDGES[0], 0.75),
    (("s3", "openai/o3"), JUDGES[1], 1.0),
    (("s3", "openai/o3"), "match", 1.0),
    ((HOSTILE[0], "openai/o3"), JUDGES[0], 1.0),
    ((HOSTILE[3], "openai/o3"), JUDGES[1], 0.5),
    ((HOSTILE[3], "openai/o3"), "match", 0.0),
}
INSPECT_LEFT_OUT = {
    "no score": 3, "score is not a number": 1, "sample without scores": 1, "sample failed": 1,
    "sample was invalidated": 1, "scorer gave no score": 2,
}  # fmt: skip


@pytest.mark.parametrize("form", ["json", "eval", "zstd", "unfinished"])
def test_logs_of_inspect(tmp_path: Path, form: str) -> None:
    if form == "json":
        path = write_json(tmp_path / "log.json", inspect_log())
    else:
        path = write_archive(
            tmp_path / "log.eval", inspect_log(), zstd=form == "zstd", header=form != "unfinished"
        )
    table = read_file(path)
    # Ids of samples are numbers and texts here, and so are texts.
    expected = {
        ((str(item), system), worker, value) for (item, system), worker, value in INSPECT_ROWS
    }
    assert {(tuple(q), w, a) for q, w, a in rows_of(table)} == expected  # type: ignore[arg-type]
    assert counts(table) == INSPECT_LEFT_OUT
    assert table.n_rows == len(INSPECT_ROWS) + sum(INSPECT_LEFT_OUT.values())
    assert table.names.question == ("item", "system")
    reject = next(each for each in table.rejects.rows if each.why == "score is not a number")
    assert (reject.place, reject.worker, reject.answer) == ("sample 4", JUDGES[1], "oops")
    silent = [each for each in table.rejects.rows if each.why == "scorer gave no score"]
    assert [(each.place, each.worker) for each in silent] == [("sample 9", w) for w in JUDGES]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    log = inspect_log()
    log["samples"] = [each for each in log["samples"] if isinstance(each["id"], int)]
    table = read_file(write_json(tmp_path / "log.json", log))
    assert {q for q, _, _ in rows_of(table)} == {(1, "openai/o3"), (2, "openai/o3")}


#: Texts that look like something else, and are the ids that somebody gave.
LOOKS = (
    "007",
    "7.0",
    "1e5",
    "NaN",
    "null",
    "true",
    "a\0b",
    " x ",
    "=cmd|' /C calc'!A0",
    "\u202egnp",
)


@pytest.mark.parametrize("form", ["inspect", "promptfoo", "deepeval", "label-studio", "argilla"])
def test_texts_stay_the_texts_they_are(tmp_path: Path, form: str) -> None:
    sample = inspect_log()["samples"][0]
    result = promptfoo()["results"]["results"][0]
    documents: dict[str, Any] = {
        "inspect": inspect_log(samples=[{**sample, "id": each} for each in LOOKS]),
        # Tests go by numbers there, so it is the systems that have names.
        "promptfoo": {"results": {"results": [{**result, "provider": each} for each in LOOKS]}},
        "deepeval": {
            "testCases": [
                {"name": each, "metricsData": [{"name": "m", "score": 1, "evaluationModel": "m"}]}
                for each in LOOKS
            ]
        },
        "label-studio": [
            {"id": each, "annotations": [{"completed_by": 1, "result": [rating(2)]}]}
            for each in LOOKS
        ],
        "argilla": [
            {"id": each, "responses": {"q": [{"value": 1, "user_id": "007"}]}} for each in LOOKS
        ],
    }
    table = read_file(write_json(tmp_path / "scores.json", documents[form]))
    place = 1 if form == "promptfoo" else 0
    questions: list[Any] = [q for q, _, _ in rows_of(table)]
    assert {each[place] for each in questions} == set(LOOKS)
    if form == "argilla":
        assert {w for _, w, _ in rows_of(table)} == {"007"}


def rating(value: float) -> dict[str, Any]:
    """Return a rating as Label Studio writes it."""
    return {"type": "rating", "from_name": "quality", "value": {"rating": value}}


def test_zstd_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(tmp_path / "log.eval", inspect_log(), zstd=True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r'pip install "trueup\[files\]"'):
        read_file(path)


def test_a_folder_that_cannot_be_read_whole_is_refused(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("question,worker,answer\nq,w,1\n")
    link = tmp_path / "link"
    link.symlink_to("x" * 300)
    with pytest.raises(
        AnswersError, match=r'^Folder ".*": cannot be read \("File name too long"\)'
    ):
        trueup.estimate(tmp_path)
    link.unlink()


def test_a_folder_of_logs(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.eval", inspect_log())
    write_json(tmp_path / "b.json", inspect_log(model="anthropic/opus"))
    (tmp_path / "deep").mkdir()
    write_archive(tmp_path / "deep" / "c.eval", inspect_log(task="other"))
    write_json(tmp_path / "logs.json", {"a.eval": {"status": "success"}})
    (tmp_path / ".hidden.json").write_text("{")
    table = read_file(tmp_path)
    assert table.names.question == ("item", "system", "task")
    assert len(table.answer) == 3 * len(INSPECT_ROWS)
    assert table.rejects.rows[0].place.endswith('of "a.eval"')
    (tmp_path / "broken.json").write_text('{"version": 2, "eval": {')
    assert message_of(tmp_path).startswith(
        'File "broken.json": is not whole JSON (line 1, column 25'
    )
    with pytest.raises(AnswersError, match="is a folder"):
        read_file(tmp_path, from_format="table")


def test_two_logs_of_a_task_are_runs(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", inspect_log())
    write_json(tmp_path / "b.json", inspect_log())
    source = open_source(tmp_path)
    assert set(source.fetch(["run"])["run"].tolist()) == {1, 2}
    with pytest.raises(AnswersError, match='differ in column "run"'):
        trueup.estimate(tmp_path)
    one = trueup.estimate(tmp_path / "a.json", "mean", "none")
    both = trueup.estimate(tmp_path, "mean", "none", duplicates="mean")
    assert np.array_equal(one.estimate, both.estimate)


def test_scores_of_several_values_and_judges_of_several_scorers(tmp_path: Path) -> None:
    scorers = [
        {"name": "model_graded_qa", "options": {"model": "a"}},
        {"name": "model_graded_fact", "options": {"model": "a"}},
        {"name": "model_graded_qa", "options": {"model": "a", "template": "t"}},
        {"name": "model_graded_qa", "options": {"model": ["a", "b"]}},
        {"name": "style"},
    ]
    values = {
        "model_graded_qa": "C", "model_graded_fact": "I", "model_graded_qa1": "P", "model_graded_qa2": "C",
        "style": {"tone": 3, "length": [1]}, "extra": [0.5, 2],
    }  # fmt: skip
    sample = {"id": 1, "epoch": 1, "scores": {name: {"value": v} for name, v in values.items()}}
    log = inspect_log(samples=[sample])
    log["eval"]["scorers"] = scorers
    table = read_file(write_json(tmp_path / "log.json", log))
    assert table.names.question == ("item", "system", "metric")
    assert {(q[2], w, a) for q, w, a in rows_of(table)} == {  # type: ignore[index]
        ("model_graded_qa", "a", 1.0),
        ("model_graded_fact", "a", 0.0),
        ("model_graded_qa 2", "a", 0.5),
        ("model_graded_qa", "model_graded_qa2", 1.0),
        ("tone", "style", 3.0),
        ("1", "extra", 0.5),
        ("2", "extra", 2.0),
    }
    assert counts(table) == {"score is not a number": 1}


def test_judges_with_settings_and_judges_of_a_role(tmp_path: Path) -> None:
    settled = {"model": "judge/a", "config": {"temperature": 0}, "base_url": None}
    scorers = [
        {"name": "model_graded_qa", "options": {"model": settled}},
        {"name": "model_graded_qa", "options": {}},
        {"name": "model_graded_qa", "options": {"model_role": "critic"}},
        {"name": "model_graded_qa", "options": {"model": [settled, "judge/b"]}},
        {"name": "match", "options": {}},
    ]
    names = ("model_graded_qa", "model_graded_qa1", "model_graded_qa2", "model_graded_qa3", "match")
    sample = {"id": 1, "epoch": 1, "scores": {name: {"value": "C"} for name in names}}
    log = inspect_log(samples=[sample])
    roles = {"grader": {"model": "judge/g", "config": {}}, "critic": {"model": "judge/c"}}
    log["eval"] |= {"scorers": scorers, "model_roles": roles}
    table = read_file(write_json(tmp_path / "log.json", log))
    votes = {"model_graded_qa3", "match"}
    assert {w for _, w, _ in rows_of(table)} == {"judge/a", "judge/g", "judge/c", *votes}
    log["eval"]["model_roles"] = (
        None  # then the model under test grades itself, and goes by the scorer
    )
    table = read_file(write_json(tmp_path / "log.json", log))
    assert {w for _, w, _ in rows_of(table)} == {"judge/a", *names[1:]}


# -- promptfoo ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 2])
def test_results_of_promptfoo(tmp_path: Path, version: int) -> None:
    table = read_file(write_json(tmp_path / "out.json", promptfoo(version)))
    first = {(q, w, round(a, 6)) for q, w, a in rows_of(table) if q[0] == 1}  # type: ignore[index]
    system = HOSTILE[2]
    assert {row for row in first if row[0][1] == system} == {  # type: ignore[index]
        ((1, system, "accuracy"), "openai:gpt-4.1", 0.2),
        ((1, system, "accuracy"), "google:gemini", 0.3),
        ((1, system, "llm-rubric"), "openai:gpt-4.1", 0.4),
        ((1, system, "llm-rubric 2"), "openai:gpt-4.1", 0.5),
        ((1, system, "llm-rubric"), "google:gemini", 0.35),
    }
    assert {q[1] for q, _, _ in rows_of(table)} == {system, "anthropic:claude"}  # type: ignore[index]
    assert counts(table) == {
        "no model graded it: contains": 6, "no model graded it: python": 6, "no score": 1,
        "result without assertions": 1, "result failed": 1,
    }  # fmt: skip
    every = read_file(tmp_path / "out.json", from_format="promptfoo-all")
    assert len(every.answer) == len(table.answer) + 12
    assert sum(counts(every).values()) == 3
    costs = open_source(tmp_path / "out.json").fetch(["cost"])["cost"]
    assert {each for each in costs.tolist() if each is not None} == {0.01}


def test_prompts_of_a_system_are_systems_of_their_own(tmp_path: Path) -> None:
    document = promptfoo()
    results = document["results"]["results"]
    again = [{**each, "promptIdx": 1} for each in results[:1]]
    document["results"]["results"] = [*results, *again]
    table = read_file(write_json(tmp_path / "out.json", document))
    systems = {q[1] for q, _, _ in rows_of(table)}  # type: ignore[index]
    assert systems == {f"{HOSTILE[2]} (prompt 0)", f"{HOSTILE[2]} (prompt 1)", "anthropic:claude"}


def _component(value: float, reason: str = "fine", **assertion: Any) -> dict[str, Any]:
    return {"pass": value > 0, "score": value, "reason": reason, "assertion": assertion}


def _result(test: int, prompt: int, *components: Any, q: str = "a") -> dict[str, Any]:
    case = {"vars": {"q": q}, "assert": [{"type": "llm-rubric"}]}
    return {
        "testIdx": test, "promptIdx": prompt, "provider": {"id": "echo", "label": ""}, "vars": {"q": q},
        "testCase": case, "gradingResult": {"componentResults": list(components)},
    }  # fmt: skip


def test_sets_of_assertions_that_are_listed_twice_count_once(tmp_path: Path) -> None:
    parts = [_component(0.2, type="llm-rubric", provider="j"), _component(1, type="contains")]
    both = {"pass": False, "score": 0.6, "componentResults": parts}
    document = {"results": {"version": 3, "results": [_result(0, 0, both, *parts)]}}
    table = read_file(write_json(tmp_path / "out.json", document))
    assert rows_of(table) == [((0, "echo", "llm-rubric"), "j", 0.2)]
    assert counts(table) == {"no model graded it: contains": 1}


def test_grades_of_zero_that_are_none(tmp_path: Path) -> None:
    broken = "LLM-proposed evaluation steps are not in JSON format: {}"
    down = {"pass": False, "score": 0, "reason": "judge down", "tokensUsed": {}}
    components = [
        _component(0, "wrong", type="llm-rubric", provider="j"),
        _component(0, broken, type="g-eval", provider="j"),
        _component(0, "No output", type="context-recall", provider="j"),
        _component(0, "x", type="factuality", provider="j") | {"metadata": {"graderError": True}},
        down,
    ]
    document = {"results": {"version": 3, "results": [_result(0, 0, *components)]}}
    table = read_file(write_json(tmp_path / "out.json", document))
    assert rows_of(table) == [((0, "echo", "llm-rubric"), "j", 0.0)]
    assert counts(table) == {
        "grader failed": 3,
        "grade without its assertion: its grader failed": 1,
    }


def test_repeated_tests_are_runs_and_graders_go_by_their_labels(tmp_path: Path) -> None:
    graders: tuple[Any, ...] = (
        "file://j.js",
        {"id": "file://j.js", "label": "J2"},
        {"text": {"id": "openai:o3"}},
    )
    results = [
        _result(test, prompt, *[_component(0.5, type="llm-rubric", provider=g) for g in graders], q=q)
        for test, q in enumerate(("a", "a", "b"))
        for prompt in (0, 1)
    ]  # fmt: skip
    path = write_json(tmp_path / "out.json", {"results": {"version": 3, "results": results}})
    fetched = open_source(path).fetch(["item", "run", "system", "worker"])
    assert fetched["item"].tolist() == [0] * 12 + [2] * 6
    assert fetched["run"].tolist() == [1] * 6 + [2] * 6 + [1] * 6
    assert set(fetched["system"].tolist()) == {"echo (prompt 0)", "echo (prompt 1)"}
    assert set(fetched["worker"].tolist()) == {"file://j.js", "J2", "openai:o3"}
    for each in results:  # as older versions have them
        each["prompt"] = {"label": f"Say {each.pop('promptIdx')}"}
        del each["testIdx"]
    old = open_source(write_json(tmp_path / "old.json", {"version": 2, "results": results}))
    assert set(old.fetch(["system"])["system"].tolist()) == {"echo (prompt 0)", "echo (prompt 1)"}


# -- DeepEval, Label Studio, Argilla -----------------------------------------------------------------


def test_runs_of_deepeval(tmp_path: Path) -> None:
    table = read_file(write_json(tmp_path / "run.json", deepeval()))
    assert {(q, w, round(a, 6)) for q, w, a in rows_of(table)} == {
        row
        for order in range(3)
        for row in (
            ((order, "Correctness [GEval]"), "gpt-4.1", round(0.2 + 0.2 * order, 6)),
            ((order, "Correctness [GEval]"), "claude", round(0.3 + 0.2 * order, 6)),
            ((order, "Bias"), "gpt-4.1", 0.9),
        )
    }
    assert counts(table) == {
        "no model graded it": 3, "metric failed": 1, "no score": 1, "test case without metrics": 1,
    }  # fmt: skip
    wrapped = deepeval()
    for number, case in enumerate(wrapped["testCases"]):
        case["name"] = f"t{number}"
    again = read_file(write_json(tmp_path / "wrapped.json", {"testRunData": wrapped}))
    assert {q[0] for q, _, _ in rows_of(again)} == {"t0", "t1", "t2"}  # type: ignore[index]
    panel = read_file(
        tmp_path / "run.json", question="item", worker="metric", where={"worker": "gpt-4.1"}
    )
    assert set(panel.worker_ids.tolist()) == {"Correctness [GEval]", "Bias"}


def test_tasks_of_label_studio(tmp_path: Path) -> None:
    path = write_json(tmp_path / "export.json", label_studio())
    mixed = label_studio()
    mixed[0]["annotations"][0]["completed_by"] = "7"
    said = message_of(write_json(tmp_path / "mixed.json", mixed))
    assert 'Column "worker": holds "7" both as text and as a number' in said
    table = read_file(path)
    quality = {(q[0], w, a) for q, w, a in rows_of(table) if q[1] == "quality"}  # type: ignore[index]
    assert quality == {
        row
        for number in range(3)
        for row in (
            (100 + number, "7", 3 + number % 2),
            (100 + number, "8", 4),
            (100 + number, HOSTILE[0], 2),
        )
    }
    length = {(q[0], a) for q, w, a in rows_of(table) if q[1] == "length"}  # type: ignore[index]
    assert length == {(100, 0.0), (101, 10.5), (102, 21.0)}
    assert counts(table) == {
        "neither a rating nor a number: choices": 3,
        "annotator has no id besides an e-mail address": 2,
        "annotation was cancelled": 1,
        "ground truth, not an answer (column gold)": 1,
        "annotation without a result": 1,
        "prediction without a model version": 1,
    }
    assert BOSS not in str(table.rejects) + str(table.worker_ids.tolist())


def test_gold_of_label_studio(tmp_path: Path) -> None:
    tasks = label_studio()
    path = write_json(tmp_path / "export.json", tasks)
    answers = trueup.Answers.of(path)
    gold = QuestionDataRequest(gold="gold").read(answers, path).gold
    assert gold is not None
    known = {q: g for q, g in zip(answers.question_ids.tolist(), gold, strict=True) if g == g}
    assert known == {(100, "quality"): 5.0}
    assert np.isfinite(trueup.estimate(path, "mean", gold="gold", groups="metric").estimate).all()
    twice = next(each for each in tasks[0]["annotations"] if each.get("ground_truth"))
    other = {**twice, "result": [{**twice["result"][0], "value": {"rating": 2}}]}
    tasks[0]["annotations"].append(other)
    source = open_source(write_json(tmp_path / "two.json", tasks))
    assert "gold" not in source.names  # which of two is true nobody knows


@pytest.mark.parametrize("flat", [False, True])
def test_records_of_argilla(tmp_path: Path, flat: bool) -> None:
    table = read_file(write_json(tmp_path / "records.json", argilla(flat=flat)))
    assert set(rows_of(table)) == {
        row
        for number in range(3)
        for row in (
            ((f"r{number}", "quality"), "6f0c", 2.0 + number),
            ((f"r{number}", "quality"), "77aa", 3.0),
            ((f"r{number}", "quality"), "judge", 5.0),
        )
    }
    assert counts(table) == {
        "response is discarded": 3,
        "user has no id besides an e-mail address": 3,
        "no score": 3,
        "score is not a number": 3,
        "record without responses": 1,
    }
    assert BOSS not in str(table.rejects)


def test_a_first_record_without_responses(tmp_path: Path) -> None:
    empty = {"id": "r0", "quality.responses": None, "quality.responses.users": None}
    table = read_file(write_json(tmp_path / "records.json", [empty, *argilla(flat=True)]))
    assert len(table.answer) == 9
    assert counts(table)["record without responses"] == 2


# -- hubverse ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_hubs_of_forecasts(tmp_path: Path, ending: str) -> None:
    home = hub(tmp_path, ending)
    table = read_file(home)
    assert table.names.question == ("reference_date", "target", "horizon", "location")
    found = {(int(q[2]), q[3], w, a) for q, w, a in rows_of(table)}  # type: ignore[index]
    assert found == {
        (horizon, location, model, 100.0 * (1 + horizon) + 7 * number)
        for number, model in enumerate(("alpha-base", "beta=1", "gamma"))
        for horizon in (0, 1)
        for location in ("01", "US")
    }
    assert counts(table) == {
        "quantile other than 0.5, no point forecast": 24,
        "pmf, no point forecast": 12,
        "mean beside a better point forecast": 12,
        "quantile 0.5 beside a better point forecast": 8,
    }
    pattern = read_file(f"{home}/*/*{ending}", where={"horizon": 1, "location": "01"})
    assert {(w, a) for _, w, a in rows_of(pattern)} == {
        ("alpha-base", 200.0), ("beta=1", 207.0), ("gamma", 214.0)
    }  # fmt: skip
    assert sum(counts(pattern).values()) == 14
    # The general form: any column, any folder.
    plain = read_file(
        f"{home}/*/*{ending}",
        worker_from="folder",
        where={"output_type": "mean"},
        question=["horizon", "location"],
    )
    assert {w for _, w, _ in rows_of(plain)} == {"alpha-base", "beta=1", "gamma"}
    assert len(plain.rejects) == 0


def test_hubs_with_a_column_of_models(tmp_path: Path) -> None:
    rows = "reference_date,location,output_type,output_type_id,value,model_id\n"
    rows += "2024-01-06,US,median,,5,a\n2024-01-06,US,quantile,0.50,6,b\n2024-01-06,US,mean,,7,c\n"
    path = tmp_path / "all.csv"
    path.write_text(rows)
    assert {(w, a) for _, w, a in rows_of(read_file(path))} == {("a", 5.0), ("b", 6.0), ("c", 7.0)}
    path.write_text("question,worker,answer\nq,a,1\n")
    said = message_of(path, from_format="hubverse")
    assert said.startswith('from_format: File "all.csv": is not of the format "hubverse"')


# -- what is said ------------------------------------------------------------------------------------


def test_formats_that_are_named(tmp_path: Path) -> None:
    path = write_json(tmp_path / "run.json", deepeval())
    assert len(read_file(path, from_format="deepeval").answer) == 9
    assert 'is not of the format "inspect"' in message_of(path, from_format="inspect")
    assert "from_format: " in message_of(path, from_format="excel")
    assert "line 1 is not one whole JSON object" in message_of(path, from_format="table")
    assert message_of(path, worker_from="file").endswith("which names its workers. Leave it out.")
    assert "sep: is for text, and this is JSON" in message_of(path, sep=";")
    assert message_of(path, wide=True).startswith('File "run.json": wide: is for tables')
    write_json(tmp_path / "other.json", argilla())
    both = message_of([path, tmp_path / "other.json"])
    assert both.startswith('File "other.json": is not of the format "deepeval"')


def test_nothing_that_can_be_used(tmp_path: Path) -> None:
    log = inspect_log()
    log["samples"] = log["samples"][-4:]
    said = message_of(write_json(tmp_path / "log.json", log))
    assert said == (
        'File "log.json": is of the format inspect, and holds no score that can be used: scorer gave no score (2), '
        "sample without scores (1), sample failed (1), sample was invalidated (1), no score (1). "
        "Check that the evaluation was finished."
    )
    header = {**log, "samples": None}
    assert "log without samples" in message_of(write_json(tmp_path / "header.json", header))
    half = inspect_log()
    half["samples"][0]["id"] = "\ud800"
    said = message_of(write_json(tmp_path / "half.json", half))
    assert "sample 1 holds half a character" in said


def test_tables_of_json_are_still_tables(tmp_path: Path) -> None:
    rows = [{"question": "q", "worker": f"w{i}", "answer": i, "results": []} for i in range(3)]
    assert len(read_file(write_json(tmp_path / "a.json", rows)).answer) == 3
    one = tmp_path / "one.json"
    one.write_text('{"question": 1, "worker": "a", "answer": 2, "eval": {}}')
    assert len(read_file(one).answer) == 1


@pytest.mark.parametrize("form", ["json", "eval", "excel"])
def test_standard_input_is_told_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    path = tmp_path / "file"
    if form == "json":
        write_json(path, inspect_log())
    elif form == "eval":
        write_archive(path, inspect_log(), zstd=True)
    else:
        book = pytest.importorskip("openpyxl", reason="needs openpyxl").Workbook()
        for row in (("question", "worker", "answer"), ("q", "a", 1)):
            book.active.append(row)
        book.save(path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert len(read_file("-").answer) == (1 if form == "excel" else len(INSPECT_ROWS))
    assert len(read_file("-", from_format="table" if form == "excel" else "inspect").answer) > 0

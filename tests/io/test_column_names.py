"""Columns are recognised by the names people use, and whatever is missing is told at once with a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trueup
from frames_by_library import FRAMES, rows
from input_files import message_of, parquet
from trueup.errors import AnswersError, Mention, TrueupError
from trueup.io.columns import KNOWN_NAMES, plain_name
from trueup.io.readers.files import read_file
from trueup.io.readers.frames import read_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUESTIONS, WORKERS, ANSWERS = ["a", "a", "b", "b"], ["x", "y", "x", "y"], [1.0, 2.0, 4.0, 5.0]


def table(question: str, worker: str, answer: str, **more: list[Any]) -> dict[str, list[Any]]:
    return {question: QUESTIONS, worker: WORKERS, answer: ANSWERS, **more}


def advice(error: TrueupError) -> dict[str, Any]:
    """Return the keywords that an error says to pass; of several ways, the first."""
    found: dict[str, Any] = {}
    for part in error.message.parts:
        if isinstance(part, Mention) and part.name not in found:
            found[part.name] = part.value
    return found


@pytest.mark.parametrize(
    ("question", "worker", "answer"),
    [
        ("item", "rater", "score"),
        ("Task ID", "Worker-Id", "RATING"),
        ("HITId", "WorkerId", "Answer.score"),
        ("Input.image_url", "user_id", "value"),
        ("sample_id", "completed_by", "mos"),
        ("doc_id", "model_id", "label"),
        ("trace_id", "author_user_id", "value"),
        ("video_id", "annotator-id", "vote"),
        ("target", "Forecaster", "Prediction"),
    ],
)
@pytest.mark.parametrize("library", FRAMES)
def test_names_people_use_are_recognised(
    library: str, question: str, worker: str, answer: str
) -> None:
    frame = FRAMES[library][0](table(question, worker, answer))
    est = trueup.estimate(frame, "mean", "none")
    found, who = rows(est.questions), rows(est.workers)
    assert found[question] == ["a", "b"]
    assert found["estimate"] == [1.5, 4.5]
    assert who[worker] == ["x", "y"]
    assert "question" not in found
    assert "worker" not in who


def test_every_name_of_the_list_is_recognised_in_files(written: Callable[..., Path]) -> None:
    for part, names in KNOWN_NAMES.items():
        for name in names:
            assert plain_name(name) == name
            columns = {"question": "question", "worker": "worker", "answer": "answer"}
            columns[part] = name.upper()
            text = ",".join(columns.values()) + "\na,x,1\na,y,2\n"
            assert read_file(written(text)).answer.tolist() == [1.0, 2.0]


def test_exact_names_come_before_others() -> None:
    columns = table("question", "worker", "answer", item=[1] * 4, rater=[1] * 4, score=[9.0] * 4)
    assert read_frame(columns).question_ids.tolist() == ["a", "b"]
    task = table("task", "worker", "label", item=[1] * 4, score=[9.0] * 4)
    assert read_frame(task).answer.tolist() == ANSWERS
    passed = read_frame(table("q", "rater", "score", item=[7] * 4), question="q")
    assert passed.names.question == ("q",)


def test_names_of_ids_come_after_names() -> None:
    columns = table("clip", "rater", "score", clip_id=[7] * 4, rater_id=[7] * 4)
    names = read_frame(columns).names
    assert (names.question, names.worker) == (("clip",), "rater")


def test_two_columns_that_compete_are_an_error_that_names_both() -> None:
    columns = table("item", "rater", "score", clip=["c", "c", "d", "d"], judge=["u", "v"] * 2)
    with pytest.raises(AnswersError) as caught:
        read_frame(columns)
    text = str(caught.value)
    assert 'Columns "item" and "clip": each may hold the questions.' in text
    assert 'Columns "rater" and "judge": each may hold the workers.' in text
    assert 'Pass question="item" or question="clip".' in text
    assert read_frame(columns, **advice(caught.value)).names.question == ("item",)
    columns["points"] = columns.pop("score")
    with pytest.raises(AnswersError, match=r'answer="points"\? Pass question="item"') as caught:
        read_frame(columns, worker="judge")
    assert advice(caught.value) == {"question": "item", "answer": "points"}


def test_columns_of_systems_runs_and_truths_are_never_used_unasked() -> None:
    columns = table("sample", "judge", "score", gold=[1, 1, 3, 3], run=[1] * 4, model=["m"] * 4)
    est = trueup.estimate(columns, "mean", "none")
    assert est.estimate.tolist() == [1.5, 4.5]
    assert 'column "gold" was not used; gold="gold" if it holds known truths' in str(est)
    asked = trueup.estimate(columns, "mean", "none", gold="gold")
    assert "was not used" not in str(asked)


def test_repeated_answers_suggest_the_systems_that_tell_them_apart() -> None:
    columns = table("sample", "judge", "score", model=["m"] * 4, epoch=[1] * 4)
    twice = {name: values * 2 for name, values in columns.items()}
    twice["model"] = ["m"] * 4 + ["n"] * 4
    with pytest.raises(AnswersError, match='They differ in column "model"') as caught:
        trueup.estimate(twice)
    question = advice(caught.value)["question"]
    assert question == ["sample", "model"]
    assert trueup.estimate(twice, question=question).problem.n_questions == 4


@pytest.mark.parametrize("library", FRAMES)
def test_all_problems_are_told_at_once_and_the_advice_works(library: str) -> None:
    frame = FRAMES[library][0](table("film", "critic", "stars", remark=["good"] * 4))
    with pytest.raises(AnswersError) as caught:
        trueup.estimate(frame)
    text = str(caught.value)
    for part in ("question", "worker", "answer"):
        assert f'Column "{part}": not found.' in text
    assert 'Did you mean question="film", worker="critic", answer="stars"?' in text
    assert trueup.estimate(frame, "mean", "none", **advice(caught.value)).estimate.tolist() == [
        1.5,
        4.5,
    ]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (table("item", "critic", "stars"), {}),
        (table("film", "rater", "stars"), {}),
        (table("film", "critic", "score"), {"worker": "critik"}),
        (table("Questoin", "workr", "anwser"), {}),
        ({"note": ["n"] * 4, **table("film", "rater", "score")}, {"question": "fil"}),
    ],
)
def test_advice_that_is_followed_to_the_letter_works(
    columns: dict[str, Any], options: dict[str, Any], written: Callable[..., Path]
) -> None:
    with pytest.raises(AnswersError) as caught:
        read_frame(columns, **options)
    assert read_frame(columns, **(options | advice(caught.value))).answer.tolist() == ANSWERS
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    path = written("\n".join(lines) + "\n")
    with pytest.raises(AnswersError) as caught:
        read_file(path, **options)
    assert read_file(path, **(options | advice(caught.value))).answer.tolist() == ANSWERS


def test_there_is_no_guess_where_there_are_too_few_columns(written: Callable[..., Path]) -> None:
    message = message_of(written("film,remark\na,b\n"))
    assert "Did you mean" not in message
    assert 'question="...", worker="...", answer="..."' in message


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"question": "lower", "worker": "w", "answer": "v"}, "question"),
        ({"question": "w", "worker": "lower", "answer": "v"}, ""),
        ({"question": "w", "worker": "weight", "answer": "v"}, "worker"),
    ],
)
def test_a_name_that_clashes_with_a_column_of_the_result_is_an_error(
    options: dict[str, str], name: str
) -> None:
    columns = {
        options["question"]: QUESTIONS,
        options["worker"]: WORKERS,
        options["answer"]: ANSWERS,
    }
    if not name:
        assert rows(trueup.estimate(columns, **options).workers)["lower"] == ["x", "y"]  # type: ignore[arg-type]
        return
    with pytest.raises(AnswersError, match="has a column of this name") as caught:
        trueup.estimate(columns, **options)  # type: ignore[arg-type]
    assert caught.value.argument == name


def test_findings_have_the_names_of_the_caller() -> None:
    data = trueup.simulate(workers=8, questions=30, seed=1).answers
    matrix = data.to_matrix()
    long = {
        "clip": [f"c{j}" for j in range(30) for _ in range(8)],
        "rater": [f"r{i}" for _ in range(30) for i in range(8)],
        "mos": matrix.T.ravel().tolist(),
    }
    est = trueup.estimate(long)
    found = est.findings
    assert "rater" in found.workers.workers.columns
    assert found.answers is not None
    assert {"clip", "rater", "answer"} <= set(found.answers.frame.columns)
    assert found.answers_needed is not None
    assert "clip" in found.answers_needed.questions.columns
    assert found.correlated is not None
    assert "rater" in found.correlated.pairs.columns
    assert str(est).splitlines()[-7].startswith("clip")


def test_the_engine_on_disk_recognises_names(tmp_path: Path) -> None:
    from trueup import disk

    columns = table("Clip", "Rater", "MOS", kind=["k"] * 4)
    path, out = parquet(tmp_path / "a.parquet", columns), tmp_path / "out.parquet"
    memory = trueup.estimate(columns)
    with disk.estimate(path, out) as est:
        assert rows(est.questions)["Clip"] == ["a", "b"]
        assert est.estimate.tolist() == pytest.approx(memory.estimate.tolist(), abs=1e-9)
        assert rows(est.workers)["Rater"] == ["x", "y"]
    import pyarrow.parquet as pq

    assert pq.read_table(out).column_names[0] == "Clip"
    strange = parquet(tmp_path / "b.parquet", table("film", "critic", "stars", note=["n"] * 4))
    with pytest.raises(AnswersError) as caught:
        disk.estimate(strange, out)
    asked = advice(caught.value)
    assert asked == {"question": "film", "worker": "critic", "answer": "stars"}
    with disk.estimate(strange, out, **asked) as est:
        assert rows(est.questions)["film"] == ["a", "b"]
    with pytest.raises(AnswersError, match="several are for answers in memory") as caught:
        disk.estimate(path, out, question=["Clip", "kind"])
    assert caught.value.argument == "question"

"""compare() finds the same on every engine, whatever the order of the rows and however large the sample."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import TrueupError, TrueupWarning, disk
from trueup.cli import main
from trueup.core import sampling
from trueup.engines import question_sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

ON_SPARK = pytest.mark.needs("java")
QUESTIONS, WORKERS = 150, 12
METHODS = ["mean", "native", "crh"]


def answers(text: bool = True) -> Any:
    """Return a frame of random answers in no order; ids are such that text and numbers are sorted differently."""
    rng = np.random.default_rng(5)
    question, worker = np.nonzero(rng.random((QUESTIONS, WORKERS)) < 0.5)
    order = rng.permutation(len(question))
    question, worker = question[order], worker[order]
    noise = np.exp(rng.normal(0, 0.5, WORKERS))
    spread = rng.uniform(0.5, 2.0, len(question))
    values = truths()[question] + noise[worker] * spread * rng.standard_normal(len(question))
    frame = pd.DataFrame(
        {"question": question, "worker": 7 * worker, "answer": values, "variance": spread**2}
    )
    if text:
        frame["question"] = [f"q{each}" for each in frame["question"]]
        frame["worker"] = [f"w{each}" for each in frame["worker"]]
    return frame


def truths() -> np.ndarray[Any, Any]:
    return np.random.default_rng(6).normal(3.0, 1.0, QUESTIONS)


def known(text: bool = True) -> dict[Any, float]:
    """Return the truths of every second question, and of one that nobody answered."""
    every = truths().tolist()
    found: dict[Any, float] = {(f"q{j}" if text else j): every[j] for j in range(0, QUESTIONS, 2)}
    return {**found, ("nobody" if text else 10**6): 1.0}


def on_disk(frame: Any, folder: Path, *arguments: Any, **options: Any) -> Any:
    frame.to_parquet(folder / "answers.parquet")
    return disk.compare(folder / "answers.parquet", *arguments, **options)


def on_spark(frame: Any, _: Path, *arguments: Any, **options: Any) -> Any:
    pytest.importorskip("pyspark", reason="needs pyspark")
    from spark_session import session
    from trueup import spark

    rows = session().createDataFrame(frame)
    return spark.compare(rows, *arguments, partitions=3, **options)


ENGINES = [pytest.param(on_disk, id="disk"), pytest.param(on_spark, id="spark", marks=ON_SPARK)]


def same(found: Any, expected: Any) -> None:
    """Compare two boards in everything but the time."""
    table, wanted = found.to_pydict(), expected.to_dict("list")
    assert list(table) == list(wanted)
    for name in wanted:
        if name in ("method", "shrink"):
            assert table[name] == wanted[name]
        elif name != "seconds":
            np.testing.assert_allclose(table[name], wanted[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize(("text", "size"), [(True, 40), (False, QUESTIONS)])
def test_the_board_is_that_of_memory(
    on: Callable[..., Any], text: bool, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_sample, "MAX_QUESTIONS", size)
    frame = answers(text)
    expected = trueup.compare(frame, METHODS, known(text), seed=3)
    same(on(frame, tmp_path, METHODS, known(text), seed=3), expected)


@pytest.mark.parametrize("on", ENGINES)
def test_options_mean_the_same_everywhere(
    on: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_sample, "MAX_QUESTIONS", 60)
    frame = answers().rename(columns={"question": "item", "worker": "who", "answer": "said"})
    frame["said"] = np.exp(0.1 * frame["said"])
    options: dict[str, Any] = {"question": "item", "worker": "who", "answer": "said"}
    options |= {
        "transform": "log",
        "answer_variance": "variance",
        "shrink": "normal",
        "max_iter": 4,
    }
    truth = {name: float(np.exp(0.1 * value)) for name, value in known().items()}
    expected = trueup.compare(frame, ["crh", "mean"], truth, **options)
    same(on(frame, tmp_path, ["crh", "mean"], truth, **options), expected)


def test_very_many_answers_are_sampled_in_memory_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared is bounded in answers, not in questions alone; truths stay with their questions."""
    frame, truth = answers(), known()
    whole = trueup.compare(frame, ["mean"], truth, shrink="none")
    monkeypatch.setattr(question_sample, "MAX_ANSWERS", 300)
    monkeypatch.setattr(question_sample, "MIN_QUESTIONS", 30)
    part = trueup.compare(frame, ["mean"], truth, shrink="none")
    assert part["held_out"][0] != whole["held_out"][0]

    data = trueup.Answers.of(frame)
    size = 300 * data.n_questions // data.n_answers
    chosen = sampling.sample_of(data, 0, size)
    assert chosen is not None
    assert len(chosen) == size
    names = data.question_ids.tolist(chosen)
    alone = frame[frame["question"].isin(names)]
    again = trueup.compare(alone, ["mean"], truth, shrink="none")
    for name in ("held_out", "held_out_se", "risk", "risk_se"):
        np.testing.assert_allclose(part[name], again[name], rtol=1e-9)


def test_truths_come_in_any_form_that_names_its_questions(tmp_path: Path) -> None:
    frame, truth = answers(), known()
    expected = trueup.compare(frame, ["mean"], truth)
    columns = pd.DataFrame({"question": list(truth), "truth": list(truth.values())})
    columns.to_csv(tmp_path / "truth.csv", index=False, sep=";")
    given = (columns, pd.Series(truth), str(tmp_path / "truth.csv"), tmp_path / "truth.csv")
    for form in given:
        same(on_disk(frame, tmp_path, ["mean"], form), expected)


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        ([1.0] * QUESTIONS, "need values by question id"),
        (np.ones(QUESTIONS), "need values by question id"),
        ("truth", "need values by question id"),
        ("none.csv", 'File "none.csv": not found'),
    ],
)
def test_other_truths_are_refused_before_anything_is_read(truth: Any, said: str) -> None:
    with pytest.raises(TrueupError, match=rf"^truth: .*{said}"):
        disk.compare("no such file.parquet", ["mean"], truth)


def test_arguments_are_checked_before_anything_is_read() -> None:
    wrong: list[dict[str, Any]] = [
        {"methods": ["best"]},
        {"shrink": "much"},
        {"seed": -1},
        {"max_iter": -1},
        {"threads": 0},
    ]
    for options in wrong:
        with pytest.raises(TrueupError, match=f"^{next(iter(options)).removesuffix('s')}"):
            disk.compare("no such file.parquet", **options)


def test_truths_outside_the_sample_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_sample, "MAX_QUESTIONS", 20)
    frame = answers()
    data = trueup.Answers.of(frame)
    inside = sampling.sample_of(data, 0, 20)
    assert inside is not None
    outside = np.setdiff1d(np.arange(data.n_questions), inside)[:1]
    truth = {data.question_ids.tolist(outside)[0]: 1.0}
    with pytest.raises(TrueupError, match=r"^truth: found none for the 20 questions that are"):
        trueup.compare(frame, ["mean"], truth)
    with pytest.raises(TrueupError, match=r"^truth: .* a sample of 20 of \d+ questions\.$"):
        on_disk(frame, tmp_path, ["mean"], truth)


def test_truths_that_cannot_be_are_refused_on_every_engine(tmp_path: Path) -> None:
    frame = answers()
    frame["answer"] = np.exp(0.1 * frame["answer"])
    said = '^truth: question "q0" has the truth 0, but log needs truths above 0'
    for compare in (
        on_disk,
        lambda rows, _, *rest, **options: trueup.compare(rows, *rest, **options),
    ):
        with pytest.raises(TrueupError, match=said):
            compare(frame, tmp_path, ["mean"], {"q0": 0.0}, transform="log")


def test_rows_that_were_left_out_are_told_unless_strict(tmp_path: Path) -> None:
    frame = answers()
    frame.to_csv(tmp_path / "a.csv", index=False)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("q1,w999,many,1\n")
    with pytest.warns(TrueupWarning, match=r'^1 of \d+ rows could not be used .*\("many"\)$'):
        found = disk.compare(tmp_path / "a.csv", ["mean"])
    same(found, trueup.compare(frame, ["mean"]))
    with pytest.raises(TrueupError, match="cannot be used"):
        disk.compare(tmp_path / "a.csv", ["mean"], strict=True)


def test_what_was_read_is_kept_if_asked_for(tmp_path: Path) -> None:
    work = tmp_path / "work"
    on_disk(answers(), tmp_path, ["mean"], work_dir=work, keep=True)
    written = (work / "answers" / "values.f64").stat()
    on_disk(answers(), tmp_path, ["mean"], work_dir=tmp_path / "other")
    assert not (tmp_path / "other" / "answers").exists()
    disk.compare(tmp_path / "answers.parquet", ["crh"], work_dir=tmp_path / "other", keep=True)
    assert (work / "answers" / "values.f64").stat() == written


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *map(str, arguments)])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.mark.parametrize("engine", ["disk", pytest.param("spark", marks=ON_SPARK)])
@pytest.mark.parametrize("text", [True, False])
def test_the_command_finds_the_same_on_every_engine(
    engine: str,
    text: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ids as text and as whole numbers; on disk the latter from a CSV file, where they are text to begin with."""
    if engine == "spark":
        pytest.importorskip("pyspark", reason="needs pyspark")
        from spark_session import session

        session()  # which the command takes
    monkeypatch.setattr(question_sample, "MAX_QUESTIONS", 50)
    is_csv, truth = engine == "disk" and not text, tmp_path / "truth.csv"
    source = tmp_path / ("a.csv" if is_csv else "a.parquet")
    if is_csv:
        answers(text=False).to_csv(source, index=False)
    else:
        answers(text=text).to_parquet(source)
    truth.write_text("question,truth\n" + "".join(f"{q},{x!r}\n" for q, x in known(text).items()))
    options = ("--truth", truth, "--method", "mean", "--method", "crh", "--format", "json")
    boards = []
    for place in ("memory", engine):
        code, out, err = command(capsys, source, *options, "--engine", place)
        assert code == 0, err
        boards.append(pd.DataFrame(json.loads(out)))
    pd.testing.assert_frame_equal(
        boards[1].drop(columns="seconds"), boards[0].drop(columns="seconds"), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--wide", "questions"), "--engine disk: reads files with one answer per row"),
        (("--sql", "select 1"), "--engine disk: reads files with one answer per row"),
        (("--truth", "truth"), '--truth: found "truth", but answers that are not in memory'),
        (("--truth", "no.csv"), '--truth: File "no.csv": not found'),
        (("--strict",), "cannot be used"),
    ],
)
def test_what_the_command_cannot_do_is_said(
    options: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    answers().to_csv("a.csv", index=False)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("q1,w999,many,1\n")
    code, out, err = command(capsys, "a.csv", "--engine", "disk", "--method", "mean", *options)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_command_tells_of_rows_that_were_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.csv"
    answers().to_csv(source, index=False)
    with source.open("a") as file:
        file.write("q1,w999,many,1\n")
    code, out, err = command(capsys, source, "--engine", "disk", "--method", "mean")
    assert code == 0
    assert "predicts held-out workers best" in out
    assert "1 of " in err
    assert err.endswith('("many") (--strict stops)\n')

"""Runs on disk from the command line: killed at any moment, on full disks, with rows that cannot be used."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trueup
from commands import full_disk, printed, refusal
from processes import started
from small_panels import judges
from trueup import disk
from trueup.cli import main
from trueup.engines.disk.intake import ingest
from trueup.errors import TrueupError
from trueup.result.tables import least_certain

WORKERS = 40
COLUMNS = ["question", "estimate", "lower", "upper", "std_error", "base", "base_std_error"]


def answers(rows: int = 600, questions: int = 100, seed: int = 1) -> pa.Table:
    """Make answers in random order with text ids, every worker at most once on a question."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows)
    question, turn = order % questions, order // questions
    worker = (question * 7 + turn * 61) % WORKERS
    value = rng.normal(10, 2, questions)[question] + rng.normal(size=rows) * (1 + worker % 3)
    return pa.table(
        {
            "question": [f"q{each}" for each in question.tolist()],
            "worker": [f"w{each}" for each in worker.tolist()],
            "answer": value.tolist(),
        }
    )


def on_disk(*options: str | Path) -> tuple[str | Path, ...]:
    """Return the command line of an estimate on disk."""
    return ("estimate", *options, "--engine", "disk")


def test_a_run_that_is_killed_at_any_moment_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("out.parquet")
    pq.write_table(answers(), "a.parquet")
    line = on_disk("a.parquet", "--method", "crh", "--out", out, "--work-dir", "work")
    printed(*line)
    expected = pq.read_table(out)
    assert expected.num_rows == 100
    moment, read = 0, 0  # the latter counts kills after which the answers need not be read again
    while True:
        out.unlink()
        moment += 40
        killed = started(*line, killed_at=moment)
        if killed.code == 0:
            break
        assert killed.code == -signal.SIGKILL
        if out.exists():
            assert pq.read_table(out).equals(expected)
        read += Path("work/answers/meta.json").exists()
        printed(*line)
        found = pq.read_table(out)
        assert found.column("question").equals(expected.column("question"))
        for name in COLUMNS[1:]:
            np.testing.assert_allclose(
                found.column(name).to_numpy(), expected.column(name).to_numpy(), rtol=1e-9
            )
    assert moment >= 8 * 40
    assert read >= 4
    names = sorted(path.name for path in tmp_path.iterdir() if ".trueup-" not in path.name)
    assert names == ["a.parquet", "out.parquet", "work"]


def test_the_numbers_are_those_of_memory(tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    table = answers(3_000, 500)
    pq.write_table(table, source)
    est = disk.estimate(source, out, "crh", bias=True)
    expected = trueup.estimate(table, "crh", bias=True)
    found = pq.read_table(out).sort_by("question")
    frame = expected.questions.sort_by("question")
    for name in COLUMNS[1:]:
        np.testing.assert_allclose(
            found.column(name).to_numpy(), frame.column(name).to_numpy(), rtol=1e-9
        )
    assert est.diagnosis == expected.diagnosis
    mine, theirs = (each.sort_by("worker") for each in (est.workers, expected.workers))
    assert mine.column_names == theirs.column_names
    for name in ("weight", "variance", "bias", "bias_std_error"):
        np.testing.assert_allclose(
            mine.column(name).to_numpy(), theirs.column(name).to_numpy(), rtol=1e-8, atol=1e-12
        )


def test_gold_groups_and_covariates_work_on_disk(tmp_path: Path) -> None:
    table = answers(3_000, 500)
    number = np.array([int(str(each)[1:]) for each in table.column("question").to_pylist()])
    table = table.append_column("group", pa.array([f"g{each % 3}" for each in number.tolist()]))
    table = table.append_column("size", pa.array((number % 17).astype(float)))
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)
    rng = np.random.default_rng(3)
    gold = {f"q{j}": float(rng.normal(10, 2)) for j in range(40)}
    options: dict[str, Any] = {"groups": "group", "covariates": ["size"], "gold": gold}
    est = disk.estimate(source, out, "crh", **options)
    expected = trueup.estimate(table, "crh", **options)
    assert est.diagnosis == expected.diagnosis
    found, frame = pq.read_table(out).sort_by("question"), expected.questions.sort_by("question")
    for name in COLUMNS[1:]:
        np.testing.assert_allclose(
            found.column(name).to_numpy(), frame.column(name).to_numpy(), rtol=1e-8
        )


def test_rows_that_cannot_be_used_are_told_of_or_stop_the_run(tmp_path: Path) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "out.parquet"
    rows = [f"q{j},w{i},{j + i}" for j in range(50) for i in range(4)]
    rows[7], rows[90] = "q1,w3,much", "q22,w2,12 inches"
    source.write_text("question,worker,answer\n" + "\n".join(rows) + "\n")
    line = on_disk(source, "--out", out, "--method", "mean")
    loose = printed(*line)
    assert "2 of 200 rows could not be used and were left out" in loose
    assert "much" in loose
    assert "12 inches" in loose
    found = pq.read_table(out)
    assert found.column("n_answers").to_numpy().sum() == 198
    out.unlink()
    assert "much" in refusal(*line, "--strict")
    assert not out.exists()
    assert json.loads(printed(*line, "--format", "json"))["read"]["malformed"] == 2


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    source, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    pq.write_table(answers(30_000, 5_000), source)
    out.write_bytes(b"the old file")
    with full_disk(200_000):
        refusal(*on_disk(source, "--out", out, "--method", "mean"))
    assert out.read_bytes() == b"the old file"


def test_results_on_disk_have_the_verbs_of_those_in_memory(tmp_path: Path) -> None:
    source = small(tmp_path / "a.csv")
    expected = trueup.estimate(source, "crh")
    by_id = np.argsort(expected.questions["question"].to_numpy().astype(str))
    with disk.estimate(source, tmp_path / "o.parquet", "crh") as est:
        frame = est.questions.to_pandas()
        assert frame["question"].tolist() == sorted(expected.questions["question"])
        for name in ("estimate", "lower", "upper", "std_error", "base", "shrinkage"):
            np.testing.assert_allclose(
                getattr(est, name), getattr(expected, name)[by_id], rtol=1e-9, atol=1e-12
            )
            np.testing.assert_array_equal(frame[name], getattr(est, name))
        assert est.workers.num_rows == expected.problem.n_workers
        assert est.findings.workers.flags == expected.findings.workers.flags
        assert est.findings.agreement is not None
        assert est.findings.answers_needed is not None
        page = est.report(tmp_path / "report.html").read_text("utf-8")
        assert est.request.as_call().text in page.replace("&quot;", '"').replace("&#x27;", "'")
        state = est.save(tmp_path / "state.trueup")
        assert est.plot("estimates") is not None
    loaded = trueup.load(state)
    np.testing.assert_array_equal(loaded.estimate, frame["estimate"])
    more = {"question": ["q1"], "worker": ["w9"], "answer": [1.0]}
    assert trueup.update(loaded, more).problem.n_answers == expected.problem.n_answers + 1


def test_a_folder_is_given_back_when_the_estimate_is_closed_or_forgotten(tmp_path: Path) -> None:
    source, work = small(tmp_path / "a.csv"), tmp_path / "work"
    options: dict[str, Any] = {"work_dir": work, "method": "mean"}
    first = disk.estimate(source, tmp_path / "o.parquet", **options)
    assert first.path is not None
    assert list((work / "answers").iterdir())
    again = disk.estimate(source, tmp_path / "o.parquet", **options)  # closes the one before
    assert np.isfinite(again.estimate).all()
    again.close()
    assert list((work / "answers").glob("*")) == []
    with disk.estimate(source, tmp_path / "o.parquet", keep=True, **options) as kept:
        assert kept.path == tmp_path / "o.parquet"
    assert list((work / "answers").iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "x.csv"], "--out: with --engine disk the estimates go to a .parquet file"),
        ([], "--out: with --engine disk the estimates go to a .parquet file"),
        (["--out", "x.parquet", "--sql", "select 1"], "one answer per row"),
        (["--out", "x.parquet", "--variance", "jackknife"], "needs all answers in memory"),
    ],
)
def test_what_disk_cannot_do_is_said(
    tmp_path: Path,
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.csv").write_text("question,worker,answer\n1,1,2\n1,2,3\n2,1,4\n2,2,6\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["estimate", "a.csv", "--engine", "disk", *options])
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_two_runs_at_once_in_one_folder(tmp_path: Path) -> None:
    source, work = tmp_path / "a.parquet", tmp_path / "work"
    pq.write_table(answers(600, 100), source)
    held = ingest(source, work)
    try:
        with pytest.raises(TrueupError, match="another"):
            disk.estimate(source, tmp_path / "out.parquet", work_dir=work)
    finally:
        held.close()
    disk.estimate(source, tmp_path / "out.parquet", work_dir=work)
    assert (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_on_disk_says_and_writes_what_memory_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    answers, truth = trueup.simulate(6, 40, truth_scale=2.0, seed=4)
    x, known = answers.to_matrix().tolist(), truth.tolist()
    rows = [f"q{j:02d},w{i},{x[i][j]!r}" for i in range(6) for j in range(40)]
    source, gold = tmp_path / "a.csv", tmp_path / "gold.csv"
    source.write_text("question,worker,answer\n" + "\n".join([*rows, "q00,w9,", "q01,w9,bad"]))
    gold.write_text(
        "question,truth\n" + "".join(f"q{j:02d},{known[j]!r}\n" for j in range(9)) + "q39,\n"
    )
    ending = "json" if as_json else "parquet"
    out, workers = tmp_path / "out.parquet", tmp_path / f"workers.{ending}"
    options = ["--out", str(out), "--workers", str(workers), "--gold", str(gold)]
    options += ["--format", "json"] if as_json else []
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(source), "--engine", "disk", "--method", "mean", *options])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    est = trueup.estimate(
        {
            "question": [row.split(",")[0] for row in rows],
            "worker": [row.split(",")[1] for row in rows],
            "answer": [float(row.split(",")[2]) for row in rows],
        },
        "mean",
        gold={f"q{j:02d}": known[j] for j in range(9)},
    )
    expected = dict(zip(est.answers.question_ids.tolist(), est.estimate.tolist(), strict=True))
    found = {row["question"]: row["estimate"] for row in pq.read_table(out).to_pylist()}
    assert found == pytest.approx(expected, rel=1e-9)
    if as_json:
        names = [row["worker"] for row in json.loads(workers.read_text())["workers"]]
        assert json.loads(said.out)
    else:
        names = pq.read_table(workers).column("worker").to_pylist()
        assert f"Written: {out}" in said.out
        assert f"Written: {workers}" in said.out
    assert names == [f"w{i}" for i in range(6)]


def test_gold_on_disk_that_is_no_number_or_of_no_question_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, gold = tmp_path / "a.csv", tmp_path / "gold.csv"
    source.write_text("question,worker,answer\nq,u,1\nq,v,2\np,u,3\n")
    for text, told in (
        ("q,many", '"many", which is not a usable number'),
        ("z,1", "found no question that is"),
    ):
        gold.write_text(f"question,truth\n{text}\n")
        with pytest.raises(SystemExit) as ended:
            main(
                [
                    "estimate",
                    str(source),
                    "--engine",
                    "disk",
                    "--gold",
                    str(gold),
                    "-o",
                    str(tmp_path / "o.parquet"),
                ]
            )
        assert ended.value.code == 1
        assert told in capsys.readouterr().err


def test_an_estimate_on_disk_prints_what_was_left_out(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("question,worker,answer\nq,u,1\nq,u,3\nq,v,2\np,u,\np,v,x\np,v,4\n")
    est = disk.estimate(source, tmp_path / "o.parquet", "mean", duplicates="mean")
    text = str(est)
    for line in (
        "3 answers from 2 workers to 2 questions",
        "1 of 6 rows dropped: no answer in it",
        "1 repeated answer merged",
        "1 row could not be used",
        f"estimates in {tmp_path / 'o.parquet'}",
    ):
        assert line in text
    with pytest.raises(TrueupError, match="on disk it is a name or a number"):
        disk.estimate(source, tmp_path / "o.parquet", variance=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(TrueupError, match=r"must end in \.parquet"):
        disk.estimate(source, tmp_path / "o.csv")


def test_what_is_neither_yes_nor_no_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("question,worker,answer\nq,w,1\n")
    with pytest.raises(TrueupError, match=r"^keep: found array"):
        disk.estimate(source, tmp_path / "o.parquet", keep=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(TrueupError, match=r"^keep: found array"):
        disk.compare(source, keep=np.ones(2))  # type: ignore[arg-type]


def small(path: Path) -> Path:
    """Write a few answers, some by workers who err together."""
    given = judges(2)[1]
    rows = [f"q{j},w{i},{each}" for (i, j), each in np.ndenumerate(given)]
    path.write_text("question,worker,answer\n" + "\n".join(rows) + "\n")
    return path


def test_the_least_certain_have_all_their_answers_where_workers_err_together(
    tmp_path: Path,
) -> None:
    est = disk.estimate(small(tmp_path / "a.csv"), tmp_path / "o.parquet")
    assert est.diagnosis.pooling  # two workers count as one
    assert est.problem.counts[least_certain(est, 10)].tolist() == [6] * 10


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("no/o.parquet", "there is no folder for"),
        ("folder.parquet", "is a folder"),
        ("a.csv/o.parquet", "there is no folder for"),
        ("x" * 300 + ".parquet", "cannot be written"),
        ("o.csv", r"must end in \.parquet"),
        ("p0.parquet", "is used already"),
        ("link.parquet", "is used already"),
        ("known.parquet", "is used already"),
    ],
)
def test_where_estimates_cannot_go_is_told_before_anything_is_read(
    tmp_path: Path, out: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.parquet").mkdir()
    small(Path("a.csv"))
    for name in ("p0.parquet", "p1.parquet"):
        pq.write_table(answers(), name)
    Path("link.parquet").symlink_to("p1.parquet")
    pq.write_table(pa.table({"question": ["q1"], "truth": [1.0]}), "known.parquet")
    before = {path: path.read_bytes() for path in Path().glob("*.parquet") if path.is_file()}
    with pytest.raises(TrueupError, match=f"^out: .*{said}") as found:
        disk.estimate("p?.parquet", out, work_dir="work", gold="known.parquet")
    assert "\n" not in str(found.value)
    assert not Path("work").exists()
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_that_takes_no_files_is_told_of_before_anything_is_read() -> None:
    me = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        here.chmod(0o755)
        (here / "shut").mkdir(mode=0o555)
        source = small(here / "a.csv")
        try:
            if me == 0:
                os.seteuid(65534)  # a superuser may write anywhere
            with pytest.raises(TrueupError, match=r"^out: .*its folder takes no files"):
                disk.estimate(source, here / "shut" / "o.parquet", work_dir=here / "work")
        finally:
            os.seteuid(me)
        assert not (here / "work").exists()


def test_nothing_is_kept_in_a_folder_that_goes(tmp_path: Path) -> None:
    source = small(tmp_path / "a.csv")
    for go in (
        lambda: disk.estimate(source, tmp_path / "o.parquet", keep=True),
        lambda: disk.compare(source, keep=True),
    ):
        with pytest.raises(TrueupError, match=r"^keep: .*work_dir="):
            go()
    told = refusal(*on_disk(source, "--out", "o.parquet", "--keep"))
    assert told.startswith("trueup: --keep: ")
    assert "--work-dir" in told


def test_an_argument_that_is_none_is_named_with_the_function_that_was_called(
    tmp_path: Path,
) -> None:
    source = small(tmp_path / "a.csv")
    with pytest.raises(TypeError, match=r"^estimate\(\) got .*'nonsense'"):
        disk.estimate(source, tmp_path / "o.parquet", nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^compare\(\) got .*'nonsense'"):
        disk.compare(source, nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("engine", "option", "belongs"),
    [
        ("memory", ["--work-dir", "work"], "disk"),
        ("memory", ["--keep"], "disk"),
        ("memory", ["--memory-limit", "2GB"], "disk"),
        ("memory", ["--master", "local"], "spark"),
        ("disk", ["--master", "local"], "spark"),
        ("spark", ["--work-dir", "work"], "disk"),
    ],
)
@pytest.mark.parametrize("command", ["estimate", "compare"])
def test_an_option_of_another_engine_is_refused(
    tmp_path: Path,
    command: str,
    engine: str,
    option: list[str],
    belongs: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    small(Path("a.csv"))
    with pytest.raises(SystemExit) as ended:
        main([command, "a.csv", "--engine", engine, "--out", "o.parquet", *option])
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(f"trueup: {option[0]}: is for --engine {belongs}.")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "on_disk"),
    [("--report=page.html", True), ("--save=s.trueup", False), ("--truth=t.csv", False)],
)
def test_auto_takes_the_disk_unless_the_answers_must_be_in_memory(
    tmp_path: Path,
    option: str,
    on_disk: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    small(Path("a.csv"))
    Path("t.csv").write_text("question,truth\nq1,1\n")
    monkeypatch.setattr("trueup.cli.engine_options.BYTES_AN_ANSWER", 1e15)
    with pytest.raises(SystemExit) as ended:
        main(["estimate", "a.csv", "--method", "mean", "-o", "o.parquet", option])
    error = capsys.readouterr().err
    assert ended.value.code == 0, error
    assert ("would not fit into memory; working on disk" in error) == on_disk
    assert Path("page.html").exists() == on_disk


def test_what_auto_does_not_use_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small(Path("a.csv"))
    command = ["estimate", "a.csv", "--method", "mean"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--memory-limit", "2GB", "--master", "local"])
    assert ended.value.code == 0
    assert capsys.readouterr().err == "".join(
        f"trueup: {option} is for --engine {engine}; not used, as --engine memory does the work\n"
        for option, engine in (("--memory-limit", "disk"), ("--master", "spark"))
    )
    with pytest.raises(SystemExit) as ended:
        main([*command, "--memory-limit=-1GB"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith('trueup: --memory-limit: found "-1GB"')

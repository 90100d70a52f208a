"""The commands on files of answers: what they print, what they write, and how they fail.

Most run inside this process, which is faster. With TRUEUP_SNAPSHOTS=write the texts in tests/snapshots are renewed.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trueup
from trueup.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXTRA = 'needs pip install "trueup[cli]"'
for needed in ("cyclopts", "duckdb", "altair", "vl_convert"):
    pytest.importorskip(needed, reason=EXTRA)
pyarrow = pytest.importorskip("pyarrow", reason=EXTRA)
parquet = pytest.importorskip("pyarrow.parquet", reason=EXTRA)

SNAPSHOTS = Path(__file__).parent / "snapshots"
RENEW = os.environ.get("TRUEUP_SNAPSHOTS") == "write"
SOURCE = str(Path(trueup.__file__).parents[1])
COMMANDS = ("estimate", "compare", "diagnose", "doctor", "simulate", "datasets", "study", "demo")
ON_FILES = ("estimate", "compare", "diagnose", "doctor")
WORKERS = ("ann", "bob", "cat", "dan", "eve", "fay")
N_QUESTIONS = 12
HOSTILE = (
    "<script>alert(1)</script>",
    '=HYPERLINK("x")',
    "\"quoted\" 'single' & </td>",
    "two\nlines\r\nof it",
    "emoji 👩‍👩‍👧 🎉",
    "עברית מימין לשמאל",
    "\u202egnirts desrever",
    "back\\slash\ttab",
    "\x1b[31mred",
    "'; DROP TABLE answers; --",
)
quick = hypothesis.settings(
    max_examples=12,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path) -> Done:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    code = ended.value.code
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def printed(*arguments: str | Path) -> str:
    """Return what a command prints that can be run."""
    done = run(*arguments)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def refusal(*arguments: str | Path, code: int = 1) -> str:
    """Return the one line of a command that cannot be run."""
    done = run(*arguments)
    assert (done.code, done.out) == (code, ""), done
    return one_line(done.err)


def one_line(text: str) -> str:
    assert text.startswith("trueup: "), text
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    assert "unexpected" not in text
    return text


def truth_of(j: int) -> float:
    return (10 if j < N_QUESTIONS // 2 else 40) + (5 * j % 7 - 3) / 2


def rows() -> list[dict[str, Any]]:
    """Answers of people who err more and more; two kinds of questions."""
    return [
        {
            "question": f"q{j + 1}",
            "worker": worker,
            "answer": round(
                truth_of(j) + (1 + i) * ((7 * i * i + 13 * j + 5 * i * j) % 11 - 5) / 4, 2
            ),
            "kind": "low" if j < N_QUESTIONS // 2 else "high",
            "size": 1.5 * j,
        }
        for j in range(N_QUESTIONS)
        for i, worker in enumerate(WORKERS)
        if (i + j) % 5
    ]


def write(path: str, table: Sequence[dict[str, Any]], **options: Any) -> Path:
    encoding = options.pop("encoding", "utf-8")
    with Path(path).open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(table[0]), **options)
        writer.writeheader()
        writer.writerows(table)
    return Path(path)


def truths(count: int = N_QUESTIONS) -> list[dict[str, Any]]:
    return [{"question": f"q{j + 1}", "truth": truth_of(j)} for j in range(count)]


def table(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with answers and truths."""
    monkeypatch.chdir(tmp_path)
    write("answers.csv", rows())
    write("truth.csv", truths())


def estimates(*arguments: str | Path) -> list[float]:
    """Return the estimates that a command prints as JSON."""
    document = json.loads(printed("estimate", *arguments, "--format", "json"))
    return [row["estimate"] for row in document["questions"]]


def expected(**options: Any) -> list[float]:
    found: list[float] = trueup.estimate("answers.csv", **options).estimate.tolist()
    return found


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


# -- help and usage --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    text = printed(command, "--help")
    assert f"Example: trueup {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_base_installation_says_what_every_command_needs(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    if command == "demo":
        assert "12 questions" in printed("demo")
    else:
        assert 'pip install "trueup[cli]"' in refusal(command, "answers.csv", "--sep", ";")


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("compare", "FILE"),
        ("diagnose", "FILE"),
        ("doctor", "FILE"),
        ("doctor answers.csv more.csv", "more.csv"),
        ("estimate answers.csv --wide sideways", "--wide"),
        ("estimate answers.csv --decimal ;", "--decimal"),
        ("estimate answers.csv --format xml", "--format"),
        ("estimate answers.csv --caution much", "--caution"),
        ("estimate answers.csv --seed x", "--seed"),
        ("estimate answers.csv --seed 1.5", "--seed"),
        ("compare answers.csv --seed 2.0", "--seed"),
        ("diagnose answers.csv --resamples 10.5", "--resamples"),
        ("simulate -o s.csv --workers 3.7", "--workers"),
        ("study paper --samples 2.5", "--samples"),
        ("estimate answers.csv --gold", "--gold"),
        ("estimate answers.csv --no-bias", "--no-bias"),
        ("compare answers.csv --format table", "--format"),
        ("diagnose answers.csv --resamples some", "--resamples"),
        ("doctor answers.csv --out x.csv", "--out"),
    ],
)
def test_usage_errors_name_the_culprit(line: str, about: str) -> None:
    assert about in refusal(*line.split(), code=2)


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("estimate answers.csv --method crj", '"crj" is not known. Did you mean "crh"?'),
        ("estimate answers.csv --shrink most", '--shrink: "most" is not known. Known:'),
        ("estimate answers.csv --caution 0", "caution: found 0.0, must be above 0"),
        ("estimate answers.csv --level 95", "level: found 95.0, must be a number between 0 and 1"),
        ("estimate answers.csv --seed -1", "seed: found -1"),
        ("estimate answers.csv --variance -1", "variance: must be finite"),
        ("estimate answers.csv --bounds 5 1", "low below high"),
        ("estimate answers.csv --sep ab", "sep: found"),
        ("estimate answers.csv --encoding klingon", "encoding: found"),
        ("estimate answers.csv --groups knd", 'File "answers.csv": Column "knd": not found'),
        ("estimate answers.csv --groups grups.csv", 'File "grups.csv": not found'),
        ("estimate answers.csv --covariates kind", 'has the "kind" "low", which is not a usable'),
        ("estimate answers.csv --covariates sizes", "Did you mean --covariates size?"),
        ("estimate answers.csv --gold tru.csv", 'Did you mean "truth.csv"'),
        ("estimate answers.csv --truth tru.csv", '--truth: File "tru.csv": not found'),
        ("estimate answers.csv --report page.pdf", "must end in .html or .htm"),
        ("estimate answers.csv --report no/page.html", "there is no folder"),
        ("estimate answers.csv --question task", 'Column "task": not found'),
        ("estimate anwsers.csv", 'File "anwsers.csv": not found. Did you mean "answers.csv"?'),
        ("estimate none/*.csv", "no file matches this pattern"),
        ("compare answers.csv --method crj", '"crj" is not known'),
        ("compare answers.csv -o board.txt", "must end in .csv or .parquet or .json"),
        ("diagnose answers.csv --target-se 0", "--target-se: found 0, must be a number above 0"),
        ("diagnose answers.csv --target-se nan", "--target-se: found nan"),
        ("diagnose answers.csv --resamples -1", "--resamples: found -1, must be 2 or more"),
        ("diagnose answers.csv --workers w.xls", "--workers"),
        ("doctor none.csv", 'File "none.csv": not found'),
        ("doctor .", "is a folder. Name one file in it"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(line: str, about: str) -> None:
    before = files()
    assert about in refusal(*line.split())
    assert files() == before


def test_a_bad_value_is_named_by_file_column_and_line() -> None:
    bad = rows()
    bad[3]["answer"] = "tall"
    write("answers.csv", bad)
    for command in ON_FILES:
        line = refusal(command, "answers.csv")
        for part in ('"answers.csv"', '"answer"', '"tall"', "line 5"):
            assert part in line


# -- what is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("demo", "demo"),
        ("doctor", "doctor answers.csv"),
        ("diagnose", "diagnose answers.csv --target-se 0.5 --resamples 50"),
        ("compare", "compare answers.csv --truth truth.csv"),
        ("estimate", "estimate answers.csv --truth truth.csv -o out.csv --report page.html"),
        ("estimate-more", "estimate answers.csv --groups kind --covariates size --gold gold.csv"),
    ],
)
def test_the_output_is_as_it_was(name: str, line: str) -> None:
    write("gold.csv", truths(9))
    text = printed(*line.split())
    if name == "compare":
        # How long it took is the only thing that differs from time to time.
        text = re.sub(r" +\d+\.\d\d$", " SECONDS", text, flags=re.MULTILINE)
        text = re.sub(r" +seconds$", " seconds", text, flags=re.MULTILINE)
    path = SNAPSHOTS / f"{name}.txt"
    if RENEW:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "TRUEUP_SNAPSHOTS=write renews it"
    assert "/tmp" not in text  # noqa: S108


def test_quiet_prints_nothing() -> None:
    for command in ON_FILES:
        assert printed(command, "answers.csv", "--quiet") == ""


# -- estimate: options -----------------------------------------------------------------------------


def test_json_is_what_the_library_finds() -> None:
    document = json.loads(
        printed("estimate", "answers.csv", "--format", "json", "--truth", "truth.csv")
    )
    est = trueup.estimate("answers.csv")
    assert document["read"] == {
        "rows": len(rows()),
        "dropped": 0,
        "merged": 0,
        "answers": len(rows()),
        "workers": len(WORKERS),
        "questions": N_QUESTIONS,
    }
    assert document["diagnosis"]["method"] == est.diagnosis.method
    assert document["level"] == 0.95
    for name in ("estimate", "lower", "upper", "std_error", "base"):
        assert [row[name] for row in document["questions"]] == getattr(est, name).tolist()
    assert [row["question"] for row in document["questions"]] == est.answers.question_ids.tolist()
    assert [row["worker"] for row in document["workers"]] == list(est.answers.worker_ids.tolist())
    true = np.array([truth_of(j) for j in range(N_QUESTIONS)])
    assert document["against_truth"] == {
        "known": N_QUESTIONS,
        "rmse": pytest.approx(np.sqrt(np.mean((est.estimate - true) ** 2))),
        "rmse_first_step": pytest.approx(np.sqrt(np.mean((est.base - true) ** 2))),
        "inside": pytest.approx(np.mean((est.lower <= true) & (true <= est.upper))),
    }


@pytest.mark.parametrize(
    "content",
    ["x,u,1\n", "x,u,1\nx,v,1\ny,u,1\ny,v,1\n", "x,u,1\ny,v,2\nz,w,\n"],
    ids=["one answer", "all agree", "no overlap"],
)
def test_json_has_null_for_what_is_not_known(content: str) -> None:
    Path("few.csv").write_text(f"question,worker,answer\n{content}", encoding="utf-8")

    def refuse(text: str) -> None:
        pytest.fail(f"{text} is no JSON")

    for options in ([], ["--shrink", "none"], ["--bias"]):
        text = printed("estimate", "few.csv", "--format", "json", *options)
        document = json.loads(text, parse_constant=refuse)
        assert all(isinstance(row["estimate"], float) for row in document["questions"])


def test_options_reach_the_library() -> None:
    assert estimates("answers.csv", "--bias") == expected(bias=True)
    assert estimates("answers.csv", "--caution", "0.3") == expected(caution=0.3)
    assert estimates("answers.csv", "--seed", "5") == expected(seed=5)
    assert estimates("answers.csv", "--variance", "0.5") == expected(variance=0.5)
    assert estimates("answers.csv", "--gold", "truth.csv") == expected(gold="truth.csv")


def test_groups_are_a_column_or_a_file() -> None:
    groups = {f"q{j + 1}": "low" if j < N_QUESTIONS // 2 else "high" for j in range(N_QUESTIONS)}
    write("groups.csv", [{"question": name, "group": each} for name, each in groups.items()])
    wanted = expected(groups=groups)
    assert estimates("answers.csv", "--groups", "kind") == wanted
    assert estimates("answers.csv", "--groups", "groups.csv") == wanted
    assert wanted != expected()
    assert "the mean of their group" in printed("estimate", "answers.csv", "--groups", "kind")


def test_covariates_may_be_given_twice_as_columns_and_files() -> None:
    more = rows()
    for row in more:
        row["true"] = truth_of(int(row["question"][1:]) - 1)
    write("answers.csv", more)
    wanted = expected(covariates=["size", "true"])
    assert wanted != expected()
    assert estimates("answers.csv", "--covariates", "size", "--covariates", "true") == wanted
    write("known.csv", [{"question": each["question"], "true": each["truth"]} for each in truths()])
    assert estimates("answers.csv", "--covariates", "size", "--covariates", "known.csv") == wanted


def test_workers_who_err_together_are_named() -> None:
    draw = np.random.default_rng(1)
    matrix = draw.normal(size=40)[:, None] + draw.normal(size=(40, 8))
    matrix[:, 5] = matrix[:, 2] + draw.normal(size=40) / 10
    answers = [
        {"question": j, "worker": f"w{i}", "answer": matrix[j, i]}
        for j in range(40)
        for i in range(8)
    ]
    write("pair.csv", answers)
    text = printed("estimate", "pair.csv")
    assert "1 pair errs together (w2 and w5): intervals are too narrow" in text
    assert "trueup diagnose FILE shows them" in text
    assert "too narrow" not in printed("estimate", "answers.csv")


def test_truths_are_compared_with_but_not_used() -> None:
    text = printed("estimate", "answers.csv", "--truth", "truth.csv")
    assert "Against 12 known truths: root mean squared error" in text
    assert "of them are inside their 95% interval" in text
    assert estimates("answers.csv", "--truth", "truth.csv") == expected()
    write("truth.csv", truths(1))
    assert "Against 1 known truth: " in printed("estimate", "answers.csv", "--truth", "truth.csv")


@pytest.mark.parametrize("option", ["--truth", "--gold"])
def test_truths_that_are_all_empty_are_refused(option: str) -> None:
    Path("truth.csv").write_text("question,truth\nq1,\n", encoding="utf-8")
    line = refusal("estimate", "answers.csv", option, "truth.csv")
    assert f"{option}: found no truth" in line


def test_too_few_known_truths_are_said() -> None:
    write("gold.csv", truths(7))
    text = printed("estimate", "answers.csv", "--gold", "gold.csv")
    assert "7 known truths: at least 8 are needed" in text
    write("gold.csv", truths(8))
    assert "Compared with 8 known truths" in printed(
        "estimate", "answers.csv", "--gold", "gold.csv"
    )


# -- ways to read ----------------------------------------------------------------------------------


def test_wide_tables() -> None:
    by_question: dict[str, dict[str, Any]] = {}
    by_worker: dict[str, dict[str, Any]] = {}
    for row in rows():
        by_question.setdefault(row["question"], {"question": row["question"]})[row["worker"]] = row[
            "answer"
        ]
        by_worker.setdefault(row["worker"], {"worker": row["worker"]})[row["question"]] = row[
            "answer"
        ]
    wide = [
        {"question": name, **dict.fromkeys(WORKERS), **each} for name, each in by_question.items()
    ]
    write("wide.csv", wide)
    names = [f"q{j + 1}" for j in range(N_QUESTIONS)]
    write(
        "tall.csv",
        [{"worker": w, **dict.fromkeys(names), **by_worker[w]} for w in WORKERS],
    )
    wanted = pytest.approx(expected(), rel=1e-9)
    assert estimates("answers.csv", "--wide", "long") == wanted
    assert estimates("wide.csv", "--wide", "questions") == wanted
    assert estimates("tall.csv", "--wide", "workers") == wanted
    assert 'Column "worker": not found' in refusal("estimate", "wide.csv", "--wide", "long")


def test_how_a_table_was_understood_is_said() -> None:
    Path("plain.csv").write_text("item,a,b\nx,1,2\ny,3,4\n", encoding="utf-8")
    done = run("doctor", "plain.csv")
    assert done.code == (0 if done.out else 1)
    one_line(done.err)


def semicolons(name: str, **options: Any) -> None:
    german = [
        {
            **row,
            "answer": str(row["answer"]).replace(".", ","),
            "size": str(row["size"]).replace(".", ","),
        }
        for row in rows()
    ]
    write(name, german, delimiter=";", **options)


def test_semicolons_and_decimal_commas() -> None:
    semicolons("german.csv")
    how = ("--sep", ";", "--decimal", ",")
    assert estimates("german.csv", *how) == expected()
    assert "decimal comma" in refusal("estimate", "german.csv")
    wanted = expected(groups="kind", covariates="size")
    assert estimates("german.csv", *how, "--groups", "kind", "--covariates", "size") == wanted
    assert 'Column "knd"' in refusal("estimate", "german.csv", *how, "--groups", "knd")


def test_latin_1() -> None:
    old = [{**row, "worker": f"{row['worker']}é", "größe": row["size"]} for row in rows()]
    write("old.csv", old, encoding="latin-1")
    how = ("--encoding", "latin-1")
    assert estimates("old.csv", *how) == pytest.approx(expected(), rel=1e-9)
    assert estimates("old.csv", *how, "--covariates", "größe") == pytest.approx(
        expected(covariates="size"), rel=1e-9
    )
    line = refusal("doctor", "old.csv")
    assert "is not UTF-8 text" in line
    assert "latin-1" in line


GERMAN = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1")


@pytest.mark.parametrize("option", ["--truth", "--gold", "--groups", "--covariates"])
def test_files_beside_the_answers_are_read_like_them_or_plainly(option: str) -> None:
    named = [{**row, "question": f"{row['question']}é"} for row in rows()]
    write("answers.csv", named)
    column = {"--groups": "kind", "--covariates": "size"}.get(option, "truth")
    value = {row["question"]: row.get(column) for row in named}
    beside: list[dict[str, Any]] = [
        {"question": question, column: truth_of(j) if column == "truth" else value[question]}
        for j, question in enumerate(value)
    ]
    german = [{key: str(cell).replace(".", ",") for key, cell in row.items()} for row in beside]
    answers = [{**row, "answer": str(row["answer"]).replace(".", ",")} for row in named]
    write("german.csv", answers, delimiter=";", encoding="latin-1")
    write("like.csv", german, delimiter=";", encoding="latin-1")
    write("plain.csv", beside)
    Path("list.json").write_text(json.dumps(beside), encoding="utf-8")
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in beside)
    Path("lines.jsonl").write_text(lines, encoding="utf-8")
    wanted = printed("estimate", "answers.csv", option, "plain.csv")
    for name in ("like.csv", "plain.csv", "list.json", "lines.jsonl"):
        assert printed("estimate", "german.csv", *GERMAN, option, name) == wanted


def test_how_a_file_beside_the_answers_was_read_is_said() -> None:
    semicolons("german.csv")
    Path("like.csv").write_text("question;truth\nq1;1,5\nq2;tall\n", encoding="utf-8")
    Path("plain.csv").write_text("question,truth\nq1,1.5\nq2,tall\n", encoding="utf-8")
    how = ("--sep", ";", "--decimal", ",", "--truth")
    line = refusal("estimate", "german.csv", *how, "like.csv")
    assert '"tall"' in line
    assert "It was read like the answers (--sep ';', --decimal ,)." in line
    line = refusal("estimate", "german.csv", *how, "plain.csv")
    assert '"tall"' in line
    assert "plainly, since it cannot be read like the answers (--sep ';', --decimal ,)." in line


@pytest.mark.parametrize("name", ["t.json", "t.ndjson", "t.xlsx", "t.jsonl.gz", "t.pq"])
def test_names_of_files_are_no_columns(name: str) -> None:
    for option in ("--truth", "--gold", "--groups", "--covariates"):
        line = refusal("estimate", "answers.csv", option, name)
        assert f'File "{name}": not found' in line


def test_sheets_beside_the_answers() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason='needs pip install "trueup[excel]"')
    book = openpyxl.Workbook()
    for row in ({"question": "question", "truth": "truth"}, *truths()):
        book.active.append(list(row.values()))
    book.save("truth.xlsx")
    wanted = printed("estimate", "answers.csv", "--truth", "truth.csv")
    assert printed("estimate", "answers.csv", "--truth", "truth.xlsx") == wanted


def test_a_pattern_stands_for_files() -> None:
    Path("parts").mkdir()
    write("parts/1.csv", rows()[:30])
    write("parts/2.csv", rows()[30:])
    assert estimates("parts/*.csv") == expected()
    assert estimates("parts/*.csv", "--groups", "kind") == expected(groups="kind")
    assert "is used already" in refusal("estimate", "parts/*.csv", "-o", "parts/2.csv")


@pytest.mark.parametrize("command", ON_FILES)
def test_standard_input(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed() -> None:
        content = io.TextIOWrapper(io.BytesIO(Path("answers.csv").read_bytes()))
        monkeypatch.setattr(sys, "stdin", content)

    typed()
    text = printed(command, "-")
    assert "12 questions" in text or command == "compare"
    if command == "estimate":
        typed()
        assert estimates("-", "--groups", "kind") == expected(groups="kind")


def test_a_query() -> None:
    names = ("question", "worker", "answer", "kind", "size")
    with sqlite3.connect("data.sqlite") as connection:
        connection.execute('CREATE TABLE "a b" (question, worker, answer REAL, kind, size REAL)')
        connection.executemany(
            'INSERT INTO "a b" VALUES (?, ?, ?, ?, ?)',
            [tuple(row[name] for name in names) for row in rows()],
        )
    connection.close()
    before = Path("data.sqlite").read_bytes()
    query = ("--sql", 'SELECT * FROM "a b"')
    # Rows of a query have no order: questions come sorted.
    order = sorted(range(N_QUESTIONS), key=lambda j: f"q{j + 1}")

    def in_order(found: list[float]) -> Any:
        return pytest.approx([found[j] for j in order], rel=1e-9)

    assert estimates("data.sqlite", *query) == in_order(expected())
    more = ("--groups", "kind", "--covariates", "size")
    wanted = in_order(expected(groups="kind", covariates="size"))
    assert estimates("data.sqlite", *query, *more) == wanted
    assert '"a b"' in refusal("doctor", "data.sqlite")
    assert "no such table" in refusal("doctor", "data.sqlite", "--sql", "SELECT * FROM c")
    assert "Only reading" in refusal("doctor", "data.sqlite", "--sql", 'DROP TABLE "a b"')
    assert Path("data.sqlite").read_bytes() == before


# -- what is written -------------------------------------------------------------------------------


def test_the_report_and_the_tables_are_written() -> None:
    before = files()
    outputs = ("-o", "out.csv", "--workers", "workers.parquet", "--report", "page.html")
    text = printed("estimate", "answers.csv", *outputs, "--truth", "truth.csv")
    names = ["out.csv", "workers.parquet", "page.html"]
    assert text.endswith("".join(f"Written: {name}\n" for name in names))
    assert files() == before | set(names)
    assert [float(row["estimate"]) for row in table("out.csv")] == expected()
    assert parquet.read_table("workers.parquet").column("worker").to_pylist() == list(
        trueup.estimate("answers.csv").answers.worker_ids.tolist()
    )
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "Against the known truth" in page


@pytest.mark.parametrize("broken", ["page.html", "workers.json", "out.csv"])
def test_all_is_written_or_nothing(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from trueup.cli import tables

    def full(_: object, path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setitem(tables._WRITERS, Path(broken).suffix, full)
    Path("out.csv").write_text("old", encoding="utf-8")
    before = files()
    outputs = ("-o", "out.csv", "--workers", "workers.json", "--report", "page.html")
    line = refusal("estimate", "answers.csv", *outputs)
    assert f'File "{broken}": no space left on device. Make room' in line
    assert files() == before
    assert Path("out.csv").read_text(encoding="utf-8") == "old"


def test_without_what_draws_charts_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vl_convert", "altair"):
        monkeypatch.setitem(sys.modules, name, None)
    before = files()
    line = refusal("estimate", "answers.csv", "-o", "out.csv", "--report", "page.html")
    assert 'pip install "trueup[report]"' in line
    assert files() == before


@pytest.mark.parametrize("option", ["--truth", "--gold", "--groups", "--covariates"])
def test_no_file_that_is_read_is_overwritten(option: str) -> None:
    before = Path("truth.csv").read_bytes()
    line = refusal("estimate", "answers.csv", option, "truth.csv", "-o", "truth.csv")
    assert '--out: "truth.csv" is used already' in line
    assert Path("truth.csv").read_bytes() == before


def test_devices_and_pipes_are_not_replaced() -> None:
    os.mkfifo("pipe.csv")
    Path("full.csv").symlink_to("/dev/full")
    for name in ("pipe.csv", "full.csv"):
        assert "is no plain file" in refusal("estimate", "answers.csv", "-o", name)
    assert stat.S_ISFIFO(Path("pipe.csv").stat().st_mode)
    assert stat.S_ISCHR(Path("full.csv").stat().st_mode)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.json", "page.html"])
def test_a_disk_that_is_full_leaves_no_half_file(name: str) -> None:
    Path(name).write_text("old", encoding="utf-8")
    before = files()
    option = "--report" if name.endswith("html") else "-o"
    arguments = ("estimate", "answers.csv", "--method", "mean", option, name)
    with small_files(512):
        line = refusal(*arguments)
    assert f'File "{name}": file too large' in line
    assert files() == before
    assert Path(name).read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_printed_is_one_line() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "trueup", "doctor", "answers.csv"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
    assert done.returncode == 1
    assert "o space left on device" in one_line(done.stderr)


def test_the_board_is_what_the_library_finds() -> None:
    found = trueup.compare("answers.csv", ["mean", "crh"], "truth.csv")
    methods = ("--method", "mean", "--method", "crh", "--truth", "truth.csv")
    board = json.loads(printed("compare", "answers.csv", *methods, "--format", "json"))
    for name in ("method", "shrink", "held_out", "behind", "risk"):
        column = list(found[name]) if isinstance(found, dict) else found[name].tolist()
        assert [row[name] for row in board] == column
    printed("compare", "answers.csv", *methods, "-o", "board.csv")
    assert [row["method"] for row in table("board.csv")] == [row["method"] for row in board]


def test_the_board_with_a_single_truth() -> None:
    write("truth.csv", truths(1))
    arguments = ("compare", "answers.csv", "--truth", "truth.csv", "--method", "mean")
    board = json.loads(printed(*arguments, "--format", "json"))
    assert {row["risk_se"] for row in board} == {None}
    text = printed(*arguments, "-o", "board.csv")
    assert "nan" not in text
    assert "1 of the others is " in text or "others" not in text
    assert {row["risk_se"] for row in table("board.csv")} == {""}


@pytest.mark.parametrize("content", ["", "x,u,1\n"], ids=["answers", "one answer"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_the_tables_of_a_diagnosis(content: str, ending: str) -> None:
    if content:
        Path("answers.csv").write_text(f"question,worker,answer\n{content}", encoding="utf-8")
    outputs = ("--workers", f"workers.{ending}", "--pairs", f"pairs.{ending}")
    text = printed("diagnose", "answers.csv", "--resamples", "0", *outputs)
    assert text.endswith(f"Written: workers.{ending}\nWritten: pairs.{ending}\n")
    if ending == "csv":
        assert len(table("workers.csv")) == (1 if content else len(WORKERS))
        assert Path("pairs.csv").read_text(encoding="utf-8").startswith("worker")


# -- odd names -------------------------------------------------------------------------------------


def hostile() -> list[dict[str, Any]]:
    return [
        {"question": question, "worker": worker, "answer": 10 * j + (i * j + i) % 5}
        for j, question in enumerate(HOSTILE)
        for i, worker in enumerate(HOSTILE)
        if (i + j) % 4
    ]


def test_hostile_ids_come_back_byte_for_byte() -> None:
    write("answers.csv", hostile())
    printed("estimate", "answers.csv", "-o", "out.parquet", "--workers", "workers.json")
    names = parquet.read_table("out.parquet").column("question").to_pylist()
    assert names == list(HOSTILE)
    written = json.loads(Path("workers.json").read_text(encoding="utf-8"))["workers"]
    assert {row["worker"] for row in written} == set(HOSTILE)
    document = json.loads(printed("estimate", "answers.csv", "--format", "json"))
    assert [row["question"] for row in document["questions"]] == list(HOSTILE)


def test_hostile_ids_are_harmless_in_a_spreadsheet_and_a_report() -> None:
    write("answers.csv", hostile())
    printed("estimate", "answers.csv", "-o", "out.csv", "--report", "page.html")
    names = [row["question"] for row in table("out.csv")]
    assert names == [f"'{name}" if name.startswith("=") else name for name in HOSTILE]
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert '</td>"' not in page
    assert "<script>alert(1)</script>" in unescape(page)


def test_hostile_ids_cannot_touch_the_terminal() -> None:
    write("answers.csv", hostile())
    for command in ON_FILES:
        text = printed(command, "answers.csv")
        assert all(each.isprintable() for each in text.splitlines()), command
    one = [{**row, "answer": "\x1b[31m\nno"} for row in hostile()]
    write("answers.csv", one)
    assert refusal("estimate", "answers.csv").strip().isprintable()


def test_a_quote_at_the_end_of_an_id_is_shown() -> None:
    Path("answers.csv").write_text(
        'question,worker,answer\n"12""",u,1\n"12""",v,2\n', encoding="utf-8"
    )
    assert r"  12\"  " in printed("estimate", "answers.csv")


# -- broken files ----------------------------------------------------------------------------------


def ends_well(command: str, path: str) -> Done:
    """Run a command on whatever it is: it can be done, or one line says why not."""
    done = run(command, path)
    assert done.code in (0, 1)
    if done.code:
        assert done.out == ""
        one_line(done.err)
    else:
        assert done.out
        assert all(line.startswith("trueup: ") for line in done.err.splitlines())
    return done


def parquet_bytes() -> bytes:
    columns = {name: [row[name] for row in rows()] for name in rows()[0]}
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


HEADER = b"question,worker,answer\n"
BROKEN = {
    "header.csv": HEADER,
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "nul.csv": HEADER + b"q\0,u,1\nq,v,2\n",
    "all-nul.csv": b"\0" * 1000,
    "quote.csv": HEADER + b'"q,u,1\nq,v,2\n',
    "short.csv": HEADER + b"q,u\n",
    "long.csv": HEADER + b"q,u,1,2,3\n",
    "utf-16.csv": (HEADER + b"q,u,1\n").decode().encode("utf-16"),
    "latin.csv": HEADER + b"q\xe9,u,1\n",
    "infinite.csv": HEADER + b"q,u,inf\nq,v,1\n",
    "huge.csv": HEADER + b"q,u,1e300\nq,v,-1e300\n",
    "half.csv.gz": gzip.compress(HEADER + b"q,u,1\n" * 1000, mtime=0)[:30],
    "none.csv.gz": b"not packed",
    "bad.json": b'{"question": ',
    "list.json": b"[1, 2, 3]",
    "bad.xlsx": b"PK\x03\x04 and nothing",
    "empty.parquet": b"",
    "text.parquet": b"question,worker,answer",
    "old.xls": b"\xd0\xcf\x11\xe0",
    "thing": b"question,worker,answer\nq,u,1\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_explained(name: str) -> None:
    Path(name).write_bytes(BROKEN[name])
    for command in ON_FILES:
        done = ends_well(command, name)
        if done.code:
            assert f'"{name}"' in done.err or command == "compare"
    if name != "utf-16.csv":
        assert run("doctor", name).code == 1


def test_a_byte_order_mark_and_quotes_are_no_error() -> None:
    text = '"question","worker","answer"\n"q, 1","u","1.5"\n"q, 1","v","2"\n'
    Path("marked.csv").write_text(text, encoding="utf-8-sig")
    printed("estimate", "marked.csv", "-o", "out.csv", "--quiet")
    assert [row["question"] for row in table("out.csv")] == ["q, 1"]


def test_ten_thousand_columns() -> None:
    names = ",".join(f"c{n}" for n in range(10_000))
    Path("many.csv").write_text(f"{names}\n{names}\n", encoding="utf-8")
    line = refusal("doctor", "many.csv")
    assert len(line) < 2000
    numbers = ",".join("1" for _ in range(10_000))
    Path("wide.csv").write_text(f"question,{names}\nx,{numbers}\ny,{numbers}\n", encoding="utf-8")
    assert "10,000 workers" in printed("doctor", "wide.csv", "--wide", "questions")


def test_a_file_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "secret.csv"
        path.write_text(Path("answers.csv").read_text(encoding="utf-8"), encoding="utf-8")
        path.chmod(0)
        printed("doctor", "answers.csv")  # everything is loaded
        with somebody_else():
            for command in ON_FILES:
                line = refusal(command, path)
                assert "secret.csv" in line
                assert "permission" in line


@contextmanager
def somebody_else() -> Iterator[None]:
    """Give up the right to read everything, if there is one."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@quick
@hypothesis.given(
    content=st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=80).map(lambda tail: HEADER + tail),
        st.lists(
            st.tuples(
                st.text(max_size=3),
                st.sampled_from(["u", "v", "w", ""]),
                st.one_of(st.floats().map(str), st.integers().map(str), st.sampled_from(["", "x"])),
            ),
            max_size=12,
        ).map(
            lambda found: (
                HEADER + "".join(f"{','.join(each)}\n" for each in found).encode("utf-8", "replace")
            )
        ),
    ),
    ending=st.sampled_from([".csv", ".tsv", ".csv.gz", ".json", ".parquet", ".xlsx"]),
    command=st.sampled_from(ON_FILES),
)
def test_any_bytes_end_well(content: bytes, ending: str, command: str) -> None:
    Path(f"any{ending}").write_bytes(content)
    ends_well(command, f"any{ending}")


@quick
@hypothesis.given(
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    length=st.floats(0, 1),
    kind=st.sampled_from(["csv", "parquet"]),
    command=st.sampled_from(ON_FILES),
)
def test_damaged_files_end_well(
    changes: list[tuple[float, int]], length: float, kind: str, command: str
) -> None:
    content = bytearray(parquet_bytes() if kind == "parquet" else Path("answers.csv").read_bytes())
    for place, byte in changes:
        content[int(place * (len(content) - 1))] = byte
    keep = len(content) if length > 0.5 else int(2 * length * len(content))
    Path(f"damaged.{kind}").write_bytes(content[:keep])
    ends_well(command, f"damaged.{kind}")


# -- interrupts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_file() -> str:
    """Answers that take seconds to be estimated from."""
    n = 600_000
    lines = (f"{i // 5},{i % 5 * 7 + i // 5 % 7},{i * 37 % 101}\n" for i in range(n))
    return "question,worker,answer\n" + "".join(lines)


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start a program that heeds interrupts, also where these tests run in the background and do not."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, *arguments],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


# While the file is read, pandas is imported by pyarrow, workers are judged in threads.
@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.35, 0.5, 0.6, 0.9, 1.2])
def test_an_interrupt_while_estimating_ends_with_130(long_file: str, seconds: float) -> None:
    os.mkfifo("pipe.csv")
    before = files()
    with started("-m", "trueup", "estimate", "pipe.csv", "-o", "out.csv") as process:
        with Path("pipe.csv").open("w", encoding="utf-8") as file:  # waits until it is read
            file.write(long_file)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "trueup: interrupted\n")
    assert files() == before


SWALLOWED = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
"""
IN_A_FINALIZER = """
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
Last()
"""
IN_A_TEXT = "exec('signal.raise_signal(signal.SIGINT)')"
WHILE_CLEANING_UP = """
try:
    signal.raise_signal(signal.SIGINT)
finally:
    time.sleep(0.5)
    signal.raise_signal(signal.SIGINT)
    print("removed", flush=True)
"""
AS_ANOTHER = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    raise RuntimeError("query interrupted") from None
"""


# DuckDB ends the process when an exception is raised while it is imported, and pyarrow drops that of pandas.
IN_AN_IMPORT = """
import pathlib
pathlib.Path("slow.py").write_text("import signal; signal.raise_signal(signal.SIGINT); print('imported', flush=True)")
sys.path.insert(0, ".")
import slow
"""


@pytest.mark.parametrize(
    ("work", "out"),
    [
        (IN_AN_IMPORT, "imported\n"),
        (SWALLOWED, ""),
        (IN_A_FINALIZER, ""),
        (IN_A_TEXT, ""),
        (AS_ANOTHER, ""),
        (WHILE_CLEANING_UP, "removed\n"),
    ],
)
def test_no_interrupt_is_lost(work: str, out: str) -> None:
    content = "".join(f"    {line}\n" for line in work.splitlines())
    program = (
        "import signal, sys, time\nfrom trueup.cli.outcome import exit_code\n"
        f"def work():\n{content}    time.sleep(60)\nsys.exit(exit_code(work, last=True))"
    )
    with started("-c", program) as process:
        said = process.communicate(timeout=30)
    assert (process.returncode, *said) == (130, out, "trueup: interrupted\n")


def test_an_interrupt_after_the_end_changes_nothing() -> None:
    program = (
        "import signal, sys\nfrom trueup.cli.outcome import exit_code\n"
        "code = exit_code(lambda: print('done'), last=True)\n"
        "signal.raise_signal(signal.SIGINT)\nsys.exit(code)"
    )
    with started("-c", program) as process:
        said = process.communicate(timeout=30)
    assert (process.returncode, *said) == (0, "done\n", "")

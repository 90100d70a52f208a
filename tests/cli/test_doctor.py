"""trueup doctor says what is wrong with a file, does not die of it, and the command it ends with works."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from commands import need_cli, refusal, run, table

need_cli()
pytest.importorskip("openpyxl")
pq = pytest.importorskip("pyarrow.parquet")

QUESTIONS, JUDGES = [f"q{i}" for i in range(8)], ("ann", "bob", "cat", "dan")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def height(i: int, k: int) -> int:
    return 900 + 40 * i + (7 * i + 5 * k) % 9


def text(form: str = "{}", sep: str = ",", head: str = "question,worker,answer") -> str:
    """Return a file with answers written in some form."""
    rows = [
        sep.join([q, w, form.format(height(i, k))])
        for i, q in enumerate(QUESTIONS)
        for k, w in enumerate(JUDGES)
    ]
    return "\n".join([head.replace(",", sep), *rows, ""])


def healed(content: str | bytes, name: str = "answers.csv") -> tuple[str, list[str]]:
    """Return what doctor prints, and the commands it ends with, each of which was run."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    done = run("doctor", name)
    assert (done.code, done.err) == (0, ""), done
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("  trueup ")]
    for command in commands:
        out = Path("truths.csv")
        out.unlink(missing_ok=True)
        ran = run(*shlex.split(command)[1:])
        assert (ran.code, ran.err) == (0, ""), (command, ran)
        assert out.exists()
    return done.out, commands


def command(options: str = "") -> str:
    return f"trueup estimate answers.csv {options} -o truths.csv".replace("  ", " ")


MODELS = "question,worker,model,answer\n" + "".join(
    f"{q},{w},{m},{i}\n" for i, q in enumerate(QUESTIONS) for w in JUDGES for m in "abc"
)


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (text(), "", "answers from 900 to 1185"),
        (text("{} cm"), "--strip-units", '32 have a unit ("900 cm")'),
        (text("{},5", ";"), "--decimal ,", "32 have a decimal comma"),
        (text() + "q0,eve,abc\nq1,eve,5'8\n", "--skip-bad", "set aside: text (1), feet and inches (1)"),
        (text("{} cm") + "q0,eve,tall\n", "--strip-units --skip-bad", "set aside: text (1)"),
        (text() + "q0,,5\n,ann,6\n", "--skip-bad", "no question (1)"),
        (text() + "q0,ann,950\n", "--duplicates mean", "1 answer repeats a worker"),
        (text() + "q9,ann,\nq9,bob,-\n", "", "1 question without any answer has no estimate"),
        ("My study\n\n" + text(), "--skip-lines 2", '"My study", does not name the columns'),
        ("sep=;\n" + text(sep=";"), "", "32 answers from 4 workers to 8 questions"),
        (text().replace("\n", "\r"), "", "32 answers from 4 workers to 8 questions"),
        (text().replace("ann", "Zoë").encode("latin-1"), "--encoding latin-1", "is not UTF-8 text"),
        (text(head="question,worker,answr"), "--answer answr", "not found"),
        (
            "question,ann,bob,cat\n" + "".join(f"{q},{i} cm,{i + 1} cm,{i + 2} cm\n" for i, q in enumerate(QUESTIONS)),
            "--strip-units",
            "24 answers from 3 workers to 8 questions",
        ),
    ],
)  # fmt: skip
def test_it_ends_with_a_command_that_works(content: str | bytes, options: str, says: str) -> None:
    printed, commands = healed(content)
    assert says in printed
    assert commands == [command(options)]
    assert printed.rstrip().endswith(commands[0])


def test_what_may_be_meant_in_two_ways_gets_two_commands() -> None:
    rows = [
        f'{q},{w},"{height(i, k):,}"\n'
        for i, q in enumerate(QUESTIONS)
        for k, w in enumerate(JUDGES)
    ]
    printed, commands = healed("question,worker,answer\n" + "".join(rows))
    assert commands == [command("--thousands ,"), command("--decimal ,")]
    assert "from 900 to 1185" in printed
    assert "the former is likely" in printed


def test_models_are_not_mixed_unsaid() -> None:
    printed, commands = healed(MODELS)
    assert 'They differ in column "model"' in printed
    assert "--question question,model" in printed
    assert commands[-1] == command("--duplicates mean-all")


def test_extremes_are_shown_with_who_said_them() -> None:
    printed, _ = healed(text() + "q3,eve,99999\nq4,eve,-7\n")
    assert 'largest: 99999 ("eve" on "q3")' in printed
    assert 'smallest: -7 ("eve" on "q4")' in printed


def test_sheets() -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["about this file"])
    sheet = book.create_sheet("data")
    for line in text().split():
        sheet.append([int(each) if each.isdigit() else each for each in line.split(",")])
    book.save("a.xlsx")
    printed, commands = healed(Path("a.xlsx").read_bytes(), "a.xlsx")
    assert "holds 2 sheets" in printed
    assert commands == ["trueup estimate a.xlsx --sheet data -o truths.csv"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("question,worker,answer\nq,w,\n", "no answers, all 1 values are missing"),
        (text("{} km").replace("900 km", "900 m"), "convert all to one"),
        (text("n{}"), "32 of 32 values are not numbers"),
        ("a,b\n1,2\n", "not found"),
    ],
)
def test_what_nothing_can_be_run_on_ends_with_1(content: str, says: str) -> None:
    Path("answers.csv").write_text(content)
    assert says in refusal("doctor", "answers.csv")


def test_rows_set_aside_go_to_a_file() -> None:
    Path("answers.csv").write_text(text() + "q0,eve,abc\nq1,eve,5000\n")
    asked = ("estimate", "answers.csv", "--skip-bad", "--valid", "0", "2000")
    done = run(*asked, "--rejects", "bad.csv", "-o", "truths.csv")
    assert done.code == 0, done
    assert "2 of 34 rows set aside: text (1), outside 0 to 2000 (1)" in done.out
    assert table("bad.csv") == [
        {"row": "32", "place": "line 34", "question": "q0", "worker": "eve", "answer": "abc", "why": "text"},
        {
            "row": "33", "place": "line 35", "question": "q1", "worker": "eve", "answer": "5000",
            "why": "outside 0 to 2000",
        },
    ]  # fmt: skip
    said = refusal("estimate", "answers.csv", "--rejects", "b.csv")
    assert "--skip-bad to set them aside" in said
    Path("plain.csv").write_text(text())
    said = refusal("estimate", "plain.csv", "--rejects", "b.csv", "-o", "t.csv")
    assert "only with --skip-bad" in said
    assert not Path("b.csv").exists()
    assert not Path("t.csv").exists()
    assert "--engine disk" in refusal(
        *asked, "--rejects", "b.csv", "--engine", "disk", "-o", "t.parquet"
    )
    error = refusal("estimate", "answers.csv", "--valid", "0", "2000")
    assert "--skip-bad" in error


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (text("{} cm"), ["--strip-units"]),
        (text("{},5", ";"), ["--decimal", ","]),
        ("question;worker;answer\nq;a;1.234,5\nq;b;2\nr;a;3\n", ["--thousands", "."]),
        (text() + "q0,eve,abc\nq1,eve,5000\n", ["--skip-bad", "--valid", "0", "2000"]),
        ("My study\n\n" + text(), ["--skip-lines", "2"]),
    ],
)
def test_on_disk_the_same_options_give_the_same_numbers(content: str, options: list[str]) -> None:
    Path("answers.csv").write_text(content)
    outs = []
    for engine in ("memory", "disk"):
        done = run(
            "estimate", "answers.csv", *options, "--engine", engine, "-o", f"{engine}.parquet"
        )
        assert done.code == 0, done
        rows = pq.read_table(f"{engine}.parquet").to_pylist()
        outs.append({row["question"]: pytest.approx(row["estimate"]) for row in rows})
    assert outs[0].keys() == outs[1].keys()
    assert all(outs[1][name] == outs[0][name].expected for name in outs[0])


def test_on_disk_the_same_faults_stop() -> None:
    Path("units.csv").write_text(text("{} km").replace("900 km", "900 m"))
    asked = ("--engine", "disk", "-o", "t.parquet")
    assert "holds several units" in refusal("estimate", "units.csv", "--strip-units", *asked)
    Path("models.csv").write_text(MODELS)
    line = refusal("estimate", "models.csv", "--duplicates", "mean", *asked)
    assert 'They differ in column "model"' in line
    Path("some.csv").write_text(text() + 'q0,eve,"1,5"\n')
    assert "--decimal ','." in refusal("estimate", "some.csv", *asked)
    Path("high.csv").write_text(text())
    assert "is outside 0 to 1000" in refusal("estimate", "high.csv", "--valid", "0", "1000", *asked)

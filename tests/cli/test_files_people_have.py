"""Small files as people have them: each is read right, or refused with advice that works when it is followed.

Every file holds answers whose plain means are known. A command on it either ends with these means, or with an error
whose message names the options that a person would add; with these added it must end with the means. Ending well with
other numbers is the one thing that must never happen.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import need_cli, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

need_cli()

MEANS = ("--method", "mean", "--shrink", "none", "--transform", "none")
#: Most times that a person is sent back.
PATIENCE = 3


@dataclass(frozen=True)
class PeoplesFile:
    """A file as somebody has it.

    Attributes
    ----------
    name
        Name of the file.
    content
        Its bytes.
    means
        The plain mean of each question, by its id as text.
    knows
        Options that its owner would understand and could add, if a message names them.
    asks
        Whether somebody must decide: the file alone does not say which reading is right.
    """

    name: str
    content: bytes
    means: Mapping[str, float]
    knows: Sequence[Sequence[str]] = ()
    asks: bool = field(default=False)


def text(rows: Sequence[Sequence[Any]], sep: str = ",", end: str = "\n") -> str:
    """Return rows as delimited text, quoted where needed."""
    file = io.StringIO()
    csv.writer(file, delimiter=sep, lineterminator=end).writerows(rows)
    return file.getvalue()


def table(rows: Sequence[Sequence[Any]], sep: str = ",", end: str = "\n") -> bytes:
    """Return rows as delimited text in UTF-8."""
    return text(rows, sep, end).encode()


def lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """Return sheets as an .xlsx file."""
    openpyxl = pytest.importorskip("openpyxl", reason='needs pip install "trueup[excel]"')
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def task_market() -> PeoplesFile:
    head: list[Any] = ["HITId", "WorkerId", "WorkTimeInSeconds", "Input.image_url", "Answer.height"]
    rows: list[list[Any]] = [
        ["3ABC", "A1X", 31, "photo-1.jpg", "172 cm"],
        ["3ABC", "A2Y", 12, "photo-1.jpg", "168 cm"],
        ["3ABC", "A3Z", 55, "photo-1.jpg", "170cm"],
        ["3DEF", "A1X", 20, "photo-2.jpg", "181 cm"],
        ["3DEF", "A2Y", 18, "photo-2.jpg", "179"],
        ["3DEF", "A3Z", 40, "photo-2.jpg", "186 cm"],
    ]
    return PeoplesFile(
        "Batch_4711_results.csv",
        table([head, *rows]),
        {"photo-1.jpg": 170, "photo-2.jpg": 182},
        (["--question", "Input.image_url"], ["--strip-units"]),
        asks=True,
    )


def usual_names() -> PeoplesFile:
    rows: list[list[Any]] = [
        ["Item ID", "Rater", "Score"],
        ["a", "r1", 3],
        ["a", "r2", 5],
        ["b", "r1", 1],
    ]
    return PeoplesFile("scores.csv", table([*rows, ["b", "r2", 2]]), {"a": 4, "b": 1.5})


def unusual_names() -> PeoplesFile:
    rows = [(1, 11, 60), (1, 12, 70), (2, 11, 80), (2, 13, 90), (3, 12, 50), (3, 13, 52)]
    return PeoplesFile(
        "players.csv",
        table([("player", "scout", "mark"), *rows]),
        {"1": 65, "2": 85, "3": 51},
        (["--question", "player"], ["--worker", "scout"], ["--answer", "mark"]),
        asks=True,
    )


def one_strange_name() -> PeoplesFile:
    rows = [("item", "rater", "points"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    return PeoplesFile(
        "points.csv",
        table([*rows, ("b", "r2", 2)]),
        {"a": 4, "b": 1.5},
        (["--answer", "points"],),
    )


def european() -> PeoplesFile:
    rows = [("Aufgabe", "Teilnehmer", "Schätzung"), ("x", "u1", "3,5"), ("x", "u2", "4,25")]
    return PeoplesFile(
        "schätzungen.csv",
        table([*rows, ("y", "u1", "10,0"), ("y", "u2", "11")], ";", "\r\n"),
        {"x": 3.875, "y": 10.5},
        (
            ["--question", "Aufgabe"],
            ["--worker", "Teilnehmer"],
            ["--answer", "'Schätzung'"],
            ["--decimal", "','"],
        ),
    )


def thousands() -> PeoplesFile:
    rows = [("item", "rater", "estimate"), ("a", "r1", "1,031"), ("a", "r2", "950")]
    return PeoplesFile(
        "calories.csv",
        table([*rows, ("b", "r1", "12,500"), ("b", "r2", "11,000")]),
        {"a": 990.5, "b": 11750},
        (["--thousands", "','"],),
        asks=True,
    )


def thousands_in_millions() -> PeoplesFile:
    rows = [("city", "worker", "answer"), ("a", "r1", "1,031,000"), ("a", "r2", "950,000")]
    return PeoplesFile(
        "populations.csv",
        table([*rows, ("b", "r1", "12,500"), ("b", "r2", "11,000")]),
        {"a": 990500, "b": 11750},
        (["--question", "city"], ["--thousands", "','"]),
    )


def european_thousands() -> PeoplesFile:
    rows = [("item", "rater", "estimate"), ("a", "r1", "1.234,5"), ("a", "r2", "1.200,5")]
    return PeoplesFile(
        "preise.csv",
        table([*rows, ("b", "r1", "950,0"), ("b", "r2", "1.050,0")], ";"),
        {"a": 1217.5, "b": 1000},
        (["--decimal", "','"], ["--thousands", "'.'"]),
    )


def money() -> PeoplesFile:
    rows = [("item", "rater", "estimate"), ("a", "r1", "$3.50"), ("a", "r2", "$4.50")]
    return PeoplesFile(
        "prices.csv",
        table([*rows, ("b", "r1", "$10"), ("b", "r2", "$ 12.00")]),
        {"a": 4, "b": 11},
        (["--strip-units"],),
    )


def percent() -> PeoplesFile:
    rows = [("question_id", "forecaster", "prediction"), ("rain", "f1", "45 %")]
    return PeoplesFile(
        "forecasts.csv",
        table([*rows, ("rain", "f2", "55%"), ("snow", "f1", "5 %"), ("snow", "f2", "7.5%")]),
        {"rain": 50, "snow": 6.25},
        (["--strip-units"],),
    )


def title_lines() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    return PeoplesFile(
        "export.csv",
        b"Video study, round 2\nExported 2024-05-01 by K. Jones\n\n"
        + table([*rows, ("b", "r2", 2)]),
        {"a": 4, "b": 1.5},
        (["--skip-lines", "3"], ["--skip-lines", "2"]),
    )


def separator_line() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    return PeoplesFile(
        "sheet.csv", b"sep=;\r\n" + table([*rows, ("b", "r2", 2)], ";", "\r\n"), {"a": 4, "b": 1.5}
    )


def old_macintosh() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    return PeoplesFile("mac.csv", table([*rows, ("b", "r2", 2)], end="\r"), {"a": 4, "b": 1.5})


def unicode_text() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("ä", "r1", 3), ("ä", "r2", 5), ("b", "r1", 1)]
    content = text([*rows, ("b", "r2", 2)], "\t", "\r\n").encode("utf-16")
    return PeoplesFile("unicode.txt", content, {"ä": 4, "b": 1.5})


def latin_1() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("Müll", "r1", 3), ("Müll", "r2", 5), ("b", "r1", 1)]
    content = text([*rows, ("b", "r2", 2)], ";").encode("latin-1")
    return PeoplesFile("umlaute.csv", content, {"Müll": 4, "b": 1.5}, (["--encoding", "latin-1"],))


def byte_order_mark() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    content = text([*rows, ("b", "r2", 2)], end="\r\n").encode("utf-8-sig")
    return PeoplesFile("excel.csv", content, {"a": 4, "b": 1.5})


def not_available() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", "N/A"), ("a", "r3", 5)]
    more = [("b", "r1", "n/a"), ("b", "r2", 1), ("b", "r3", "")]
    return PeoplesFile("missing.csv", table([*rows, *more]), {"a": 4, "b": 1})


def words() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", "no idea"), ("a", "r3", 5)]
    more = [("b", "r1", "?"), ("b", "r2", 1), ("b", "r3", "about 4")]
    return PeoplesFile("words.csv", table([*rows, *more]), {"a": 4, "b": 1}, (["--skip-bad"],))


def people_in_columns() -> PeoplesFile:
    rows = [("Clip", "Anna", "Ben", "Carla"), ("intro", 4, 5, 3), ("crowd", 2, "", 1)]
    return PeoplesFile(
        "panel.csv", table([*rows, ("night", 3, 3, 3)]), {"intro": 4, "crowd": 1.5, "night": 3}
    )


def numbered_clips() -> PeoplesFile:
    rows = [("clip", *(f"r{i}" for i in range(1, 8))), (1, 4, 5, 3, 4, 4, 5, 3)]
    return PeoplesFile(
        "numbered.csv",
        table([*rows, (2, 1, 2, 1, 2, 1, 2, 5), (3, *[3] * 7)]),
        {"1": 4, "2": 2, "3": 3},
    )


def questionnaire() -> PeoplesFile:
    rows = [("Participant", "q1", "q2", "q3", "q4"), ("P-1", 1, 2, 3, 4), ("P-2", 3, 4, 5, 8)]
    return PeoplesFile(
        "questionnaire.csv",
        table([*rows, ("P-3", 2, 3, "", 6)]),
        {"q1": 2, "q2": 3, "q3": 4, "q4": 6},
        (["--wide", "workers"],),
    )


def empty_question() -> PeoplesFile:
    rows = [("Clip", "Anna", "Ben", "Carla"), ("intro", 4, 5, 3), ("lost", "", "", "")]
    return PeoplesFile("gaps.csv", table([*rows, ("night", 3, 3, 3)]), {"intro": 4, "night": 3})


def judges() -> PeoplesFile:
    rows = [
        {"sample_id": sample, "model": model, "judge": judge, "score": score + add}
        for sample, score in (("s1", 3), ("s2", 6))
        for model, add in (("m1", 0), ("m2", 1), ("m3", 2))
        for judge in ("j1", "j2")
    ]
    means = {
        f"{s}/{m}": v + a
        for s, v in (("s1", 3), ("s2", 6))
        for m, a in (("m1", 0), ("m2", 1), ("m3", 2))
    }
    return PeoplesFile(
        "judges.jsonl",
        lines(rows),
        means,
        (["--question", "sample_id,model"], ["--duplicates", "mean"]),
        asks=True,
    )


def runs() -> PeoplesFile:
    rows = [
        {"sample_id": sample, "judge": judge, "run": run_number, "score": score + run_number}
        for sample, score in (("s1", 3), ("s2", 6))
        for judge in ("j1", "j2")
        for run_number in (1, 2, 3)
    ]
    return PeoplesFile(
        "runs.jsonl", lines(rows), {"s1": 5, "s2": 8}, (["--duplicates", "mean"],), asks=True
    )


def answered_twice() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 2), ("a", "r1", 4), ("a", "r2", 5)]
    return PeoplesFile(
        "twice.csv",
        table([*rows, ("b", "r1", 1), ("b", "r2", 2)]),
        {"a": 4, "b": 1.5},
        (["--duplicates", "mean"],),
        asks=True,
    )


def sheets() -> PeoplesFile:
    rows = [("item", "rater", "score"), ("a", "r1", 3), ("a", "r2", 5), ("b", "r1", 1)]
    notes = [("About",), ("Scores from 1 to 5",)]
    return PeoplesFile(
        "study.xlsx",
        workbook({"Read me": notes, "Scores": [*rows, ("b", "r2", 2)]}),
        {"a": 4, "b": 1.5},
        (["--sheet", "Scores"],),
        asks=True,
    )


def spreadsheet() -> PeoplesFile:
    rows = [("Video", "Anna", "Ben", "Carla"), ("intro", 4, 5, 3), ("crowd", 2, None, 1)]
    return PeoplesFile(
        "videos.xlsx",
        workbook({"Sheet1": [*rows, ("night", 3, 3, 3)]}),
        {"intro": 4, "crowd": 1.5, "night": 3},
    )


def spaces_in_numbers() -> PeoplesFile:
    rows = [("item", "rater", "estimate"), ("a", "r1", "1 031"), ("a", "r2", "950")]
    return PeoplesFile(
        "spaces.csv",
        table([*rows, ("b", "r1", "12 500"), ("b", "r2", "11 000")], ";"),
        {"a": 990.5, "b": 11750},
        (["--thousands", "' '"],),
    )


def packed() -> PeoplesFile:
    rows = [("task", "worker", "label"), ("007", "w1", 3), ("007", "w2", 5), ("7", "w1", 1)]
    return PeoplesFile(
        "tasks.csv.gz", gzip.compress(table([*rows, ("7", "w2", 2)])), {"007": 4, "7": 1.5}
    )


def empty_edges() -> PeoplesFile:
    rows = [("item", "rater", "score", "", ""), ("a", "r1", 3, "", ""), ("a", "r2", 5, "", "")]
    return PeoplesFile(
        "edges.csv",
        table([*rows, ("b", "r1", 1, "", ""), ("b", "r2", 2, "", ""), ("", "", "", "", "")]),
        {"a": 4, "b": 1.5},
    )


def out_of_range() -> PeoplesFile:
    rows = [
        ("item", "rater", "score"),
        ("a", "r1", "3 pts"),
        ("a", "r2", "5 pts"),
        ("b", "r1", "none"),
    ]
    return PeoplesFile(
        "points_and_words.csv",
        table([*rows, ("b", "r2", "2 pts"), ("b", "r3", "1 pts")]),
        {"a": 4, "b": 1.5},
        (["--strip-units"], ["--skip-bad"]),
    )


def three_headers() -> PeoplesFile:
    head = [
        ("ResponseId", "Q1", "Q2", "Q3"),
        ("Response ID", "How tall is A?", "How tall is B?", "How tall is C?"),
        (
            '{"ImportId":"_recordId"}',
            '{"ImportId":"QID1"}',
            '{"ImportId":"QID2"}',
            '{"ImportId":"QID3"}',
        ),
    ]
    rows = [("R_1", 170, 180, 160), ("R_2", 172, 184, 163), ("R_3", 174, 182, 160)]
    return PeoplesFile(
        "qualtrics.csv",
        table([*head, *rows]),
        {"Q1": 172, "Q2": 182, "Q3": 161},
        (["--wide", "workers"], ["--worker", "ResponseId"], ["--skip-bad"]),
        asks=True,
    )


def test_a_file_for_each_judge(in_folder: None) -> None:  # noqa: ARG001
    Path("judges").mkdir()
    for judge, scores in (("gpt-4.1", (3, 1)), ("007", (5, 2))):
        rows = [("item", "score"), ("a", scores[0]), ("b", scores[1])]
        Path("judges", f"{judge}.csv").write_bytes(table(rows))
    refused = run("estimate", "judges/*.csv")
    assert refused.code == 1
    assert "pass --worker-from file." in refused.err
    rows = [("essay", "mark"), ("x", 50), ("y", 60)]
    Path("marks").mkdir()
    for teacher in ("anna", "bob"):
        Path("marks", f"{teacher}.csv").write_bytes(table(rows))
    refused = run("estimate", "marks/*.csv")
    assert "pass --question essay --answer mark --worker-from file." in refused.err
    done = run(
        "estimate",
        "judges/*.csv",
        "--worker-from",
        "file",
        *MEANS,
        "-o",
        "means.csv",
        "--workers",
        "w.csv",
    )
    assert done.code == 0, done
    assert written_means("means.csv") == {"a": 4, "b": 1.5}
    with Path("w.csv").open(newline="", encoding="utf-8") as file:
        assert [row["worker"] for row in csv.DictReader(file)] == ["007", "gpt-4.1"]
    assert (
        "trueup estimate 'judges/*.csv' --worker-from file -o truths.csv"
        in run("doctor", "judges/*.csv").out
    )


FILES: tuple[Callable[[], PeoplesFile], ...] = (
    task_market, usual_names, unusual_names, one_strange_name, european, thousands, thousands_in_millions,
    european_thousands, money, percent, title_lines, separator_line, old_macintosh, unicode_text, latin_1,
    byte_order_mark, not_available, words, people_in_columns, numbered_clips, questionnaire, empty_question, judges,
    runs, answered_twice, sheets, spreadsheet, spaces_in_numbers, packed, empty_edges, out_of_range, three_headers,
)  # fmt: skip


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written_means(path: str) -> dict[str, float]:
    """Return the estimates of a table by id; ids of several columns are joined, unknown ones left out."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ids = list(rows[0])[: list(rows[0]).index("estimate")]
    return {
        "/".join(row[name] for name in ids): float(row["estimate"])
        for row in rows
        if row["estimate"]
    }


def follow_advice(file: PeoplesFile) -> tuple[list[str], list[str]]:
    """Run a command, add the options that its messages name, and run it again; return the options and the messages."""
    added: list[str] = []
    messages: list[str] = []
    for _ in range(PATIENCE):
        done = run("estimate", file.name, *MEANS, "-o", "means.csv", *added)
        if done.code == 0:
            return added, messages
        assert done.code == 1, done
        messages.append(done.err)
        named = [
            part
            for option in file.knows
            if " ".join(option) in done.err and option[0] not in added
            for part in shlex.split(" ".join(option))
        ]
        assert named, f"no option that its owner could add: {done.err}"
        added += named
    raise AssertionError("sent back too often:\n" + "".join(messages))


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_a_file_is_read_right_or_refused_with_advice_that_works(
    make: Callable[[], PeoplesFile],
) -> None:
    file = make()
    Path(file.name).write_bytes(file.content)
    added, messages = follow_advice(file)
    assert written_means("means.csv") == pytest.approx(dict(file.means)), (added, messages)
    if file.asks:
        assert messages, "nobody was asked"


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_the_doctor_ends_with_a_command_that_works(make: Callable[[], PeoplesFile]) -> None:
    file = make()
    Path(file.name).write_bytes(file.content)
    done = run("doctor", file.name)
    assert done.code == 0, done
    lines = done.out.strip().splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("  trueup estimate")]
    assert len(commands) == 1 or file.asks, done.out
    found = []
    for command in commands:
        ended = run(*command[1:], *MEANS)
        assert ended.code == 0, (command, ended.err)
        found.append(written_means(command[command.index("-o") + 1]))
    assert pytest.approx(dict(file.means)) in found, (commands, done.out)
    if len(commands) == 1:
        assert lines[-1].strip() == shlex.join(commands[0])

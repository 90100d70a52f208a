"""Surroundings that are not as they should be: packages, folders, terminals, letters, and others who write as well."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import trueup
from commands import Done, environment, need_cli, one_line, refusal, run
from processes import begin_command, started
from trueup import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

need_cli()

PEOPLE = ("ann", "bob", "eve", "dan")
PATH = "a b 🐝 é"


def answers(shift: float = 0.0) -> str:
    rows = [
        f"q{j},{who},{10 + 3 * j + (i - 1.5) * (1 + j % 3) / 2 + shift:g},{j % 2},{j}"
        for j in range(12)
        for i, who in enumerate(PEOPLE)
    ]
    return "\n".join(["question,worker,answer,topic,size", *rows, ""])


def truths() -> str:
    return "question,truth\n" + "".join(f"q{j},{10 + 3 * j}\n" for j in range(10))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with files of answers, truths and groups."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(answers(), "utf-8")
    (tmp_path / "truth.csv").write_text(truths(), "utf-8")
    groups = "question,group\n" + "".join(f"q{j},{'xy'[j % 2]}\n" for j in range(12))
    (tmp_path / "groups.csv").write_text(groups, "utf-8")
    sizes = "question,size\n" + "".join(f"q{j},{j}\n" for j in range(12))
    (tmp_path / "sizes.csv").write_text(sizes, "utf-8")
    return tmp_path


def finished(command: Sequence[str], folder: Path, **variables: str | None) -> Done:
    """Run a program of its own there, with some variables of the environment changed."""
    done = subprocess.run(  # noqa: S603
        command,
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


# -- packages that are not installed ---------------------------------------------------------------


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let packages, and all their modules, not be there."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
        for loaded in list(sys.modules):
            if loaded.startswith(f"{name}."):
                monkeypatch.setitem(sys.modules, loaded, None)


def _disk(name: str) -> object:
    from trueup import disk

    return disk.estimate(name, "out.parquet")


def _spark() -> object:
    from trueup import spark

    no_frame: Any = None
    return spark.estimate(no_frame)


MATRIX = [[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [1.0, 3.0, 3.0]]
CALLS: dict[str, tuple[str, str, Callable[[], object]]] = {
    "csv, duckdb": ("duckdb", "files", lambda: trueup.estimate("answers.csv")),
    "csv, pyarrow": ("pyarrow", "files", lambda: trueup.estimate("answers.csv")),
    "parquet": ("pyarrow", "files", lambda: trueup.estimate("answers.parquet")),
    "database": ("duckdb", "files", lambda: trueup.Answers.from_file("a.db", sql="SELECT 1")),
    "compare": ("duckdb", "files", lambda: trueup.compare("answers.csv")),
    "diagnose": ("duckdb", "files", lambda: trueup.diagnose_all("answers.csv")),
    "update": ("duckdb", "files", lambda: trueup.update("state.trueup", "answers.csv")),
    "gold": ("duckdb", "files", lambda: trueup.estimate(MATRIX, gold="truth.csv")),
    "folder": ("duckdb", "files", lambda: trueup.datasets.load_folder(".")),
    "disk, duckdb": ("duckdb", "files", lambda: _disk("answers.csv")),
    "disk, pyarrow": ("pyarrow", "files", lambda: _disk("answers.parquet")),
    "excel": ("openpyxl", "excel", lambda: trueup.estimate("answers.xlsx")),
    "report": ("vl_convert", "report", lambda: trueup.estimate(MATRIX).report("r.html")),
    "plot": ("altair", "report", lambda: trueup.estimate(MATRIX).plot()),
    "spark": ("pyspark", "spark", _spark),
    "datasets": ("pooch", "datasets", lambda: trueup.datasets.load("dots")),
}


@pytest.fixture
def all_kinds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add a file of each kind, and an empty cache."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = list(csv.DictReader(io.StringIO(answers())))
    parquet.write_table(pa.Table.from_pylist(rows), folder / "answers.parquet")
    (folder / "answers.xlsx").write_bytes(b"PK\x03\x04")
    (folder / "a.db").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 100)
    trueup.estimate(MATRIX).save(folder / "state.trueup")
    monkeypatch.setenv("TRUEUP_CACHE", str(folder / "cache"))
    monkeypatch.delenv("TRUEUP_DATA", raising=False)
    return folder


@pytest.mark.usefixtures("all_kinds")
@pytest.mark.parametrize("call", CALLS)
def test_a_missing_package_is_named_with_its_extra(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, extra, do = CALLS[call]
    before = sorted(path.name for path in Path.cwd().iterdir())
    hide(monkeypatch, package)
    with pytest.raises(MissingExtra) as caught:
        do()
    text = str(caught.value)
    assert package in text
    assert f'pip install "trueup[{extra}]"' in text
    assert "\n" not in text
    assert sorted(path.name for path in Path.cwd().iterdir()) == before


COMMANDS = [
    ("duckdb", "files", "estimate answers.csv"),
    ("pyarrow", "files", "estimate answers.parquet"),
    ("duckdb", "files", "update state.trueup answers.csv"),
    ("duckdb", "files", "compare answers.csv"),
    ("duckdb", "files", "diagnose answers.csv"),
    ("duckdb", "files", "doctor answers.csv"),
    ("duckdb", "files", "estimate answers.csv --engine disk -o out.parquet"),
    ("pyarrow", "files", "simulate -o new.csv"),
    ("openpyxl", "excel", "estimate answers.xlsx"),
    ("vl_convert", "report", "estimate answers.csv --report new.html -o new.csv"),
    ("pyspark", "spark", "estimate answers.csv --engine spark -o out.parquet"),
    ("pooch", "datasets", "datasets dots -o new.csv"),
    ("cyclopts", "cli", "estimate answers.csv"),
    ("cyclopts", "cli", "doctor answers.csv"),
]


@pytest.mark.usefixtures("all_kinds")
@pytest.mark.parametrize(("package", "extra", "line"), COMMANDS)
def test_a_command_names_the_extra_it_needs(
    package: str, extra: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.name for path in Path.cwd().iterdir())
    hide(monkeypatch, package)
    assert f'pip install "trueup[{extra}]"' in refusal(*line.split())
    assert sorted(path.name for path in Path.cwd().iterdir()) == before


def test_the_base_installation_estimates_without_any_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optional = (
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "altair",
        "vl_convert",
        "openpyxl",
        "pooch",
    )
    hide(monkeypatch, *optional, "cyclopts", "rich", "pyspark")
    est = trueup.estimate(MATRIX)
    assert sorted(est.questions) == sorted(trueup.estimate(MATRIX).questions)
    assert "12 questions" in run("demo").out


# -- terminals, homes, letters ---------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_without_a_terminal() -> None:
    done = started("estimate", "answers.csv", "-o", "out.csv", TERM=None, COLUMNS=None, LINES=None)
    assert (done.code, done.err) == (0, "")
    assert "Written: out.csv" in done.out
    assert "\x1b" not in done.out


def test_data_sets_without_a_home(folder: Path) -> None:
    """No cache and no network that answers: one line says so."""
    pytest.importorskip("pooch", reason='needs pip install "trueup[datasets]"')
    changed: dict[str, str | None] = {"XDG_CACHE_HOME": None, "TRUEUP_CACHE": None}
    changed |= {"TRUEUP_DATA": None, "https_proxy": "http://127.0.0.1:9"}
    for home in ("/proc", "/dev/null"):
        done = started("datasets", "dots", "-o", "new.csv", HOME=home, **changed)
        assert done.code == 1
        one_line(done.err)
        assert not (folder / "new.csv").exists()


# What Python knows of letters it knows when it starts.
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# Without HOME the system's own records say where home is: not a place for tests.
NO_HOME = {"HOME": None, "XDG_CACHE_HOME": "/dev/null/nowhere", "TRUEUP_CACHE": None}
TWICE = """
import sys
from trueup.cli import main
nothing = sys.argv.pop(1)
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
main(["estimate", nothing])
"""


def test_letters_that_the_locale_does_not_know_and_no_home(folder: Path) -> None:
    name = f"{PATH}.csv"
    text = answers().replace("q3", "日本 🎉").replace("ann", "Zoë")
    (folder / name).write_text(text, "utf-8")
    done = finished(
        [sys.executable, "-c", TWICE, "none é.csv", "estimate", name, "-o", f"out {PATH}.csv",
         "--workers", f"who {PATH}.json", "--report", f"r {PATH}.html", "--save", f"s {PATH}.trueup"],
        folder, **C_LOCALE, **NO_HOME,
    )  # fmt: skip
    assert "Written" in done.out
    assert r"\U0001f389" in done.out
    assert "日本 🎉" in (folder / f"out {PATH}.csv").read_text("utf-8")
    page = (folder / f"r {PATH}.html").read_text("utf-8")
    assert "Zoë" in page
    assert page.endswith("</html>\n")
    assert "日本 🎉" in trueup.load(folder / f"s {PATH}.trueup").answers.question_ids.tolist()
    # Nothing was said of these; of the file that is not there it was.
    assert done.code == 1
    assert "not found" in one_line(done.err)


# -- names and places of files ---------------------------------------------------------------------


def test_every_option_takes_spaces_and_emoji(folder: Path) -> None:
    place = folder / f"my {PATH} folder"
    place.mkdir()
    for name in ("answers", "truth", "groups", "sizes"):
        (place / f"{name} {PATH}.csv").write_bytes((folder / f"{name}.csv").read_bytes())

    def at(name: str) -> Path:
        stem, _, ending = name.rpartition(".")
        return place / f"{stem} {PATH}.{ending}"

    written = ["out.csv", "who.csv", "report.html", "state.trueup"]
    done = run(
        "estimate", at("answers.csv"), "--groups", at("groups.csv"), "--covariates", at("sizes.csv"),
        "--gold", at("truth.csv"), "-o", at(written[0]), "--workers", at(written[1]),
        "--report", at(written[2]), "--save", at(written[3]),
    )  # fmt: skip
    assert (done.code, done.err) == (0, ""), done
    done = run(
        "estimate", at("answers.csv"), "--truth", at("truth.csv"), "--engine", "memory",
        "-o", at("out.parquet"), "--workers", at("who.json"),
    )  # fmt: skip
    assert (done.code, done.err) == (0, ""), done
    (place / f"new {PATH}.csv").write_text("question,worker,answer\nq1,new 🐝,12\n", "utf-8")
    done = run(
        "update", at("state.trueup"), at("new.csv"), "--state-out", at("state2.trueup"),
        "-o", at("out2.csv"), "--workers", at("who2.csv"), "--report", at("report2.html"),
    )  # fmt: skip
    assert (done.code, done.err) == (0, ""), done
    done = run(
        "estimate", at("answers.csv"), "--engine", "disk", "--work-dir", place / f"work {PATH}",
        "-o", at("disk.parquet"),
    )  # fmt: skip
    assert done.code == 0, done
    for line in (
        ("compare", at("answers.csv"), "-o", at("board.csv")),
        ("diagnose", at("answers.csv"), "--workers", at("w.csv"), "--pairs", at("pairs.csv")),
        ("doctor", at("answers.csv")),
        ("simulate", "-o", at("sim.csv"), "--truth-out", at("simtruth.csv")),
    ):
        done = run(*line)
        assert (done.code, done.err) == (0, ""), done
    expected = {
        "answers.csv", "truth.csv", "groups.csv", "sizes.csv", "new.csv", *written, "out.parquet",
        "who.json", "state2.trueup", "out2.csv", "who2.csv", "report2.html", "disk.parquet",
        "board.csv", "w.csv", "pairs.csv", "sim.csv", "simtruth.csv",
    }  # fmt: skip
    found = {path.name for path in place.iterdir() if path.is_file()}
    assert found == {at(name).name for name in expected}


OUTPUTS = [
    "estimate answers.csv -o {}.csv",
    "estimate answers.csv --workers {}.json",
    "estimate answers.csv --report {}.html",
    "estimate answers.csv --save {}.trueup",
    "estimate answers.csv --engine disk -o {}.parquet",
    "estimate answers.csv --engine disk -o out.parquet --work-dir {}",
    "update state.trueup new.csv --state-out {}.trueup",
    "update state.trueup new.csv --report {}.html",
    "compare answers.csv -o {}.csv",
    "diagnose answers.csv --workers {}.csv",
    "diagnose answers.csv --pairs {}.csv",
    "simulate -o {}.csv",
    "simulate -o sim.csv --truth-out {}.csv",
]


# Each place for half of the outputs.
@pytest.mark.parametrize(
    ("line", "place"),
    [(line, ("/proc/new", "answers.csv/new")[i % 2]) for i, line in enumerate(OUTPUTS)],
)
def test_folders_that_cannot_be_written_to(line: str, place: str, folder: Path) -> None:
    """Permissions do not bind everybody; nobody can write to /proc or below a file."""
    trueup.estimate(MATRIX).save(folder / "state.trueup")
    (folder / "new.csv").write_text("question,worker,answer\n1,7,12\n", "utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = refusal(*line.format(place).split())
    assert "new" in text or "proc" in text
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# -- streams that are closed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        ("--version", ">&-"),
        ("demo", "2>&-"),
        ("estimate answers.csv -o out.csv", ">&- 2>&- <&-"),
    ],
)
def test_closed_streams_are_no_reason_to_fail(command: str, closed: str, folder: Path) -> None:
    line = f'"$0" -m trueup {command} {closed}'
    done = finished(["/bin/sh", "-c", line, sys.executable], folder)
    assert (done.code, done.err) == (0, "")
    assert (folder / "out.csv").exists() == ("out.csv" in command)


def test_standard_input_that_is_closed_is_one_line(folder: Path) -> None:
    line = '"$0" -m trueup estimate - <&-'
    done = finished(["/bin/sh", "-c", line, sys.executable], folder)
    assert done.code == 1
    assert "Standard input" in one_line(done.err)


# -- ways to start Python --------------------------------------------------------------------------

# As if pandas were not installed, whose compilation for this way to start takes seconds.
WITHOUT_PANDAS = """
import sys
class No:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, No())
from trueup.cli import main
main()
"""


def test_without_assertions(folder: Path) -> None:
    command = [sys.executable, "-OO", "-c", WITHOUT_PANDAS, "estimate", "answers.csv"]
    assert finished(command, folder) == run("estimate", "answers.csv")


EVERY_MODULE = """
import importlib, pkgutil, sys
import trueup
for module in pkgutil.walk_packages(trueup.__path__, "trueup."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        # What needs a package that is not installed here cannot be looked at.
        assert (error.name or "").partition(".")[0] not in ("", "trueup"), (module.name, error)
print("all")
"""


def test_every_module_is_imported_without_a_warning(folder: Path) -> None:
    # Other people's modules may warn: only what is said of ours is an error.
    ours = ("-X", "warn_default_encoding", "-c", "import trueup")
    assert finished([sys.executable, "-W", "error", *ours], folder) == (0, "", "")
    every = [sys.executable, "-W", "error", "-c", EVERY_MODULE]
    assert finished(every, folder) == (0, "all\n", "")


# -- two at once -----------------------------------------------------------------------------------


def test_of_two_runs_that_write_the_same_files_one_wins_whole(folder: Path) -> None:
    (folder / "others.csv").write_text(answers(shift=1000.0), "utf-8")
    options = ("-o", "out.csv", "--workers", "who.csv", "--save", "state.trueup")

    alone = {}
    for name in ("answers.csv", "others.csv"):
        assert run("estimate", name, *options).code == 0
        alone[name] = {each: (folder / each).read_bytes() for each in ("out.csv", "who.csv")}
    three = ("answers.csv", "others.csv", "answers.csv")
    for running in [begin_command("estimate", name, *options) for name in three]:
        done = running.end()
        assert (done.code, done.err) == (0, "")
    for each in ("out.csv", "who.csv"):
        assert (folder / each).read_bytes() in [kept[each] for kept in alone.values()]
    assert len(trueup.load(folder / "state.trueup").questions) == 12
    inputs = {"answers.csv", "others.csv", "truth.csv", "groups.csv", "sizes.csv"}
    assert {path.name for path in folder.iterdir()} == inputs | {
        "out.csv",
        "who.csv",
        "state.trueup",
    }

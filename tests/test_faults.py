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
from commands import environment, need_cli, one_line, refusal, run
from trueup import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

need_cli()

COMMAND = (sys.executable, "-m", "trueup")
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


def start(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    options.setdefault("env", environment())
    return subprocess.run(  # noqa: S603
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
        timeout=300,
        **options,
    )


def fine(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command that ended well printed."""
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


# -- packages that are not installed ---------------------------------------------------------------


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let packages, and all their modules, not be there."""
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
        for loaded in list(sys.modules):
            if loaded.startswith(f"{name}."):
                monkeypatch.setitem(sys.modules, loaded, None)


def _estimate(**options: Any) -> Any:
    return trueup.estimate(
        {"question": ["a", "a"], "worker": ["u", "v"], "answer": [1, 2]}, **options
    )


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


def test_without_a_terminal(folder: Path) -> None:
    done = start(
        "estimate", "answers.csv", "-o", "out.csv",
        cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True,
        env=environment(TERM=None, COLUMNS=None, LINES=None),
    )  # fmt: skip
    assert "Written: out.csv" in fine(done)
    assert "\x1b" not in done.stdout


def test_a_report_needs_no_home(folder: Path) -> None:
    # Without HOME the system's own records say where home is: not a place for tests.
    changed = environment(HOME=None, XDG_CACHE_HOME="/dev/null/nowhere", TRUEUP_CACHE=None)
    done = start("estimate", "answers.csv", "--report", "r.html", cwd=folder, env=changed)
    assert "Written: r.html" in fine(done)
    assert (folder / "r.html").read_text("utf-8").endswith("</html>\n")


def test_data_sets_without_a_home(folder: Path) -> None:
    """No cache and no network that answers: one line says so."""
    pytest.importorskip("pooch", reason='needs pip install "trueup[datasets]"')
    for home in ("/proc", "/dev/null"):
        changed = environment(HOME=home, XDG_CACHE_HOME=None, TRUEUP_CACHE=None, TRUEUP_DATA=None)
        changed |= dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
        done = start("datasets", "dots", "-o", "new.csv", cwd=folder, env=changed)
        assert done.returncode == 1
        one_line(done.stderr)
        assert not (folder / "new.csv").exists()


C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_letters_that_the_locale_does_not_know(folder: Path) -> None:
    name = f"{PATH}.csv"
    text = answers().replace("q3", "日本 🎉").replace("ann", "Zoë")
    (folder / name).write_text(text, "utf-8")
    done = start(
        "estimate", name, "-o", f"out {PATH}.csv", "--workers", f"who {PATH}.json",
        "--report", f"r {PATH}.html", "--save", f"s {PATH}.trueup",
        cwd=folder, env=environment(**C_LOCALE),
    )  # fmt: skip
    assert "Written" in fine(done)
    assert "日本 🎉" in (folder / f"out {PATH}.csv").read_text("utf-8")
    assert "Zoë" in (folder / f"r {PATH}.html").read_text("utf-8")
    assert "日本 🎉" in trueup.load(folder / f"s {PATH}.trueup").answers.question_ids.tolist()
    again = start("estimate", "none é.csv", cwd=folder, env=environment(**C_LOCALE))
    assert again.returncode == 1
    one_line(again.stderr)


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


@pytest.mark.parametrize("line", OUTPUTS)
@pytest.mark.parametrize("place", ["/proc/new", "answers.csv/new"])
def test_folders_that_cannot_be_written_to(line: str, place: str, folder: Path) -> None:
    """Permissions do not bind everybody; nobody can write to /proc or below a file."""
    trueup.estimate("answers.csv").save(folder / "state.trueup")
    (folder / "new.csv").write_text("question,worker,answer\nq1,new,12\n", "utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = refusal(*line.format(place).split())
    assert "new" in text or "proc" in text
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# -- streams that are closed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        ("--version", ">&-"),
        ("demo", ">&-"),
        ("estimate answers.csv -o out.csv", "2>&-"),
        ("estimate answers.csv -o out.csv", ">&- 2>&- <&-"),
    ],
)
def test_closed_streams_are_no_reason_to_fail(command: str, closed: str, folder: Path) -> None:
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", f'"$0" -m trueup {command} {closed}', sys.executable],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out.csv").exists() == ("out.csv" in command)


def test_standard_input_that_is_closed_is_one_line(folder: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m trueup estimate - <&-', sys.executable],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert "Standard input" in one_line(done.stderr)


# -- ways to start Python --------------------------------------------------------------------------


def test_without_assertions(folder: Path) -> None:
    plain = run("estimate", "answers.csv")
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "trueup", "estimate", "answers.csv"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == plain


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


def test_every_module_is_imported_without_a_warning() -> None:
    # Other people's modules may warn: only what is said of ours is an error.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "warn_default_encoding", "-c", "import trueup"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", EVERY_MODULE],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "all\n")


# -- two at once -----------------------------------------------------------------------------------


def test_of_two_runs_that_write_the_same_files_one_wins_whole(folder: Path) -> None:
    (folder / "others.csv").write_text(answers(shift=1000.0), "utf-8")
    options = ("-o", "out.csv", "--workers", "who.csv", "--save", "state.trueup")

    def begin(name: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            [*COMMAND, "estimate", name, *options],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    alone = {}
    for name in ("answers.csv", "others.csv"):
        assert run("estimate", name, *options).code == 0
        alone[name] = {each: (folder / each).read_bytes() for each in ("out.csv", "who.csv")}
    running = [begin(name) for name in ("answers.csv", "others.csv", "answers.csv")]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert (process.returncode, said) == (0, "")
    for each in ("out.csv", "who.csv"):
        assert (folder / each).read_bytes() in [kept[each] for kept in alone.values()]
    assert len(trueup.load(folder / "state.trueup").questions) == 12
    inputs = {"answers.csv", "others.csv", "truth.csv", "groups.csv", "sizes.csv"}
    assert {path.name for path in folder.iterdir()} == inputs | {
        "out.csv",
        "who.csv",
        "state.trueup",
    }

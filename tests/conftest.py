"""What all tests share: hypothesis profiles, the real data, and the count of what could not run.

A test that needs something the machine may lack says so::

    @pytest.mark.needs("java")  # a part of the system: see PARTS
    def test_spark(): ...

    def test_emotions(data_folder): ...  # the real data sets, in the folder named by TRUEUP_DATA

Without it the test is skipped with a reason that begins with "needs". Skips are counted by reason,
and the last line of the run names the count. With TRUEUP_NO_SKIPS=1 a skip makes the run fail.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from browser import Browser

#: Units of work that take longest, the longest first.
LONGEST = (
    "spark",
    "tests/project/test_docs.py",
    "tests/evidence/test_second_step_figures.py",
    "tests/report/test_report.py",
    "tests/engines/disk/test_disk_question_data.py",
    "tests/cli/test_faults.py",
    "tests/algorithms/test_battery.py",
)
#: Bytes that a test process, and each that it starts, may fill: what takes more fails instead of filling the machine.
MEMORY = 10 << 30
DATA = "TRUEUP_DATA (real data sets)"
BROKEN = "(a file that cannot be loaded)"

# Spark of the tests stays on this machine, and its Python processes are like this one.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

hypothesis.settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=20, database=None
)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True)  # make fuzz
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "ci")


def has_java() -> bool:
    """Whether a Java of version 17 or later starts (macOS has a `java` that only prints advice)."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        return False
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = re.search(r'version "(\d+)', answer.stderr)
    return answer.returncode == 0 and version is not None and int(version[1]) >= 17


def has_browser() -> bool:
    """Whether a Chromium or Chrome is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    applications = Path("/Applications")
    return any(shutil.which(name) for name in names) or any(
        (applications / f"{name}.app").exists() for name in ("Google Chrome", "Chromium")
    )


class Part(NamedTuple):
    """A part of the system that some tests need."""

    name: str
    is_here: Callable[[], bool]


PARTS = {
    "java": Part("Java 17", functools.cache(has_java)),
    "browser": Part("Chromium", functools.cache(has_browser)),
}


def unit_of_work(nodeid: str) -> str:
    """Return what runs in one process: the tests of a file, which share what takes long to make, or all on Spark.

    Those on Spark share a JVM, and are told by their names (of file, function or parameter): the process that
    distributes the tests knows nothing else of them.
    """
    return "spark" if "spark" in nodeid else nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, Spark first: at the end no process waits long for another one."""
    longest = {unit: place for place, unit in enumerate(LONGEST)}
    items.sort(key=lambda item: longest.get(unit_of_work(item.nodeid), len(longest)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute units of work, in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByUnit(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return unit_of_work(nodeid)

    config.option.loadscopereorder = False  # the unit with most tests is not the longest
    return ByUnit(config, log)


class SkipCounter:
    """Counts the skips of all processes, by what was needed."""

    def __init__(self) -> None:
        self.tests: Counter[str] = Counter()
        self.files: dict[str, str] = {}  # whole files: path to need
        self.is_complete = False
        self.is_selection = False

    @staticmethod
    def _need(report: pytest.TestReport | pytest.CollectReport) -> str:
        """Return what the reason names after "needs", or nothing."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found = re.match(r"(?:Skipped: )?needs (\S.*)", reason)
        return found[1].strip() if found else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.tests[self._need(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.files[report.nodeid] = self._need(report)
        elif report.failed:
            self.files[report.nodeid] = BROKEN

    @property
    def total(self) -> int:
        return self.tests.total() + len(self.files)

    def line(self) -> str:
        """Return the last line of the run."""
        if not self.is_complete:
            return "trueup: NOT EVERYTHING RAN: pytest stopped early"
        if self.total == 0:
            return f"trueup: everything {'selected ' if self.is_selection else ''}ran"
        what = []
        if self.tests:
            what.append(plural(self.tests.total(), "test"))
        if self.files:
            what.append(f"all of {plural(len(self.files), 'test file')}")
        counts = self.tests + Counter(self.files.values())
        broken, other = counts.pop(BROKEN, 0), counts.pop("", 0)
        # The commonest need first, then by name.
        reasons = [
            f"{n} {'needs' if n == 1 else 'need'} {need}"
            for need, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        if broken:
            reasons.append(f"{broken} could not be loaded")
        if other:
            reasons.append(f"other: {other}")
        return f"trueup: COULD NOT RUN {' and '.join(what)}: {', '.join(reasons)}"

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        finished = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self.is_complete = exitstatus in finished and not session.shouldfail
        if self.total and forbids_skips() and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.total and forbids_skips():
            terminalreporter.write_line(
                f"trueup: FAILED because TRUEUP_NO_SKIPS is set and {self.total} skipped", red=True
            )
        terminalreporter.write_line(self.line())
        if path := os.environ.get("TRUEUP_SKIP_REPORT"):
            (terminalreporter.config.rootpath / path).write_text(f"{self.line()}\n", "utf-8")


def plural(n: int, thing: str) -> str:
    """Return the count with its noun."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def forbids_skips() -> bool:
    """Whether a skip makes the run fail."""
    return os.environ.get("TRUEUP_NO_SKIPS", "") not in ("", "0")


def limit_memory() -> None:
    """Limit the memory of this process and of those it will start, where the system can (Linux)."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def pytest_configure(config: pytest.Config) -> None:
    limit_memory()
    config.addinivalue_line(
        "markers", f"needs(part): skip without this part of the system: {', '.join(PARTS)}"
    )
    folder = os.environ.get("TRUEUP_DATA")
    if folder and not Path(folder).is_dir():
        raise pytest.UsageError(f"TRUEUP_DATA={folder} is not a folder")
    if not hasattr(config, "workerinput"):  # only the process that sees all reports counts
        counter = SkipCounter()
        counter.is_selection = bool(
            config.args_source is not pytest.Config.ArgsSource.TESTPATHS
            or config.option.keyword
            or config.option.markexpr
            or config.option.deselect
        )
        config.pluginmanager.register(counter, "trueup-skip-counter")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if name not in PARTS:
                pytest.fail(f'needs("{name}") is unknown; known: {", ".join(PARTS)}', pytrace=False)
            if name == "java" and unit_of_work(item.nodeid) != "spark":
                pytest.fail(
                    'what needs Java has "spark" in its name: see unit_of_work', pytrace=False
                )
            part = PARTS[name]
            if not part.is_here():
                pytest.skip(f"needs {part.name}")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the real data sets, one folder per data set."""
    folder = os.environ.get("TRUEUP_DATA")
    if not folder:
        pytest.skip(f"needs {DATA}")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start a browser that all tests of a process share: a start takes longer than a page."""
    import browser

    with browser.start() as running:
        yield running


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a file with this content under this name."""

    def write(content: str | bytes, name: str = "answers.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def folder_of_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with answers and truths."""
    from commands import rows, truths, write

    monkeypatch.chdir(tmp_path)
    write("answers.csv", rows())
    write("truth.csv", truths())

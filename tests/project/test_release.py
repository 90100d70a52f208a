"""What is shipped: a version in one place, a wheel and an sdist that are whole, and names that are documented."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import trueup
from repository import ROOT

PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


def tool(name: str) -> Any:
    """Load a script of the folder tools."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build wheel and sdist from the files of the repository, with the tool that pyproject.toml names."""
    pytest.importorskip("hatchling", reason="needs hatchling")
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


# -- the version -----------------------------------------------------------------------------------


def test_the_version_is_in_one_place() -> None:
    about = tomllib.loads(PYPROJECT)
    assert "version" not in about["project"]
    assert about["tool"]["hatch"]["version"]["path"] == "src/trueup/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", trueup.__version__)
    written = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"^__version__ = ", path.read_text("utf-8"), re.M)
    ]
    assert written == ["src/trueup/__init__.py"]


def test_the_citation_is_that_of_this_version() -> None:
    yaml: Any = pytest.importorskip("yaml", reason="needs pyyaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert str(cited["version"]) == trueup.__version__
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= set(cited)
    assert cited["license"] == tomllib.loads(PYPROJECT)["project"]["license"]
    (paper,) = cited["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Ben Shabat",
        "Meir",
        "Azriel",
    ]
    assert paper["title"] == "Empirical Bayes approach to Truth Discovery problems"
    assert paper["identifiers"][0]["value"] == "arXiv:2206.04816"


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    yaml: Any = pytest.importorskip("yaml", reason="needs pyyaml")
    titles = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    released = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["date-released"]
    assert titles[:2] == ["Unreleased", f"{trueup.__version__} ({released})"]


# -- wheel and sdist -------------------------------------------------------------------------------


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    assert wheel.name == f"trueup-{trueup.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = archive.read(f"trueup-{trueup.__version__}.dist-info/METADATA").decode()
    assert "trueup/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "trueup",
        f"trueup-{trueup.__version__}.dist-info",
    }
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/trueup").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("trueup/")} == ours
    assert all(
        name.endswith((".py", "py.typed", ".css", ".js", ".json", ".csv", ".toml")) for name in ours
    )
    assert f"\nVersion: {trueup.__version__}\n" in about
    extras = re.findall(r"^Provides-Extra: (.*)$", about, re.M)
    assert sorted(extras) == sorted(tomllib.loads(PYPROJECT)["project"]["optional-dependencies"])


def test_the_wheel_runs_without_the_repository(built: tuple[Path, Path], tmp_path: Path) -> None:
    """From the archive itself: the same files that pip would unpack."""
    environment = {**os.environ, "PYTHONPATH": str(built[0])}
    for arguments, printed in ((["--version"], trueup.__version__), (["demo"], "12 questions")):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "trueup", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert printed in done.stdout


def test_the_sdist_holds_what_the_tests_need_and_no_stray_files(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in (
        "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
        "CITATION.cff", "pyproject.toml", "mkdocs.yml", "tools/venv.sh", "tools/test.sh",
        "tools/picture.py", "docs/index.md", "examples/README.md", "src/trueup/py.typed",
    ):  # fmt: skip
        assert wanted in names, wanted
    tests = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*")
        if path.suffix in (".py", ".txt", ".json") and "__pycache__" not in path.parts
    }
    assert tests <= names
    stray = re.compile(r"__pycache__|\.pyc$|report\.html$|\.trueup$|\.log$|(^|/)\.(?!gitignore$)")
    assert [name for name in names if stray.search(name)] == []
    tops = {name.partition("/")[0] for name in names}
    allowed = {"src", "tests", "examples", "docs", "tools", "benchmarks", "evidence"}
    allowed |= {
        "Makefile",
        "action.yml",
        "mkdocs.yml",
        "pyproject.toml",
        "PKG-INFO",
        ".gitignore",
        "LICENSE",
    }
    assert tops - allowed == {
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "SECURITY.md",
    }


# -- names -----------------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    assert list(trueup.__all__) == sorted(trueup.__all__)
    missing = [
        name
        for name in trueup.__all__
        if name != "__version__" and not re.search(rf"\btrueup\.(?:\w+\.)*{name}\b", pages)
    ]
    assert missing == []


def test_nothing_is_public_by_accident() -> None:
    """What `dir` shows besides the names that are listed is a module of ours, or private."""
    code = "import trueup; print(*(name for name in dir(trueup) if name not in trueup.__all__))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    home = Path(trueup.__file__).parent
    for name in done.stdout.split():
        known = name.startswith("_") or (home / name).exists() or (home / f"{name}.py").exists()
        assert known or name in ("Any", "TYPE_CHECKING", "annotations", "import_module"), name


# -- what the tools rest on ------------------------------------------------------------------------


def test_every_requirement_has_one_lowest_version() -> None:
    floors = tool("lowest").floors
    found = floors(PYPROJECT)
    assert {"numpy", "scipy", "narwhals", "duckdb", "pyarrow", "pandas", "polars"} <= set(found)
    assert all(re.fullmatch(r"\d+(\.\d+)*", version) for version in found.values())
    with pytest.raises(ValueError, match="rich: has no lowest version"):
        floors(PYPROJECT.replace('"rich>=13.7"', '"rich"'))
    with pytest.raises(ValueError, match="pyarrow: has two lowest versions"):
        floors(re.sub(r'"pyarrow>=\d+"', '"pyarrow>=1"', PYPROJECT, count=1))


def test_the_tests_with_the_lowest_versions_are_there() -> None:
    script = (ROOT / "tools/lowest.sh").read_text("utf-8")
    listed = re.search(r"^tests='([^']*)'", script, re.M)
    assert listed is not None
    for name in listed[1].split():
        assert (ROOT / f"tests/{name}.py").exists(), name


def test_the_audit_refuses_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    audit = tool("audit")
    for text in ("MIT", "BSD-3-Clause AND 0BSD AND MIT", "Apache-2.0 OR GPL-2.0", "BSD License"):
        assert audit.is_allowed(text), text
    for text in ("GPL-3.0", "MIT AND GPL-3.0", "not stated", "", "Proprietary", "MIT-like"):
        assert not audit.is_allowed(text), text
    monkeypatch.setattr(audit, "closure", lambda _extra: ({"numpy": "2.0.0"}, []))
    known = tmp_path / "holes.json"
    known.write_text('{"numpy": {"id": "X-1", "fixed": "2.0.1"}}', "utf-8")
    assert audit.main([]) == 0
    assert "no list of known holes was given" in capsys.readouterr().out
    assert audit.main(["--holes", str(known)]) == 1
    assert "numpy 2.0.0: X-1, mended in 2.0.1" in capsys.readouterr().out
    monkeypatch.setattr(audit, "licence", lambda _name: "GPL-3.0")
    assert audit.main([]) == 1
    monkeypatch.setattr(audit, "closure", lambda _extra: ({}, ["numpy"]))
    assert audit.main([]) == 1
    assert "numpy: not installed" in capsys.readouterr().out

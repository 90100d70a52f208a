"""Every example runs as a user starts it, says nothing on the error output, and shows what it promises."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trueup
from commands import Done, environment
from processes import begin
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
LIBRARIES = ("pandas", "polars", "pyarrow", "duckdb")  # most examples need none of them
WITHOUT = """
import runpy, sys, warnings
warnings.simplefilter("error")
for name in without:
    sys.modules[name] = None
runpy.run_path(script, run_name="__main__")
"""


def script_of(number: str) -> str:
    """Return the path of an example."""
    (script,) = FOLDER.glob(f"{number}_*.py")
    return str(script)


def output(number: str, folder: Path, without: Sequence[str] = ()) -> str:
    """Run an example in an empty folder, as if some packages were not installed; return what it prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        running = begin(exec, WITHOUT, {"script": script_of(number), "without": without})
    return checked(running.end(), folder)


def checked(done: Done, folder: Path) -> str:
    """Return what an example printed that ended well, and left nothing behind."""
    assert (done.code, done.err) == (0, "")
    assert list(folder.iterdir()) == []
    return done.out


def numbers(text: str, pattern: str) -> list[float]:
    """Return the numbers a pattern finds; it must be found."""
    found = re.search(pattern, text)
    assert found, text
    return [float(each) for each in found.groups()]


def after(text: str, name: str, which: int = 0) -> float:
    """Return the first number after a name, at its so-manieth place."""
    return float(re.findall(re.escape(name) + r"\D*?([\d.]+\d)", text)[which])


def test_the_crowd_is_better_weighed_than_averaged(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    # As a user starts it; the others begin with everything imported.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", script_of("01")],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
        env=environment(PYTHONUTF8="1"),
    )
    text = checked(Done(done.returncode, done.stdout, done.stderr), tmp_path)
    mean, ours = numbers(text, r"average is off by ([\d.]+) cm, trueup by ([\d.]+) cm")
    assert ours < 0.8 * mean
    assert re.search(r"zoe .* always the same answer", text)
    inside, of = numbers(text, r"inside the interval for (\d+) of (\d+)")
    assert inside >= 0.8 * of


def test_biases_of_viewers_are_worth_taking_off(tmp_path: Path) -> None:
    text = output("02", tmp_path, without=LIBRARIES)
    for which in (0, 1):  # all rate all, and five rate each
        mean = after(text, "mean opinion score", which)
        assert after(text, "method='subject_bias' ", which) < mean
        # Where all rate all, biases go into every clip alike.
        assert after(text, "the default ", which) < (0.95 if which else 1.02) * mean


def test_judges_of_one_family_are_found_and_count_once(tmp_path: Path) -> None:
    text = output("03", tmp_path, without=LIBRARIES)
    assert 'Pass duplicates="mean"' in text
    assert re.search(r"^  alpha-large and alpha-small: errors correlate 0\.[6-9]", text, re.M)
    assert text.count("errors correlate") == 1
    assert "workers who err together count as one: alpha-large, alpha-small" in text
    (five,) = numbers(text, r"five judges .* contain (\d+)%")
    for heard in ("found by trueup", "family is one judge"):
        assert after(text, f"{heard}  ") < after(text, "plain mean ")
        (covered,) = numbers(text, rf"{heard} .* contain (\d+)%")
        assert five < 90 <= covered


def test_resolved_questions_mend_shared_optimism(tmp_path: Path) -> None:
    text = output("04", tmp_path, without=LIBRARIES)
    errors, covered = {}, {}
    for name in ("without gold", "with gold"):
        errors[name], covered[name] = numbers(text, rf"{name} .*error ([\d.]+); .* contain (\d+)%")
    assert errors["with gold"] < 0.5 * errors["without gold"]
    assert covered["without gold"] < 50
    assert covered["with gold"] >= 90


def test_algorithm_1_is_what_one_gets_by_hand(tmp_path: Path) -> None:
    text = output("05", tmp_path, without=LIBRARIES)
    (gap,) = numbers(text, r"differs from shrink='paper' by (\S+) at most")
    assert gap < 1e-12
    mean, blue, paper, own = (
        after(text, f"\n  {name} ")
        for name in ("plain mean", "blue", "blue, shrink='paper'", "target='consensus'")
    )
    assert max(paper, own) < blue < mean
    (covered,) = numbers(text, r"contain the truth in ([\d.]+)%")
    assert 92 <= covered <= 98


def test_an_algorithm_of_your_own_passes_and_beats_the_mean(tmp_path: Path) -> None:
    text = output("06", tmp_path, without=LIBRARIES)
    assert re.search(r"check_algorithm: \d+ checks passed", text)
    assert after(text, "\n  closeness ") < after(text, "\n  mean ")


def test_a_judge_who_likes_its_family_does_not_decide_which_model_is_better(tmp_path: Path) -> None:
    text = output("08", tmp_path, without=LIBRARIES)
    averages = re.search(r"Plain averages:\n  (\S+)", text)
    assert averages is not None
    assert averages[1] == "alpha-4"
    assert 'Judge "alpha-judge" favours alpha-4 by ' in text
    assert "Judges and labels disagree about the order of beta-2 and alpha-4" in text
    assert '\nGate passed: every other system is clearly better than "old".\n' in text
    truth, naive = numbers(text, r"beta-2 is (\S+) in truth, and (\S+) by plain")
    assert truth < 0 < naive
    for name in ("judges alone", "with labels"):
        value, low, high = numbers(text, rf"{name} +(\S+), from (\S+) to (\S+)\n")
        assert low <= truth <= high
        assert (high < 0) == (name == "with labels")
        assert low < value < high


def test_a_hub_of_forecasts_is_read_as_it_is(tmp_path: Path) -> None:
    for name in ("pandas", "pyarrow", "duckdb"):
        pytest.importorskip(name, reason=f"needs {name}")
    text = output("09", tmp_path)
    assert "Answers(96 questions, 6 workers, 564 answers)" in text
    assert "Left out: 2,256 x quantile other than 0.5" in text
    assert "      01 " in text  # not 1
    for found, made in re.findall(r"off by +(\d+)%, made up with +(\d+)%", text):
        assert abs(int(found) - int(made)) <= 10
    assert text.count("made up with") == 6
    mean, ours = numbers(text, r"models +typical error ([\d.]+)%\ntrueup +typical error ([\d.]+)%")
    assert ours < 0.8 * mean


def test_a_file_per_judge_is_read_as_it_is(tmp_path: Path) -> None:
    for name in ("pandas", "pyarrow", "duckdb"):
        pytest.importorskip(name, reason=f"needs {name}")
    text = output("10", tmp_path)
    assert "Answers(240 questions, 4 workers, 960 answers)" in text
    assert after(text, "\n  dan ") < 0.5 * after(text, "\n  ann ")
    mean, ours = numbers(text, r"judges +typical error ([\d.]+)\ntrueup +typical error ([\d.]+)")
    assert ours < 0.9 * mean
    assert "Every difference is clear: new > old." in text


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    return output("07", tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow", "duckdb"])
def test_the_kind_of_table_that_goes_in_comes_back(name: str, tables: str) -> None:
    pytest.importorskip(name, reason=f"needs {name}")
    (line,) = re.findall(rf"^{name} .*", tables, re.M)
    given, questions, workers, gap = re.split(r"\s{2,}", line)
    assert given == questions == workers
    assert float(gap) < 1e-9


def test_libraries_that_are_not_installed_are_left_out_politely(tmp_path: Path) -> None:
    text = output("07", tmp_path, without=LIBRARIES)
    assert text.count("is not installed: left out") == 4


def test_every_example_is_in_the_table_and_tested() -> None:
    listed = re.findall(r"\]\((\d\d_\w+\.py)\)", (FOLDER / "README.md").read_text("utf-8"))
    assert listed == [script.name for script in SCRIPTS]
    here = Path(__file__).read_text("utf-8")
    for script in SCRIPTS:
        number = script.name[:2]
        assert f'output("{number}"' in here or f'script_of("{number}")' in here


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    monkeypatch.chdir(tmp_path)
    simulated = trueup.simulate(workers=8, questions=40, seed=1).answers.to_matrix()
    rows = [
        (f"q{question}", f"w{worker}", answer, "even" if question % 2 == 0 else "odd")
        for worker, row in enumerate(simulated.tolist())
        for question, answer in enumerate(row)
    ]
    table = pandas.DataFrame(rows, columns=["question", "worker", "answer", "topic"])
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    newer = table[table["worker"] == "w0"].assign(worker="a new worker")
    scores = table.assign(model=table["topic"].map({"even": "old", "odd": "new"}))
    scores = scores.assign(sample_id=scores["question"].str[1:].astype(int) // 2)
    names: dict[str, object] = {
        "answers": table,
        "new_answers": newer.drop(columns="topic"),
        "scores": scores.drop(columns=["question", "topic"]),
    }
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)  # noqa: S102
    assert isinstance(names["est"], trueup.Estimate)
    assert isinstance(names["ranking"], trueup.Ranking)


def test_the_picture_of_the_readme_can_be_drawn(tmp_path: Path) -> None:
    for name in ("pandas", "altair", "vl_convert"):
        pytest.importorskip(name, reason=f"needs {name}")
    readme = (ROOT / "README.md").read_text("utf-8")
    (kept,) = re.findall(r"\]\(([\w/]+\.svg)\)", readme)
    drawn = runpy.run_path(str(ROOT / "tools" / "picture.py"))["draw"](tmp_path / "result.svg")
    for path in (drawn, ROOT / kept):
        text = path.read_text("utf-8")
        assert text.startswith("<svg")
        assert len(text) < 100_000
        assert text.count(">photo ") == 24  # the example of today, not another
    assert [each.name for each in tmp_path.iterdir()] == ["result.svg"]

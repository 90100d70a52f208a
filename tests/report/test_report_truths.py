"""`report(truth=)` takes what `gold=` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import trueup
from commands import need_cli
from trueup import TrueupError

if TYPE_CHECKING:
    from pathlib import Path

need_cli()

ROWS = [(f"q{j}", f"w{i}", 3.0 * j + np.sin(7 * i + j)) for j in range(12) for i in range(4)]
FRAME = pd.DataFrame(ROWS, columns=["question", "worker", "answer"])
TRUTHS = {f"q{j}": 3.0 * j + 0.1 for j in range(10)}


def table_of(path: Path) -> str:
    """Return the part of a report that compares with known truths."""
    text = path.read_text("utf-8").partition("Comparison with known truths</h2>")[2]
    return text.partition("</section>")[0]


def forms(folder: Path) -> dict[str, Any]:
    """Return the same truths in every form."""
    frame = pd.DataFrame({"question": list(TRUTHS), "truth": list(TRUTHS.values())})
    frame.to_csv(folder / "truth.csv", index=False)
    every = np.array([TRUTHS.get(f"q{j}", np.nan) for j in range(12)])
    return {
        "mapping": TRUTHS,
        "series": pd.Series(TRUTHS),
        "frame": frame,
        "array": every,
        "list": every.tolist(),
        "file": str(folder / "truth.csv"),
        "path": folder / "truth.csv",
        "column": "known",
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write the answers to a file, with a column of truths."""
    frame = FRAME.assign(known=FRAME["question"].map(TRUTHS))
    frame.to_csv(tmp_path / "answers.csv", index=False)
    frame.to_parquet(tmp_path / "answers.parquet")
    return tmp_path / "answers.csv"


def test_all_forms_make_the_same_report(source: Path, tmp_path: Path) -> None:
    est = trueup.estimate(source)
    said = {
        form: table_of(est.report(tmp_path / "r.html", truth=truth))
        for form, truth in forms(tmp_path).items()
    }
    assert "The truth of 10 questions is known" in said["array"]
    assert set(said.values()) == {said["array"]}


def test_on_disk_as_well(source: Path, tmp_path: Path) -> None:
    from trueup import disk

    del source
    with disk.estimate(tmp_path / "answers.parquet", tmp_path / "o.parquet") as est:
        found = table_of(est.report(tmp_path / "r.html", truth=TRUTHS))
    assert "The truth of 10 questions is known" in found


@pytest.mark.parametrize(
    ("truth", "says"),
    [
        ({"zzz": 1.0}, 'truth: found no question that is in the answers. It has "zzz"'),
        ({"q0": "x"}, 'truth: question "q0" has the "truth" "x", which is not a usable number'),
        ({"q0": np.inf}, "truth: .*which is not a usable number"),
        (np.zeros(5), "truth: found 5, expected one for each of 12 questions"),
        (7, 'truth: found "int"'),
        ("none.csv", "not found"),
        ("known", 'truth: found "known", but these answers have no columns to look in'),
        ({"q0": -1.0}, "truth: .*-1"),
    ],
)
def test_truths_that_cannot_be_are_refused(truth: Any, says: str, tmp_path: Path) -> None:
    bounds = (0, 99) if isinstance(truth, dict) and -1.0 in truth.values() else None
    est = trueup.estimate(FRAME.assign(answer=FRAME["answer"] + 2), bounds=bounds)
    with pytest.raises(TrueupError, match=says):
        est.report(tmp_path / "r.html", truth=truth)
    assert not (tmp_path / "r.html").exists()

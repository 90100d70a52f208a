"""--method with parameters, and FILE.py:CLASS: code is loaded where the command line names it, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trueup
from commands import estimates, expected, need_cli, printed, refusal, write
from trueup.io.archive import read_archive, write_archive
from trueup.result.state import FORMAT, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

need_cli()

OWN = '''
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from trueup.algorithms import Algorithm

from pathlib import Path
Path("trace").touch()

@dataclass(frozen=True)
class Power(Algorithm):
    """A mean of the workers with most answers."""
    power: float = 0.0
    name = "power"

    def start(self, facts):
        state = super().start(facts)
        return state.replace(weight=facts.n_answers.astype(float) ** self.power)
'''


@pytest.fixture(autouse=True)
def own(folder_of_answers: object) -> Iterator[None]:  # noqa: ARG001  the folder that it is in
    """A file with an algorithm, which this process forgets in the end."""
    Path("own.py").write_text(OWN)
    yield
    for name in [name for name in sys.modules if name.endswith("own.py")]:
        del sys.modules[name]


def test_parameters_follow_the_name() -> None:
    found = estimates("answers.csv", "--method", "subject_bias:nu0=5")
    assert found == expected(method=trueup.algorithms.SubjectBias(nu0=5))
    line = refusal("estimate", "answers.csv", "--method", "subject_bias:nu=0")
    assert "--method: " in line
    assert "nu0=2.0, epsilon=0.0" in line
    line = refusal("diagnose", "answers.csv", "--method", "subject_bias:nu0=few")
    assert "must be a number" in line


def test_a_class_in_a_file_is_a_method() -> None:
    assert estimates("answers.csv", "--method", "own.py:Power") == expected(method="mean")
    with_power = estimates("answers.csv", "--method", "own.py:Power:power=3")
    assert with_power != expected(method="mean")
    assert "power" in printed("compare", "answers.csv", "--method", "own.py:Power")
    assert "power" in printed(
        "diagnose", "answers.csv", "--method", f"{Path('own.py').resolve()}:Power"
    )
    printed(
        "estimate", "answers.csv", "--method", "own.py:Power", "--engine", "disk", "-o", "o.parquet"
    )


def test_files_and_classes_that_do_not_fit_are_refused() -> None:
    def refused(method: str) -> str:
        return refusal("estimate", "answers.csv", "--method", method)

    assert 'no file "none.py"' in refused("none.py:Power")
    assert 'no algorithm "Other" in "own.py"' in refused("own.py:Other")
    assert '"Power"' in refused("own.py:Other")
    assert 'no algorithm "dataclass"' in refused("own.py:dataclass")
    assert "power=0.0" in refused("own.py:Power:strength=2")
    Path("broken.py").write_text("1 / 0")
    assert "ZeroDivisionError" in refused("broken.py:Power")
    Path("exits.py").write_text("raise SystemExit(0)")
    assert "SystemExit" in refused("exits.py:Power")
    line = refusal(
        "estimate",
        "answers.csv",
        "--method",
        "own.py:Power",
        "--engine",
        "spark",
        "-o",
        "o.parquet",
    )
    assert "--method FILE.py:CLASS: does not work on a cluster" in line


def test_a_state_says_how_to_pass_its_method_again_and_loads_nothing() -> None:
    printed("estimate", "answers.csv", "--method", "own.py:Power:power=2", "--save", "state.trueup")
    del sys.modules["own.py"]
    Path("trace").unlink()
    write("new.csv", [{"question": "q1", "worker": "new", "answer": 11.0}])
    line = refusal("update", "state.trueup", "new.csv")
    assert "Pass it again, --method own.py:Power:power=2" in line
    with pytest.raises(trueup.TrueupError, match="a state holds none"):
        trueup.load("state.trueup")
    assert not Path("trace").exists()
    assert "found" in refusal("update", "state.trueup", "new.csv", "--method", "own.py:Power")
    again = printed("update", "state.trueup", "new.csv", "--method", "own.py:Power:power=2")
    assert "1 answer, 0 questions and 1 worker" in again


def test_a_state_loads_no_code() -> None:
    printed("estimate", "answers.csv", "--method", "crh", "--save", "state.trueup")
    meta, arrays = read_archive("state.trueup", FORMAT, VERSION, oldest=VERSION)
    meta["plan"]["method"] = "own.py:Power"
    write_archive("named.trueup", FORMAT, VERSION, meta, arrays)
    meta["plan"]["method"] = "crh"
    meta["found"]["algorithm"] = {"name": "own.py:Power", "parameters": {}}
    write_archive("found.trueup", FORMAT, VERSION, meta, arrays)
    for state in ("named.trueup", "found.trueup"):
        line = refusal("update", state, "answers.csv", "--duplicates", "replace")
        assert "own.py:Power" in line
        with pytest.raises(trueup.TrueupError, match=r"own\.py:Power"):
            trueup.load(state)
    assert not Path("trace").exists()

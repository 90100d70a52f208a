"""`import trueup` is quick because it leaves heavy packages alone."""

from __future__ import annotations

import subprocess
import sys

import trueup

HEAVY = ("pandas", "polars", "pyarrow", "duckdb", "altair", "pyspark", "scipy.stats", "narwhals")


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert modules_after("import trueup").isdisjoint(HEAVY)


def test_estimating_from_an_array_loads_no_frame_library() -> None:
    loaded = modules_after("import trueup; trueup.estimate([[1., 2.], [2., 4.]], method='crh')")
    assert loaded.isdisjoint(HEAVY)


def test_estimating_from_polars_does_not_load_pandas() -> None:
    loaded = modules_after(
        "import polars, trueup\n"
        "frame = polars.DataFrame({'question': ['a', 'a'], 'worker': ['u', 'v'], 'answer': [1, 2]})\n"
        "trueup.estimate(frame).questions"
    )
    assert loaded.isdisjoint({"pandas", "duckdb", "scipy.stats"})


def test_every_public_name_exists() -> None:
    for name in trueup.__all__:
        assert getattr(trueup, name) is not None


def test_functions_are_not_hidden_by_modules_of_the_same_name() -> None:
    code = (
        "import trueup._estimate, trueup._compare, trueup; "
        "print(callable(trueup.estimate), callable(trueup.compare))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]

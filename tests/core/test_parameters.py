"""Numbers whose squares are none are refused at the door, by the name of their argument."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import disk
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from pathlib import Path

X = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 5.0], [9.0, 1.0, 3.0]])


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-61, 1e61, 1e200])
@pytest.mark.parametrize("argument", ["variance", "worker_variance", "answer_variance"])
def test_variances_that_cannot_be_squared_are_refused(argument: str, size: float) -> None:
    one = np.where(np.eye(3) > 0, size, 1.0)
    value: Any = {"variance": size, "worker_variance": {0: size}, "answer_variance": one}[argument]
    with pytest.raises(TrueupError, match=f"^{argument}: .*from 1e-60 to 1e"):
        trueup.estimate(X, "mean", **{argument: value})


@pytest.mark.parametrize("size", ["1e-200", "1e200"])
def test_so_it_is_on_disk_and_on_the_command_line(tmp_path: Path, size: str) -> None:
    from commands import run

    path = tmp_path / "answers.csv"
    rows = (f"q{j},w{i},{3 * i + j * j},{size}" for i in range(3) for j in range(4))
    path.write_text("\n".join(["question,worker,answer,noise", *rows]))
    values: dict[str, Any] = {"variance": float(size), "worker_variance": {"w1": float(size)}}
    values["answer_variance"] = "noise"
    for argument, value in values.items():
        with pytest.raises(TrueupError, match=r"from 1e-60 to 1e|noise"):
            disk.estimate(path, tmp_path / "out.parquet", "mean", **{argument: value})
    for engine in ("memory", "disk"):
        for option, word in (("variance", size), ("answer-variance", "noise")):
            out = tmp_path / "out.parquet"
            found = run("estimate", path, f"--{option}", word, "-o", out, "--engine", engine)
            assert found.code == 1, found
            assert found.err.startswith("trueup: ")
            assert f"--{option}" in found.err or '"noise"' in found.err
    found = run("diagnose", path, "--target-se", size)
    assert found.code == 1
    assert found.err.startswith(f"trueup: --target-se: found {float(size)}, must be a number")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [1e-320, 1e-161, 1e200, 1e299])
def test_a_target_that_cannot_be_squared_is_refused(size: float) -> None:
    message = rf"^target_se: found {re.escape(str(size))}, must be a number from 1e-60 to 1e\+60"
    with pytest.raises(TrueupError, match=message):
        trueup.diagnose_all(X, panels=0, target_se=size)
    with pytest.raises(TrueupError, match=message):
        trueup.estimate(X).findings.asked(target_se=size)


@pytest.mark.parametrize("method", ["auto", "native", "gtm", "iptd", "blue", "median", "crh"])
def test_variances_at_the_ends_of_the_range_give_numbers(method: str) -> None:
    one = np.array([[1e-60, 1e60, 1.0], [1e60, 1e-60, 1e30], [1.0, 1e-30, 1e60]])
    est = trueup.estimate(X, method, answer_variance=one)
    assert np.isfinite(est.estimate).all()


def test_one_tiny_answer_among_plain_ones_is_no_distance() -> None:
    est = trueup.estimate([[3.0], [0.0], [1e-320]])
    assert est.findings.workers is not None


def test_messages_name_the_argument_of_the_function_that_was_called() -> None:
    one = trueup.Answers.of(X)
    with pytest.raises(TrueupError, match=r"^methods: \"crj\" is not known"):
        trueup.compare(X, ["mean", "crj"])
    with pytest.raises(TrueupError, match=r"^number: found 7, there are panels 0 to 0"):
        one.panel(7)
    with pytest.raises(TrueupError, match=r"^aggregates: found 1 rows"):
        trueup.theory.condition_from_bootstrap([[1.0, 2.0, 3.0, 4.0]], 1.0)
    with pytest.raises(TrueupError, match=r"^variance: found -1"):
        trueup.theory.known_variance_risk([[1.0, 2.0, 3.0, 5.0]] * 2, -1.0)

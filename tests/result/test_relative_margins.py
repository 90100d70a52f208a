"""Where logarithms were combined, errors grow with the value: margins and targets are shares of it."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from trueup.result.tables import least_certain

if TYPE_CHECKING:
    from pathlib import Path

    from trueup import Estimate


def prices(seed: int = 2) -> dict[str, list[object]]:
    """Return guesses of prices; bob guesses too high, and every third item has only three guesses."""
    rng = np.random.default_rng(seed)
    price = np.exp(np.sort(rng.normal(4.0, 1.5, 40)))
    names = ["ann", "bob", "cat", "dan", "eve", "fay"]
    table: dict[str, list[object]] = {"question": [], "worker": [], "answer": []}
    for worker, name in enumerate(names):
        for item in range(40):
            if item % 3 == 0 and worker > 2:
                continue
            factor = np.exp((name == "bob") * 0.4 + 0.2 * rng.normal())
            row = (f"item {item:02d}", name, round(float(price[item] * factor), 4))
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    return table


@pytest.fixture(scope="module")
def est() -> Estimate:
    return trueup.estimate(prices())


def test_the_least_certain_are_those_with_few_answers_not_the_largest(est: Estimate) -> None:
    assert est.diagnosis.transform == "proportional"
    assert est.problem.counts[least_certain(est, 10)].tolist() == [3] * 10
    plain = trueup.estimate(prices(), transform="none")
    largest = np.argsort(-plain.std_error, kind="stable")[:10]
    assert least_certain(plain, 10).tolist() == largest.tolist()


def test_more_answers_are_wanted_for_a_share_of_the_value(est: Estimate) -> None:
    needed = est.findings.answers_needed
    assert needed is not None
    relative = est.std_error / est.estimate
    assert needed.relative
    assert needed.target == pytest.approx(np.median(relative), rel=1e-6)
    assert f"{needed.target:.1%} of the value (the median question's)" in needed.summary
    short = needed.more > 0
    assert (short == (relative > needed.target * (1 + 1e-9))).all()
    asked = est.findings.asked(target_se=5.0).answers_needed
    assert asked is not None
    assert "a standard error of 5:" in asked.summary


def test_the_report_says_so(est: Estimate, tmp_path: Path) -> None:
    pytest.importorskip("altair", reason='needs pip install "trueup[report]"')
    html = est.report(tmp_path / "report.html").read_text("utf-8")
    half = np.median(0.5 * (est.upper - est.lower) / est.estimate)
    assert f"What infinitely many such workers would say is known to ±{half:.0%}" in html
    assert html.count("Answers were combined as logarithms because errors grow") == 1
    assert "Weights of the three models: " in html
    assert "biases of the workers were found and removed" in html
    assert "bias %" in html
    assert "bias (% of the value); positive: answers too high" in html
    assert "typical error of an answer (% of the value)" in html
    assert re.search(r"median worker's typical error is (19|2\d)% of the value", unescape(html))
    agreed = trueup.estimate(prices(), target="consensus")
    half = np.median(0.5 * (agreed.upper - agreed.lower) / agreed.estimate)
    page = agreed.report(tmp_path / "consensus.html").read_text("utf-8")
    assert f"margin of error of ±{half:.0%} (95% interval)" in page
    named = trueup.estimate(prices(), transform="log").report(tmp_path / "log.html")
    assert "The answers were combined as logarithms and converted back." in named.read_text("utf-8")


def test_the_command_line_says_so(tmp_path: Path) -> None:
    for package in ("cyclopts", "duckdb"):
        pytest.importorskip(package, reason='needs pip install "trueup[cli]"')
    from commands import printed

    table = prices()
    lines = [
        "question,worker,answer",
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    (tmp_path / "prices.csv").write_text("\n".join(lines), "utf-8")
    file = str(tmp_path / "prices.csv")
    advice = "; --transform none combines them as they are"
    estimated, doctor, diagnosed, plain = (
        printed(*words)
        for words in (
            ("estimate", file),
            ("doctor", file),
            ("diagnose", file),
            ("diagnose", file, "--transform", "none"),
        )
    )
    assert "Answers were combined as logarithms because" in estimated
    assert "The 10 least certain questions, relative to their value" in estimated
    assert "Weights of the three models: " in estimated
    assert "answers will be combined as logarithms because" in doctor
    for text in (estimated, doctor, diagnosed):
        assert advice in text
    assert "logarithms" not in plain

"""The report names single answers that do not fit, and says that agreement suffers from them."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("altair", reason='needs pip install "trueup[report]"')


def text_of(x: np.ndarray, path: Path) -> str:
    """Return the words of the report of an estimate."""
    html = trueup.estimate(x).report(path).read_text("utf-8")
    return re.sub(r"\s+", " ", re.sub("[\u2068\u2069]|<[^>]*>", "", unescape(html)))


def test_typing_errors_are_listed_with_what_would_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(172.0, 8.0, 40) + rng.normal(0.0, 3.0, (8, 40)))
    text = text_of(x, tmp_path / "clean.html")
    assert "Do the workers agree?" in text
    assert "No answer is suspicious" in text
    assert "suspicious answers are" not in text
    x[3, 17] *= 10.0
    said, fits = f"{x[3, 17]:,.0f}", np.delete(x[:, 17], 3).mean()
    text = text_of(x, tmp_path / "typed.html")
    found = re.search(
        rf"17 ?worker 3 answered {said}; the others suggest about (\d+) \(a factor of 10", text
    )
    assert found
    assert abs(float(found[1]) - fits) < 6.0
    assert "The 1 suspicious answer is included and may lower this a lot." in text
    x[2, 5:12] *= 10.0
    text = text_of(x, tmp_path / "many.html")
    assert "The 8 suspicious answers are included" in text
    assert re.search("3 more ?listed under Suspicious answers", text)


@pytest.mark.parametrize("method", ["auto", "mean"])
def test_a_slip_is_listed_as_an_answer_and_not_held_against_its_worker(
    tmp_path: Path, method: str
) -> None:
    rng = np.random.default_rng(2)
    x = np.exp(rng.normal(4.0, 1.0, 30) + rng.normal(0.0, 0.1, (8, 30)))
    x[7] *= np.exp(rng.normal(0.0, 0.4, 30))
    x[2, 5] *= 1000.0
    html = trueup.estimate(x, method, transform="proportional").report(tmp_path / "r.html")
    page = html.read_text("utf-8")
    lists = dict(re.findall(r"<div><h3>([^<]*)</h3><ol>(.*?)</ol></div>", page, re.DOTALL))
    assert "a factor of 1000 too large?" in lists["Suspicious answers"]
    named = re.findall(r"<b><bdi>(\d+)</bdi></b>", lists["Workers to look at"])
    assert named == ["7"]
    rows = re.search(r'data-search="a worker">.*?<table>(.*?)</table>', page, re.DOTALL)
    assert rows is not None
    errors = [
        float(cells[1].replace(",", ""))
        for cells in (re.findall(r"<td[^>]*>([^<]*)", row) for row in rows[1].split("<tr>")[1:])
        if cells
    ]
    assert max(errors[:7]) < 20.0  # per cent: the slip does not inflate the typical error
    assert errors[7] > 30.0


@pytest.mark.parametrize("unit", [1e-150, 1e-85, 1e100, 1e140])
def test_units_of_any_size_have_a_report(tmp_path: Path, unit: float) -> None:
    rng = np.random.default_rng(1)
    text = text_of(unit * rng.normal(50, 5, (5, 12)), tmp_path / "page.html")
    assert "Do the workers agree?" in text


def test_a_few_enormous_answers_have_a_report(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(0, 1, (6, 40))
    x[0, 3], x[2, 7] = 1e6, -1e6
    est = trueup.estimate(x, "subject_bias", "sure")
    assert est.report(tmp_path / "page.html").exists()

"""The page of a ranking: the same words and numbers as the text, names as data, and panels of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup.report.ranking_page import write_ranking

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trueup.ranking.ranking import Ranking


def rank(
    systems: Sequence[str], items: int = 20, judges: int = 3, alone: bool = False, **options: Any
) -> Ranking:
    """Rank systems, each better than the one before; `alone`: no two on the same item."""
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {"item": [], "model": [], "judge": [], "score": []}
    for s, system in enumerate(systems):
        for p in range(items):
            for i in range(judges):
                row = (f"{p} {s * alone}", system, f"<b>judge {i}", s + rng.normal())
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    return trueup.rank(columns, by="model", item="item", **options)


def page(ranking: Ranking, folder: Path) -> str:
    return ranking.report(folder / "rank.html").read_text(encoding="utf-8")


def test_the_page_says_what_the_text_says(tmp_path: Path) -> None:
    ranking = rank(["old", "new", "big"], items=100)
    text = page(ranking, tmp_path)
    assert "Every difference is clear: big &gt; new &gt; old." in text
    assert "Row minus column" in text
    assert "No judge clearly favours a system." in text
    assert "twice the items" in text
    assert "▲" in text


def test_the_page_says_what_labels_are_worth_and_what_is_cheapest(tmp_path: Path) -> None:
    systems = ["old", "<i>new"]
    known = {(f"{p} 0", system): 0.1 * p + k for p in range(8) for k, system in enumerate(systems)}
    ranking = rank(systems, items=40, gold=known)
    text = page(ranking, tmp_path)
    assert "What the labels are worth with the help of the judges" in text
    assert "&lt;i&gt;new" in text
    assert "Cheapest" not in text
    write_ranking(ranking, tmp_path / "prices.html", cost_item=1.0, cost_answer=0.01)
    text = (tmp_path / "prices.html").read_text(encoding="utf-8")
    assert "Cheapest at these prices: one more judge" in text
    assert ">cost<" in text


def test_names_are_data(tmp_path: Path) -> None:
    text = page(rank(["<script>alert(1)</script>", "</script>", "two\nlines"]), tmp_path)
    assert "<script>alert" not in text
    assert "<b>judge" not in text
    assert "two\nlines" not in text


@pytest.mark.parametrize(
    "ranking",
    [
        lambda: rank(["one"]),
        lambda: rank(["a", "b"], judges=1),
        lambda: rank(["a", "b"], items=1),
        lambda: rank(["a", "b"], alone=True),
        lambda: rank([f"s{k}" for k in range(20)], items=3),
        lambda: rank([f"s{k}" for k in range(52)], items=3, judges=2),
        lambda: rank(["a", "b"], gold={("0 0", "a"): 1.0, ("1 0", "a"): 2.0, ("2 0", "a"): 2.0}),
    ],
)
def test_any_panel_has_a_page(ranking: Any, tmp_path: Path) -> None:
    text = page(ranking(), tmp_path)
    assert "Which system is best?" in text
    assert ">nan<" not in text


def test_a_chart_by_itself() -> None:
    rows = rank(["old", "new"]).plot().to_dict()["datasets"]
    (values,) = rows.values()
    assert [row["system"] for row in values] == ["new", "old"]


def test_a_notebook_shows_the_systems_as_a_table() -> None:
    html = rank(["old", "new", "big"], items=100)._repr_html_()
    assert "<p><b>Every difference is clear: big &gt; new &gt; old.</b></p>" in html
    assert "Effective number of judges: 3 (" in html
    assert html.count("<tr>") == 4
    assert html.index("<bdi>big</bdi>") < html.index("<bdi>new</bdi>") < html.index("<bdi>old")
    assert "twice the items" in html
    assert "ranking.differences" in html
    odd = rank(["<script>alert(1)</script>", "two\nlines", "<b>"])._repr_html_()
    assert "<script" not in odd
    assert "<b>judge" not in odd
    many = rank([f"s{number:02d}" for number in range(20)], items=4)._repr_html_()
    assert many.count("<tr>") == 13
    assert "… and 8 more." in many
    assert "unknown" in rank(["a", "b"], items=1, judges=1)._repr_html_()

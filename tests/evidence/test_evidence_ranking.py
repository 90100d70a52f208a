"""The study of ranking: panels that are what they say, and a page from few samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from evidence import ranking
from evidence.ranking.coverage import cell
from evidence.ranking.designs import Design, draw, frame_of, scores_of, weighted

if TYPE_CHECKING:
    from pathlib import Path


def test_a_family_shares_its_errors() -> None:
    each = draw(Design(5, 4000, 0.0), np.random.default_rng(0), family=2, shared=0.9)
    noise = each.y[0] - each.y[1]
    noise = noise - noise.mean(axis=1, keepdims=True)
    together = np.corrcoef(noise.T)
    assert together[0, 1] > 0.7
    assert abs(together[2, 3]) < 0.4


def test_the_first_step_over_all_panels_is_that_of_each() -> None:
    draws = [draw(Design(4, 30, 0.2, 0.3), np.random.default_rng(k)) for k in range(3)]
    weight, bias = weighted(draws)
    alone, own = weighted(draws[1:2])
    assert weight[1] == pytest.approx(alone[0])
    assert bias[1] == pytest.approx(own[0])
    scores = scores_of(draws[1], weight[1], bias[1])
    assert len(scores.value) == len(frame_of(draws[1])["score"])


def test_intervals_cover_in_a_cell() -> None:
    row = cell(Design(5, 30, 0.2), 100, 0)
    assert row["judges_like_these"] > 0.88
    assert row["these_judges"] > 0.85


def test_a_page_from_few_samples(tmp_path: Path) -> None:
    page = ranking.run(tmp_path, samples=2, progress=False, parts=["bias", "several"])
    assert "Six equal systems" in page.read_text(encoding="utf-8")
    assert (tmp_path / "ranking_several.csv").exists()

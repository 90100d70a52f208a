"""The table of public crowds, and what the prior over crowds says of it."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.crowds import Crowds, figures


def test_the_figures_are_those_of_the_table() -> None:
    crowds = Crowds.read()
    assert len(crowds.x) == 54
    assert crowds.compression == pytest.approx(0.40, abs=0.01)
    mean, deviation = crowds.log_omega
    assert mean == pytest.approx(0.14, abs=0.01)
    assert deviation == pytest.approx(0.76, abs=0.01)
    assert crowds.spread(crowds.offset) == pytest.approx(0.65, abs=0.01)
    assert crowds.families == 19


def test_less_reliable_answers_go_with_more_compression() -> None:
    crowds = Crowds.read()
    rest = crowds.log_slope - crowds.compression * crowds.x
    assert crowds.spread(rest) < 0.8 * crowds.spread(crowds.log_slope)
    assert np.corrcoef(crowds.x, crowds.log_slope)[0, 1] > 0.4


def test_each_constant_has_a_figure_beside_it() -> None:
    rows = figures(Crowds.read())
    assert sum(bool(prior) for _, _, prior in rows) == 5
    assert all(found for _, found, _ in rows)

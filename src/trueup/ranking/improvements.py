"""What other numbers of items, judges and runs would bring, and which is the cheapest way to sharper differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from trueup.ranking.standings import Standings

NOW, ITEMS, JUDGE, RUNS = "as it is", "twice the items", "one more judge", "more runs"
#: Runs that are suggested where there was one, and how many times as many otherwise.
THREE = 3


@dataclass(frozen=True)
class Improvement:
    """A design, and what it would bring.

    Attributes
    ----------
    change : str
        What is changed, in words.
    items, judges, runs : float
        The numbers of the design.
    std_error, half_width : float
        Standard error of a difference of two systems, and half the width of its interval.
    cost : float
        What the change costs; NaN where prices are not known.
    """

    change: str
    items: float
    judges: float
    runs: float
    std_error: float
    half_width: float
    cost: float


def improvements(
    standings: Standings, cost_item: float | None, cost_answer: float | None
) -> list[Improvement]:
    """Return a few designs; the first is the one there is. None where the scores do not tell."""
    items, runs = standings.typical_items, standings.runs
    judges = standings.scores.effective_judges
    components = standings.components
    if not items or not judges or not np.isfinite(components.variance(1, 1)):
        return []
    scores = standings.scores
    answers = len(scores.value) * runs
    # Further items and scores: as many again, those of a judge like the others, and further runs of all.
    designs = [
        (NOW, items, judges, runs, 0.0, 0.0),
        (ITEMS, 2 * items, judges, runs, float(scores.n_items), answers),
        (JUDGE, items, judges + 1, runs, 0.0, answers / scores.n_judges),
    ]
    if components.runs > 0:
        designs.append((RUNS, items, judges, THREE * runs, 0.0, (THREE - 1) * answers))
    priced = cost_item is not None or cost_answer is not None
    ways: list[Improvement] = []
    for change, p, j, r, more_items, more_answers in designs:
        variance = components.variance(p, j, r)
        error = float(np.sqrt(variance))
        of_judges = 2 * components.judges_by_systems / j
        parts = of_judges**2 / max(j - 1, 1) + (variance - of_judges) ** 2 / max(p - 1, 1)
        freedom = max(variance**2 / parts, 1.0) if parts > 0 else np.inf
        quantile = float(stdtrit(freedom, 0.5 + standings.level / 2))
        half = quantile * error
        if ways:
            # More of anything does no harm, though the smaller of two variances may have fewer degrees of freedom.
            half = min(half, ways[0].half_width)
        cost = (cost_item or 0.0) * more_items + (cost_answer or 0.0) * more_answers
        ways.append(Improvement(change, p, j, r, error, half, cost if priced else np.nan))
    return ways


def cheapest(ways: list[Improvement]) -> Improvement | None:
    """Return the change that lowers the variance most for its price; None where there are no prices, or none helps."""
    if not ways:
        return None
    now, *others = ways
    gains = [
        ((now.std_error**2 - way.std_error**2) / way.cost if way.cost else np.inf, way)
        for way in others
        if np.isfinite(way.cost) and way.std_error < now.std_error
    ]
    return max(gains, key=lambda gain: gain[0])[1] if gains else None

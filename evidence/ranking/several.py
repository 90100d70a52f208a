"""Six equal systems: how often some difference is called clear, and how often the gate raises a false alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import seed_for
from evidence.points import Point, near, share_error
from evidence.ranking.designs import Design, draw, scores_of, weighted
from trueup.ranking.gate import decide
from trueup.ranking.standings import Standings
from trueup.report.page import PageTable, Section

if TYPE_CHECKING:
    from evidence.second_step.context import Context

SYSTEMS = 6
#: Largest share of panels with a difference that is none, and of false alarms of the gate.
MOST_CLEAR, MOST_ALARMS = 0.06, 0.03
DESIGNS = [
    Design(judges, items, partial, systems=SYSTEMS)
    for judges in (3, 5, 10)
    for items in (30, 100)
    for partial in (0.0, 0.2, 0.5)
]


def cell(design: Design, samples: int, seed: int) -> dict[str, Any]:
    """Return the shares of panels with a clear difference, and with a gate that says no."""
    rng = np.random.default_rng(seed_for(seed, "several", design.name))
    draws = [draw(design, rng) for _ in range(samples)]
    clear = alarms = 0
    for each, weight, bias in zip(draws, *weighted(draws), strict=True):
        standings = Standings(
            scores_of(each, weight, bias), 0.95, fixed=False, sign=1, run_variance=0.0, runs=1.0
        )
        clear += bool(standings.clearly_better)
        alarms += not decide(standings, list(range(SYSTEMS)), 0, 0.0, "worse").passed
    return {"design": design.name, "clear": clear / samples, "alarms": alarms / samples}


def several(context: Context) -> Section:
    """Measure error rates over several systems."""
    rows = [cell(design, context.samples, context.seed) for design in DESIGNS]
    context.rows["ranking_several"] = rows
    count = context.samples * len(rows)
    clear, alarms = (float(np.mean([row[name] for row in rows])) for name in ("clear", "alarms"))
    context.points += [
        Point(
            3, f"Six equal systems: {what}, mean of {len(rows)} cells", f"{share:.1%}", f"at most {most:.0%}",
            share <= most, near(share, share_error(most, count), high=most),
        )
        for what, share, most in (
            ("some difference is called clear", clear, MOST_CLEAR),
            ("the gate raises a false alarm", alarms, MOST_ALARMS),
        )
    ]  # fmt: skip
    return Section(
        title=f"Six equal systems: a clear difference in {clear:.1%} of panels",
        verdict=(
            f"The gate raises a false alarm in {alarms:.1%}. Target: at most {MOST_CLEAR:.0%} and {MOST_ALARMS:.0%} on "
            f"average; at worst {max(row['clear'] for row in rows):.1%} and {max(row['alarms'] for row in rows):.1%}."
        ),
        holds=clear <= MOST_CLEAR and alarms <= MOST_ALARMS,
        text=(
            f"{context.samples} panels per cell; weights and arithmetic as for the coverage. Fifteen pairs, Holm's "
            "correction; the gate compares five systems with one and fails if some is clearly worse."
        ),
        tables=[
            PageTable(
                "Share of panels with an error",
                ["panel", "a clear difference", "false alarm of the gate"],
                [[row["design"], f"{row['clear']:.3f}", f"{row['alarms']:.3f}"] for row in rows],
            )
        ],
    )

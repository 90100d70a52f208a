"""The estimates: with intervals, as moved by the second step, all of them in a table, and their histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report.draw import (
    BLUE,
    RED,
    ROW,
    WHOLE_NUMBERS,
    Bins,
    inner_axis,
    inner_title,
    marks,
    middle,
    position,
    side_axis,
)
from trueup.report.markup import Rounded
from trueup.report.page import Figure, Section, Table
from trueup.report.sections.context import (
    HALF,
    MOST_DRAWN,
    MOST_ROWS,
    ON_AXIS,
    ROWS_OF_MORE,
    Facts,
    extremes,
    named,
)

if TYPE_CHECKING:
    from trueup.core.arrays import Ints

BEFORE, AFTER = "answers combined", "estimate"
LEGEND = {"_before": BEFORE, "_after": AFTER}  # columns that a legend is made of
STILL = 0.005  # of the width of the chart: a move that cannot be seen


def estimates(facts: Facts) -> Section:
    """Write the section."""
    return Section(
        "The estimates",
        text=(
            "The first step combines the answers to a question into one number (hollow circle). The second step pulls "
            "it toward what is usual here, the more the less certain it is (triangle). The bar is the "
            f"{facts.percent} interval."
        ),
        figures=[Figure(*_finding(facts), table=None), _histogram_figure(facts)],
        tables=[table(facts)],
    )


def drawn(facts: Facts) -> Ints:
    """Return the questions of the chart, by estimate."""
    at = np.arange(facts.m)
    if facts.m > MOST_DRAWN:
        far = np.argsort(-np.abs(np.where(facts.is_gold, 0.0, facts.moved)), kind="stable")
        at = extremes(facts.by_doubt, far)
    return at[np.argsort(-facts.est.estimate[at], kind="stable")]


def shown_part(facts: Facts) -> list[float] | None:
    """Return the part of the axis that is drawn, None for all of it."""
    if facts.est.solution.scale.transform is not None:
        return None
    est, at = facts.est, drawn(facts)
    ends = np.concatenate([each[at] for each in (est.lower, est.upper, est.estimate, est.base)])
    return middle(est.estimate[at], ends)


def chart(facts: Facts) -> dict[str, Any]:
    """Draw questions with intervals and arrows from the first step to the estimate."""
    est, at = facts.est, drawn(facts)
    low, high, value, base = (each[at] for each in (est.lower, est.upper, est.estimate, est.base))
    ends = np.concatenate([low, high, value, base])
    still = STILL * float(np.nanmax(ends) - np.nanmin(ends))
    turn = np.where(value > base + still, "up", np.where(value < base - still, "down", "same"))
    rows = [
        {"q": q, "estimate": e, "base": b, "low": lo, "high": hi, "answers": n, "turn": t, **LEGEND}
        for q, e, b, lo, hi, n, t in zip(
            facts.questions(at, ON_AXIS),
            value.tolist(),
            base.tolist(),
            low.tolist(),
            high.tolist(),
            est.answers.counts[at].tolist(),
            turn.tolist(),
            strict=True,
        )
    ]
    digits = facts.format
    tooltip = [
        {"field": "q", "title": "question", "type": "nominal"},
        {"field": "estimate", "format": digits, "type": "quantitative"},
        {
            "field": "low",
            "format": digits,
            "title": f"{facts.percent} from",
            "type": "quantitative",
        },
        {"field": "high", "format": digits, "title": "to", "type": "quantitative"},
        {"field": "base", "format": digits, "title": BEFORE, "type": "quantitative"},
        {"field": "answers", "type": "quantitative"},
    ]
    y = {"field": "q", "type": "nominal", "sort": None, "title": None, "axis": {"grid": True}}
    title = f"value ({facts.unit})"
    x, x_base, x_low = (position(facts, title, field) for field in ("estimate", "base", "low"))
    domain = shown_part(facts)
    for each in (x, x_base, x_low):
        each["axis"] = side_axis(len(rows))
        if domain is not None:
            each["scale"]["domain"] = domain
    # One scale for the colours of all layers makes one legend.
    hue = marks([AFTER, BEFORE], [BLUE, RED])
    clip = {} if domain is None else {"clip": True}
    layers: list[dict[str, Any]] = []
    if np.isfinite(low).any():
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 7, "opacity": 0.28, "color": BLUE, **clip},
                "encoding": {"x": x_low, "x2": {"field": "high"}},
            }
        )
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, **clip},
            "encoding": {
                "x": x_base,
                "x2": {"field": "estimate"},
                "color": {"field": "_before", "type": "nominal", **hue},
            },
        },
        {
            "mark": {"type": "point", "size": 34, "strokeWidth": 1.5, **clip},
            "encoding": {"x": x_base, "color": {"field": "_before", "type": "nominal", **hue}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **clip},
            "encoding": {
                "x": x,
                "shape": {
                    "field": "turn",
                    "type": "nominal",
                    "scale": {
                        "domain": ["up", "down", "same"],
                        "range": ["triangle-right", "triangle-left", "circle"],
                    },
                    "legend": None,
                },
                "color": {"field": "_after", "type": "nominal", **hue},
            },
        },
    ]
    return {
        "data": {"values": rows},
        "height": ROW * len(rows),
        "encoding": {"y": y, "tooltip": tooltip},
        "layer": layers,
    }


def _finding(facts: Facts) -> tuple[str, dict[str, Any], str]:
    est = facts.est
    low, high = (facts.say(each) for each in (est.estimate.min(), est.estimate.max()))
    title = f"The estimates run from {low} to {high}"
    if facts.knows_intervals:
        width = np.nanmedian(facts.half_width)
        title += f"; a typical one is known to ±{facts.say_size(width)}"
    moved = float(np.median(np.abs(facts.moved)))
    title += f" and was moved by {facts.say_size(moved)}." if moved > 0 else "."
    note = "Sorted by estimate. Hover or tap for the numbers; the table below has them all."
    if facts.m > MOST_DRAWN:
        note = f"Of {facts.m:,} questions the {HALF} least certain and the {HALF} others that were moved most. {note}"
    return title, chart(facts), note


def _histogram_figure(facts: Facts) -> Figure:
    est, scale = facts.est, facts.est.solution.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = scale.forward(est.base), scale.forward(est.estimate)
    bins = Bins.of(np.concatenate([before, after]))
    counts = bins.count(before), bins.count(after)
    edges = bins.edges.tolist()
    rows = [
        {"low": low, "high": high, "before": first, "after": second, **LEGEND}
        for low, high, first, second in zip(edges[:-1], edges[1:], *counts, strict=True)
    ]
    outline = [*rows, {"low": edges[-1], "before": counts[0][-1], **LEGEND}]
    x = {
        "field": "low",
        "type": "quantitative",
        "title": inner_title(facts, "value"),
        "scale": {"zero": False, "nice": False},
        "axis": inner_axis(scale),
    }
    y = {"type": "quantitative", "title": "questions", "axis": WHOLE_NUMBERS}
    hue = marks([AFTER, BEFORE], [BLUE, RED])
    answer = scale.backward(bins.edges)
    tooltip = [
        {"field": "after", "title": "estimates here", "type": "quantitative"},
        {"field": "before", "title": "answers combined here", "type": "quantitative"},
    ]
    spec = {
        "height": 200,
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "bar", "opacity": 0.55, "binSpacing": 1},
                "encoding": {
                    "x": {**x, "bin": "binned"},
                    "x2": {"field": "high"},
                    "y": {**y, "field": "after"},
                    "color": {"field": "_after", "type": "nominal", **hue},
                    "tooltip": tooltip,
                },
            },
            {
                "data": {"values": outline},
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "before"},
                    "color": {"field": "_before", "type": "nominal", **hue},
                },
            },
        ],
    }
    spread = float(np.std(after)), float(np.std(before))
    middle = facts.say(float(np.median(est.estimate)))
    title = f"Half of the estimates are below {middle}"
    if np.isfinite(spread).all() and 0 < spread[0] < 0.995 * spread[1]:
        title += f"; they are spread {1 - spread[0] / spread[1]:.0%} less widely than the answers combined."
    else:
        title += "; they are spread as widely as the answers combined."
    lines = [
        (f"{facts.say(low)} to {facts.say(high)}", first, second)
        for low, high, first, second in zip(answer[:-1], answer[1:], *counts, strict=True)
    ]
    numbers = Table("The numbers", ["values", BEFORE, AFTER], lines)
    return Figure(
        title, spec, f"Filled: the estimates. Outline: before the second step.{bins.note}", numbers
    )


def table(facts: Facts) -> Table:
    """List all questions, or the least certain ones of very many."""
    est = facts.est
    at, note = np.arange(facts.m), "In the order of the input; select a heading to sort."
    if facts.m > MOST_ROWS:
        at = facts.by_doubt[:ROWS_OF_MORE]
        note = (
            f"The {ROWS_OF_MORE:,} least certain of {facts.m:,} questions. A file with all of them: "
            "trueup estimate … -o truths.csv, or est.questions in Python."
        )
    columns = {
        "question": named(facts.questions(at)),
        "estimate": facts.rounded(est.estimate[at]),
        "lower": facts.rounded(est.lower[at]),
        "upper": facts.rounded(est.upper[at]),
        "std. error": facts.rounded(est.std_error[at]),
        "combined": facts.rounded(est.base[at]),
        "moved by": facts.rounded(facts.moved[at]),
        "shrinkage": [Rounded(each, 2) for each in est.shrinkage[at].tolist()],
        "answers": est.answers.counts[at].tolist(),
    }
    if facts.truth is not None:
        columns["truth"] = facts.rounded(facts.truth[at])
    title = "All questions" if len(at) == facts.m else "The least certain questions"
    note += (
        " Combined: the answers before the second step. Shrinkage: the share of the way to what is usual here, 0 for "
        "none of it and 1 for all."
    )
    rows = list(zip(*columns.values(), strict=True))
    return Table(f"{title} ({counted(len(at), 'row')})", list(columns), rows, "a question", note)

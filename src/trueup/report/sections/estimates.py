"""The estimates: chart with intervals and moves, histogram, and a table of all questions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.markup import Rounded
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.report_data import (
    HALF,
    IN_TOOLTIP,
    MOST_DRAWN,
    MOST_ROWS,
    ON_AXIS,
    ROWS_OF_MORE,
    ReportData,
    extremes,
)
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach

if TYPE_CHECKING:
    from trueup.core.arrays import Ints

BEFORE, AFTER = "aggregate", "estimate"
LEGEND = {"_before": BEFORE, "_after": AFTER}  # columns that a legend is made of
STILL = 0.005  # of the width of the chart: a move that cannot be seen


def estimates_section(data: ReportData) -> Section:
    """Write the section."""
    toward = data.est.second_step.target
    second = (
        f"pulls it toward {toward}, uncertain ones further; the result is the estimate (blue, a triangle where it "
        "visibly moved)"
        if data.moved.any()
        else f"would pull it toward {toward}; here it changed nothing, so the aggregate is the estimate (blue)"
    )
    whose = "the truth" if TruthReach(data).merged else CONSENSUS
    bar = f" The bar is the {data.percent} interval for {whose}." if data.knows_intervals else ""
    return Section(
        "Estimates",
        text=(
            "Aggregation (first step) combines the answers to a question into one number, the aggregate"
            f"{' (orange circle)' if data.moved.any() else ''}. Shrinkage (second step) {second}.{bar}"
        ),
        figures=[_intervals_figure(data), _histogram_figure(data)],
        tables=[question_table(data)],
    )


def _drawn(data: ReportData) -> Ints:
    """Return the questions of the chart, by estimate."""
    indices = np.arange(data.m)
    if data.m > MOST_DRAWN:
        indices = extremes(data.by_uncertainty, data.by_move)
    return indices[np.argsort(-data.est.estimate[indices], kind="stable")]


def estimates_chart(data: ReportData) -> dict[str, Any]:
    """Draw questions with intervals and arrows from the first step to the estimate."""
    est, indices = data.est, _drawn(data)
    low, high, value, base = (
        column[indices] for column in (est.lower, est.upper, est.estimate, est.base)
    )
    ends = np.concatenate([low, high, value, base])
    still = STILL * float(np.nanmax(ends) - np.nanmin(ends))
    rows = chart_parts.records(
        q=data.questions(indices, ON_AXIS),
        id=data.questions(indices, IN_TOOLTIP),
        estimate=value,
        base=base,
        low=low,
        high=high,
        answers=data.problem.counts[indices],
        turn=np.where(value > base + still, "up", np.where(value < base - still, "down", "same")),
    )
    domain = chart_parts.shown_range(data, value, ends)
    x, x_base, x_low = (
        chart_parts.position(data, f"value ({data.unit})", field)
        for field in ("estimate", "base", "low")
    )
    for encoding in (x, x_base, x_low):
        encoding["axis"] = chart_parts.side_axis(len(rows))
        if domain is not None:
            encoding["scale"] |= {"domain": domain, "nice": False}
    clip = {} if domain is None or data.transform else {"clip": True}
    before, after = _hues([AFTER, BEFORE] if data.moved.any() else [AFTER])
    layers = [
        chart_parts.layer(
            {"type": "rule", "strokeWidth": 1.5, **clip}, x=x_base, x2={"field": "estimate"}
        ),
        chart_parts.layer({"type": "point", "size": 34, "strokeWidth": 1.5, **clip}, x=x_base),
        chart_parts.layer(chart_parts.dot(55, **clip), x=x, color=after),
    ]
    for drawn in layers[:2]:
        drawn["encoding"]["color"] = before
    turns, shapes = ["up", "down", "same"], ["triangle-right", "triangle-left", "circle"]
    layers[2]["encoding"]["shape"] = {**chart_parts.category("turn", turns, shapes), "legend": None}
    if not data.moved.any():  # then the aggregates are the estimates
        layers = layers[2:]
    if np.isfinite(low).any():
        bar = chart_parts.interval_bar(strokeWidth=7, color=chart_parts.BLUE, **clip)
        layers.insert(0, chart_parts.layer(bar, x=x_low, x2={"field": "high"}))
    tooltip = [
        chart_parts.name("id", "question"),
        chart_parts.quantity("estimate", digits=data.digits),
        *chart_parts.interval_tooltip(data.percent, data.digits),
        chart_parts.quantity("base", BEFORE, data.digits),
        chart_parts.quantity("answers"),
    ]
    return {
        "data": {"values": [{**row, **LEGEND} for row in rows]},
        "height": chart_parts.ROW * len(rows),
        "encoding": {"y": {"field": "q", **chart_parts.NAMES_DOWN}, "tooltip": tooltip},
        "layer": layers,
    }


def _hues(shown: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the colours before and after the second step: one scale, so that all layers share one legend."""
    before, after = (
        chart_parts.category(
            field, shown, [chart_parts.BLUE, chart_parts.RED][: len(shown)], symbolType="circle"
        )
        for field in LEGEND
    )
    return before, after


def _intervals_figure(data: ReportData) -> Figure:
    est = data.est
    low, high = data.say(est.estimate.min()), data.say_value(est.estimate.max())
    title = f"The estimates range from {low} to {high}"
    if data.knows_intervals:
        whose = "truth" if TruthReach(data).merged else "consensus"
        title += f"; the typical interval for the {whose} is {data.say_margin(data.typical_margin)}"
    note = "Sorted by estimate. Hover or tap for the numbers; the table below lists them all."
    if data.m > MOST_DRAWN:
        others = f"{HALF} others that moved most" if data.moved.any() else f"first {HALF} others"
        shown = f"the {HALF} least certain and the {others} are shown"
        note = f"Of {data.m:,} questions, {shown}. {note}"
    about = f"Estimates of {counted(data.m, 'question')}"
    if data.knows_intervals:
        about += f" with {data.percent} intervals for {'the truth' if TruthReach(data).merged else 'the consensus'}"
    return Figure(f"{title}.", estimates_chart(data), note, about=f"{about}; {data.basis}.")


def _histogram_figure(data: ReportData) -> Figure:
    est, scale = data.est, data.est.solution.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = scale.forward_truths(est.base), scale.forward_truths(est.estimate)
    bins = chart_parts.Bins.of(np.concatenate([before, after]))
    counts = bins.count(before), bins.count(after)
    low, high, tallest = bins.edges[:-1], bins.edges[1:], max(map(max, counts))
    rows = chart_parts.records(low=low, high=high, before=counts[0], after=counts[1])
    rows = [{**row, **LEGEND} for row in rows]
    outline = [*rows, {"low": high[-1], "before": counts[0][-1], **LEGEND}]
    x = {
        **chart_parts.quantity("low", chart_parts.inner_title(data, "value")),
        "scale": {"zero": False, "nice": False},
        "axis": chart_parts.inner_axis(scale),
    }
    y_before, y_after = (
        {**chart_parts.quantity(field, "questions"), "axis": chart_parts.count_axis(tallest)}
        for field in ("before", "after")
    )
    before_hue, after_hue = _hues([AFTER, BEFORE])
    bars = chart_parts.layer(
        {"type": "bar", "opacity": 0.55, "binSpacing": 1},
        rows,
        x={**x, "bin": "binned"},
        x2={"field": "high"},
        y=y_after,
        color=after_hue,
        tooltip=[
            chart_parts.quantity("after", "estimates here"),
            chart_parts.quantity("before", "aggregates here"),
        ],
    )
    steps = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}
    spec = {
        "height": 200,
        "layer": [bars, chart_parts.layer(steps, outline, x=x, y=y_before, color=before_hue)],
    }
    spread = float(np.std(after)), float(np.std(before))
    title = f"Half of the estimates are below {data.say_value(float(np.median(est.estimate)))}"
    ratio = spread[0] / spread[1] if np.isfinite(spread).all() and min(spread) > 0 else 1.0
    if abs(ratio - 1.0) > 0.005:
        word = "smaller" if ratio < 1.0 else "larger"
        title += f"; their spread is {abs(1.0 - ratio):.0%} {word} than that of the aggregates."
    else:
        title += "; their spread equals that of the aggregates."
    edges = [data.say(edge) for edge in scale.backward(bins.edges)]
    spans = [f"{start} to {end}" for start, end in pairwise(edges)]
    lines = list(zip(spans, *counts, strict=True))
    numbers = PageTable("Numbers", ["values", BEFORE, AFTER], lines)
    note = f"Filled: the estimates. Outline: before the second step.{bins.note}"
    about = f"Histogram of {counted(data.m, 'estimate')}, before and after the second step; {data.basis}."
    return Figure(title, spec, note, numbers, about)


def _titled(name: str, data: ReportData) -> str:
    return f"{name} ({data.unit_name})" if data.unit_name else name


def question_table(data: ReportData) -> PageTable:
    """List all questions, or the least certain ones of very many."""
    est, reach = data.est, TruthReach(data)
    two = reach.is_known and not reach.merged
    indices, note = np.arange(data.m), "In the order of the input; select a heading to sort."
    if data.m > MOST_ROWS:
        indices = data.by_uncertainty[:ROWS_OF_MORE]
        note = (
            f"The {ROWS_OF_MORE:,} least certain of {data.m:,} questions. For a file with all of them: "
            "trueup estimate … -o truths.csv, or est.questions in Python."
        )
    in_answer_units = {
        _titled("estimate", data): est.estimate,
        "lower": est.lower,
        "upper": est.upper,
        **({"truth lower": est.truth_lower, "truth upper": est.truth_upper} if two else {}),
        "std. error": est.std_error,
        "aggregate": est.base,
        "moved by": data.moved,
    }
    columns: dict[str, list[Any]] = {
        "question": list(data.question_cells(indices)),
        **{title: list(data.rounded(values[indices])) for title, values in in_answer_units.items()},
        "shrinkage": [Rounded(share, 2) for share in est.shrinkage[indices].tolist()],
        "answers": data.problem.counts[indices].tolist(),
    }
    if data.truth is not None:
        columns["truth"] = list(data.rounded(data.truth[indices]))
    title = "All questions" if len(indices) == data.m else "The least certain questions"
    note += (
        " Aggregate: the estimate before the second step. Shrinkage: how far the second step moved it toward "
        f"{est.second_step.target}, from 0 (not at all) to 1 (all the way)."
    )
    if data.unit_name:
        note += f" Unit: {data.unit_name}."
    if two:
        note += " Lower, upper: the interval for the consensus. Truth lower, truth upper: that for the truth."
    rows = list(zip(*columns.values(), strict=True))
    return PageTable(
        f"{title} ({counted(len(indices), 'row')})", list(columns), rows, "a question", note
    )

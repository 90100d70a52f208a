"""The workers: weight, typical error with its interval, bias, and whom to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.markup import Rounded, decimals
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.report_data import (
    HALF,
    IN_TOOLTIP,
    MOST_DRAWN,
    MOST_ROWS,
    ON_AXIS,
    ROWS_OF_MORE,
    ReportData,
    brief,
    extremes,
)
from trueup.report.sections.worker_rows import CLEAR, WorkerRows

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

LEVEL = "95%"  # of intervals of typical errors and biases
ORDINARY, LOOK_AT = "other workers", "to look at"
HUES = {ORDINARY: chart_parts.BLUE, LOOK_AT: chart_parts.RED}
SHAPES = {ORDINARY: "circle", LOOK_AT: "diamond"}
DOWN = {"field": "w", **chart_parts.NAMES_DOWN}
REMOVED = "The estimates are corrected for these biases."
REMOVED_BEFORE = "The answers were corrected for these biases before they were combined."
NOT_REMOVED = (
    "Biases are shown here but were not removed from the estimates; bias=True removes them."
)
NOT_CLEAR = (
    "Biases are shown here but were not removed: together they are no larger than chance explains."
)


def workers_section(data: ReportData, workers: WorkerRows) -> Section:
    """Write the section."""
    text = (
        "The closer a worker's answers are to the estimates, the more weight they get. Weight is the worker's share in "
        "a question that everybody answers. Typical error is the standard deviation of the error of a single answer; "
        "with few answers it is uncertain."
    )
    figures = []
    if np.isfinite(workers.deviation).any():
        figures.append(_error_figure(data, workers))
    else:
        text += " Here it is unknown, because no two workers answered the same question."
    if np.nan_to_num(workers.bias).any():
        figures.append(_bias_figure(data, workers))
    return Section("Workers", text=text, figures=figures, tables=[worker_table(data, workers)])


def _drawn(workers: WorkerRows) -> Ints:
    """Return the workers of the chart, the noisiest first."""
    order = workers.by_noise
    order = order[np.isfinite(workers.deviation[order])]
    if len(order) <= MOST_DRAWN:
        return order
    by_count = order[np.argsort(-workers.count[order], kind="stable")]
    chosen = extremes(order, by_count)
    return chosen[np.argsort(-workers.deviation[chosen], kind="stable")]


def workers_chart(data: ReportData, workers: WorkerRows) -> dict[str, Any]:
    """Draw the typical error of each worker with its interval."""
    indices = _drawn(workers)
    low, high, deviation = (
        column[indices] for column in (workers.low, workers.high, workers.deviation)
    )
    flagged = np.isin(indices, workers.to_look_at)
    rows = chart_parts.records(
        w=data.workers(indices, ON_AXIS),
        id=data.workers(indices, IN_TOOLTIP),
        error=deviation,
        low=low,
        high=high,
        answers=workers.count[indices],
        weight=workers.weight[indices],
        flag=["; ".join(workers.remarks[i]) or "nothing stands out" for i in indices.tolist()],
        look=np.where(flagged, LOOK_AT, ORDINARY),
    )
    x: dict[str, Any] = {
        "type": "quantitative",
        "title": f"typical error of an answer ({_unit(data)})",
        "scale": {"zero": True},
        "axis": chart_parts.side_axis(len(rows)),
    }
    kinds = [kind for kind, some in ((ORDINARY, ~flagged), (LOOK_AT, flagged)) if some.any()]
    hue, shape = (
        chart_parts.category("look", kinds, [values[kind] for kind in kinds])
        for values in (HUES, SHAPES)
    )
    tooltip = [
        chart_parts.name("id", "worker"),
        chart_parts.quantity("error", digits=chart_parts.DIGITS),
        *chart_parts.interval_tooltip(LEVEL, chart_parts.DIGITS),
        chart_parts.quantity("weight", digits=".1%"),
        chart_parts.quantity("answers"),
        chart_parts.name("flag", "remarks"),
    ]
    bars = []
    if np.isfinite(low).any():
        x["scale"] = {"domain": [0, _end(deviation, high)], "nice": True}
        ends: dict[str, Any] = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
        bars = [
            chart_parts.layer(
                chart_parts.interval_bar(clip=True), y=DOWN, **ends, color=hue, tooltip=tooltip
            )
        ]
    at_error: dict[str, Any] = {"x": {**x, "field": "error"}, "y": DOWN}
    points = chart_parts.layer(
        chart_parts.dot(60, clip=True), **at_error, color=hue, shape=shape, tooltip=tooltip
    )
    return {
        "data": {"values": rows},
        "height": chart_parts.ROW * len(rows),
        "layer": [chart_parts.reference_line("x", workers.typical, x), *bars, points],
    }


def _end(values: Floats, high: Floats) -> float:
    """Return the end of the axis: the interval of a worker with very few answers must not squeeze all others."""
    top = float(np.nanmax(values))
    ends = high[np.isfinite(high)]
    return max(top, min(float(ends.max()), 2.0 * top)) * 1.02 if len(ends) else top * 1.05


def _error_figure(data: ReportData, workers: WorkerRows) -> Figure:
    errors = workers.deviation[np.isfinite(workers.deviation)]
    best, worst = float(errors.min()), float(errors.max())

    def say(error: float) -> str:
        return f"{error:,.0f}% of the value" if data.in_logarithms else data.with_unit(brief(error))

    if len(errors) == 1:
        title = f"The worker's typical error is {say(best)}."
    elif best > 0 and worst / best < 1.05:
        title = (
            f"All workers are about equally precise: their typical error is {say(workers.typical)}."
        )
    else:
        title = (
            f"The median worker's typical error is {say(workers.typical)}; the best worker's is {say(best)}, the worst "
            f"worker's {say(worst)}."
        )
    note = f"Bar: {LEVEL} interval of the typical error. Dashed line: the median worker."
    if len(errors) > MOST_DRAWN:
        note = (
            f"Of {len(errors):,} workers, the {HALF} with the largest errors and the {HALF} others with the most "
            f"answers are shown. {note}"
        )
    about = (
        f"Typical errors (standard deviations) of {counted(len(errors), 'worker')} with {LEVEL} intervals; "
        f"{data.basis}."
    )
    return Figure(title, workers_chart(data, workers), note, about=about)


def _bias_figure(data: ReportData, workers: WorkerRows) -> Figure:
    known = np.flatnonzero(np.isfinite(workers.bias))
    order = known[np.argsort(-np.abs(workers.bias[known]), kind="stable")][:MOST_DRAWN]
    order = order[np.argsort(-workers.bias[order], kind="stable")]
    bias, margin = workers.bias[order], np.nan_to_num(CLEAR * workers.bias_error)[order]
    ends = (_said_bias(data, values) for values in (bias, bias - margin, bias + margin))
    rows = chart_parts.records(
        w=data.workers(order, ON_AXIS), **dict(zip(("bias", "low", "high"), ends, strict=True))
    )
    x = {
        "type": "quantitative",
        "title": f"bias ({_unit(data)}); positive: answers too high",
        "axis": chart_parts.side_axis(len(rows)),
    }
    bars = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    at_bias = {"x": {**x, "field": "bias"}, "y": DOWN}
    tooltip = [
        chart_parts.name("w", "worker"),
        chart_parts.quantity("bias", digits=chart_parts.DIGITS),
    ]
    spec = {
        "height": chart_parts.ROW * len(rows),
        "layer": [
            chart_parts.reference_line("x", 0, x),
            chart_parts.layer(
                chart_parts.interval_bar(color=chart_parts.BLUE), rows, y=DOWN, **bars
            ),
            chart_parts.layer(
                chart_parts.dot(60, color=chart_parts.BLUE), rows, **at_bias, tooltip=tooltip
            ),
        ],
    }
    clear = int((np.abs(workers.bias) > CLEAR * np.nan_to_num(workers.bias_error)).sum())
    answer = "answers" if clear == 1 else "answer"
    title = (
        f"{clear:,} of {counted(len(workers.bias), 'worker')} clearly {answer} too high or too low on average."
        if clear
        else "No worker clearly answers too high or too low on average."
    )
    note = (
        f"Bar: {LEVEL} interval of the bias. The bias of a worker with few answers is assumed to be small until there "
        f"is more evidence. {_removal(data, workers)}"
    )
    if len(known) > len(order):
        note += f" The {len(order)} largest of {len(known):,} are shown."
    about = f"Biases of {counted(len(known), 'worker')} with {LEVEL} intervals; {data.basis}."
    return Figure(title, spec, note, about=about)


def _unit(data: ReportData) -> str:
    """Return the unit of typical errors and biases."""
    return "% of the value" if data.in_logarithms else data.inner_unit


def _said_bias(data: ReportData, bias: Floats) -> Floats:
    """Return biases as they are shown: those of logarithms in per cent of the value."""
    return 100.0 * np.expm1(bias) if data.in_logarithms else bias


def _removal(data: ReportData, workers: WorkerRows) -> str:
    """Say whether the biases were removed, and by whom."""
    algorithm = data.est.aggregate.algorithm
    if workers.biases_removed:
        return REMOVED if algorithm.concludes else REMOVED_BEFORE
    return NOT_CLEAR if getattr(algorithm, "biases", False) else NOT_REMOVED


def worker_table(data: ReportData, workers: WorkerRows) -> PageTable:
    """List all workers, or those to look at and those with the most answers of very many."""
    total = len(workers.weight)
    indices, note = np.arange(total), "In the order of the input; select a heading to sort."
    if total > MOST_ROWS:
        by_count = np.argsort(-workers.count, kind="stable")
        indices = extremes(workers.to_look_at, by_count, ROWS_OF_MORE // 2)
        note = (
            f"{counted(len(indices), 'worker')} of {total:,}: those to look at, and those with the most answers. For a "
            "file with all of them: trueup estimate … --workers workers.csv, or est.workers in Python."
        )
    places = decimals(0.1 * workers.typical, workers.typical)

    def rounded(values: Floats, places: int | None = places) -> list[Rounded]:
        return [Rounded(value, places) for value in values[indices].tolist()]

    columns: dict[str, list[Any]] = {
        "worker": list(data.worker_cells(indices)),
        "weight %": list(rounded(100.0 * workers.weight, 1)),
        "typical error %" if data.in_logarithms else "typical error": list(
            rounded(workers.deviation)
        ),
        "from": list(rounded(workers.low)),
        "to": list(rounded(workers.high)),
        "variance of logarithms" if data.in_logarithms else "variance": workers.variance[
            indices
        ].tolist(),
    }
    if np.isfinite(workers.bias).any():
        if data.in_logarithms:
            columns["bias %"] = list(rounded(_said_bias(data, workers.bias), 1))
        else:
            columns["bias"] = list(rounded(workers.bias))
        note += "" if workers.biases_removed else f" {_removal(data, workers)}"
    columns["answers"] = workers.count[indices].tolist()
    columns["remarks"] = ["; ".join(workers.remarks[i]) for i in indices.tolist()]
    rows = list(zip(*columns.values(), strict=True))
    title = f"Workers ({counted(len(indices), 'row')})"
    return PageTable(title, list(columns), rows, "a worker", note)

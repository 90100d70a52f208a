"""Comparison with known truths: errors, coverage of the intervals, and a chart of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, counted
from trueup.report import chart_parts
from trueup.report.page import Figure, PageTable, Section
from trueup.report.parts import Cards
from trueup.report.sections.report_data import ReportData, brief, percent

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

MOST_POINTS = 800
INSIDE, OUTSIDE, NO_INTERVAL = "in its interval", "outside", "no interval"
HUES = {INSIDE: chart_parts.BLUE, OUTSIDE: chart_parts.RED, NO_INTERVAL: chart_parts.FAINT}
FEW = 30  # questions below which a ratio of errors is mostly chance
DIAGONAL = {"type": "line", "strokeDash": [4, 4], "color": chart_parts.FAINT, "strokeWidth": 1}


def check_truth(truth: Any, questions: int) -> Floats | None:
    """Check the truth; return it as an array, None where none is known."""
    if truth is None:
        return None
    try:
        values = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError):
        raise TrueupError(
            "expected one number per question, NaN where unknown.", argument="truth"
        ) from None
    if values.shape != (questions,):
        raise TrueupError(
            f"found shape {values.shape}, expected one number for each of the {questions} questions, NaN where "
            "unknown.",
            argument="truth",
        )
    if np.isinf(values).any():
        raise TrueupError("must be finite, NaN where unknown.", argument="truth")
    return None if np.isnan(values).all() else values


def truth_section(data: ReportData) -> Section | None:
    """Write the section; None where no truth is known of a question that was estimated."""
    est, truth = data.est, data.truth
    if truth is None:
        return None
    used = data.is_gold & (est.estimate == truth)  # truths that the estimate was given as gold
    indices = np.flatnonzero(~np.isnan(truth) & ~used)
    if len(indices) == 0:
        return None
    before, after = (column[indices] - truth[indices] for column in (est.base, est.estimate))
    mse = float((before**2).mean()), float((after**2).mean())
    rmse = float(np.sqrt(mse[0])), float(np.sqrt(mse[1]))
    cards = [
        (brief(rmse[1]), "root mean squared error", "of the estimates"),
        (brief(rmse[0]), "before the second step", "root mean squared error of the aggregates"),
    ]
    has_interval = np.isfinite(est.lower[indices])
    others = f"besides the {int(used.sum()):,} given as gold" if used.any() else "and was not used"
    text = f"The truth of {counted(len(indices), 'question')} is known {others}."
    if has_interval.any():
        share = float(_inside(data, truth, indices)[has_interval].mean())
        covered = "of the truths are in their interval"
        cards.append((percent(share), covered, f"target: {data.percent}"))
        error = 2.0 * np.sqrt(est.level * (1 - est.level) / has_interval.sum())
        if share < est.level - error:
            text += (
                " Fewer of them are in their interval than should be: workers share an error that their answers cannot "
                "show. Give some known truths as gold to correct it and to widen the intervals."
            )
    if mse[0] > 0:
        change = mse[1] / mse[0] - 1.0
        effect = "The second step changed nothing."
        if change != 0:
            word = "lowered" if change < 0 else "raised"
            effect = f"The second step {word} the mean squared error by {percent(abs(change))}"
            few = f"; with only {counted(len(indices), 'question')} that may be chance"
            effect += "." if len(indices) >= FEW else f"{few}."
        text = f"{effect} {text}"
    absolute = float(np.abs(before).mean()), float(np.abs(after).mean())
    rows = list(zip(("aggregate (first step)", "estimate"), mse, rmse, absolute, strict=True))
    columns = ["", "mean squared error", "root mean squared error", "mean absolute error"]
    figure = _figure(data, truth, indices, PageTable("Errors", columns, rows))
    return Section(
        "Comparison with known truths", text=text, parts=[Cards(cards)], figures=[figure]
    )


def _inside(data: ReportData, truth: Floats, indices: Ints) -> Any:
    """Return which of some questions have their truth in their interval."""
    low, high = data.est.lower[indices], data.est.upper[indices]
    return (low <= truth[indices]) & (truth[indices] <= high)


def _figure(data: ReportData, truth: Floats, indices: Ints, errors: PageTable) -> Figure:
    est, total = data.est, len(indices)
    if total > MOST_POINTS:
        indices = np.sort(np.random.default_rng(0).choice(indices, MOST_POINTS, replace=False))
    low, value, true = est.lower[indices], est.estimate[indices], truth[indices]
    where = np.where(_inside(data, truth, indices), INSIDE, OUTSIDE)
    where = np.where(np.isnan(low), NO_INTERVAL, where)
    names = data.questions(indices)
    rows = chart_parts.records(
        q=names, truth=true, estimate=value, low=low, high=est.upper[indices], where=where
    )
    both = np.concatenate([true, value])
    ends = [float(both.min()), float(both.max())]
    x = chart_parts.position(data, f"truth ({data.unit})", "truth")
    y = chart_parts.position(data, f"estimate ({data.unit})", "estimate")
    if x["scale"]["type"] == "log" and ends[0] <= 0:
        for axis in (x, y):
            axis["scale"] = {"type": "symlog"}
    shown = [kind for kind in HUES if kind in where]
    hue = chart_parts.category("where", shown, [HUES[kind] for kind in shown], symbolType="circle")
    tooltip = [
        chart_parts.name("q", "question"),
        *(chart_parts.quantity(field, digits=data.digits) for field in ("truth", "estimate")),
        *chart_parts.interval_tooltip(data.percent, data.digits),
    ]
    layers = [
        chart_parts.layer(DIAGONAL, chart_parts.records(truth=ends, estimate=ends), x=x, y=y),
        chart_parts.layer(
            chart_parts.dot(36, opacity=0.9), rows, x=x, y=y, color=hue, tooltip=tooltip
        ),
    ]
    if not np.isnan(low).all():
        bar, y_low = {"type": "rule", "opacity": 0.3}, {**y, "field": "low"}
        layers.insert(
            1, chart_parts.layer(bar, rows, x=x, y=y_low, y2={"field": "high"}, color=hue)
        )
    difference = value - true
    mean_error = float(np.mean(difference))
    std_error = float(np.std(difference)) / np.sqrt(len(indices))
    title = "On average the estimates are neither too high nor too low."
    if len(indices) > 1 and abs(mean_error) > 2.0 * std_error:
        side = "high" if mean_error > 0 else "low"
        title = f"On average the estimates are {data.say_size(abs(mean_error))} too {side}."
    note = "Points on the dashed line are exactly right."
    if total > len(indices):
        note += f" A random sample of {len(indices):,} of {total:,} questions is shown."
    return Figure(title, {"height": 360, "layer": layers}, note, errors)

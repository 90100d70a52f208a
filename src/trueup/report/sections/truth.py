"""Comparison with known truths: errors, coverage of the intervals, and a chart of both."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._compare import truth_request
from trueup.answers.answers import Answers
from trueup.answers.scale import check_truths
from trueup.errors import counted
from trueup.io.question_data.match import QuestionsById
from trueup.report import chart_parts
from trueup.report.page import Figure, PageTable, Section
from trueup.report.parts import Cards
from trueup.report.sections.report_data import ReportData, brief, is_dominated, percent
from trueup.report.sections.truth_reach import TruthReach
from trueup.report.sections.worker_rows import isolated

if TYPE_CHECKING:
    from trueup.core.arrays import Bools, Floats, Ints
    from trueup.result.estimate import Estimate

MOST_POINTS = 800
INSIDE, OUTSIDE, NO_INTERVAL = "in its interval", "outside", "no interval"
IN_CONSENSUS, IN_TRUTH = "in the interval for the consensus", "only in that for the truth"
HUES = {
    INSIDE: chart_parts.BLUE,
    IN_CONSENSUS: chart_parts.BLUE,
    IN_TRUTH: chart_parts.GREEN,
    OUTSIDE: chart_parts.RED,
    NO_INTERVAL: chart_parts.FAINT,
}
FEW = 30  # questions below which a ratio of errors is mostly chance
DIAGONAL = {"type": "line", "strokeDash": [4, 4], "color": chart_parts.FAINT, "strokeWidth": 1}


def known_truths(est: Estimate, truth: Any) -> Floats | None:
    """Return the truth of each question, given in any form that `gold` may have; None where none is known."""
    if truth is None:
        return None
    problem, source = est.problem, est.request.source
    questions: Any = problem
    if not isinstance(problem, Answers):
        questions = QuestionsById(problem.question_ids, names=problem.names, unit=problem.unit)
    data = source if isinstance(source, str | PathLike) else None
    known = truth_request(truth, est.request).read(questions, data).gold
    if known is None or np.isnan(known).all():
        return None
    if problem.n_panels == 1:
        check_truths(known, est.solution.scale, problem.question_ids.name, "truth")
    return known


def truth_section(data: ReportData) -> Section | None:
    """Write the section; None where no truth is known of a question that was estimated."""
    est, truth = data.est, data.truth
    if truth is None:
        return None
    used = data.is_gold & ~np.isnan(truth)
    indices = np.flatnonzero(~np.isnan(truth) & ~used)
    if len(indices) == 0:
        return None
    before, after = (column[indices] - truth[indices] for column in (est.base, est.estimate))
    mse = float((before**2).mean()), float((after**2).mean())
    rmse = float(np.sqrt(mse[0])), float(np.sqrt(mse[1]))
    cards = [
        (data.with_unit(brief(rmse[1])), "root mean squared error", "of the estimates"),
        (
            data.with_unit(brief(rmse[0])),
            "before the second step",
            "root mean squared error of the aggregates",
        ),
    ]
    others = f"besides the {int(used.sum()):,} given as gold" if used.any() else "and was not used"
    text = f"The truth of {counted(len(indices), 'question')} is known {others}."
    covered, remark = _coverage(data, truth, indices)
    cards += covered
    text += remark
    if mse[0] > 0:
        change = mse[1] / mse[0] - 1.0
        effect = "The second step changed nothing."
        if change != 0 and (is_dominated(before**2) or is_dominated(after**2)):
            worst = data.questions(indices[[int(np.argmax(before**2))]])[0]
            effect = (
                f"Most of the squared error comes from a single question ({isolated(worst)}): how it changed says "
                "little about the others."
            )
        elif change != 0:
            word = "lowered" if change < 0 else "raised"
            step = "The second step" + (" with the known truths" if used.any() else "")
            effect = f"{step} {word} the mean squared error by {percent(abs(change))}"
            few = f"; with only {counted(len(indices), 'question')} that may be chance"
            effect += "." if len(indices) >= FEW else f"{few}."
        text += f" {effect}"
    absolute = float(np.abs(before).mean()), float(np.abs(after).mean())
    rows = list(zip(("aggregate (first step)", "estimate"), mse, rmse, absolute, strict=True))
    columns = ["", "mean squared error", "root mean squared error", "mean absolute error"]
    figure = _figure(data, truth, indices, PageTable("Errors", columns, rows))
    return Section(
        "Comparison with known truths", text=text, parts=[Cards(cards)], figures=[figure]
    )


def _coverage(
    data: ReportData, truth: Floats, indices: Ints
) -> tuple[list[tuple[str, str, str]], str]:
    """Return cards with the shares of truths inside the intervals, and what to make of them."""
    est, reach, cards = data.est, TruthReach(data), []
    two = reach.is_known and not reach.merged
    ends = {"interval": (est.lower, est.upper)}
    if two:
        ends = {
            "interval for the truth": (est.truth_lower, est.truth_upper),
            "interval for the consensus": ends["interval"],
        }
    missed = {}
    for name, (low, high) in ends.items():
        usable = indices[np.isfinite(low[indices])]
        if len(usable) == 0:
            continue
        share = float(_inside(truth, low, high, usable).mean())
        remark = f"target: {data.percent}{' on average over crowds' if two else ''}"
        if name.endswith("consensus"):
            remark = "leaves out errors that all workers share"
        cards.append((percent(share), f"of the truths are in their {name}", remark))
        error = 2.0 * np.sqrt(est.level * (1 - est.level) / len(usable))
        missed[name] = share < est.level - error
    if missed.get("interval for the truth", False):
        text = (
            " Fewer of them are in their interval for the truth than on average over crowds like the public ones: this "
            "crowd errs more than most. Give some known truths as gold to correct it and to widen the intervals."
        )
    elif missed.get("interval for the consensus", False):
        text = (
            " Workers share an error that their answers cannot show. The interval for the consensus leaves it out; the "
            "interval for the truth allows for it."
        )
    elif missed.get("interval", False) and reach.merged:
        text = (
            " Fewer of them are in their interval than should be: questions with known truths may be unlike others, "
            "or this crowd errs more than most. More known truths would widen the intervals."
        )
    elif missed.get("interval", False):
        text = (
            " Fewer of them are in their interval than should be: workers share an error that their answers cannot "
            "show. Give some known truths as gold to correct it and to widen the intervals."
        )
    else:
        text = ""
    return cards, text


def _inside(truth: Floats, low: Floats, high: Floats, indices: Ints) -> Bools:
    """Return which of some questions have their truth in an interval."""
    inside: Bools = (low[indices] <= truth[indices]) & (truth[indices] <= high[indices])
    return inside


def _where(data: ReportData, truth: Floats, indices: Ints) -> Any:
    """Say in which interval of its question a truth is."""
    est, reach = data.est, TruthReach(data)
    inside = _inside(truth, est.lower, est.upper, indices)
    if not reach.is_known or reach.merged:
        where = np.where(inside, INSIDE, OUTSIDE)
        return np.where(np.isnan(est.lower[indices]), NO_INTERVAL, where)
    wider = _inside(truth, est.truth_lower, est.truth_upper, indices)
    where = np.where(inside, IN_CONSENSUS, np.where(wider, IN_TRUTH, OUTSIDE))
    unknown = np.isnan(est.lower[indices]) & np.isnan(est.truth_lower[indices])
    return np.where(unknown, NO_INTERVAL, where)


def _figure(data: ReportData, truth: Floats, indices: Ints, errors: PageTable) -> Figure:
    est, total = data.est, len(indices)
    if total > MOST_POINTS:
        indices = np.sort(np.random.default_rng(0).choice(indices, MOST_POINTS, replace=False))
    low, value, true = est.lower[indices], est.estimate[indices], truth[indices]
    where = _where(data, truth, indices)
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
        title = f"On average the estimates are {data.say_length(abs(mean_error))} too {side}."
    note = "Points on the dashed line are exactly right."
    if IN_CONSENSUS in shown or IN_TRUTH in shown:
        note += " Bars: the interval for the consensus."
    if total > len(indices):
        note += f" A random sample of {len(indices):,} of {total:,} questions is shown."
    about = (
        f"Estimates of {counted(total, 'question')} against known truths, with {data.percent} intervals; "
        f"{data.basis}."
    )
    return Figure(title, {"height": 360, "layer": layers}, note, errors, about)

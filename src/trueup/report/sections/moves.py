"""How far the second step moved questions, against their number of answers or their standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.markup import number
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.report_data import ReportData, percent

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

MOST_POINTS = 400
MOST_CLASSES = 24
FEW = 10  # numbers of answers that all are ticks
ALIKE = 0.01  # relative differences of standard errors that are not worth a chart
TITLE = "How far questions moved"
FOLD = "For statisticians: shrinkage by number of answers or standard error"


def moves_section(data: ReportData) -> Section | None:
    """Write the section; None where nothing was moved."""
    shrinkage = data.est.shrinkage
    if not shrinkage.any():
        return None
    text = (
        f"Shrinkage is how far an estimate moved from its aggregate toward {data.est.second_step.target}: at 0% "
        "only its own answers count, at 100% they do not count at all. "
    )
    counts = data.problem.counts.astype(np.float64)
    errors, unit = data.est.base_std_error, data.unit
    if data.is_relative:
        errors, unit = 100.0 * errors / data.est.base, "% of the value"
    all_have = f"All questions have {counted(int(counts[0]), 'answer')}"
    if np.ptp(counts) > 0:
        text += "The fewer and the noisier the answers to a question, the further it moves."
        figures = [_figure(data, counts, "answers to the question", by_answers=True)]
    elif np.isfinite(errors).all() and np.ptp(errors) > ALIKE * errors.max():
        text += f"{all_have}, so only the noise of the answers makes a difference."
        title = f"standard error of the aggregate ({unit})"
        figures = [_figure(data, errors, title, by_answers=False)]
    else:
        share = percent(float(shrinkage.mean()))
        text += f"{all_have} and are about equally certain, so all moved about equally far: {share} of the way."
        figures = []
    return Section(TITLE, text=text, figures=figures, fold=FOLD)


def _class_edges(values: Floats) -> Floats:
    """Return borders of classes of about equal size, every value a class of its own where there are few."""
    distinct = np.unique(values)
    if len(distinct) <= MOST_CLASSES:
        return np.append(distinct, np.inf)
    borders = np.unique(np.quantile(values, np.linspace(0, 1, MOST_CLASSES + 1)))
    return np.append(borders[:-1], np.inf)


def _classes(by: Floats, shrinkage: Floats) -> list[dict[str, Any]]:
    """Return the quantiles of the shrinkage of each class of questions."""
    edges = _class_edges(by)
    number_of = np.searchsorted(edges, by, side="right") - 1
    rows = []
    for members in (number_of == k for k in range(len(edges) - 1)):
        if members.any():
            low, middle, high = np.quantile(shrinkage[members], [0.1, 0.5, 0.9]).tolist()
            row = {"by": float(np.median(by[members])), "low": low, "middle": middle, "high": high}
            rows.append({**row, "questions": int(members.sum())})
    return rows


def _figure(data: ReportData, by: Floats, title: str, *, by_answers: bool) -> Figure:
    shrinkage = data.est.shrinkage
    rows = _classes(by, shrinkage)
    indices = data.sample(MOST_POINTS)
    points = chart_parts.records(
        q=data.questions(indices), by=by[indices], shrinkage=shrinkage[indices]
    )
    wide = by.min() > 0 and by.max() / by.min() > 20
    x: dict[str, Any] = chart_parts.quantity("by", title)
    x["scale"] = {"type": "log"} if wide else {"zero": False}
    if np.array_equal(by, by.round()):
        values = np.unique(by)
        x["axis"] = {
            **chart_parts.WHOLE_NUMBERS,
            **({"values": values.tolist()} if len(values) < FEW else {}),
        }
    y, y_low, y_middle = (
        {**chart_parts.quantity(field, "shrinkage"), "axis": {"format": "%"}}
        for field in ("shrinkage", "low", "middle")
    )
    about_x = chart_parts.quantity("by", title, chart_parts.DIGITS)
    layers = [
        chart_parts.layer(
            chart_parts.dot(22, opacity=0.4, color=chart_parts.BLUE),
            points,
            x=x,
            y=y,
            tooltip=[
                chart_parts.name("q", "question"),
                about_x,
                chart_parts.quantity("shrinkage", digits=".1%"),
            ],
        )
    ]
    first, last = rows[0], rows[-1]
    finding = f"Questions moved {percent(first['middle'])} of the way."
    if len(rows) > 1:
        band = {"type": "area", "opacity": 0.18, "color": chart_parts.BLUE}
        line = {"type": "line", "point": {"color": chart_parts.RED}, "color": chart_parts.RED}
        tooltip = [
            about_x,
            chart_parts.quantity("middle", "median", ".1%"),
            chart_parts.quantity("questions"),
        ]
        layers.insert(0, chart_parts.layer(band, rows, x=x, y=y_low, y2={"field": "high"}))
        layers.append(chart_parts.layer(line, rows, x=x, y=y_middle, tooltip=tooltip))
        start, end = (
            counted(round(row["by"]), "answer")
            if by_answers
            else f"a standard error of {number(row['by'])}{'%' if data.is_relative else ''}"
            for row in (first, last)
        )
        finding = (
            f"Questions with {start} moved {percent(first['middle'])} of the way, those with {end} "
            f"{percent(last['middle'])}."
        )
    note = "Line: the median. Band: the middle 80% of the questions."
    if len(indices) < data.m:
        note += f" Points: a random sample of {len(indices):,} of {data.m:,} questions."
    columns = [title, "10th percentile", "median", "90th percentile", "questions"]
    numbers = PageTable("Numbers", columns, [tuple(row.values()) for row in rows])
    about = f"Shrinkage of {counted(data.m, 'question')}; {data.basis}."
    return Figure(finding, {"height": 240, "layer": layers}, note, numbers, about)

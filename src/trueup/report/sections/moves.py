"""Shrinkage against the number of answers: who was moved how far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.report.draw import BLUE, RED, WHOLE_NUMBERS
from trueup.report.markup import number
from trueup.report.page import Figure, Section, Table
from trueup.report.sections.context import Facts, percent

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

MOST_POINTS = 400
MOST_STEPS = 24
FEW = 10  # numbers of answers that all are ticks
HOW = (
    "Shrinkage is the share of the way from the answers combined to what is usual here: at 0 a question stays where "
    "its own answers put it, at 1 its answers do not count. "
)


def moved(facts: Facts) -> Section | None:
    """Write the section; None where nothing was moved."""
    shrinkage = facts.est.shrinkage
    if not shrinkage.any():
        return None
    counts = facts.est.answers.counts.astype(np.float64)
    errors = facts.est.base_std_error
    by_answers = bool(np.ptp(counts) > 0)
    if by_answers:
        figure = _figure(facts, counts, "answers to the question")
    elif np.isfinite(errors).all() and np.ptp(errors) > 1e-9 * errors.max():
        figure = _figure(facts, errors, f"standard error of the answers combined ({facts.unit})")
    else:
        text = (
            f"All questions have {int(counts[0]):,} answers and are equally certain, so all were moved alike: "
            f"{percent(float(shrinkage.mean()))} of the way."
        )
        return Section("How far questions were moved", text=HOW + text)
    more = (
        "The fewer and the noisier the answers, the further a question is moved."
        if by_answers
        else f"All questions have {int(counts[0]):,} answers, so what differs is how noisy these are."
    )
    return Section("How far questions were moved", text=HOW + more, figures=[figure])


def _steps(values: Floats) -> Floats:
    """Return borders between classes of about equal size, every value a class of its own where there are few."""
    distinct = np.unique(values)
    if len(distinct) <= MOST_STEPS:
        return np.append(distinct, np.inf)
    borders = np.unique(np.quantile(values, np.linspace(0, 1, MOST_STEPS + 1)))
    return np.append(borders[:-1], np.inf)


def _figure(facts: Facts, by: Floats, title: str) -> Figure:
    shrinkage = facts.est.shrinkage
    borders = _steps(by)
    which = np.searchsorted(borders, by, side="right") - 1
    rows = []
    for step in range(len(borders) - 1):
        mine = which == step
        if not mine.any():
            continue
        low, middle, high = np.quantile(shrinkage[mine], [0.1, 0.5, 0.9]).tolist()
        rows.append(
            {
                "by": float(np.median(by[mine])),
                "low": low,
                "middle": middle,
                "high": high,
                "questions": int(mine.sum()),
            }
        )
    at = facts.sample(MOST_POINTS)
    points = [
        {"q": q, "by": x, "shrinkage": y}
        for q, x, y in zip(
            facts.questions(at), by[at].tolist(), shrinkage[at].tolist(), strict=True
        )
    ]
    wide = by.min() > 0 and by.max() / by.min() > 20
    x: dict[str, Any] = {
        "field": "by",
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log"} if wide else {"zero": False},
    }
    if np.array_equal(by, by.round()):
        values = np.unique(by)
        x["axis"] = {**WHOLE_NUMBERS, **({"values": values.tolist()} if len(values) < FEW else {})}
    y = {"type": "quantitative", "title": "shrinkage", "axis": {"format": "%"}}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.4, "color": BLUE},
            "encoding": {
                "x": x,
                "y": {**y, "field": "shrinkage"},
                "tooltip": [
                    {"field": "q", "title": "question", "type": "nominal"},
                    {"field": "by", "title": title, "format": ".4~g", "type": "quantitative"},
                    {"field": "shrinkage", "format": ".1%", "type": "quantitative"},
                ],
            },
        }
    ]
    if len(rows) > 1:
        tooltip = [
            {"field": "by", "title": title, "format": ".4~g", "type": "quantitative"},
            {"field": "middle", "title": "half are below", "format": ".1%", "type": "quantitative"},
            {"field": "questions", "type": "quantitative"},
        ]
        layers = [
            {
                "data": {"values": rows},
                "mark": {"type": "area", "opacity": 0.18, "color": BLUE},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            *layers,
            {
                "data": {"values": rows},
                "mark": {"type": "line", "point": {"color": RED}, "color": RED},
                "encoding": {"x": x, "y": {**y, "field": "middle"}, "tooltip": tooltip},
            },
        ]
    first, last = rows[0], rows[-1]
    says = {True: "answers", False: "standard error"}[title.startswith("answers")]
    if len(rows) > 1:
        finding = (
            f"With {_count(first['by'], says)} a question was moved {percent(first['middle'])} of the way, "
            f"with {_count(last['by'], says)} {percent(last['middle'])}."
        )
    else:
        finding = f"Questions were moved {percent(first['middle'])} of the way."
    note = "Line: the median. Band: four fifths of the questions."
    if len(at) < facts.m:
        note += f" Points: {len(at):,} of {facts.m:,} questions, at random."
    columns = [title, "lowest tenth below", "median", "highest tenth above", "questions"]
    table = Table(
        "The numbers",
        columns,
        [tuple(row[k] for k in ("by", "low", "middle", "high", "questions")) for row in rows],
    )
    return Figure(finding, {"height": 240, "layer": layers}, note, table)


def _count(value: float, of: str) -> str:
    if of == "answers":
        return f"{value:,.0f} answer{'' if round(value) == 1 else 's'}"
    return f"a {of} of {number(value)}"

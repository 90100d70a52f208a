"""The workers: weight, noise with its interval, bias, and whom to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report.draw import BLUE, RED, ROW, side_axis
from trueup.report.markup import Rounded, decimals
from trueup.report.page import Figure, Section, Table
from trueup.report.sections.context import (
    HALF,
    MOST_DRAWN,
    MOST_ROWS,
    ON_AXIS,
    ROWS_OF_MORE,
    Facts,
    brief,
    extremes,
    named,
)
from trueup.report.sections.worker_rows import CLEAR, Judged

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints

NOT_REMOVED = "Biases are shown here but were not removed from the estimates; bias=True does that."


def workers(facts: Facts, judged: Judged) -> Section:
    """Write the section."""
    text = (
        "Workers count by how close their answers are to the estimates: weight is the share of a worker in a question "
        "that all answer. The typical error is how far a single answer is off (its standard deviation); the fewer "
        "answers, the less sure that is."
    )
    figures = []
    if np.isfinite(judged.deviation).any():
        figures.append(_noise_figure(facts, judged))
    else:
        text += (
            " Nothing can be said of their errors here: no two workers answered the same question."
        )
    if np.nan_to_num(judged.bias).any():
        figures.append(_bias_figure(facts, judged))
    return Section("The workers", text=text, figures=figures, tables=[table(facts, judged)])


def drawn(judged: Judged) -> Ints:
    """Return the workers of the chart, the noisiest first."""
    order = judged.by_noise
    order = order[np.isfinite(judged.deviation[order])]
    if len(order) <= MOST_DRAWN:
        return order
    most = order[np.argsort(-judged.count[order], kind="stable")]
    taken = extremes(order, most)
    return taken[np.argsort(-judged.deviation[taken], kind="stable")]


def chart(facts: Facts, judged: Judged) -> dict[str, Any]:
    """Draw the error of each worker with its interval."""
    at, look = drawn(judged), set(judged.look_at.tolist())
    low, high = judged.low, judged.high
    rows = [
        {
            "w": w,
            "error": float(judged.deviation[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "answers": int(judged.count[i]),
            "weight": float(judged.weight[i]),
            "flag": "; ".join(judged.remarks[i]) or "nothing remarkable",
            "look": "look at" if i in look else "as others",
        }
        for w, i in zip(facts.workers(at, ON_AXIS), at.tolist(), strict=True)
    ]
    title = f"typical error of an answer ({facts.inner_unit})"
    x: dict[str, Any] = {"type": "quantitative", "title": title, "scale": {"zero": True}}
    x["axis"] = side_axis(len(rows))
    hue = {
        "field": "look",
        "type": "nominal",
        "scale": {"domain": ["as others", "look at"], "range": [BLUE, RED]},
        "legend": {"title": None, "symbolOpacity": 1},
    }
    digits = ".4~g"
    tooltip = [
        {"field": "w", "title": "worker", "type": "nominal"},
        {"field": "error", "format": digits, "type": "quantitative"},
        {
            "field": "low",
            "format": digits,
            "title": f"{facts.percent} from",
            "type": "quantitative",
        },
        {"field": "high", "format": digits, "title": "to", "type": "quantitative"},
        {"field": "weight", "format": ".1%", "type": "quantitative"},
        {"field": "answers", "type": "quantitative"},
        {"field": "flag", "title": "remarks", "type": "nominal"},
    ]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"typical": judged.typical}]},
            "mark": {"type": "rule", "strokeDash": [4, 4]},
            "encoding": {"x": {**x, "field": "typical"}},
        }
    ]
    y = {"field": "w", "type": "nominal", "sort": None, "title": None, "axis": {"grid": True}}
    if np.isfinite(low[at]).any():
        # An interval of very few answers must not squeeze all others.
        end = _end(judged.deviation[at], high[at])
        x["scale"] = {"domain": [0, end], "nice": True}
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.28, "clip": True},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                    "color": hue,
                    "tooltip": tooltip,
                },
            }
        )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "clip": True},
            "encoding": {
                "y": y,
                "x": {**x, "field": "error"},
                "color": hue,
                "shape": {
                    "field": "look",
                    "type": "nominal",
                    "scale": {"domain": ["as others", "look at"], "range": ["circle", "diamond"]},
                    "legend": {"title": None, "symbolOpacity": 1},
                },
                "tooltip": tooltip,
            },
        }
    )
    return {"data": {"values": rows}, "height": ROW * len(rows), "layer": layers}


def _end(values: Floats, high: Floats) -> float:
    top = float(np.nanmax(values))
    known = high[np.isfinite(high)]
    return max(top, min(float(known.max()), 2.0 * top)) * 1.02 if len(known) else top * 1.05


def _noise_figure(facts: Facts, judged: Judged) -> Figure:
    known = judged.deviation[np.isfinite(judged.deviation)]
    best, worst = float(known.min()), float(known.max())
    if len(known) == 1:
        title = f"The worker is typically off by {brief(best)}."
    elif best > 0 and worst / best < 1.05:
        title = f"All workers err alike: typically by {brief(judged.typical)}."
    else:
        title = (
            f"A typical worker is off by {brief(judged.typical)}, the best by {brief(best)} and the worst by "
            f"{brief(worst)}."
        )
    note = "Bar: interval of the error. Dashed: the typical worker."
    if len(known) > MOST_DRAWN:
        note = f"Of {len(known):,} workers the {HALF} who err most and the {HALF} others with most answers. {note}"
    return Figure(title, chart(facts, judged), note)


def _bias_figure(facts: Facts, judged: Judged) -> Figure:
    known = np.flatnonzero(np.isfinite(judged.bias))
    order = known[np.argsort(-np.abs(judged.bias[known]), kind="stable")][:MOST_DRAWN]
    order = order[np.argsort(-judged.bias[order], kind="stable")]
    reach = np.nan_to_num(CLEAR * judged.bias_error)
    rows = [
        {
            "w": w,
            "bias": float(judged.bias[i]),
            "low": float(judged.bias[i] - reach[i]),
            "high": float(judged.bias[i] + reach[i]),
        }
        for w, i in zip(facts.workers(order, ON_AXIS), order.tolist(), strict=True)
    ]
    x = {
        "type": "quantitative",
        "title": f"bias ({facts.inner_unit}), + answers too high",
        "axis": side_axis(len(rows)),
    }
    tooltip = [
        {"field": "w", "title": "worker", "type": "nominal"},
        {"field": "bias", "format": ".4~g", "type": "quantitative"},
    ]
    y = {"field": "w", "type": "nominal", "sort": None, "title": None, "axis": {"grid": True}}
    spec = {
        "height": ROW * len(rows),
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"x": {**x, "field": "zero"}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.28, "color": BLUE},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": BLUE},
                "encoding": {"y": y, "x": {**x, "field": "bias"}, "tooltip": tooltip},
            },
        ],
    }
    clear = int((np.abs(judged.bias) > CLEAR * np.nan_to_num(judged.bias_error)).sum())
    title = (
        f"{clear:,} of {counted(len(judged.bias), 'worker')} clearly answer too high or too low."
    )
    note = (
        "Bar: interval of the bias. Biases of workers with few answers are believed to be small until more is known. "
        + ("They were removed before anything else." if judged.removed else NOT_REMOVED)
    )
    if len(known) > len(order):
        note += f" The {len(order)} largest of {len(known):,}."
    return Figure(title, spec, note)


def table(facts: Facts, judged: Judged) -> Table:
    """List all workers, or those with most answers of very many."""
    total = len(judged.weight)
    at, note = np.arange(total), "In the order of the input; select a heading to sort."
    if total > MOST_ROWS:
        at = extremes(judged.look_at, np.argsort(-judged.count, kind="stable"), ROWS_OF_MORE // 2)
        note = (
            f"{counted(len(at), 'worker')} of {total:,}: those to look at, and those with most answers. A file with "
            "all of them: trueup estimate … --workers workers.csv, or est.workers in Python."
        )
    places = decimals(0.1 * judged.typical, judged.typical)
    low, high = judged.low, judged.high
    columns: dict[str, list[Any]] = {
        "worker": list(named(facts.workers(at))),
        "weight": [Rounded(each, 1) for each in (100.0 * judged.weight[at]).tolist()],
        "typical error": [Rounded(each, places) for each in judged.deviation[at].tolist()],
        "from": [Rounded(each, places) for each in low[at].tolist()],
        "to": [Rounded(each, places) for each in high[at].tolist()],
        "variance": (judged.deviation[at] ** 2).tolist(),
    }
    if np.isfinite(judged.bias).any():
        columns["bias"] = [Rounded(each, places) for each in judged.bias[at].tolist()]
        note += "" if judged.removed else f" {NOT_REMOVED}"
    columns["answers"] = judged.count[at].tolist()
    columns["remarks"] = ["; ".join(judged.remarks[i]) or "" for i in at.tolist()]
    names = [f"{name} %" if name == "weight" else name for name in columns]
    rows = list(zip(*columns.values(), strict=True))
    return Table(f"Workers ({counted(len(at), 'row')})", names, rows, "a worker", note)

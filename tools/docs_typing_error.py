"""Thirty tables of heights with one answer ten times too large: what four methods make of them."""  # noqa: INP001  a script

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
from docs_numbers import ROOT, numbers, table

import trueup

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from evidence.first_step.designs import with_typo

TABLES = 30
#: Options of `trueup.estimate` by what stands in the table.
WAYS: dict[str, dict[str, str]] = {
    "plain mean": {"method": "mean", "shrink": "none"},
    "median": {"method": "median"},
    "student_t": {"method": "student_t"},
    "the default": {},
}


@functools.cache
def typical_errors() -> dict[str, list[float]]:
    """Return the root mean squared error of each way on each table, in centimetres."""
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for seed in range(TABLES):
        typed = with_typo(seed)
        for name, options in WAYS.items():
            est = trueup.estimate(typed.answers, **options)  # type: ignore[arg-type]
            found[name].append(float(np.sqrt(np.mean((est.estimate - typed.truth) ** 2))))
    return found


@numbers("typing-error")
def typing_error() -> str:
    """Return the middle and the worst of the typical errors."""
    rows = [
        [name, f"{np.median(errors):.2f}", f"{max(errors):.2f}"]
        for name, errors in typical_errors().items()
    ]
    return table(["typical error in cm", "median table", "worst table"], rows)


def picture() -> tuple[str, dict[str, Any]]:
    """Draw the typical error of every way on every table."""
    names = list(WAYS)
    rows = [
        {"method": name, "error": round(error, 3)}
        for name, errors in typical_errors().items()
        for error in errors
    ]
    title = "typical error of a table in cm (log scale)"
    across = {
        "field": "error",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 12},
        "title": title,
        "axis": {"values": [1, 2, 5, 10, 20, 50], "format": "~g", "titlePadding": 10},
    }
    down = {"field": "method", "type": "nominal", "sort": names, "title": None}
    middle = {**across, "aggregate": "median"}
    chart = {
        "data": {"values": rows},
        "height": 170,
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.45},
                "encoding": {"x": across, "y": down},
            },
            {
                "mark": {"type": "tick", "thickness": 3, "size": 24},
                "encoding": {"x": middle, "y": down, "color": {"value": "var(--ink)"}},
            },
        ],
    }
    return typing_error(), chart

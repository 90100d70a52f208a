"""Vega-Lite charts of the study: lines in panels with a reference line, and rows of marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HEIGHT = 190
ROW = 22
#: Titles of fields on axes and legends, where they differ from the name of the field.
TITLES = {
    "n": "workers (n)",
    "m": "questions (m)",
    "ratio": "risk after / before",
    "share": "share of the gain",
    "step": "second step",
    "method": "first step",
    "source": "data",
    "factor": "fraction of the step",
    "change": "change of the ratio",
}


def lines(
    rows: Sequence[dict[str, Any]],
    *,
    x: str,
    y: str,
    colour: str,
    panel: str | None = None,
    rule: float | None = 1.0,
    log_y: bool = False,
    columns: int = 3,
) -> dict[str, Any]:
    """Draw a line for each colour against x (ordinal), with a dashed line at `rule`; one view per panel."""
    shown = [row for row in rows if row[y] == row[y]]
    scale: dict[str, Any] = {"type": "log"} if log_y else {"zero": False}
    encoding = {
        "x": {
            "field": x,
            "title": TITLES.get(x, x),
            "type": "ordinal",
            "sort": sorted({row[x] for row in shown}),
            "axis": {"labelAngle": 0},
        },
        "y": {
            "field": y,
            "title": TITLES.get(y, y),
            "type": "quantitative",
            "scale": scale,
        },
        "color": {
            "field": colour,
            "title": TITLES.get(colour, colour),
            "type": "nominal",
            "sort": list(dict.fromkeys(row[colour] for row in shown)),
        },
        "tooltip": [
            *({"field": name} for name in (panel, colour, x) if name),
            {"field": y, "format": ".3f"},
        ],
    }
    layers: list[dict[str, Any]] = []
    if rule is not None:
        dashed = {"type": "rule", "strokeDash": [4, 4]}
        layers.append({"mark": dashed, "encoding": {"y": {"datum": rule}}})
    layers.append({"mark": {"type": "line", "point": True}, "encoding": encoding})
    if panel is None:
        return {"data": {"values": shown}, "height": 260, "width": "container", "layer": layers}
    order = list(dict.fromkeys(row[panel] for row in shown))
    return {
        "data": {"values": shown},
        "facet": {"field": panel, "type": "nominal", "title": None, "sort": order},
        "columns": columns,
        "spec": {"height": HEIGHT, "width": 220, "layer": layers},
    }


def marks(
    rows: Sequence[dict[str, Any]],
    *,
    name: str,
    value: str,
    colour: str | None = None,
    rule: float | None = 1.0,
    log: bool = False,
) -> dict[str, Any]:
    """Draw points in one row per name, with a dashed line at `rule`."""
    shown = [row for row in rows if row[value] == row[value]]
    names = list(dict.fromkeys(row[name] for row in shown))
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    encoding: dict[str, Any] = {
        "y": {
            "field": name,
            "type": "nominal",
            "sort": names,
            "title": None,
            "axis": {"labelLimit": 300, "grid": True},
        },
        "x": {
            "field": value,
            "title": TITLES.get(value, value),
            "type": "quantitative",
            "scale": scale,
        },
        "tooltip": [
            {"field": name},
            *([{"field": colour}] if colour else []),
            {"field": value, "format": ".3f"},
        ],
    }
    if colour:
        order = list(dict.fromkeys(row[colour] for row in shown))
        encoding["color"] = {"field": colour, "type": "nominal", "sort": order}
    layers: list[dict[str, Any]] = []
    if rule is not None:
        dashed = {"type": "rule", "strokeDash": [4, 4]}
        layers.append({"mark": dashed, "encoding": {"x": {"datum": rule}}})
    point = {"type": "point", "filled": True, "size": 70, "opacity": 0.85}
    layers.append({"mark": point, "encoding": encoding})
    return {
        "data": {"values": shown},
        "height": ROW * len(names),
        "width": "container",
        "layer": layers,
    }

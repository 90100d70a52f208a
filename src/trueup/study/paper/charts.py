"""Vega-Lite charts of the study: improvement ratios against n or m, and curves with their closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.study.harness import StudyCell

HEIGHT = 220
TITLES = {"method": "first step", "source": "data", "step": "second step"}


def ratios(
    cells: Sequence[StudyCell], along: str, *, colour: str = "method", panel: str = "step"
) -> dict[str, Any]:
    """Draw improvement ratios against n or m, with a panel and a line for each value of some fields.

    Below the line at 1 the second step helps.
    """
    rows = [
        {
            "value": getattr(cell, along),
            "ratio": cell.ratio,
            "low": cell.ratio_low,
            "high": cell.ratio_high,
            "line": getattr(cell, colour),
            "panel": getattr(cell, panel),
        }
        for cell in cells
    ]
    name = {"n": "workers", "m": "questions"}[along]
    scale = {"type": "log", "nice": False, "padding": 12}
    x = {"field": "value", "type": "quantitative", "scale": scale, "title": name}
    x["axis"] = {"values": sorted({row["value"] for row in rows})}
    tooltip = [
        {"field": "line", "title": TITLES[colour]},
        {"field": "value", "title": name},
        {"field": "ratio", "format": ".3f"},
        {"field": "low", "format": ".3f", "title": "95% from"},
        {"field": "high", "format": ".3f", "title": "to"},
    ]
    y = {"field": "ratio", "type": "quantitative", "scale": {"type": "log"}}
    y["title"] = "risk after / before"
    line = {"field": "line", "type": "nominal", "title": TITLES[colour]}
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    return {
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
        "columns": 2,
        "spec": {
            "height": HEIGHT,
            "width": 300,
            "layer": [
                {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": 1}}},
                {
                    "mark": {"type": "line", "point": True},
                    "encoding": {"x": x, "y": y, "color": line, "tooltip": tooltip},
                },
            ],
        },
    }


def curves(
    rows: Sequence[dict[str, Any]],
    *,
    x: str,
    y: str,
    colour: str,
    log_x: bool = False,
    reference: float | None = None,
    dashed: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Draw lines with points; or, where there is an exact curve (`dashed`, same fields), points around it."""
    scale = {"type": "log"} if log_x else {"zero": False}
    encoding = {
        "x": {"field": x, "type": "quantitative", "scale": scale},
        "y": {"field": y, "type": "quantitative", "scale": {"zero": False}},
        "color": {"field": colour, "type": "nominal"},
    }
    layers: list[dict[str, Any]] = []
    if reference is not None:
        layers.append(
            {
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"y": {"datum": reference}},
            }
        )
    if dashed:
        layers.append(
            {
                "data": {"values": list(dashed)},
                "mark": {"type": "line", "strokeDash": [2, 2]},
                "encoding": encoding,
            }
        )
    tooltip = [{"field": x}, {"field": y, "format": ".4g"}, {"field": colour}]
    mark = (
        {"type": "point", "filled": True, "size": 60} if dashed else {"type": "line", "point": True}
    )
    layers.append(
        {
            "data": {"values": list(rows)},
            "mark": mark,
            "encoding": encoding | {"tooltip": tooltip},
        }
    )
    return {"height": 300, "width": "container", "layer": layers}

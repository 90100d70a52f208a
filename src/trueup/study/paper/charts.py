"""Charts of the study, as Vega-Lite: improvement ratios against n or m, curves with a closed form through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.study.harness import Cell

HEIGHT = 220


def ratios(cells: Sequence[Cell], along: str) -> dict[str, Any]:
    """Draw improvement ratios against n or m: a panel for each second step, a line for each method.

    Below the line at 1 the second step helps.
    """
    rows = [
        {
            "value": getattr(cell, along),
            "ratio": cell.ratio,
            "low": cell.ratio_low,
            "high": cell.ratio_high,
            "method": cell.method,
            "step": cell.step,
        }
        for cell in cells
    ]
    names = {"n": "workers", "m": "questions"}
    x = {"field": "value", "type": "quantitative", "scale": {"type": "log"}, "title": names[along]}
    x["axis"] = {"values": sorted({row["value"] for row in rows})}
    tooltip = [
        {"field": "method"},
        {"field": "value", "title": names[along]},
        {"field": "ratio", "format": ".3f"},
        {"field": "low", "format": ".3f", "title": "95% from"},
        {"field": "high", "format": ".3f", "title": "to"},
    ]
    y = {"field": "ratio", "type": "quantitative", "scale": {"type": "log"}}
    y["title"] = "risk after / before"
    colour = {"field": "method", "type": "nominal", "title": "first step"}
    return {
        "data": {"values": rows},
        "facet": {"field": "step", "type": "nominal", "title": None, "sort": None},
        "columns": 2,
        "spec": {
            "height": HEIGHT,
            "width": 300,
            "layer": [
                {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": 1}}},
                {
                    "mark": {"type": "line", "point": True},
                    "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
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
    """Draw points and lines, with an exact curve (`dashed`, same fields) through them where there is one."""
    scale = {"type": "log"} if log_x else {"zero": False}
    encoding = {
        "x": {"field": x, "type": "quantitative", "scale": scale},
        "y": {"field": y, "type": "quantitative", "scale": {"zero": False}},
        "color": {"field": colour, "type": "nominal", "title": None},
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

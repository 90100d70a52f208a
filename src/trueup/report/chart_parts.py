"""Building blocks of charts: rows, layers, encodings in answer units, bars of a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats
    from trueup.report.sections.report_data import ReportData

MOST_BINS, FEWEST_BINS = 40, 8
ROW = 19  # pixels for a question or a worker
TALL = 25  # rows of a chart that does not fit on a screen
TICKS = 7
TAIL, FAR = 0.08, 8.0  # share of values that may be far out, and how far that is
WHOLE_NUMBERS = {"tickMinStep": 1, "format": ",d"}
ROOM = 0.03  # free part of a log axis on either side
CENTRAL = 0.995  # share of the values that a histogram always shows
BLUE, RED, GREEN, PURPLE, ORANGE = (f"var(--hue{number})" for number in range(1, 6))
FAINT, INK, LINE = "var(--faint)", "var(--ink)", "var(--line)"
DIGITS = ".4~g"  # of numbers in tooltips that are not in answer units
DASHED = {"type": "rule", "strokeDash": [4, 4]}
NAMES_DOWN = {"type": "nominal", "sort": None, "title": None, "axis": {"grid": True}}
SPANS = {
    "log": "log scale",
    "proportional": "log scale",
    "log1p": "log scale",
    "logit": "log-odds scale",
}


def records(**columns: Any) -> list[dict[str, Any]]:
    """Return the rows of a chart from its columns: arrays or lists of equal length."""
    lists = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def layer(
    mark: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None, **encoding: Any
) -> dict[str, Any]:
    """Return a layer of a chart, with rows of its own or those of the chart."""
    own = {} if rows is None else {"data": {"values": rows}}
    return {**own, "mark": mark, "encoding": encoding}


def reference_line(axis: str, at: float, encoding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dashed line across the chart at a value of the axis "x" or "y"."""
    return layer(DASHED, [{"value": at}], **{axis: {**encoding, "field": "value"}})


def interval_bar(**mark: Any) -> dict[str, Any]:
    """Return the mark of an interval: a broad, pale line."""
    return {"type": "rule", "strokeWidth": 6, "opacity": 0.28, **mark}


def dot(size: int, **mark: Any) -> dict[str, Any]:
    """Return the mark of a filled point."""
    return {"type": "point", "filled": True, "size": size, "opacity": 1, **mark}


def quantity(field: str, title: str | None = None, digits: str | None = None) -> dict[str, Any]:
    """Return the encoding of a number; `digits` is its format in a tooltip."""
    more = {"title": title, "format": digits}
    given = {name: value for name, value in more.items() if value is not None}
    return {"field": field, "type": "quantitative", **given}


def name(field: str, title: str | None = None) -> dict[str, Any]:
    """Return the encoding of a name; without a title that of the field is shown."""
    return {"field": field, "type": "nominal", **({} if title is None else {"title": title})}


def interval_tooltip(percent: str, digits: str) -> list[dict[str, Any]]:
    """Return the ends of an interval, the fields "low" and "high", as lines of a tooltip."""
    return [quantity("low", f"{percent} from", digits), quantity("high", "to", digits)]


def category(
    field: str, domain: Sequence[str], values: Sequence[object], **legend: Any
) -> dict[str, Any]:
    """Return the encoding of a category by colours, shapes or dashes, with a legend without a title."""
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": domain, "range": values},
        "legend": {"title": None, "symbolOpacity": 1, "labelLimit": 320, **legend},
    }


def position(data: ReportData, title: str, field: str) -> dict[str, Any]:
    """Return the encoding of a value in answer units, on a log axis where answers were combined as logarithms."""
    kind = {"log": "log", "proportional": "log", "log1p": "symlog"}.get(data.transform, "linear")
    scale: dict[str, Any] = {"type": kind}
    if kind == "linear":
        scale["zero"] = False
    return {**quantity(field, title), "scale": scale, "axis": {"tickCount": TICKS}}


def central_range(values: Floats, ends: Floats) -> list[float] | None:
    """Return the part of an axis that holds most values, None unless a few far out would squeeze all others."""
    low, high = np.quantile(values, [TAIL, 1.0 - TAIL]).tolist()
    reach = np.nanquantile(ends, [TAIL, 1.0 - TAIL]).tolist()
    span = max(high, reach[1]) - min(low, reach[0])
    if not (span > 0 and np.nanmax(ends) - np.nanmin(ends) > FAR * span):
        return None
    return [min(low, reach[0]) - 0.5 * span, max(high, reach[1]) + 0.5 * span]


def shown_range(data: ReportData, values: Floats, ends: Floats) -> list[float] | None:
    """Return the part of an axis of estimates and intervals to show; None: all, as the chart chooses."""
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    if not data.transform:
        return central_range(values, ends)
    if data.in_logarithms and 0 < low < high:
        room = (high / low) ** ROOM
        return [low / room, high * room]
    return None


def count_axis(most: int) -> dict[str, Any]:
    """Return the axis of a number of questions: whole numbers, each of them where there are few."""
    few = {"values": list(range(most + 1))} if most <= TICKS else {}
    return {**WHOLE_NUMBERS, **few}


def side_axis(rows: int) -> dict[str, Any]:
    """Return the axis of a chart with this many rows: above them where the end is far away."""
    return {"tickCount": TICKS, "orient": "top" if rows > TALL else "bottom"}


def inner_axis(scale: Scale) -> dict[str, Any]:
    """Return an axis on the scale on which answers were combined, labelled in answer units."""
    low, high = (0.0, 1.0) if scale.bounds is None else map(float, scale.bounds)
    back = {
        "log": "exp(datum.value)",
        "proportional": f"exp(datum.value + {scale.shift!r})",
        "log1p": "exp(datum.value) - 1",
        "logit": f"{low!r} + {high - low!r} / (1 + exp(-datum.value))",
    }.get(scale.transform or "")
    axis: dict[str, Any] = {"tickCount": TICKS}
    if back:
        # Plain digits as far as they can be read.
        plain = f"abs({back}) >= 1e-4 && abs({back}) < 1e7"
        axis["labelExpr"] = f"format({back}, {plain} ? ',.3~r' : '.3~g')"
    return axis


def inner_title(data: ReportData, quantity: str) -> str:
    """Return the title of such an axis."""
    span = SPANS.get(data.transform)
    return f"{quantity} ({data.unit}{f', {span}' if span else ''})"


@dataclass(frozen=True, eq=False)
class Bins:
    """Edges of the bars of a histogram, and the number of values outside of them."""

    edges: Floats
    outside: int

    @classmethod
    def of(cls, values: Floats) -> Bins:
        """Choose edges for values; a few that lie far out stay outside."""
        values = values[np.isfinite(values)]
        low, high = values.min(), values.max()
        tail = 0.5 * (1.0 - CENTRAL)
        inner = np.quantile(values, [tail, 1.0 - tail])
        if (high - low) > 3.0 * (inner[1] - inner[0]) > 0:
            margin = 0.1 * (inner[1] - inner[0])
            low, high = max(low, inner[0] - margin), min(high, inner[1] + margin)
        if not high > low:
            size = abs(high) or 1.0
            low, high = low - 0.05 * size, high + 0.05 * size
        count = int(np.clip(2.0 * np.sqrt(len(values)), FEWEST_BINS, MOST_BINS))
        edges = np.linspace(low, high, count + 1)
        return cls(edges, int(((values < edges[0]) | (values > edges[-1])).sum()))

    def count(self, values: Floats) -> list[int]:
        """Count values between the edges."""
        counts: list[int] = np.histogram(values[np.isfinite(values)], self.edges)[0].tolist()
        return counts

    @property
    def width(self) -> float:
        """Width of a bar."""
        return float(self.edges[1] - self.edges[0])

    @property
    def note(self) -> str:
        """A sentence on the values that are not shown, if there are any."""
        return f" {self.outside:,} values far out are not shown." if self.outside else ""

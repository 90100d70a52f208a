"""Pieces of charts: axes in answer units, bars of a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats
    from trueup.report.sections.context import Facts

MOST_BINS, FEWEST_BINS = 40, 8
ROW = 19  # pixels for a question or a worker
TALL = 25  # rows of a chart that does not fit on a screen
TICKS = 7
TAIL, FAR = 0.08, 8.0  # share of values that may be far out, and how far that is
WHOLE_NUMBERS = {"tickMinStep": 1, "format": ",d"}
CENTRAL = 0.995  # share of the values that a histogram is sure to show
BLUE, RED, GREEN, PURPLE, ORANGE = (f"var(--hue{number})" for number in range(1, 6))
FAINT, INK, LINE = "var(--faint)", "var(--ink)", "var(--line)"


def position(facts: Facts, title: str, field: str) -> dict[str, Any]:
    """Return the encoding of a value in answer units, on a log axis where answers were combined as logarithms."""
    kind = {"log": "log", "log1p": "symlog"}.get(facts.est.solution.scale.transform or "", "linear")
    scale: dict[str, Any] = {"type": kind}
    if kind == "linear":
        scale["zero"] = False
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"tickCount": TICKS},
    }


def middle(values: Floats, ends: Floats) -> list[float] | None:
    """Return the part of an axis that most values are on, where a few far out would squeeze all others."""
    low, high = np.quantile(values, [TAIL, 1.0 - TAIL]).tolist()
    reach = np.nanquantile(ends, [TAIL, 1.0 - TAIL]).tolist()
    span = max(high, reach[1]) - min(low, reach[0])
    if not (span > 0 and np.nanmax(ends) - np.nanmin(ends) > FAR * span):
        return None
    return [min(low, reach[0]) - 0.5 * span, max(high, reach[1]) + 0.5 * span]


def side_axis(rows: int) -> dict[str, Any]:
    """Return the axis of a chart with so many rows: above them where the end is far away."""
    return {"tickCount": TICKS, "orient": "top" if rows > TALL else "bottom"}


def inner_axis(scale: Scale) -> dict[str, Any]:
    """Return an axis on the scale on which answers were combined, labelled in answer units."""
    low, high = (0.0, 1.0) if scale.bounds is None else map(float, scale.bounds)
    back = {
        "log": "exp(datum.value)",
        "log1p": "exp(datum.value) - 1",
        "logit": f"{low!r} + {high - low!r} / (1 + exp(-datum.value))",
    }.get(scale.transform or "")
    axis: dict[str, Any] = {"tickCount": TICKS}
    if back:
        axis["labelExpr"] = f"format({back}, '.3~g')"
    return axis


def inner_title(facts: Facts, what: str) -> str:
    """Return the title of such an axis."""
    spans = {"log": ", log scale", "log1p": ", log scale", "logit": ", log-odds scale"}
    return f"{what} ({facts.unit}{spans.get(facts.est.solution.scale.transform or '', '')})"


def marks(domain: list[str], colours: list[str], title: str | None = None) -> dict[str, Any]:
    """Return a colour scale whose legend explains the parts of a chart."""
    return {
        "scale": {"domain": domain, "range": colours},
        "legend": {"title": title, "symbolType": "circle", "symbolOpacity": 1},
    }


@dataclass(frozen=True, eq=False)
class Bins:
    """Borders of bars, and what lies outside of them."""

    edges: Floats
    outside: int

    @classmethod
    def of(cls, values: Floats) -> Bins:
        """Choose borders for values; a few that lie far out stay outside."""
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
        """Count values between the borders."""
        found: list[int] = np.histogram(values[np.isfinite(values)], self.edges)[0].tolist()
        return found

    @property
    def width(self) -> float:
        """Width of a bar."""
        return float(self.edges[1] - self.edges[0])

    @property
    def note(self) -> str:
        """What is not shown, in words."""
        if not self.outside:
            return ""
        return f" {self.outside:,} values far out are not shown."

"""Charts as Vega-Lite specs that need nothing from outside and fit any width."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted

# Specs of several views side by side or below each other; page.js gives those their width.
SEVERAL = ("facet", "repeat", "concat", "hconcat", "vconcat")


def spec_of(chart: Any, title: str) -> dict[str, Any]:
    """Return the spec of an altair chart, or a spec as it is, made to fit into a page.

    Parameters
    ----------
    chart
        An altair chart of at most 5,000 rows, or a Vega-Lite spec.
    title
        Of the figure: for messages, and for readers who cannot see the chart.
    """
    spec: dict[str, Any] = _plain(
        chart if isinstance(chart, Mapping) else _from_altair(chart, title), title
    )
    if any("url" in data for data in _data(spec)):
        raise TrueupError(
            f"Figure {quoted(title)}: its data are at an address, and a page must work offline. "
            "Put the rows themselves into the chart."
        )
    spec.pop("usermeta", None)  # would change how all charts are embedded
    spec.setdefault("description", title)
    if not any(name in spec for name in SEVERAL) and not _has_facets(spec):
        if not isinstance(spec.get("width"), Mapping):  # {"step": 20} is a width per bar
            spec["width"] = "container"
        spec.setdefault("autosize", {"type": "fit-x", "contains": "padding"})
    return spec


def plain_spec(spec: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return a spec with nothing in it but what JSON knows."""
    plain: dict[str, Any] = _plain(spec, title)
    return plain


def script_json(value: Any) -> str:
    r"""Write JSON that no HTML reader takes for the end of a script, or for anything but text.

    Examples
    --------
    >>> print(script_json({"title": "</script><!--"}))
    {"title":"\u003c/script>\u003c!--"}
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _from_altair(chart: Any, title: str) -> Any:
    altair = need("altair", "report")
    if not hasattr(chart, "to_dict"):
        raise TrueupError(
            f"Figure {quoted(title)}: found {quoted(type(chart).__name__)}, must be an altair chart "
            "or a Vega-Lite spec as a dict."
        )
    try:
        # Neither a transformer nor a theme that the caller uses elsewhere may leave the data out or change the look.
        with altair.data_transformers.enable("default"), altair.theme.enable("none"):
            return chart.to_dict()
    except altair.MaxRowsError as error:
        raise TrueupError(
            f"Figure {quoted(title)}: the chart has too many rows to draw (altair takes 5,000). "
            "Summarise them first."
        ) from error


def _has_facets(spec: Mapping[str, Any]) -> bool:
    return not {"facet", "row", "column"}.isdisjoint(spec.get("encoding", {}))


def _data(spec: Any) -> Iterator[Mapping[str, Any]]:
    """Find the data of all parts of a spec."""
    if isinstance(spec, Mapping):
        for name, part in spec.items():
            if name == "data" and isinstance(part, Mapping):
                yield part
            elif name not in ("datasets", "values"):  # rows may have any column
                yield from _data(part)
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        for part in spec:
            yield from _data(part)


def _plain(value: Any, title: str) -> Any:
    """Turn what callers put into specs into what JSON knows; a number that is none becomes null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(part, title) for name, part in value.items()}
    if isinstance(value, Sequence):
        return [_plain(part, title) for part in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    raise TrueupError(
        f"Figure {quoted(title)}: found {quoted(value)} in its spec. "
        "Put in numbers, texts, lists and dicts only."
    )

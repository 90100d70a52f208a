"""The charts of a report by themselves, as altair charts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted
from trueup.report import theme
from trueup.report.sections.estimates import estimates_chart
from trueup.report.sections.prior import prior_chart
from trueup.report.sections.prior_shape import prior_shape
from trueup.report.sections.report_data import ReportData, one_line
from trueup.report.sections.truth_interval import truth_interval_chart
from trueup.report.sections.truth_reach import TruthReach
from trueup.report.sections.worker_rows import WorkerRows
from trueup.report.sections.workers import workers_chart
from trueup.report.vega_specs import plain_spec

if TYPE_CHECKING:
    from trueup.result.estimate import Estimate

KINDS = ("estimates", "truth", "workers", "prior")
WIDTH = 560


def plot(est: Estimate, kind: str = "estimates", *, unit: str | None = None) -> Any:
    """Draw an estimate.

    Parameters
    ----------
    est : Estimate
    kind : {"estimates", "truth", "workers", "prior"}
        Up to 60 questions with intervals and moves by the second step; up to 30 questions with intervals for the
        consensus and for the truth; the typical errors of the workers; or the prior over the histogram of the
        aggregates.
    unit : str, optional
        Unit of the answers, such as "cm", shown on the axes.

    Returns
    -------
    altair.Chart or altair.LayerChart
        Its `save` writes .pdf, .svg, .png and .html; `save("figure.html", inline=True)` a page that works offline.

    Raises
    ------
    MissingExtra
        When altair is not installed.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        names = ", ".join(f'"{name}"' for name in KINDS)
        raise TrueupError(f"found {quoted(kind)}.", argument="kind", remedy=f"Use one of {names}.")
    return need("altair", "report").Chart.from_dict(specification(est, kind, unit))


def specification(est: Estimate, kind: str, unit: str | None = None) -> dict[str, Any]:
    """Return the Vega-Lite spec of one of `KINDS`."""
    spec = {
        **_chart(est, kind, one_line("unit", unit)),
        "width": WIDTH,
        "config": theme.chart_config(),
    }
    spec["config"]["background"] = theme.LIGHT["paper"]
    return plain_spec(coloured(spec), kind)


def _chart(est: Estimate, kind: str, unit: str) -> dict[str, Any]:
    data = ReportData(est, unit_name=unit)
    if kind == "estimates":
        return estimates_chart(data)
    if kind == "truth":
        reach = TruthReach(data)
        if not reach.is_known:
            raise TrueupError(
                f'"truth" needs intervals for the truth, and those are unknown: {reach.why_unknown}.',
                argument="kind",
            )
        return truth_interval_chart(data)
    if kind == "workers":
        rows = WorkerRows(est, data.worker_table)
        if not np.isfinite(rows.deviation).any():
            raise TrueupError(
                '"workers" needs two workers who answered the same question.', argument="kind"
            )
        return workers_chart(data, rows)
    prior = prior_shape(est) if data.is_single else None
    if prior is None or not prior.components:
        raise TrueupError(
            '"prior" needs a single problem with a prior that can be drawn.', argument="kind"
        )
    return prior_chart(data, prior)


def coloured(spec: Any) -> Any:
    """Return a spec with the colours of the light page in the place of its variables."""
    hues = {f"hue{number}": hue for number, hue in enumerate(theme.PALETTE, 1)}
    return _coloured(spec, {**theme.LIGHT, **hues})


def _coloured(value: Any, colours: dict[str, str]) -> Any:
    """Replace the variables of a page by their colours."""
    if isinstance(value, dict):
        # Rows are data, whatever they say.
        return {
            name: part if name == "values" else _coloured(part, colours)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_coloured(part, colours) for part in value]
    if isinstance(value, str) and (match := re.fullmatch(r"var\(--(\w+)\)", value)):
        return colours[match[1]]
    return value

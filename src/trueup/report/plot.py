"""The charts of a report by themselves, as altair charts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.errors import TrueupError, quoted
from trueup.report import theme
from trueup.report.charts import plain_spec
from trueup.report.sections import estimates, prior, workers
from trueup.report.sections.context import Facts
from trueup.report.sections.prior_curves import believed
from trueup.report.sections.worker_rows import Judged

if TYPE_CHECKING:
    from trueup.result.estimate import Estimate

KINDS = ("estimates", "workers", "prior")
WIDTH = 560


def plot(est: Estimate, kind: str = "estimates") -> Any:
    """Draw an estimate.

    Parameters
    ----------
    est : Estimate
    kind : {"estimates", "workers", "prior"}
        Questions with intervals and what the second step did, up to 60 of them; the errors of the workers; or the
        prior over the histogram of the aggregates.

    Returns
    -------
    altair.Chart or altair.LayerChart

    Raises
    ------
    MissingExtra
        When altair is not installed.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        names = ", ".join(f'"{name}"' for name in KINDS)
        raise TrueupError(f"found {quoted(kind)}.", argument="kind", remedy=f"Use one of {names}.")
    return need("altair", "report").Chart.from_dict(specification(est, kind))


def specification(est: Estimate, kind: str) -> dict[str, Any]:
    """Return the chart of one of `KINDS` in Vega-Lite, which is what altair makes its objects of."""
    spec = {**_of_report(est, kind), "width": WIDTH, "config": theme.chart_config()}
    spec["config"]["background"] = theme.LIGHT["paper"]
    colours = {**theme.LIGHT, **{f"hue{at}": hue for at, hue in enumerate(theme.PALETTE, 1)}}
    return plain_spec(_coloured(spec, colours), kind)


def _of_report(est: Estimate, kind: str) -> dict[str, Any]:
    facts = Facts(est)
    if kind == "estimates":
        return estimates.chart(facts)
    if kind == "workers":
        judged = Judged(est, facts.worker_table)
        if not np.isfinite(judged.deviation).any():
            raise TrueupError(
                "nothing is known of the errors of these workers to be drawn.", argument="kind"
            )
        return workers.chart(facts, judged)
    belief = believed(est) if facts.one else None
    if belief is None or not belief.bells:
        raise TrueupError(
            '"prior" needs a single problem with a prior that can be drawn.', argument="kind"
        )
    return prior.chart(facts, belief)


def _coloured(value: Any, colours: dict[str, str]) -> Any:
    """Put colours in place of the variables that a page has for them."""
    if isinstance(value, dict):
        # Rows are data, whatever they say.
        return {
            name: part if name == "values" else _coloured(part, colours)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_coloured(part, colours) for part in value]
    if isinstance(value, str) and (found := re.fullmatch(r"var\(--(\w+)\)", value)):
        return colours[found[1]]
    return value

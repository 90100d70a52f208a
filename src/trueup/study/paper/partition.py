"""Many questions or uniform ones: the effect of cutting the questions into parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms import find, run
from trueup.core.arrays import segment_sum
from trueup.report.page import Figure, PageTable, Section
from trueup.shrinkage import EBE
from trueup.study.harness import ratio_interval, seed_of
from trueup.study.paper.charts import curves
from trueup.study.sources import Synthetic
from trueup.variance import plugin

if TYPE_CHECKING:
    from trueup.core.arrays import Floats
    from trueup.study.paper.context import Context
    from trueup.study.sources import PanelSource

PARTS = (1, 2, 4, 5, 8, 10)
WORKERS, QUESTIONS = 5, 40
METHOD = "mean"
BY_ESTIMATE = ", by estimate"


def trade_off(context: Context) -> Section:
    """Measure the improvement ratio against the number of parts, cut by estimate and by truth."""
    sources: list[PanelSource] = [
        Synthetic("truth N(0, 1)", {}),
        Synthetic("truth N(0, 25)", {"truth_scale": 5.0}),
        Synthetic("three clusters", {"truth": "clustered"}),
    ]
    if not context.quick and not context.without_data:
        sources.append(context.real("pies"))
    rows: list[dict[str, Any]] = []
    for source in sources:
        m = QUESTIONS if source.fits(WORKERS, QUESTIONS) else 20
        answers, truth = source.draw(
            context.samples, WORKERS, m, seed_of(context.seed, source, WORKERS, m)
        )
        aggregate = run(find(METHOD), answers)
        x, v = aggregate.x, plugin(answers, aggregate)
        indptr = answers.panel_questions
        base = segment_sum((x - truth) ** 2, indptr)
        for how, value in (("estimate", x), ("truth", truth)):
            for parts in PARTS:
                after = _after(x, v, value, indptr, parts)
                losses = segment_sum((after - truth) ** 2, indptr)
                low, high = ratio_interval(losses, base)
                rows.append(
                    {
                        "parts": parts,
                        "ratio": float(losses.mean() / base.mean()),
                        "low": low,
                        "high": high,
                        "cut": f"{source.name}, by {how}",
                    }
                )
    gain = {row["cut"]: [r["ratio"] for r in rows if r["cut"] == row["cut"]] for row in rows}
    helped = [name for name, values in gain.items() if min(values[1:]) < values[0] - 0.01]
    by_truth = [name for name in helped if name.endswith("by truth")]
    by_estimate = [name.removesuffix(BY_ESTIMATE) for name in helped if name.endswith(BY_ESTIMATE)]
    cuts = len(gain) // 2
    return Section(
        title="Many questions or uniform ones",
        claim="Cutting the questions into uniform parts trades the number of questions for similarity.",
        verdict=(
            f"Parts cut by the truth, which nobody knows, help in {len(by_truth)} of {cuts} cases. Parts cut by the "
            f"estimate, as in practice, help in {len(by_estimate)} of {cuts} cases"
            + (f" ({', '.join(by_estimate)})" if by_estimate else "")
            + ": noise decides which part a question belongs to, and shrinking toward that part keeps the noise."
        ),
        # Where nothing helps there is nothing to trade; where all helps there is no catch.
        holds=len(by_estimate) == cuts or (None if by_truth else False),
        text=f"Plain mean of {WORKERS} workers, plug-in variance, positive part, in each part separately.",
        figures=[
            Figure(
                "Risk after / before against the number of parts",
                curves(rows, x="parts", y="ratio", colour="cut", reference=1.0),
                table=PageTable(
                    "The numbers",
                    ["cut", "parts", "ratio", "95% from", "to"],
                    [[r["cut"], r["parts"], r["ratio"], r["low"], r["high"]] for r in rows],
                ),
            )
        ],
    )


def _after(x: Floats, v: Floats, value: Floats, indptr: Any, parts: int) -> Floats:
    """Apply the second step within parts of neighbouring values of each panel."""
    panel = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((value, panel))
    cuts = np.round(np.linspace(0, 1, parts + 1)[:-1] * np.diff(indptr)[:, None]).astype(np.int64)
    borders = np.append((indptr[:-1, None] + cuts).ravel(), indptr[-1])
    rule = EBE(positive=True)
    moved = rule.fit(x[order], v[order], panels=borders).posterior(
        x[order], v[order], panels=borders
    )
    result = np.empty(len(x))
    result[order] = moved.mean
    return result

"""How much the second step helps: expected risk against the strength of shrinkage.

With equal variances, aggregates moved by `alpha psi / SS` toward their mean have the expected risk, relative to that of
the aggregates,

    ratio(alpha) = 1 - 2 alpha a + alpha^2 b,   a = (m-3) psi / (m SS),   b = psi^2 / (m SS v)

where psi is the variance that the step uses and v another estimate of it (`trueup.theory.gain`). It is lowest at
`alpha* = (m-3) v / psi` and back at 1 at twice that. `SS` is at least what noise alone would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.findings.second_step import printed_and_sandwich
from trueup.report import chart_parts
from trueup.report.markup import number
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.report_data import ReportData, is_dominated, percent
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach

if TYPE_CHECKING:
    from trueup.result.estimate import Estimate

TITLE = "How much the second step helps"
FOLD = "For statisticians: expected error by strength of shrinkage"
POINTS = 81
REACH = 2.3  # end of the curve, in multiples of the best strength
FEWEST = 4
SAME = 1e-9  # shrinkages that differ by no more are one
BEST, USUAL, OURS, PRINTED = "best: alpha*", "m - 3", "this estimate", "as printed in the paper"
HUES = {
    BEST: chart_parts.GREEN,
    USUAL: chart_parts.RED,
    OURS: chart_parts.PURPLE,
    PRINTED: chart_parts.ORANGE,
}
SHAPES = {BEST: "circle", USUAL: "cross", OURS: "diamond", PRINTED: "triangle-up"}


@dataclass(frozen=True)
class RiskCurve:
    """Expected risk after / before shrinkage of strength alpha.

    Attributes
    ----------
    m : int
        Number of questions.
    psi, v : float
        The variance of an aggregate that is used, and another estimate of it.
    squares : float
        Sum of squares of the aggregates around their mean.
    taken : float
        The strength of this estimate: its mean shrinkage as alpha.
    printed : float
        The strength m - 3 with the variance as printed in the paper, NaN where that is unknown.
    """

    m: int
    psi: float
    v: float
    squares: float
    taken: float
    printed: float

    @property
    def best(self) -> float:
        """alpha*, where the risk is lowest."""
        return (self.m - 3) * self.v / self.psi

    def ratio(self, alpha: float) -> float:
        """Return the expected risk after / before."""
        share = (
            self.psi / self.squares / self.m
        )  # products of variances may be too small for a number
        a = (self.m - 3) * share
        b = share * (self.psi / self.v)
        return 1.0 - 2.0 * alpha * a + alpha * alpha * b


def risk_curve(est: Estimate) -> RiskCurve | None:
    """Return the curve of a single problem, None where its noise is unknown."""
    x, variances = est.aggregate.x, est.second_step.certainty.v
    m = len(x)
    if m < FEWEST or est.problem.n_panels > 1 or not np.isfinite(variances).all():
        return None
    psi = float(variances.mean())
    spread = float(np.sum((x - x.mean()) ** 2))
    if not (psi > 0 and spread > 0 and np.isfinite(spread)):
        return None
    if est.aggregate.bias is None:
        printed, v = printed_and_sandwich(est.aggregate, psi)
    else:  # its residuals are those of answers less a bias
        printed, v = float("nan"), psi
    if not v > 0:
        return None
    squares = max(spread, (m - 1) * v)
    taken = float(est.shrinkage.mean()) * spread / psi
    return RiskCurve(m, psi, v, squares, taken, (m - 3) * printed / psi)


def second_step_section(data: ReportData) -> Section | None:
    """Write the section; None where the risk is unknown, or rests on a single question."""
    x = data.est.aggregate.x
    if is_dominated((x - x.mean()) ** 2) or is_dominated(data.est.second_step.certainty.v):
        return None
    curve = risk_curve(data.est)
    if curve is None or not np.isfinite([curve.best, curve.ratio(curve.best)]).all():
        return None
    text = (
        "How strongly should estimates be pulled toward each other? With too little shrinkage the noise of the answers "
        "remains; too much is worse than none. The curve shows the error that theory expects if workers err "
        "independently and all questions are about equally certain."
    )
    if 1.0 - curve.ratio(curve.best) < 0.02:
        text += (
            " Here the questions differ so much more than the workers err that shrinkage hardly matters: it does no "
            "harm and gains little."
        )
    if TruthReach(data).is_target:
        text += (
            f" It is the error against {CONSENSUS}. These estimates aim at the truth instead, so the step is taken "
            "only in part: most crowds have understated differences already."
        )
    return Section(TITLE, text=text, figures=[_figure(data, curve)], fold=FOLD)


def _figure(data: ReportData, curve: RiskCurve) -> Figure:
    best, usual = curve.best, float(curve.m - 3)
    gain = 1.0 - curve.ratio(best)
    end = REACH * max(best, 1.0)
    end = max(end, 1.1 * usual if usual < 4 * best else end)
    strengths = {BEST: best, USUAL: usual}
    is_truth = TruthReach(data).is_target
    if data.est.shrinkage.any() or is_truth:
        strengths[OURS] = curve.taken
    if np.isfinite(curve.printed):
        strengths[PRINTED] = curve.printed
    numbers = [(which, alpha, curve.ratio(alpha)) for which, alpha in strengths.items()]
    table = PageTable("Numbers", ["strength", "alpha", "after / before"], numbers)
    whose = " against the consensus" if is_truth else ""
    title = (
        f"The best strength lowers the expected squared error{whose} by {percent(gain)}; more than twice that strength "
        "would do harm."
    )
    if curve.taken > 2.0 * best:
        title = "This estimate shrinks more than twice as strongly as is best: it is expected to do harm."
    elif gain < 0.005:
        title = "Shrinkage hardly helps here: at best it lowers the expected squared error by less than 0.5%."
    note = "Below the dashed line the second step helps."
    if curve.taken > end:
        note += (
            f" The strength of this estimate, {number(curve.taken)}, is to the right of this chart."
        )
    elif np.isfinite(curve.printed) and curve.printed > end:
        note += (
            f" With the variance as printed in the paper (psi_H) the strength would be {number(curve.printed)}, far to "
            "the right of this chart, where it does harm."
        )
    if curve.v == curve.psi:
        note += " Without a second estimate of the variance, alpha* is m - 3 by construction."
    own_gain = data.gain
    if np.ptp(data.est.shrinkage) > SAME:
        note += " The estimate itself shrinks each question according to its own certainty, which the curve cannot show"
        note += (
            f"; this is expected to gain {percent(own_gain)}."
            if own_gain > gain and not is_truth
            else "."
        )
    about = f"Expected squared error after shrinkage relative to before, m = {curve.m:,} questions; {data.basis}."
    return Figure(title, _chart(curve, strengths, end), note, table, about)


def _chart(curve: RiskCurve, strengths: dict[str, float], end: float) -> dict[str, Any]:
    """Draw the curve up to an end, with the strengths that are marked on it."""
    marked = {which: alpha for which, alpha in strengths.items() if alpha <= end}
    grid, alphas = np.linspace(0.0, end, POINTS).tolist(), list(marked.values())
    rows = chart_parts.records(alpha=grid, ratio=map(curve.ratio, grid))
    points = chart_parts.records(which=list(marked), alpha=alphas, ratio=map(curve.ratio, alphas))
    x = {
        **chart_parts.quantity("alpha", "strength of shrinkage (alpha)"),
        "scale": {"domain": [0, end], "nice": False},
    }
    y_title = "expected squared error, after / before"
    y = {**chart_parts.quantity("ratio", y_title), "scale": {"zero": False}}
    tooltip = [
        chart_parts.quantity("alpha", digits=chart_parts.DIGITS),
        chart_parts.quantity("ratio", "after / before", ".3f"),
    ]
    hue, shape = (
        chart_parts.category("which", list(marked), [values[which] for which in marked])
        for values in (HUES, SHAPES)
    )
    line = {"type": "line", "strokeWidth": 2, "color": chart_parts.BLUE}
    drop = {"type": "rule", "strokeDash": [2, 3]}
    both = {
        "color": hue,
        "shape": shape,
        "tooltip": [chart_parts.name("which", "strength"), *tooltip],
    }
    return {
        "height": 260,
        "layer": [
            chart_parts.reference_line("y", 1, {"type": "quantitative", "title": y_title}),
            chart_parts.layer(line, rows, x=x, y=y, tooltip=tooltip),
            chart_parts.layer(drop, points, x=x, color=hue),
            chart_parts.layer(chart_parts.dot(130), points, x=x, y=y, **both),
        ],
    }

"""Where the second step helps: expected risk against the strength of the pull.

With equal variances, aggregates moved by `alpha psi / SS` toward their mean have the expected risk, relative to that of
the aggregates,

    ratio(alpha) = 1 - 2 alpha a + alpha^2 b,   a = (m-3) psi / (m SS),   b = psi^2 / (m SS v)

where psi is the variance that the step uses and v another estimate of it (`trueup.theory.gain`). It is lowest at
`alpha* = (m-3) v / psi` and back at 1 at twice that. `SS` is taken as no less than what noise alone would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.report.draw import BLUE
from trueup.report.markup import number
from trueup.report.page import Figure, Section, Table
from trueup.report.sections.context import Facts, percent
from trueup.variance import mean_sandwich, psi_h

if TYPE_CHECKING:
    from trueup.result.estimate import Estimate

POINTS = 81
REACH = 2.3  # end of the curve, in multiples of the best pull
FEWEST = 4
SAME = 1e-9  # shrinkages that differ by no more are one
BEST, USUAL, OURS, PRINTED = "best: alpha*", "m - 3", "this estimate", "as printed"


@dataclass(frozen=True)
class Curve:
    """Expected risk after / before a pull of strength alpha.

    Attributes
    ----------
    m : int
        Number of questions.
    psi, v : float
        The variance of an aggregate that is used, and another estimate of it.
    squares : float
        Sum of squares of the aggregates around their mean.
    taken : float
        The pull of this estimate: its mean shrinkage as alpha.
    printed : float
        What m - 3 is with the variance as the paper prints it, NaN where that is not at hand.
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
        a = (self.m - 3) * self.psi / (self.m * self.squares)
        b = self.psi * self.psi / (self.m * self.squares * self.v)
        return 1.0 - 2.0 * alpha * a + alpha * alpha * b


def curve_of(est: Estimate) -> Curve | None:
    """Return the curve of a single problem, None where nothing is known of its noise."""
    x, sure = est.aggregate.x, est.second_step.certainty.v
    m = len(x)
    if m < FEWEST or est.answers.n_panels > 1 or not np.isfinite(sure).all():
        return None
    psi = float(sure.mean())
    spread = float(np.sum((x - x.mean()) ** 2))
    if not (psi > 0 and spread > 0 and np.isfinite(spread)):
        return None
    v, printed = _others(est, psi)
    squares = max(spread, (m - 1) * v)
    taken = float(est.shrinkage.mean()) * spread / psi
    return Curve(m, psi, v, squares, taken, (m - 3) * printed / psi)


def _others(est: Estimate, psi: float) -> tuple[float, float]:
    """Return another estimate of the variance, and the one that the paper prints."""
    if est.aggregate.bias is not None:  # its residuals are those of answers less a bias
        return psi, float("nan")
    printed = float(psi_h(None, est.aggregate)[0])
    try:
        other = float(mean_sandwich(None, est.aggregate)[0])
    except TrueupError:  # the method does not say how much each answer counts
        return psi, printed
    return (other if other > 0 else psi), printed


def helps(facts: Facts) -> Section | None:
    """Write the section; None where there is nothing to say."""
    curve = curve_of(facts.est)
    if curve is None or not np.isfinite([curve.best, curve.ratio(curve.best)]).all():
        return None
    gain = 1.0 - curve.ratio(curve.best)
    text = (
        "How strongly should questions be pulled toward each other? Not at all leaves them as they are; too strongly "
        "is worse than that. The curve is what theory expects of these answers if workers err independently and all "
        "questions are about equally certain."
    )
    if gain < 0.02:
        text += (
            " Here the questions differ so much more than the workers err that hardly any pull helps: the second step "
            "is harmless and of little use."
        )
    return Section("Where the second step helps", text=text, figures=[_figure(facts, curve)])


def _figure(facts: Facts, curve: Curve) -> Figure:
    best, usual = curve.best, float(curve.m - 3)
    gain = 1.0 - curve.ratio(best)
    end = REACH * max(best, 1.0)
    end = max(end, 1.1 * usual if usual < 4 * best else end)
    at = np.linspace(0.0, end, POINTS)
    rows = [{"alpha": float(a), "ratio": curve.ratio(float(a))} for a in at]
    marked = [(BEST, best), (USUAL, usual)]
    if facts.est.shrinkage.any():
        marked.append((OURS, curve.taken))
    if np.isfinite(curve.printed):
        marked.append((PRINTED, curve.printed))
    points = [
        {"what": what, "alpha": alpha, "ratio": curve.ratio(alpha)}
        for what, alpha in marked
        if alpha <= end
    ]
    names = [what for what, alpha in marked if alpha <= end]
    shapes = {BEST: "circle", USUAL: "cross", OURS: "diamond", PRINTED: "triangle-up"}
    hues = {BEST: "var(--hue3)", USUAL: "var(--hue2)", OURS: "var(--hue4)", PRINTED: "var(--hue5)"}
    x = {
        "field": "alpha",
        "type": "quantitative",
        "title": "strength of the pull (alpha)",
        "scale": {"domain": [0, end], "nice": False},
    }
    y: dict[str, Any] = {
        "field": "ratio",
        "type": "quantitative",
        "title": "expected squared error, after / before",
        "scale": {"zero": False},
    }
    tooltip = [
        {"field": "alpha", "format": ".4~g", "type": "quantitative"},
        {"field": "ratio", "title": "after / before", "format": ".3f", "type": "quantitative"},
    ]
    kind = {"field": "what", "type": "nominal", "title": None}
    spec = {
        "height": 260,
        "layer": [
            {
                "data": {"values": [{"one": 1}]},
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"y": {"field": "one", "type": "quantitative", "title": y["title"]}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "line", "strokeWidth": 2, "color": BLUE},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            {
                "data": {"values": points},
                "mark": {"type": "rule", "strokeDash": [2, 3]},
                "encoding": {
                    "x": x,
                    "color": {
                        **kind,
                        "scale": {"domain": names, "range": [hues[name] for name in names]},
                    },
                },
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        **kind,
                        "scale": {"domain": names, "range": [hues[name] for name in names]},
                    },
                    "shape": {
                        **kind,
                        "scale": {"domain": names, "range": [shapes[name] for name in names]},
                    },
                    "tooltip": [{"field": "what", "title": "which", "type": "nominal"}, *tooltip],
                },
            },
        ],
    }
    if curve.taken > 2.0 * best:
        title = (
            "This estimate pulls more than twice as strongly as is best: it is expected to do harm."
        )
    elif gain < 0.005:
        title = "Hardly any pull helps here: the best one gains less than 0.5%."
    else:
        title = (
            f"The best pull lowers the expected squared error by {percent(gain)}; one more than twice as strong would "
            "do harm."
        )
    note = "Below the dashed line the second step helps."
    if curve.taken > end:
        note += f" This estimate pulls with {number(curve.taken)}, to the right of this chart."
    elif np.isfinite(curve.printed) and curve.printed > end:
        note += (
            f" With the variance as the paper prints it (psi_H) the pull would be {number(curve.printed)}, far to the "
            "right of this chart, where it does harm."
        )
    if curve.v == curve.psi:
        note += (
            " No second estimate of the variance is at hand, so alpha* is m - 3 by construction."
        )
    ours = facts.est.second_step.expected_gain
    if np.ptp(facts.est.shrinkage) > SAME:
        note += " The estimate itself pulls every question by its own certainty, which the curve cannot show"
        note += f" and by which it is expected to gain {percent(ours)}." if ours > gain else "."
    numbers = [(what, alpha, curve.ratio(alpha)) for what, alpha in marked]
    return Figure(
        title, spec, note, Table("The numbers", ["pull", "alpha", "after / before"], numbers)
    )

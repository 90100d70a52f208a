"""Against the truth, where it is known: errors, coverage, and a chart of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError, counted
from trueup.report.draw import BLUE, FAINT, RED, position
from trueup.report.page import Figure, Section, Table
from trueup.report.parts import Cards
from trueup.report.sections.context import Facts, brief, percent

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

MOST_POINTS = 800
WHERE = {"in its interval": BLUE, "outside": RED, "no interval": FAINT}
FEW = 30  # questions below which a ratio of errors is mostly chance


def check_truth(truth: Any, questions: int) -> Floats | None:
    """Return the truth as an array, None where none is known."""
    if truth is None:
        return None
    try:
        values = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError):
        raise TrueupError(
            "expected one number per question, NaN where unknown.", argument="truth"
        ) from None
    if values.shape != (questions,):
        raise TrueupError(
            f"found shape {values.shape}, expected one number for each of the {questions} questions, NaN where "
            "unknown.",
            argument="truth",
        )
    if np.isinf(values).any():
        raise TrueupError("must be finite, NaN where unknown.", argument="truth")
    return None if np.isnan(values).all() else values


def against_truth(facts: Facts) -> Section | None:
    """Write the section; None where no truth is known of a question that was estimated."""
    est, truth = facts.est, facts.truth
    if truth is None:
        return None
    given = facts.is_gold & (est.estimate == truth)  # known truths that the estimate was given
    at = np.flatnonzero(~np.isnan(truth) & ~given)
    if len(at) == 0:
        return None
    before, after = ((each[at] - truth[at]) ** 2 for each in (est.base, est.estimate))
    mse = float(before.mean()), float(after.mean())
    cards = [
        (brief(float(np.sqrt(mse[1]))), "root mean squared error", "of the estimates"),
        (
            brief(float(np.sqrt(mse[0]))),
            "the same before the second step",
            "of the answers combined",
        ),
    ]
    inside = (est.lower[at] <= truth[at]) & (truth[at] <= est.upper[at])
    known = np.isfinite(est.lower[at])
    text = f"The truth of {counted(len(at), 'question')} is known and was not used."
    if given.any():
        text = f"The truth of {counted(len(at), 'question')} is known besides the {int(given.sum()):,} that were used."
    if known.any():
        share = float(inside[known].mean())
        cards.append(
            (percent(share), "of the truths lie in their interval", f"meant: {facts.percent}")
        )
        error = 2.0 * np.sqrt(est.level * (1 - est.level) / known.sum())
        if share < est.level - error:
            text += (
                " Fewer of them lie in their interval than should: workers share an error, which their answers cannot "
                "show. Give some known truths as gold to correct it and to widen the intervals."
            )
    if mse[0] > 0:
        change = mse[1] / mse[0] - 1.0
        if change == 0:
            verdict = "The second step changed nothing."
        else:
            word = "lowered" if change < 0 else "raised"
            verdict = f"The second step {word} the mean squared error by {percent(abs(change))}"
            verdict += "." if len(at) >= FEW else f"; with {len(at)} questions that may be chance."
        text = f"{verdict} {text}"
    rows = [
        (
            "answers combined",
            mse[0],
            float(np.sqrt(mse[0])),
            float(np.abs(est.base[at] - truth[at]).mean()),
        ),
        (
            "estimate",
            mse[1],
            float(np.sqrt(mse[1])),
            float(np.abs(est.estimate[at] - truth[at]).mean()),
        ),
    ]
    errors = Table(
        "The errors", ["", "mean squared error", "its root", "mean absolute error"], rows
    )
    return Section(
        "Against the known truth",
        text=text,
        parts=[Cards(cards)],
        figures=[_figure(facts, at, errors)],
    )


def _figure(facts: Facts, at: Any, errors: Table) -> Figure:
    est, truth = facts.est, facts.truth
    assert truth is not None  # noqa: S101  the caller looked
    total = len(at)
    if total > MOST_POINTS:
        at = np.sort(np.random.default_rng(0).choice(at, MOST_POINTS, replace=False))
    inside = (est.lower[at] <= truth[at]) & (truth[at] <= est.upper[at])
    words = np.where(
        np.isnan(est.lower[at]), "no interval", np.where(inside, "in its interval", "outside")
    )
    rows = [
        {"q": q, "truth": t, "estimate": e, "low": lo, "high": hi, "where": w}
        for q, t, e, lo, hi, w in zip(
            facts.questions(at),
            truth[at].tolist(),
            est.estimate[at].tolist(),
            est.lower[at].tolist(),
            est.upper[at].tolist(),
            words.tolist(),
            strict=True,
        )
    ]
    ends = [float(f(np.concatenate([truth[at], est.estimate[at]]))) for f in (np.min, np.max)]
    x = position(facts, f"truth ({facts.unit})", "truth")
    y = position(facts, f"estimate ({facts.unit})", "estimate")
    if x["scale"]["type"] == "log" and ends[0] <= 0:
        for each in (x, y):
            each["scale"] = {"type": "symlog"}
    digits = facts.format
    used = [word for word in WHERE if word in words]
    hue = {
        "field": "where",
        "type": "nominal",
        "title": None,
        "scale": {"domain": used, "range": [WHERE[word] for word in used]},
        "legend": {"title": None, "symbolType": "circle", "symbolOpacity": 1},
    }
    bars = [
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "opacity": 0.3},
            "encoding": {
                "x": x,
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "color": hue,
            },
        }
    ]
    if np.isnan(est.lower[at]).all():
        bars = []
    spec = {
        "height": 360,
        "layer": [
            {
                "data": {"values": [{"truth": each, "estimate": each} for each in ends]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": FAINT, "strokeWidth": 1},
                "encoding": {"x": x, "y": y},
            },
            *bars,
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "size": 36, "opacity": 0.9},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": hue,
                    "tooltip": [
                        {"field": "q", "title": "question", "type": "nominal"},
                        {"field": "truth", "format": digits, "type": "quantitative"},
                        {"field": "estimate", "format": digits, "type": "quantitative"},
                        {"field": "low", "format": digits, "title": "from", "type": "quantitative"},
                        {"field": "high", "format": digits, "title": "to", "type": "quantitative"},
                    ],
                },
            },
        ],
    }
    off = float(np.mean(est.estimate[at] - truth[at]))
    error = float(np.std(est.estimate[at] - truth[at])) / np.sqrt(len(at))
    if len(at) > 1 and abs(off) > 2.0 * error:
        title = f"On average the estimates are {facts.say_size(abs(off))} too {'high' if off > 0 else 'low'}."
    else:
        title = "On average the estimates are neither too high nor too low."
    note = "On the dashed line an estimate is right."
    if total > len(at):
        note += f" {len(at):,} of {total:,} questions, at random."
    return Figure(title, spec, note, errors)

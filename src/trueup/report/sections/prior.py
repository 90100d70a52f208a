"""What is usual here: the prior that was fitted, over the histogram of the aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report.draw import BLUE, FAINT, RED, WHOLE_NUMBERS, Bins, inner_axis, inner_title
from trueup.report.markup import Name
from trueup.report.names import shown
from trueup.report.page import Figure, Section, Table
from trueup.report.parts import Text
from trueup.report.sections.context import Facts, percent
from trueup.report.sections.prior_curves import Belief, Bell, believed, bell_density

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

POINTS = 161
NOISES = 15  # quantiles of the variances that stand for all of them
MOST_PARTS = 8
MOST_LISTED = 200
MOST_PANELS = 100
ROOM = 1.6  # height of the chart, in highest bars: a prior may be narrower and higher still
WHOLE, SEEN = "true values (prior)", "what answers combined should look like"
NONE = (
    "No prior was used: every estimate is what its own answers say. Either no second step was asked for, or there was "
    "too little to learn what is usual here."
)
WORDS = {
    "normal": "The true values are taken to lie around one common value, spread like a bell (a normal prior). ",
    "mixture": "The true values come in clusters, and a question is pulled toward the clusters that it may belong to. ",
    "scale mixture": (
        "Most true values lie close together and some lie far out; those far out are hardly pulled. "
    ),
    "groups": "Every group of questions that is large enough has a bell of its own. ",
    "group means": "Every group of questions has a centre of its own, and all share one spread. ",
    "regression": "Every question is pulled toward what its covariates predict. ",
    "linear": "All questions are pulled by the same share toward one value. ",
    "other": "",
}


def prior(facts: Facts) -> Section:
    """Write the section."""
    title = "What is usual here"
    if not facts.one:
        return _panels(facts, title)
    belief = believed(facts.est)
    if belief.model == "none":
        return Section(title, text=NONE)
    words = WORDS.get(belief.model, "") + _why(facts)
    lead = (
        "Questions have something in common: knowing the others says what is a usual value and what would be a "
        "strange one. That was learned from these answers alone. "
    )
    if not belief.bells:
        return Section(title, text=lead + words)
    return Section(title, text=lead + words, figures=[_figure(facts, belief)])


def _why(facts: Facts) -> str:
    """Say what a bolder prior gained, where one was tried."""
    fitted = facts.est.second_step.prior
    gain = getattr(fitted, "gain", None)
    if gain is None or not np.isfinite(gain[0]):
        return ""
    if facts.est.second_step.models[0] == "normal":
        return "Anything bolder did not predict held-out workers clearly better."
    z = float(getattr(fitted, "z", gain)[0])
    return f"It predicted held-out workers better than a single bell, by {z:.1f} standard errors."


def _noises(facts: Facts) -> Floats:
    v = facts.est.second_step.certainty.v
    v = v[np.isfinite(v)]
    if len(v) == 0:
        return np.zeros(1)
    quantiles: Floats = np.quantile(v, (np.arange(NOISES) + 0.5) / NOISES)
    return quantiles


def chart(facts: Facts, belief: Belief) -> dict[str, Any]:
    """Draw the prior over the histogram of the aggregates."""
    x = facts.est.aggregate.x
    bins = Bins.of(x)
    counts = bins.count(x)
    edges = bins.edges
    bars = [
        {"low": low, "high": high, "questions": many}
        for low, high, many in zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True)
    ]
    at = np.linspace(edges[0], edges[-1], POINTS)
    # Points at the peaks as well, which may be narrow.
    peaks = [bell.mean for bell in belief.bells[:MOST_PARTS] if edges[0] < bell.mean < edges[-1]]
    at = np.unique(np.concatenate([at, peaks]))
    height = facts.m * bins.width
    curves = [(WHOLE, height * belief.density(at, np.zeros(1)))]
    curves.append((SEEN, height * belief.density(at, _noises(facts))))
    tallest = max(1, *counts)
    top = 1.08 * max(tallest, min(float(curves[0][1].max()), ROOM * tallest))
    marked = _marked(belief)
    if len(marked) > 1:
        curves += [
            (bell.name, height * bell.share * bell_density(bell, at, np.zeros(1)))
            for bell in marked
        ]
    rows = [
        {"x": place, "y": min(value, top), "line": name}
        for name, curve in curves
        for place, value in zip(at.tolist(), curve.tolist(), strict=True)
    ]
    names = [name for name, _ in curves]
    hues = [BLUE, RED, *(f"var(--hue{3 + k % 5})" for k in range(len(names)))][: len(names)]
    place = {
        "type": "quantitative",
        "title": inner_title(facts, "value"),
        "scale": {"zero": False, "nice": False, "domain": [edges[0], edges[-1]]},
        "axis": inner_axis(facts.est.solution.scale),
    }
    y: dict[str, Any] = {"type": "quantitative", "title": "questions", "axis": WHOLE_NUMBERS}
    y["scale"] = {"domain": [0, top]}
    dash = [[1, 0], [5, 4], *([2, 2] for _ in names)][: len(names)]
    return {
        "height": 260,
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "bar", "color": FAINT, "opacity": 0.35, "binSpacing": 1},
                "encoding": {
                    "x": {**place, "field": "low", "bin": "binned"},
                    "x2": {"field": "high"},
                    "y": {**y, "field": "questions"},
                    "tooltip": [{"field": "questions", "type": "quantitative"}],
                },
            },
            {
                "data": {"values": rows},
                "mark": {"type": "line", "strokeWidth": 2, "clip": True},
                "encoding": {
                    "x": {**place, "field": "x"},
                    "y": {**y, "field": "y"},
                    "color": {
                        "field": "line",
                        "type": "nominal",
                        "scale": {"domain": names, "range": hues},
                        "legend": {"title": None, "columns": 1, "labelLimit": 320},
                    },
                    "strokeDash": {
                        "field": "line",
                        "type": "nominal",
                        "scale": {"domain": names, "range": dash},
                        "legend": {"title": None, "columns": 1, "labelLimit": 320},
                    },
                    "tooltip": [{"field": "line", "title": "curve", "type": "nominal"}],
                },
            },
        ],
    }


def _marked(belief: Belief) -> list[Bell]:
    """Return the parts to mark: the largest, in order of their mean."""
    if belief.model == "regression":
        return []
    largest = sorted(belief.bells, key=lambda bell: -bell.share)[:MOST_PARTS]
    return sorted(largest, key=lambda bell: bell.mean)


def _figure(facts: Facts, belief: Belief) -> Figure:
    back = facts.est.solution.scale.backward
    spread = float(np.sqrt(belief.variance))
    middle = facts.say(float(back(np.array([belief.mean]))[0]))
    ends = back(np.array([belief.mean - spread, belief.mean + spread]))
    span = f"{facts.say(ends[0])} and {facts.say(ends[1])}"
    parts = _marked(belief)
    if belief.model in ("mixture", "groups", "group means") and len(belief.bells) > 1:
        kind = "clusters" if belief.model == "mixture" else "groups"
        title = f"The true values lie in {len(belief.bells)} {kind}"
        if len(belief.bells) <= 4:
            centres = [facts.say(float(back(np.array([bell.mean]))[0])) for bell in belief.bells]
            title += f", around {', '.join(centres[:-1])} and {centres[-1]}"
        title += "."
    elif belief.model == "scale mixture":
        near = max(belief.bells, key=lambda bell: -bell.variance)
        title = (
            f"{percent(near.share)} of the true values lie close to {middle}, the others far out."
        )
    else:
        title = f"A usual value is {middle}; two thirds of the true values lie between {span}."
    if belief.model == "linear":
        title = f"All questions are pulled toward {middle}, as if two thirds of the true values lay between {span}."
    bins = Bins.of(facts.est.aggregate.x)
    note = (
        "Bars: the answers combined, before the second step. They spread more widely than the true values (solid), for "
        "they have the errors of the workers in them. Where the dashed line follows the bars, the prior fits."
        + bins.note
    )
    if any(bell.variance < (0.25 * bins.width) ** 2 for bell in parts):
        note += " A part may be narrower and higher than a chart with bars of this width can show."
    listed = parts or [Bell("", 1.0, belief.mean, belief.variance)]
    if len(belief.bells) > len(listed) > 1:
        listed = list(belief.bells[:MOST_LISTED])
    rows = [
        (
            Name(bell.name or "all"),
            bell.share,
            float(back(np.array([bell.mean]))[0]),
            float(np.sqrt(bell.variance)),
        )
        for bell in listed
    ]
    columns = [
        "part",
        "share of questions",
        "centre",
        f"spread, 1 std. deviation ({facts.inner_unit})",
    ]
    return Figure(title, chart(facts, belief), note, Table("The numbers", columns, rows))


def _panels(facts: Facts, title: str) -> Section:
    """List what was learned of each of many problems."""
    est = facts.est
    answers = est.answers
    count = min(answers.n_panels, MOST_PANELS)
    ids = answers.origin.panel_ids
    names = list(range(count)) if ids is None else ids.tolist(np.arange(count))
    models = est.second_step.models or [est.diagnosis.shrink] * answers.n_panels
    rows = []
    for b, name in enumerate(names):
        mine = slice(int(answers.panel_questions[b]), int(answers.panel_questions[b + 1]))
        shrinkage = est.shrinkage[mine]
        moved = float(shrinkage.mean()) if len(shrinkage) else float("nan")
        rows.append((Name(shown(name)), len(shrinkage), models[b], moved))
    text = f"Each of {counted(answers.n_panels, 'panel')} has a prior of its own."
    note = f"The first {count:,}." if count < answers.n_panels else ""
    columns = ["panel", "questions", "prior", "shrinkage"]
    return Section(
        title, parts=[Text(text)], tables=[Table("Panels", columns, rows, "a panel", note)]
    )

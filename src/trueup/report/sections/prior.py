"""The distribution of the true values: the prior that was fitted, over the histogram of the aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.markup import Name
from trueup.report.names import shown
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.prior_shape import NormalComponent, PriorShape, prior_shape
from trueup.report.sections.report_data import ReportData, percent
from trueup.report.sections.truth_reach import TruthReach

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

TITLE = "Distribution of true values"
FOLD = "For statisticians: the distribution of true values that was learned (prior)"
POINTS = 161
NOISES = 15  # quantiles of the variances that stand for all of them
MOST_MARKED = 8
MOST_LISTED = 200
MOST_PANELS = 100
ROOM = 1.6  # height of the chart, in highest bars: a prior may be narrower and higher still
TRUE_VALUES, AGGREGATES = "true values (prior)", "aggregates, as expected from the prior"
LEAD = (
    "The questions have something in common: together they show which values are typical and which would be "
    "surprising. This distribution of the true values (the prior) was learned from these answers alone. "
)
NONE = (
    "No prior was used: every estimate rests on its own answers alone. Either the second step was turned off, or there "
    "was too little data to learn which values are typical."
)
CONSENSUS_ONLY = (
    "A true value here is what infinitely many such workers would say; an error that all of them share is not part of "
    "it."
)
WORDS = {
    "normal": "Here it is a single bell curve around a common mean (a normal prior). ",
    "mixture": "Here the true values form clusters, and a question is pulled toward the clusters it may belong to. ",
    "scale mixture": "Here most true values lie close together and a few far out; those are hardly pulled. ",
    "groups": "Here every group of questions that is large enough has a bell curve of its own. ",
    "group means": "Here every group of questions has a mean of its own, and all share one spread. ",
    "regression": "Here every question is pulled toward the value that its covariates predict. ",
    "linear": "Here all questions are pulled toward one value by the same share. ",
}


def prior_section(data: ReportData) -> Section:
    """Write the section."""
    if not data.is_single:
        return _panels_section(data)
    prior = prior_shape(data.est)
    if prior.model == "none":
        return Section(TITLE, text=NONE, fold=FOLD)
    figures = [_figure(data, prior)] if prior.components else []
    text = LEAD + WORDS.get(prior.model, "") + _why(data)
    if TruthReach(data).is_target:
        text = f"{text.rstrip()} {CONSENSUS_ONLY}"
    return Section(TITLE, text=text, figures=figures, fold=FOLD)


def _why(data: ReportData) -> str:
    """Say what a prior with more parameters gained, where one was tried."""
    fitted = data.est.second_step.prior
    gain = getattr(fitted, "gain", None)
    if gain is None or not np.isfinite(gain[0]):
        return ""
    if data.est.second_step.models[0] == "normal":
        return "More flexible priors did not predict held-out workers clearly better."
    z = float(getattr(fitted, "z", gain)[0])
    return f"It predicted held-out workers better than a single bell curve, by {z:.1f} standard errors."


def _noise_variances(data: ReportData) -> Floats:
    """Return a few variances of aggregates that stand for all of them."""
    v = data.est.second_step.certainty.v
    v = v[np.isfinite(v)]
    if len(v) == 0:
        return np.zeros(1)
    quantiles: Floats = np.quantile(v, (np.arange(NOISES) + 0.5) / NOISES)
    return quantiles


def prior_chart(data: ReportData, prior: PriorShape) -> dict[str, Any]:
    """Draw the prior over the histogram of the aggregates."""
    x = data.est.aggregate.x
    bins = chart_parts.Bins.of(x)
    counts, edges = bins.count(x), bins.edges
    # Points at the peaks as well, which may be narrow.
    means = [part.mean for part in prior.components[:MOST_MARKED]]
    peaks = [mean for mean in means if edges[0] < mean < edges[-1]]
    values = np.unique(np.concatenate([np.linspace(edges[0], edges[-1], POINTS), peaks]))
    height, exact = data.m * bins.width, np.zeros(1)
    curves = {
        TRUE_VALUES: height * prior.density(values, exact),
        AGGREGATES: height * prior.density(values, _noise_variances(data)),
    }
    tallest = max(1, *counts)
    top = 1.08 * max(tallest, min(float(curves[TRUE_VALUES].max()), ROOM * tallest))
    marked = _marked(prior)
    if len(marked) > 1:
        curves |= {part.name: height * part.share * part.density(values, exact) for part in marked}
    rows = [
        row
        for title, curve in curves.items()
        for row in chart_parts.records(
            x=values, y=np.minimum(curve, top), line=[title] * len(values)
        )
    ]
    titles = list(curves)
    hues = [
        chart_parts.BLUE,
        chart_parts.RED,
        *(f"var(--hue{3 + k % 5})" for k in range(len(titles))),
    ][: len(titles)]
    dashes = [[1, 0], [5, 4], *([2, 2] for _ in titles)][: len(titles)]
    hue, dash = (
        chart_parts.category("line", titles, values, columns=1) for values in (hues, dashes)
    )
    place = {
        "type": "quantitative",
        "title": chart_parts.inner_title(data, "value"),
        "scale": {"zero": False, "nice": False, "domain": [edges[0], edges[-1]]},
        "axis": chart_parts.inner_axis(data.est.solution.scale),
    }
    y_axis = {"axis": chart_parts.count_axis(int(top)), "scale": {"domain": [0, top]}}
    y_bars, y_line = (
        {**chart_parts.quantity(field, "questions"), **y_axis} for field in ("questions", "y")
    )
    bars = chart_parts.layer(
        {"type": "bar", "color": chart_parts.FAINT, "opacity": 0.35, "binSpacing": 1},
        chart_parts.records(low=edges[:-1], high=edges[1:], questions=counts),
        x={**place, "field": "low", "bin": "binned"},
        x2={"field": "high"},
        y=y_bars,
        tooltip=[chart_parts.quantity("questions")],
    )
    lines = chart_parts.layer(
        {"type": "line", "strokeWidth": 2, "clip": True},
        rows,
        x={**place, "field": "x"},
        y=y_line,
        color=hue,
        strokeDash=dash,
        tooltip=[chart_parts.name("line", "curve")],
    )
    return {"height": 260, "layer": [bars, lines]}


def _marked(prior: PriorShape) -> list[NormalComponent]:
    """Return the components to mark: the largest, in order of their mean."""
    if prior.model == "regression":
        return []
    largest = sorted(prior.components, key=lambda part: -part.share)[:MOST_MARKED]
    return sorted(largest, key=lambda part: part.mean)


def _finding(data: ReportData, prior: PriorShape) -> str:
    """Say what the prior is like, in one sentence."""
    back = data.est.solution.scale.backward
    spread, parts = float(np.sqrt(prior.variance)), prior.components
    values = back(np.array([prior.mean, prior.mean - spread, prior.mean + spread]))
    middle, low = data.say_value(values[0]), data.say(values[1])
    high = data.say_value(values[2])
    if prior.model in ("mixture", "groups", "group means") and len(parts) > 1:
        kind = "clusters" if prior.model == "mixture" else "groups"
        title = f"The true values form {len(parts)} {kind}"
        if len(parts) <= 4:
            centres = list(map(data.say, back(np.array([part.mean for part in parts])).tolist()))
            title += f", around {', '.join(centres[:-1])} and {centres[-1]}"
        return f"{title}."
    if prior.model == "scale mixture":
        near = min(parts, key=lambda part: part.variance)
        return (
            f"{percent(near.share)} of the true values lie close to {middle}, the others far out."
        )
    if prior.model == "linear":
        return f"All questions are pulled toward {middle}, as if two thirds of them were between {low} and {high}."
    return (
        f"A typical true value is {middle}; about two thirds of them are between {low} and {high}."
    )


def _figure(data: ReportData, prior: PriorShape) -> Figure:
    bins, marked = chart_parts.Bins.of(data.est.aggregate.x), _marked(prior)
    note = (
        "Bars: the aggregates, before the second step. They spread more widely than the true values (solid line) "
        "because they include the errors of the workers. Where the dashed line follows the bars, the prior fits."
        + bins.note
    )
    if any(part.variance < (0.25 * bins.width) ** 2 for part in marked):
        note += " A part may be narrower and higher than bars of this width can show."
    listed = marked or [NormalComponent("", 1.0, prior.mean, prior.variance)]
    if len(prior.components) > len(listed) > 1:
        listed = list(prior.components[:MOST_LISTED])
    centres = data.est.solution.scale.backward(np.array([part.mean for part in listed]))
    rows = [
        (Name(part.name or "all"), part.share, centre, float(np.sqrt(part.variance)))
        for part, centre in zip(listed, centres.tolist(), strict=True)
    ]
    columns = ["part", "share of questions", "centre", f"standard deviation ({data.inner_unit})"]
    numbers = PageTable("Numbers", columns, rows)
    about = (
        f"Aggregates of {counted(data.m, 'question')} and the prior fitted to them; {data.basis}."
    )
    return Figure(_finding(data, prior), prior_chart(data, prior), note, numbers, about)


def _panels_section(data: ReportData) -> Section:
    """List the prior of each of several problems."""
    est, problem = data.est, data.problem
    borders = problem.panel_questions.tolist()
    models = est.second_step.models or [est.diagnosis.shrink] * problem.n_panels
    rows = []
    for panel, title in enumerate(data.panel_names[:MOST_PANELS]):
        shrinkage = est.shrinkage[borders[panel] : borders[panel + 1]]
        mean = float(shrinkage.mean()) if len(shrinkage) else float("nan")
        rows.append((Name(shown(title)), len(shrinkage), models[panel], mean))
    text = f"Each of {counted(problem.n_panels, 'panel')} has a prior of its own."
    note = f"The first {len(rows):,} are shown." if len(rows) < problem.n_panels else ""
    columns = ["panel", "questions", "prior", "shrinkage"]
    panels = PageTable("Panels", columns, rows, "a panel", note)
    return Section(TITLE, text=text, tables=[panels], fold=FOLD)

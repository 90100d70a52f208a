"""How far the truth may be: both intervals of a question in one chart, and where the one for the truth comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.page import Figure, Section
from trueup.report.parts import Fold, Points
from trueup.report.sections.public_crowds import CROWDS, FAMILIES
from trueup.report.sections.report_data import IN_TOOLTIP, ON_AXIS, sentence
from trueup.report.sections.truth_reach import CONSENSUS, TruthReach

if TYPE_CHECKING:
    from trueup.core.arrays import Ints
    from trueup.report.parts import Part
    from trueup.report.sections.report_data import ReportData

TITLE = "How far the truth may be"
MOST_SHOWN = 30
ESTIMATE, KNOWN = "estimate", "known truth"
NOT_BELIEVE = (
    "Where a crowd is unlike those: machines that share their training, such as judges from one family of language "
    "models, which may all be wrong in the same way; instruments, whose common error is a matter of their calibration "
    '(estimate their consensus, target="consensus"); answers that were copied or agreed upon; any crowd that is unlike '
    "people who guess, judge or forecast. And the share of truths inside is an average over crowds: one crowd may err "
    "more or less than most. A few known truths of its own show it."
)


def truth_interval_section(data: ReportData) -> Section | None:
    """Write the section; None where no interval for the truth is known."""
    reach = TruthReach(data)
    if not reach.is_known:
        return None
    points = [("Where does this come from?", _origin(data, reach))]
    if data.est.calibration is None:
        points.append(("When should it not be believed?", NOT_BELIEVE))
    if reach.next_gold:
        points.append(("What would known truths bring?", reach.next_gold))
    closing: list[Part] = [Points(points)]
    if data.est.calibration is None:
        closing.append(_sources())
    return Section(TITLE, text=_text(data, reach), figures=[_figure(data, reach)], closing=closing)


def _text(data: ReportData, reach: TruthReach) -> str:
    if not reach.is_target:
        return (
            f"These estimates aim at the consensus, that is {CONSENSUS}, and for opinions and ratings that is all "
            "there is to know. If there is a truth beyond it, what follows says how far it may be. "
            + reach.how_far
        )
    words = reach.how_far
    if data.est.solution.target == "both":
        words += " Panels of ratings aim at the consensus; for them the interval for the truth is an aside."
    if reach.merged:
        return f"{words} With known truths, lower and upper are this interval as well."
    return (
        f"{words} The narrower interval is for the consensus, that is {CONSENSUS}: more answers narrow it, but not "
        "the one for the truth, because workers share errors that more of them do not cancel."
    )


def _origin(data: ReportData, reach: TruthReach) -> str:
    """Say what the interval for the truth was learned from."""
    gold = reach.outlook.n_gold
    if data.est.calibration is not None:
        return (
            f"From {counted(gold, 'known truth')} of this crowd alone: a correction learned from them predicted each "
            "of them better than what public crowds teach."
        )
    text = (
        f"From {CROWDS} public crowds of {len(FAMILIES)} families with known truths. They show how far the truth is "
        "from what a whole crowd says, measured in the scatter of a single answer, and that crowds understate "
        "differences more the less reliable single answers are. "
    )
    if np.isfinite(reach.outlook.scatter):
        text += f"The scatter of a single answer is {reach.scatter_words} here. "
    text += "The answers of one crowd cannot show the error that all its workers share."
    if data.est.plan.kind is not None:
        text += f' Because of kind="{data.est.plan.kind}", shared errors are assumed to be as large as in such crowds.'
    if gold:
        text += (
            f" {sentence(counted(gold, 'known truth'))[:-1]} of this crowd updated what they teach."
        )
    return text


def _sources() -> Fold:
    return Fold(
        f"The {CROWDS} public crowds and their sources",
        "The more crowds a family has, the less each of them counts. Source: the public repository of the answers, as "
        "owner/name.",
        ["task", "crowds", "questions", "source"],
        [tuple(family) for family in FAMILIES],
    )


# -- the chart ----------------------------------------------------------------------------------------


def _shown(data: ReportData, reach: TruthReach) -> Ints:
    """Return the questions of the chart by estimate: all, or some that are spread evenly from highest to lowest."""
    indices = np.flatnonzero(reach.known)
    indices = indices[np.argsort(-data.est.estimate[indices], kind="stable")]
    if len(indices) > MOST_SHOWN:
        indices = indices[np.linspace(0, len(indices) - 1, MOST_SHOWN).round().astype(np.int64)]
    return indices


def truth_interval_chart(data: ReportData) -> dict[str, Any]:
    """Draw questions with the interval for the consensus, the one for the truth, and the estimate."""
    est, reach = data.est, TruthReach(data)
    indices = _shown(data, reach)
    columns = {
        "estimate": est.estimate,
        "low": est.lower,
        "high": est.upper,
        "truth_low": est.truth_lower,
        "truth_high": est.truth_upper,
    }
    if data.truth is not None:
        columns["known"] = data.truth
    columns = {name: values[indices] for name, values in columns.items()}
    names = {"_estimate": ESTIMATE, "_truth": f"{data.percent} interval for the truth"}
    hues = {"_estimate": chart_parts.INK, "_truth": chart_parts.GREEN}
    if not reach.is_target:
        hues["_truth"] = chart_parts.FAINT
    if not reach.merged and np.isfinite(columns["low"]).any():
        names["_consensus"] = f"{data.percent} interval for the consensus"
        hues["_consensus"] = chart_parts.BLUE
    if data.truth is not None and np.isfinite(columns["known"]).any():
        names["_known"], hues["_known"] = KNOWN, chart_parts.RED
    rows = chart_parts.records(
        q=data.questions(indices, ON_AXIS),
        id=data.questions(indices, IN_TOOLTIP),
        **columns,
        answers=data.problem.counts[indices],
    )
    ends = np.concatenate(list(columns.values()))
    positions = {name: chart_parts.position(data, f"value ({data.unit})", name) for name in columns}
    domain = chart_parts.shown_range(data, columns["estimate"], ends)
    for encoding in positions.values():
        encoding["axis"] = chart_parts.side_axis(len(rows))
        if domain is not None:
            encoding["scale"] |= {"domain": domain, "nice": False}
        elif encoding["scale"]["type"] == "log":
            encoding["scale"]["type"] = "symlog"

    def hue(field: str) -> dict[str, Any]:
        order = [each for each in ("_estimate", "_consensus", "_truth", "_known") if each in names]
        titles, colours = [names[each] for each in order], [hues[each] for each in order]
        return chart_parts.category(field, titles, colours, symbolType="circle", columns=1)

    clip = {} if domain is None or data.transform else {"clip": True}
    thin = {"type": "rule", "strokeWidth": 2 if reach.is_target else 1, **clip}
    cap = {"type": "tick", "thickness": thin["strokeWidth"], "size": 9, **clip}
    truth_hue = hue("_truth")
    layers = [
        chart_parts.layer(
            thin, x=positions["truth_low"], x2={"field": "truth_high"}, color=truth_hue
        ),
        *(
            chart_parts.layer(cap, x=positions[end], color=truth_hue)
            for end in ("truth_low", "truth_high")
        ),
    ]
    if "_consensus" in names:
        bar = chart_parts.interval_bar(strokeWidth=8, opacity=0.55, **clip)
        layers.append(
            chart_parts.layer(
                bar, x=positions["low"], x2={"field": "high"}, color=hue("_consensus")
            )
        )
    layers.append(
        chart_parts.layer(
            chart_parts.dot(40, **clip), x=positions["estimate"], color=hue("_estimate")
        )
    )
    if "_known" in names:
        mark = chart_parts.dot(60, shape="diamond", **clip)
        layers.append(chart_parts.layer(mark, x=positions["known"], color=hue("_known")))
    tooltip = [
        chart_parts.name("id", "question"),
        chart_parts.quantity("estimate", digits=data.digits),
        chart_parts.quantity("truth_low", f"truth, {data.percent} from", data.digits),
        chart_parts.quantity("truth_high", "to", data.digits),
    ]
    if "_consensus" in names:
        tooltip += [
            chart_parts.quantity("low", f"consensus, {data.percent} from", data.digits),
            chart_parts.quantity("high", "up to", data.digits),
        ]
    if "_known" in names:
        tooltip.append(chart_parts.quantity("known", KNOWN, data.digits))
    tooltip.append(chart_parts.quantity("answers"))
    return {
        "data": {"values": [{**row, **names} for row in rows]},
        "height": chart_parts.ROW * len(rows),
        "encoding": {"y": {"field": "q", **chart_parts.NAMES_DOWN}, "tooltip": tooltip},
        "layer": layers,
    }


def _figure(data: ReportData, reach: TruthReach) -> Figure:
    known = f"the truth of a typical question is known to {reach.reach_words}"
    if reach.merged or not data.knows_intervals:
        title = sentence(known)
    else:
        margin = data.say_margin(data.typical_margin)
        truth = "the truth only" if reach.is_target else "a truth beyond that, if there is one,"
        title = f"For a typical question, {CONSENSUS} is known to {margin}, {truth} to {reach.reach_words}."
    chart = truth_interval_chart(data)
    note = f"Thin line: the {data.percent} interval for the truth. "
    if not reach.merged:
        note += f"Broad bar: the {data.percent} interval for the consensus. "
    note += "Dot: the estimate. "
    if data.truth is not None:
        note += "Diamond: the known truth, where there is one. "
    count = int(reach.known.sum())
    if count > MOST_SHOWN:
        shown = f"{MOST_SHOWN} are shown, spread evenly from the highest estimate to the lowest"
        note += f"Of {count:,} questions, {shown}."
    else:
        note += "Sorted by estimate."
    if chart["layer"][0]["mark"].get("clip"):
        note += " What lies far out is cut off."
    if data.is_gold.any():
        note += " Questions whose truth was given are left out."
    kinds = (
        "intervals for the truth"
        if reach.merged
        else "intervals for the consensus and for the truth"
    )
    about = f"{data.percent} {kinds} of {counted(len(chart['data']['values']), 'question')}; {data.basis}."
    return Figure(title, chart, note, about=about)

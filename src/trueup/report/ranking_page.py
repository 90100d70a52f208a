"""write_ranking(): systems compared by a panel of judges, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.libraries import need
from trueup.errors import counted
from trueup.ranking import text
from trueup.ranking.standings import BETTER, UNKNOWN, WORSE
from trueup.report import theme
from trueup.report.chart_parts import (
    TICKS,
    dot,
    interval_bar,
    interval_tooltip,
    layer,
    name,
    quantity,
)
from trueup.report.markup import Marked, Name
from trueup.report.names import distinct
from trueup.report.page import Figure, PageTable, Section, write_page
from trueup.report.parts import Callout, Cards, Copy, Paragraphs
from trueup.report.single_chart import WIDTH, coloured
from trueup.report.vega_specs import plain_spec

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from trueup.ranking.gate import Gate
    from trueup.ranking.ranking import Ranking

#: Systems in the chart and in the matrix of differences, and rows of the table of judges.
MOST_SYSTEMS, MOST_IN_MATRIX, MOST_JUDGES = 60, 15, 200
DIGITS = ".4~g"
SIGNS = {BETTER: "▲", WORSE: "▼", UNKNOWN: "?"}


def write_ranking(
    ranking: Ranking,
    path: str | PathLike[str],
    *,
    command: str | None = None,
    gate: Gate | None = None,
    force: bool = False,
    cost_item: float | None = None,
    cost_answer: float | None = None,
) -> Path:
    """Write a ranking to one HTML file that needs no network and no other file.

    Parameters
    ----------
    ranking : Ranking
    path : path
        File to write; a page of trueup there is replaced.
    command : str, optional
        The command line to show as the way to get the page again.
    gate : Gate, optional
        What a gate decided.
    force : bool
        Replace a file that is no page of trueup, too.
    cost_item, cost_answer : float, optional
        Price of an item and of a score, to name the cheapest way to sharper differences.
    """
    from trueup import __version__

    scores = ranking.standings.scores
    systems = counted(scores.n_systems, "system")
    judges = counted(scores.n_judges, "judge")
    sections = [_overview(ranking, command, gate), _differences(ranking), _judges(ranking)]
    sections.append(_plan(ranking, cost_item=cost_item, cost_answer=cost_answer))
    return write_page(
        path,
        title=f"Ranking of {systems} by {judges}",
        intro="",
        sections=[section for section in sections if section is not None],
        opening=1,
        footer=f"Made by trueup {__version__}. This file works offline and sends nothing.",
        force=force,
    )


def plot_ranking(ranking: Ranking) -> Any:
    """Return the systems with their intervals as an altair chart."""
    spec = {**systems_chart(ranking), "width": WIDTH, "config": theme.chart_config()}
    spec["config"]["background"] = theme.LIGHT["paper"]
    return need("altair", "report").Chart.from_dict(plain_spec(coloured(spec), "systems"))


def _names(ranking: Ranking) -> list[str]:
    """Return the names of the systems, by number, as they can be shown."""
    return distinct(ranking.system_names)


def systems_chart(ranking: Ranking) -> dict[str, Any]:
    """Return the chart of the systems: a dot and an interval each, the best on top."""
    names, standings = _names(ranking), ranking.standings
    rows = []
    for system in standings.order.tolist()[:MOST_SYSTEMS]:
        mean = standings.means[system]
        low, high = mean.interval
        if not np.isnan(mean.value):
            ends = (mean.value if np.isnan(end) else end for end in (low, high))
            row = dict(zip(("low", "high"), ends, strict=True))
            rows.append({"system": names[system], "value": mean.value, **row})
    where = {**name("system"), "sort": None, "axis": {"title": None, "labelLimit": 240}}
    tooltip = [
        name("system"),
        quantity("value", "estimate", DIGITS),
        *interval_tooltip(f"{100 * ranking.level:g}%", DIGITS),
    ]
    scale = {"scale": {"zero": False}, "axis": {"tickCount": TICKS}}
    return {
        "data": {"values": rows},
        "height": {"step": 22},
        "layer": [
            layer(
                interval_bar(),
                x={**quantity("low", "mean score"), **scale},
                x2={"field": "high"},
                y=where,
                tooltip=tooltip,
            ),
            layer(
                dot(60), x={**quantity("value", "mean score"), **scale}, y=where, tooltip=tooltip
            ),
        ],
    }


def _overview(ranking: Ranking, command: str | None, gate: Gate | None) -> Section:
    standings = ranking.standings
    said = text.leaders(ranking)
    parts: list[Any] = []
    disagree = text.disagreements(ranking)
    if disagree:
        parts.append(Callout("Judges and labels disagree", disagree, "warning"))
    if gate is not None:
        parts.append(Callout("Gate", [gate.said], "good" if gate.passed else "warning"))
    scores = standings.scores
    effective = f"{scores.effective_judges:.2g}"
    parts.append(
        Cards(
            [
                (effective, "effective judges", f"of {scores.n_judges:,}"),
                (f"{scores.n_items:,}", "items", ""),
                (
                    f"{len(standings.clearly_better):,}",
                    "clear differences",
                    f"of {len(standings.pairs):,} pairs",
                ),
            ]
        )
    )
    notes = [*ranking.notes, *text.meaning(ranking), *text.both_intervals(ranking)]
    parts.append(Paragraphs("\n\n".join(notes)))
    low, high = standings.ranks
    names = _names(ranking)
    rows = []
    for system in standings.order.tolist():
        mean = standings.means[system]
        ends = (
            f"{low[system]} to {high[system]}" if low[system] < high[system] else f"{low[system]}"
        )
        rows.append(
            [
                Name(names[system]), mean.value, *mean.interval, mean.std_error,
                ends if standings.complete else None, mean.judged.items, int(scores.counts[system]), mean.basis,
            ]
        )  # fmt: skip
    percent = f"{100 * ranking.level:g}%"
    columns = [
        "system",
        "estimate",
        f"{percent} from",
        "to",
        "standard error",
        "rank",
        "items",
        "scores",
        "rests on",
    ]
    figure = Figure(
        title=said[0],
        chart=systems_chart(ranking),
        about=f"Mean score of each system with {percent} intervals, the best on top.",
        table=PageTable("Systems", columns, rows),
    )
    closing = [] if command is None else [Copy("To get this page again", command)]
    return Section(
        title="Which system is best?",
        text="\n\n".join(said),
        parts=parts,
        figures=[figure],
        closing=closing,
    )


def _differences(ranking: Ranking) -> Section | None:
    standings = ranking.standings
    if not standings.pairs:
        return None
    names = _names(ranking)
    tables = []
    if standings.complete and standings.scores.n_systems <= MOST_IN_MATRIX:
        tables.append(_matrix(ranking, names))
    rows = []
    for k, (one, two) in enumerate(standings.pairs):
        found = standings.difference(one, two)
        rows.append(
            [
                Name(names[one]), Name(names[two]), found.value, *found.interval,
                float(standings.p_values[k]), float(standings.adjusted[k]), standings.verdicts[k], found.basis,
            ]
        )  # fmt: skip
    percent = f"{100 * ranking.level:g}%"
    columns = [
        "first",
        "second",
        "difference",
        f"{percent} from",
        "to",
        "p",
        "adjusted p",
        "the first is",
        "rests on",
    ]
    note = "Intervals and p are those of a single comparison; adjusted p by Holm's method over all pairs."
    tables.append(PageTable("All differences", columns, rows, search="a system", note=note))
    return Section(title="How large are the differences?", tables=tables)


def _matrix(ranking: Ranking, names: list[str]) -> PageTable:
    """Return the differences of all pairs as a square: row minus column."""
    standings = ranking.standings
    order = standings.order.tolist()
    cells: dict[tuple[int, int], Marked] = {}
    for (one, two), verdict in zip(standings.pairs, standings.verdicts, strict=True):
        value = standings.difference(one, two).value
        sign = SIGNS.get(verdict, "")
        turned = {"▲": "▼", "▼": "▲"}.get(sign, sign)
        for pair, number, mark in (((one, two), value, sign), ((two, one), -value, turned)):
            cells[pair] = Marked(f"{mark} {number:+.3g}".strip() if np.isfinite(number) else "?")
    rows = [
        [Name(names[row]), *("" if row == column else cells[row, column] for column in order)]
        for row in order
    ]
    return PageTable(
        "Row minus column",
        ["system", *(names[column] for column in order)],
        rows,
        note="▲ the row is clearly better, ▼ clearly worse, ? cannot be compared.",
    )


def _judges(ranking: Ranking) -> Section:
    effects, weights = ranking.favours, ranking.weights
    names, judges = _names(ranking), distinct(ranking.judge_ids.tolist())
    lines = text.favoured(ranking) or ["No judge clearly favours a system."]
    order = np.argsort(-np.abs(np.nan_to_num(effects.effect)).ravel(), kind="stable")
    rows = []
    for place in order.tolist()[:MOST_JUDGES]:
        judge, system = divmod(place, len(names))
        rows.append(
            [
                Name(judges[judge]), Name(names[system]), float(effects.effect[judge, system]),
                float(effects.std_error[judge, system]), float(effects.adjusted_p[judge, system]),
                "yes" if effects.named[judge, system] else "",
            ]
        )  # fmt: skip
    each = [
        [Name(judge), float(weights.each[k]), float(weights.variance[k]), float(weights.bias[k])]
        for k, judge in enumerate(judges[:MOST_JUDGES])
    ]
    said = [*lines, *([weights.pooled] if weights.pooled else [])]
    return Section(
        title="Which judges favour systems?",
        text="\n\n".join(said),
        tables=[
            PageTable(
                "How much each judge favours each system",
                ["judge", "system", "favours by", "standard error", "adjusted p", "stands out"],
                rows,
                search="a judge or system",
                note="Relative to the other judges, and to what the judge does on other systems; shrunk.",
            ),
            PageTable("Judges", ["judge", "weight", "noise variance", "bias"], each),
        ],
    )


def _plan(ranking: Ranking, **prices: float | None) -> Section:
    parts = [[key.replace("_", " "), value] for key, value in ranking.components.as_dict().items()]
    ways = ranking.improvements(**prices)
    columns = ["change", "items", "judges", "runs", "standard error", "half of the interval"]
    rows: list[list[Any]] = [
        [way.change, way.items, way.judges, way.runs, way.std_error, way.half_width] for way in ways
    ]
    if any(np.isfinite(way.cost) for way in ways):
        columns = [*columns, "cost"]
        rows = [[*row, way.cost] for row, way in zip(rows, ways, strict=True)]
    tables = [PageTable("Variance of a score by where it comes from", ["part", "variance"], parts)]
    if ways:
        tables.insert(0, PageTable("A difference of two systems would be known to", columns, rows))
    labels = text.label_rows(ranking)
    if labels:
        columns = ["system", "labels", "worth", "more to halve the interval"]
        rows = [
            [Name(system), number, worth if np.isfinite(worth) else "all", more]
            for system, number, worth, more in labels
        ]
        tables.insert(0, PageTable(text.WORTH, columns, rows))
    unknown = "The scores do not tell what would help: two judges on the same items are needed."
    return Section(
        title="What would make it sharper?",
        text="\n\n".join(text.additions(ranking, **prices) or [unknown]),
        tables=tables,
    )

"""Workers with correlated errors: a map of the residuals of those with most answers, and the pairs that stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.errors import counted
from trueup.report import chart_parts
from trueup.report.markup import Name
from trueup.report.page import Figure, PageTable, Section
from trueup.report.sections.report_data import ON_AXIS

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Kept
    from trueup.report.sections.report_data import ReportData
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import CorrelatedPairs

MOST_WORKERS = 40
MOST_ANSWERS = (
    800_000  # of these workers, beyond which only every second, third ... question is used
)
MOST_PAIRS = 200
FEWEST = 8  # shared questions that a correlation is shown of
CELL = 15
WHY = (
    "Two models of one family, two people at one desk, one person with two accounts: workers who make the same errors "
    "provide less information than independent ones. "
)


@dataclass(frozen=True, eq=False)
class ResidualMap:
    """Correlations of residuals.

    Attributes
    ----------
    workers : array
        Numbers of the workers.
    correlation, shared : arrays
        Correlation of each pair, NaN where they share too few questions, and the number of shared questions.
    """

    workers: Ints
    correlation: Floats
    shared: Floats


def residual_map(est: Estimate, workers: Ints) -> ResidualMap:
    """Correlate the residuals of some workers, each less its own mean, over shared questions."""
    facts = est.aggregate.facts
    column = np.full(len(facts.n_answers), -1)
    column[workers] = np.arange(len(workers))
    step = int(np.ceil(facts.n_answers[workers].sum() / MOST_ANSWERS))

    def visit(block: Block, kept: Kept) -> Visit:
        question = np.repeat(np.arange(block.n_questions), block.counts)
        used = (column[block.workers] >= 0) & ((block.start + question) % step == 0)
        residual = block.values[used] - kept[vectors.OFFSET][question[used]]
        rows = {
            "question": (block.start + question[used]).astype(np.float64),
            "column": column[block.workers[used]].astype(np.float64),
            "residual": residual,
        }
        return Visit(rows=rows)

    # Where biases were removed, the engine of the aggregate has the answers without them.
    rows = est.aggregate.engine.sweep(visit, reads=(vectors.OFFSET,)).rows
    questions, row = np.unique(rows["question"], return_inverse=True)
    place = row, rows["column"].astype(np.int64)
    residuals, answered = np.zeros((2, len(questions), len(workers)))
    residuals[place], answered[place] = rows["residual"], 1.0
    residuals -= answered * (residuals.sum(axis=0) / np.maximum(answered.sum(axis=0), 1.0))
    largest = np.abs(residuals).max(axis=0)
    residuals /= np.where(
        largest > 0, largest, 1.0
    )  # in units of each worker's own, so that squares stay numbers
    shared = answered.T @ answered
    energy = (residuals**2).T @ answered
    size = np.sqrt(energy * energy.T)
    usable = (shared >= FEWEST) & (size > 0)
    r = np.divide(residuals.T @ residuals, size, out=np.full(size.shape, np.nan), where=usable)
    np.fill_diagonal(r, np.nan)
    return ResidualMap(workers, np.clip(r, -1.0, 1.0), shared)


def correlated_section(data: ReportData) -> Section | None:
    """Write the section; None where no two workers share enough questions."""
    correlated = data.correlated
    if correlated is None:
        return None
    pairs = correlated.found
    residuals = residual_map(data.est, _mapped_workers(data.est, pairs))
    if not np.isfinite(residuals.correlation).any():
        return None
    return Section(
        "Workers with correlated errors",
        text=" ".join((WHY + correlated.summary, *pairs.notes)),
        figures=[_figure(data, pairs, residuals)],
        tables=_pair_tables(data, pairs),
    )


def _mapped_workers(est: Estimate, pairs: CorrelatedPairs) -> Ints:
    """Return the workers with the most answers; those of a pair side by side, and first."""
    most = np.argsort(-est.aggregate.facts.n_answers, kind="stable")[:MOST_WORKERS].tolist()
    partners: dict[int, list[int]] = {}
    for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        partners.setdefault(first, []).append(second)
        partners.setdefault(second, []).append(first)
    allowed, order = set(most), dict[int, None]()
    for start in [*(worker for worker in most if worker in partners), *most]:
        waiting = [start]
        while waiting:
            worker = waiting.pop()
            if worker not in order and worker in allowed:
                order[worker] = None
                waiting += partners.get(worker, [])
    return np.array(list(order), dtype=np.int64)


def _figure(data: ReportData, pairs: CorrelatedPairs, residuals: ResidualMap) -> Figure:
    names = data.workers(residuals.workers, ON_AXIS)
    rows = [
        {"a": names[i], "b": names[k], "r": round(float(r), 3), "n": int(residuals.shared[i, k])}
        for (i, k), r in np.ndenumerate(residuals.correlation)
        if np.isfinite(r)
    ]
    name_of = dict(zip(residuals.workers.tolist(), names, strict=True))
    framed = [
        {"a": name_of[a], "b": name_of[b]}
        for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        for a, b in ((first, second), (second, first))
        if a in name_of and b in name_of
    ]
    axis = {"labelLimit": 90, "grid": False, "ticks": False, "domain": False}
    x, y = (
        {"field": field, "type": "nominal", "title": None, "scale": {"domain": names}, "axis": axis}
        for field in "ab"
    )
    x["axis"] = {**axis, "labelAngle": -60}
    hue = {
        **chart_parts.quantity("r", "correlation of errors"),
        "scale": {"scheme": "blueorange", "domain": [-1, 1]},
        "legend": {"gradientLength": 160, "format": ".1f"},
    }
    tooltip = [
        chart_parts.name("a", "worker"),
        chart_parts.name("b", "and"),
        chart_parts.quantity("r", "correlation", ".2f"),
        chart_parts.quantity("n", "shared questions"),
    ]
    layers = [chart_parts.layer({"type": "rect"}, rows, x=x, y=y, color=hue, tooltip=tooltip)]
    note = (
        "Orange: both err in the same direction. Independent workers look pale, slightly blue; with few shared "
        "questions, stronger colours can be chance."
    )
    if framed:
        frame = {"type": "rect", "filled": False, "stroke": chart_parts.INK, "strokeWidth": 2}
        layers.append(chart_parts.layer(frame, framed, x=x, y=y))
        note += " Framed: the pairs that stand out."
    if data.problem.n_workers > len(names):
        note = (
            f"The {len(names)} of {data.problem.n_workers:,} workers with the most answers. {note}"
        )
    title = "No two workers have errors that are more alike than chance explains."
    if len(pairs):
        title = (
            f"{counted(len(pairs), 'pair')} of workers {'stands' if len(pairs) == 1 else 'stand'} out: their errors "
            "are more alike than chance explains."
        )
    chart: dict[str, Any] = {"height": max(CELL * len(names), 120), "layer": layers}
    about = f"Correlations of the errors of {counted(len(names), 'worker')}; {data.basis}."
    return Figure(title, chart, note, _strongest(names, residuals), about)


def _strongest(names: list[str], residuals: ResidualMap) -> PageTable:
    """List the pairs of the map, the most strongly correlated first."""
    first, second = np.nonzero(np.triu(np.isfinite(residuals.correlation), 1))
    r, shared = residuals.correlation[first, second], residuals.shared[first, second]
    rows = [
        (Name(names[first[k]]), Name(names[second[k]]), float(r[k]), int(shared[k]))
        for k in np.argsort(-r, kind="stable")[:MOST_PAIRS].tolist()
    ]
    title = "Numbers" if len(r) <= MOST_PAIRS else f"The {MOST_PAIRS} strongest correlations"
    return PageTable(title, ["worker", "and", "correlation", "shared questions"], rows)


def _pair_tables(data: ReportData, pairs: CorrelatedPairs) -> list[PageTable]:
    if len(pairs) == 0:
        return []
    count = min(len(pairs), MOST_PAIRS)
    first, second = (data.worker_cells(side[:count]) for side in (pairs.first, pairs.second))
    rows = [
        (
            first[k],
            second[k],
            int(pairs.shared[k]),
            round(float(pairs.correlation[k]), 2),
            f"{pairs.identical[k]:.0%}",
            f"{pairs.expected[k]:.0%}",
        )
        for k in range(count)
    ]
    columns = ["worker", "and", "shared questions", "correlation", "identical answers"]
    note = f"The clearest {count:,} of {len(pairs):,}." if count < len(pairs) else ""
    return [
        PageTable("Pairs that stand out", [*columns, "expected by chance"], rows, "a worker", note)
    ]

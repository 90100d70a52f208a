"""Do workers err together? A map of the residuals of those with most answers, and the pairs that stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import counted
from trueup.report.draw import INK
from trueup.report.markup import Name
from trueup.report.page import Figure, Section, Table
from trueup.report.sections.context import ON_AXIS

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.report.sections.context import Facts
    from trueup.result.estimate import Estimate
    from trueup.variance.correlated import CorrelatedPairs

MOST_WORKERS = 40
MOST_QUESTIONS = 20_000
MOST_PAIRS = 200
FEWEST = 8  # shared questions that a correlation is shown of
CELL = 15
WHY = (
    "Two judges of one family, two people at one desk, one person with two accounts: workers who make the same errors "
    "count for less than they seem to. "
)


@dataclass(frozen=True, eq=False)
class Map:
    """Correlations of residuals.

    Attributes
    ----------
    workers : array
        Numbers of the workers.
    correlation, shared : arrays
        Of each pair; NaN where they share too few questions.
    """

    workers: Ints
    correlation: Floats
    shared: Floats


def residual_map(est: Estimate, workers: Ints) -> Map:
    """Correlate what is left of the answers of some workers, each less its own mean, over shared questions."""
    answers = est.aggregate.engine.gather()  # less the biases, where they were taken off
    column = np.full(answers.n_workers, -1)
    column[workers] = np.arange(len(workers))
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    mine = np.flatnonzero(column[answers.workers] >= 0)
    rows, at = np.unique(question[mine], return_inverse=True)
    if len(rows) > MOST_QUESTIONS:
        kept = at < MOST_QUESTIONS
        mine, at, rows = mine[kept], at[kept], rows[:MOST_QUESTIONS]
    rest = answers.values[mine] - est.aggregate.offset[question[mine]]
    left = np.zeros((len(rows), len(workers)))
    there = np.zeros((len(rows), len(workers)))
    place = column[answers.workers[mine]]
    left[at, place], there[at, place] = rest, 1.0
    left -= there * (left.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0))
    shared = there.T @ there
    energy = (left**2).T @ there
    size = np.sqrt(energy * energy.T)
    usable = (shared >= FEWEST) & (size > 0)
    r = np.divide(left.T @ left, size, out=np.full(size.shape, np.nan), where=usable)
    np.fill_diagonal(r, np.nan)
    return Map(workers, np.clip(r, -1.0, 1.0), shared)


def errs_together(facts: Facts) -> Section | None:
    """Write the section; None where no two workers share enough questions."""
    correlated = facts.correlated
    if correlated is None:
        return None
    found = correlated.found
    shown = _shown(facts.est, found)
    seen = residual_map(facts.est, shown)
    if not np.isfinite(seen.correlation).any():
        return None
    text = " ".join((WHY + correlated.summary, *found.notes))
    return Section(
        "Do workers err together?",
        text=text,
        figures=[_figure(facts, found, seen)],
        tables=_pairs(facts, found),
    )


def _shown(est: Estimate, found: CorrelatedPairs) -> Ints:
    """Return the workers with most answers; those of a pair side by side, and first."""
    count = est.aggregate.facts.n_answers
    most = np.argsort(-count, kind="stable")[:MOST_WORKERS].tolist()
    partners: dict[int, list[int]] = {}
    for one, other in zip(found.first.tolist(), found.second.tolist(), strict=True):
        partners.setdefault(one, []).append(other)
        partners.setdefault(other, []).append(one)
    order: dict[int, None] = {}

    def add(worker: int) -> None:
        waiting = [worker]
        while waiting:
            each = waiting.pop()
            if each not in order and each in allowed:
                order[each] = None
                waiting += partners.get(each, [])

    allowed = set(most)
    for worker in [*(w for w in most if w in partners), *most]:
        add(worker)
    return np.array(list(order), dtype=np.int64)


def _figure(facts: Facts, found: CorrelatedPairs, seen: Map) -> Figure:
    names = facts.workers(seen.workers, ON_AXIS)
    rows = [
        {"a": names[i], "b": names[k], "r": round(float(r), 3), "n": int(seen.shared[i, k])}
        for (i, k), r in np.ndenumerate(seen.correlation)
        if np.isfinite(r)
    ]
    place = {int(worker): at for at, worker in enumerate(seen.workers.tolist())}
    marked = [
        {"a": names[place[a]], "b": names[place[b]]}
        for one, two in zip(found.first.tolist(), found.second.tolist(), strict=True)
        for a, b in ((one, two), (two, one))
        if a in place and b in place
    ]
    axis = {"labelLimit": 90, "grid": False, "ticks": False, "domain": False}
    scale = {"domain": names}
    x: dict[str, Any] = {"field": "a", "type": "nominal", "title": None, "scale": scale}
    y: dict[str, Any] = {
        "field": "b",
        "type": "nominal",
        "title": None,
        "scale": scale,
        "axis": axis,
    }
    x["axis"] = {**axis, "labelAngle": -60}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": rows},
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "r",
                    "type": "quantitative",
                    "title": "correlation of errors",
                    "scale": {"scheme": "blueorange", "domain": [-1, 1]},
                    "legend": {"gradientLength": 160, "format": ".1f"},
                },
                "tooltip": [
                    {"field": "a", "title": "worker", "type": "nominal"},
                    {"field": "b", "title": "and", "type": "nominal"},
                    {"field": "r", "title": "correlation", "format": ".2f", "type": "quantitative"},
                    {"field": "n", "title": "shared questions", "type": "quantitative"},
                ],
            },
        }
    ]
    if marked:
        layers.append(
            {
                "data": {"values": marked},
                "mark": {"type": "rect", "filled": False, "stroke": INK, "strokeWidth": 2},
                "encoding": {"x": x, "y": y},
            }
        )
    if len(found):
        title = f"{counted(len(found), 'pair')} of workers stand out: their errors are alike beyond chance."
        if len(found) == 1:
            title = "One pair of workers stands out: their errors are alike beyond chance."
    else:
        title = "No two workers err together beyond chance."
    total = facts.est.answers.n_workers
    note = (
        "Orange: both err to the same side. Workers who err independently look pale, slightly blue; with "
        "few shared questions stronger colours come about by chance."
    )
    if marked:
        note += " Framed: the pairs that stand out."
    if total > len(seen.workers):
        note = f"The {len(seen.workers)} of {total:,} workers with most answers. {note}"
    return Figure(
        title,
        {"height": max(CELL * len(names), 120), "layer": layers},
        note,
        _strongest(names, seen),
    )


def _strongest(names: list[str], seen: Map) -> Table:
    """List the pairs of the map, the most alike first."""
    one, two = np.nonzero(np.triu(np.isfinite(seen.correlation), 1))
    r = seen.correlation[one, two]
    order = np.argsort(-r, kind="stable")[:MOST_PAIRS]
    rows = [
        (Name(names[one[k]]), Name(names[two[k]]), float(r[k]), int(seen.shared[one[k], two[k]]))
        for k in order.tolist()
    ]
    title = "The numbers" if len(r) <= MOST_PAIRS else f"The {MOST_PAIRS} most alike"
    return Table(title, ["worker", "and", "correlation", "shared questions"], rows)


def _pairs(facts: Facts, found: CorrelatedPairs) -> list[Table]:
    if len(found) == 0:
        return []
    count = min(len(found), MOST_PAIRS)
    first, second = facts.workers(found.first[:count]), facts.workers(found.second[:count])
    rows = [
        (
            Name(first[k]),
            Name(second[k]),
            int(found.shared[k]),
            round(float(found.correlation[k]), 2),
            f"{found.identical[k]:.0%}",
            f"{found.expected[k]:.0%}",
        )
        for k in range(count)
    ]
    columns = [
        "worker",
        "and",
        "shared questions",
        "correlation",
        "identical answers",
        "expected by chance",
    ]
    note = f"The clearest {count:,} of {len(found):,}." if count < len(found) else ""
    return [Table("Pairs that stand out", columns, rows, "a worker", note)]

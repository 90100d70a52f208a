"""Improvement ratios on synthetic answers, real answers and uniform subsets of questions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.datasets import load
from trueup.errors import TrueupError
from trueup.report.page import Figure, PageTable, Section
from trueup.study.paper.charts import ratios
from trueup.study.sources import Sampled, Synthetic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.core.arrays import Floats, Ints
    from trueup.study.harness import StudyCell
    from trueup.study.paper.context import Context
    from trueup.study.sources import PanelSource

STEPS = ("psi_H", "psi_H positive", "psi_H/n", "plug-in", "trueup")
COLUMNS = [
    "source", "n", "m", "method", "step", "samples", "base_risk", "risk", "risk_se", "ratio", "ratio_low", "ratio_high",
]  # fmt: skip
# Smallest ratio of the variance of all true values to that of a uniform subset.
NARROW = 80
# Number of questions of a uniform subset.
FEWEST_QUESTIONS, MOST_QUESTIONS = 4, 20
# Data sets of the paper that are not public; used if available.
PRIVATE = ("buildings", "triangles")


def constant_truth(context: Context) -> Section:
    """Run the study on equal true values."""
    cells = context.cells_of("constant", [Synthetic("constant truth", {"truth": "constant"})])
    better = {step: _share_below(cells, step) for step in STEPS}
    worst = max(cell.ratio for cell in cells if cell.step == "psi_H")
    return Section(
        title="Constant truth",
        claim="Where all true values are equal the second step improves every algorithm, by 1 to 90%.",
        verdict=(
            f"With psi_H as printed the risk falls in {better['psi_H']:.0%} of the cells and rises up to "
            f"{worst:.3g}-fold; with its positive part it falls in {better['psi_H positive']:.0%}, with psi_H/n in "
            f"{better['psi_H/n']:.0%}, with the plug-in variance in {better['plug-in']:.0%}, "
            f"with our own step in {better['trueup']:.0%}."
        ),
        holds=better["psi_H"] > 0.99,
        figures=_figures(cells, "constant truth", context),
        tables=[_summary(cells)],
    )


def random_truth(context: Context) -> Section:
    """Run the study on normal true values with standard deviations 1 and 2."""
    sources = [
        Synthetic("truth N(0, 1)", {"truth_scale": 1.0}),
        Synthetic("truth N(0, 4)", {"truth_scale": 2.0}),
    ]
    cells = context.cells_of("random", sources)
    near = [cell for cell in cells if cell.source == "truth N(0, 4)"]
    printed, right = (_median(near, step) for step in ("psi_H", "psi_H/n"))
    return Section(
        title="Varying truth",
        claim="Where the truth varies the improvement ratio approaches 1, from below.",
        verdict=(
            f"With psi_H/n it {'does' if right < 1 else 'does not'}: median ratio {right:.3f}. "
            f"With psi_H as printed the median ratio is {printed:.2f}, "
            "because that variance is about n times too large."
        ),
        holds=printed < 1,
        figures=[fig for source in sources for fig in _figures(cells, source.name, context)],
        tables=[_summary(cells)],
    )


def emotions(context: Context) -> Section:
    """Run the study on real answers in blocks of 140 questions with the same ten workers."""
    dataset = load("emotions", data=context.data)
    truth = dataset.truth_array
    blocks = np.array(
        [str((dataset.blocks or {})[q]) for q in dataset.answers.question_ids.tolist()]
    )
    sources = []
    for block in sorted(set(blocks.tolist())):
        questions = np.flatnonzero(blocks == block)
        answers = dataset.answers.subset(questions)
        sources.append(Sampled(f"emotions, block {block}", answers, truth[questions]))
    if context.quick:
        sources = sources[:2]
    cells = context.cells_of("emotions", sources)
    better = {step: _share_below(cells, step) for step in STEPS}
    return Section(
        title="Emotions: real answers, moderate truth",
        claim="On the Emotions data the second step improves most algorithms.",
        verdict=(
            f"The risk falls in {better['psi_H']:.0%} of the cells with psi_H as printed, in {better['psi_H/n']:.0%} "
            f"with psi_H/n, in {better['plug-in']:.0%} with the plug-in variance and in {better['trueup']:.0%} with "
            "our own step."
        ),
        holds=better["psi_H"] > 0.5,
        figures=_by_source(cells, "block", context),
        tables=[_summary(cells, by_source=True)],
    )


def variable_truth(context: Context) -> Section:
    """Run the study on real answers with very different true values."""
    sources: list[PanelSource] = [context.real(name) for name in ("dots", "pies", "groceries")]
    if not context.quick:
        sources.append(context.real("calories", sparse=True))
        sources.append(context.real("population", sparse=True, transform="log1p"))
    for name in PRIVATE:
        with contextlib.suppress(TrueupError):
            sources.append(context.real(name))
    cells = context.cells_of("variable", sources)
    harmed, still = (1 - _share_below(cells, step) for step in ("psi_H", "plug-in"))
    rest = (
        "Where the whole crowd underestimates large values and overestimates small ones, every shrinkage hurts; with "
        "the right variance the harm is small."
        if still > 0.5
        else "Most of the failure comes from the variance, not from the data."
    )
    return Section(
        title="Highly variable truth",
        claim="On data with highly variable truth (Buildings, Triangles) the second step fails.",
        verdict=(
            f"With psi_H as printed the risk rises in {harmed:.0%} of the cells (median ratio "
            f"{_median(cells, 'psi_H'):.2f}), with the plug-in variance in {still:.0%} (median "
            f"{_median(cells, 'plug-in'):.3f}), with our own step the median is {_median(cells, 'trueup'):.3f}. {rest}"
        ),
        holds=harmed > 0.5,
        text=(
            "Buildings and Triangles are not public; dots and pies take their place, with groceries, calories and "
            "population (log(1+x)). The second step cannot remove errors that the whole crowd shares."
        ),
        figures=_by_source(cells, "data set", context),
        tables=[_summary(cells, by_source=True)],
    )


def uniform_subsets(context: Context) -> Section:
    """Run the study on similar questions, chosen by truth as in the paper and by estimate as in practice."""
    sources: list[PanelSource] = []
    rows = []
    lengths = set()
    for name in ("dots", "pies"):
        full = context.real(name)
        truth = full.truth
        assert truth is not None  # noqa: S101  these data sets have one
        full_variance = float(truth.var())
        # Choose by the truth, as in the paper, and by the middle answer, which is known in practice.
        for how, value in (("truth", truth), ("estimate", full.answers.centre)):
            chosen = uniform(value)
            lengths.add(len(chosen))
            variance = float(truth[chosen].var())
            rows.append([name, how, len(chosen), full_variance, variance, full_variance / variance])
            sources.append(
                Sampled(f"{name}, uniform by {how}", full.answers.subset(chosen), truth[chosen])
            )
    sizes = [(n, m) for n in context.workers for m in sorted(lengths)]
    cells = context.cells_of("uniform", sources, sizes=sizes)
    better = {step: _share_below(cells, step) for step in STEPS}
    return Section(
        title="Uniform subsets of questions",
        claim="On questions with similar truth (variance cut 80-fold and more) the second step improves again.",
        verdict=(
            f"The risk falls in {better['psi_H']:.0%} of the cells with psi_H as printed, in "
            f"{better['psi_H positive']:.0%} with its positive part, in {better['plug-in']:.0%} with the plug-in, "
            f"in {better['trueup']:.0%} with our own step."
        ),
        holds=better["psi_H positive"] > 0.5,
        figures=_by_source(cells, "subset", context),
        tables=[
            PageTable(
                "How uniform the subsets are",
                ["set", "chosen by", "questions", "variance of all truths", "of the subset", "cut"],
                rows,
            ),
            _summary(cells, by_source=True),
        ],
    )


def uniform(values: Floats) -> Ints:
    """Return the largest run of neighbouring values whose variance is at most 1/`NARROW` of that of all values."""
    for size in range(min(MOST_QUESTIONS, len(values) - 1), FEWEST_QUESTIONS, -1):
        chosen = narrowest(values, size)
        if values[chosen].var() * NARROW <= values.var():
            return chosen
    return narrowest(values, FEWEST_QUESTIONS)


def narrowest(values: Floats, size: int) -> Ints:
    """Return the run of neighbouring values with the smallest variance."""
    order = np.argsort(values)
    windows = np.lib.stride_tricks.sliding_window_view(values[order], size)
    best = int(np.argmin(windows.var(axis=1)))
    return np.sort(order[best : best + size])


def _share_below(cells: Sequence[StudyCell], step: str) -> float:
    return float(np.mean([cell.ratio < 1 for cell in cells if cell.step == step]))


def _median(cells: Sequence[StudyCell], step: str) -> float:
    return float(np.median([cell.ratio for cell in cells if cell.step == step]))


def _numbers(cells: Sequence[StudyCell]) -> PageTable:
    rows = [cell.row() for cell in cells]
    return PageTable("The numbers", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])


def _figure(
    title: str, chart: dict[str, Any], cells: Sequence[StudyCell], context: Context
) -> Figure:
    note = f"Below 1 the second step helps. {context.samples:,} panels per point, 14 iterations."
    return Figure(title, chart, note=note, table=_numbers(cells))


def _figures(cells: Sequence[StudyCell], source: str, context: Context) -> list[Figure]:
    """Draw the ratios of a source against n at the middle m, and against m at the middle n."""
    cells = [cell for cell in cells if cell.source == source]
    figures = []
    for along, fixed in (("n", "m"), ("m", "n")):
        sizes = sorted({getattr(cell, fixed) for cell in cells})
        middle = sizes[len(sizes) // 2]
        part = [cell for cell in cells if getattr(cell, fixed) == middle]
        title = f"{source}: risk after the second step / before it ({fixed} = {middle})"
        figures.append(_figure(title, ratios(part, along), part, context))
    return figures


def _by_source(cells: Sequence[StudyCell], what: str, context: Context) -> list[Figure]:
    """Draw a figure for each of three second steps, with a panel for each method and a line for each source."""
    names = {cell.source for cell in cells}
    common = set.intersection(*({c.m for c in cells if c.source == name} for name in names))
    m = sorted(common)[len(common) // 2]
    figures = []
    for step in ("psi_H", "plug-in", "trueup"):
        part = [cell for cell in cells if cell.m == m and cell.step == step]
        title = f"Risk after / before with {step}, a line for each {what} (m = {m})"
        chart = ratios(part, "n", colour="source", panel="method")
        figures.append(_figure(title, chart, part, context))
    return figures


def _summary(cells: Sequence[StudyCell], *, by_source: bool = False) -> PageTable:
    """Return the median and worst ratio of each method (and source), for every second step."""
    keys = sorted({(cell.source if by_source else "", cell.method) for cell in cells})
    rows = []
    for source, method in keys:
        part = [c for c in cells if c.method == method and (not by_source or c.source == source)]
        row: list[object] = [source, method] if by_source else [method]
        for step in STEPS:
            values = [cell.ratio for cell in part if cell.step == step]
            row += [float(np.median(values)), float(max(values))]
        rows.append(row)
    heads = [text for step in STEPS for text in (f"{step}: median", "worst")]
    first = ["source", "method"] if by_source else ["method"]
    return PageTable("Ratio of risks over all sizes", [*first, *heads], rows)

"""Improvement ratios: synthetic answers, real answers, uniform subsets of questions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from trueup.datasets import load
from trueup.errors import TrueupError
from trueup.report.page import Figure, Section, Table
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
# Cut the variance of the true values at least this many times.
NARROW = 80
# Questions of a uniform subset.
FEWEST_QUESTIONS, MOST_QUESTIONS = 4, 20
# The sets of the paper that are not public; used where a user has them.
PRIVATE = ("buildings", "triangles")


def constant_truth(context: Context) -> Section:
    """All true values equal."""
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
    """True values normal, with standard deviation 1 and 2."""
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
            f"With psi_H/n it does: median ratio {right:.3f}. With psi_H as printed the median ratio is {printed:.2f}: "
            "it is about n times too large a variance."
        ),
        holds=printed < 1,
        figures=[fig for source in sources for fig in _figures(cells, source.name, context)],
        tables=[_summary(cells)],
    )


def emotions(context: Context) -> Section:
    """Real answers in blocks of 140 questions with the same ten workers."""
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
    """Real answers whose true values differ much."""
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
        "Where the crowd as a whole draws large values in and small ones out, every shrinkage hurts; a right variance "
        "makes the harm small."
        if still > 0.5
        else "Most of the failure is the variance, not the data."
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
            "population (log(1+x)). Errors that the whole crowd shares remain whatever the second step does."
        ),
        figures=_by_source(cells, "data set", context),
        tables=[_summary(cells, by_source=True)],
    )


def uniform_subsets(context: Context) -> Section:
    """Neighbouring questions: chosen by the truth as in the paper, and by the estimate as in practice."""
    sources: list[PanelSource] = []
    facts = []
    lengths = set()
    for name in ("dots", "pies"):
        whole = context.real(name)
        truth = whole.truth
        assert truth is not None  # noqa: S101  these sets have one
        everything = float(truth.var())
        # By the truth, as in the paper; by the middle answer, which is what can be seen.
        for how, value in (("truth", truth), ("estimate", whole.answers.centre)):
            chosen = uniform(value)
            lengths.add(len(chosen))
            variance = float(truth[chosen].var())
            facts.append([name, how, len(chosen), everything, variance, everything / variance])
            sources.append(
                Sampled(f"{name}, uniform by {how}", whole.answers.subset(chosen), truth[chosen])
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
            Table(
                "How uniform the subsets are",
                ["set", "chosen by", "questions", "variance of all truths", "of the subset", "cut"],
                facts,
            ),
            _summary(cells, by_source=True),
        ],
    )


def uniform(values: Floats) -> Ints:
    """Return the most neighbouring values whose variance is at least `NARROW` times smaller than that of all."""
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


def _numbers(cells: Sequence[StudyCell]) -> Table:
    rows = [cell.row() for cell in cells]
    return Table("The numbers", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])


def _figures(cells: Sequence[StudyCell], source: str, context: Context) -> list[Figure]:
    here = [cell for cell in cells if cell.source == source]
    ms, ns = sorted({cell.m for cell in here}), sorted({cell.n for cell in here})
    m, n = ms[len(ms) // 2], ns[len(ns) // 2]
    figures = []
    for along, fixed, value in (("n", "m", m), ("m", "n", n)):
        part = [cell for cell in here if getattr(cell, fixed) == value]
        figures.append(
            Figure(
                f"{source}: risk after the second step / before it ({fixed} = {value})",
                ratios(part, along),
                note=f"Below 1 the second step helps. {context.samples:,} panels a point, 14 iterations.",
                table=_numbers(part),
            )
        )
    return figures


def _by_source(cells: Sequence[StudyCell], what: str, context: Context) -> list[Figure]:
    """Draw a line for each source, a panel for each method: psi_H as printed, plug-in variance, our own step."""
    names = {cell.source for cell in cells}
    common = set.intersection(*({c.m for c in cells if c.source == name} for name in names))
    m = sorted(common)[len(common) // 2]
    figures = []
    for step in ("psi_H", "plug-in", "trueup"):
        part = [cell for cell in cells if cell.m == m and cell.step == step]
        figures.append(
            Figure(
                f"Risk after / before with {step}, a line for each {what} (m = {m})",
                ratios(part, "n", colour="source", panel="method"),
                note=f"Below 1 the second step helps. {context.samples:,} panels a point, 14 iterations.",
                table=_numbers(part),
            )
        )
    return figures


def _summary(cells: Sequence[StudyCell], *, by_source: bool = False) -> Table:
    """Cells in which the second step helps, and by how much, by method."""
    keys = sorted({(cell.source if by_source else "", cell.method) for cell in cells})
    rows = []
    for source, method in keys:
        mine = [c for c in cells if c.method == method and (not by_source or c.source == source)]
        row: list[object] = [source, method] if by_source else [method]
        for step in STEPS:
            values = [cell.ratio for cell in mine if cell.step == step]
            row += [float(np.median(values)), float(max(values))]
        rows.append(row)
    heads = [text for step in STEPS for text in (f"{step}: median", "worst")]
    first = ["source", "method"] if by_source else ["method"]
    return Table("Ratio of risks over all sizes", [*first, *heads], rows)

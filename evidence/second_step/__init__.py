"""The evidence for our second step, reproducible.

`run` writes one offline page: where the second step helps, where it harms, how often its intervals contain the truth,
and what each of its pieces contributes; plus tidy tables of all cells and a summary in Markdown. Add a rule with one
line in `rules`.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.second_step.ablation import ablation
from evidence.second_step.context import Context
from evidence.second_step.gain_share import share_of_gain
from evidence.second_step.gold import gold_questions
from evidence.second_step.method_choice import first_step_choice
from evidence.second_step.priors import known_variance
from evidence.second_step.real import real_data
from evidence.second_step.special import special_designs
from evidence.second_step.summary import write_summary
from evidence.second_step.synthetic import synthetic_grid
from evidence.second_step.targets import figures_to_reach
from evidence.second_step.worker_biases import biases
from trueup.errors import MissingExtra, TrueupError, quoted
from trueup.report.page import Section, write_page
from trueup.study.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

__all__ = ["PARTS", "run"]

#: In the order in which they run; the last one collects figures from the others.
PARTS: tuple[Callable[[Context], Section], ...] = (
    synthetic_grid,
    real_data,
    special_designs,
    first_step_choice,
    gold_questions,
    biases,
    share_of_gain,
    known_variance,
    ablation,
    figures_to_reach,
)
SAMPLES, QUICK_SAMPLES = 200, 20
TITLE = "The second step put to the test"
INTRO = (
    "What our second step does to the estimates of many first steps, on simulated and on real answers. A ratio is the "
    "mean squared error after the second step divided by that before it: below 1 it helps. Every table starts with the "
    "rows where ours does worst. Standard errors (±) describe the variation between random sets of panels."
)


def run(
    out: str | PathLike[str] = "study-shrinkage",
    *,
    quick: bool = False,
    data: str | PathLike[str] | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool = True,
    parts: Sequence[str] | None = None,
) -> Path:
    """Run the study, and write its page and tables.

    Parameters
    ----------
    out : path
        Folder for `index.html`, `summary.md`, `cells.csv`, tables of the parts without cells, and finished cells,
        from which a stopped run resumes as long as the code has not changed.
    quick : bool
        Run a small version, as a preview.
    data : path, optional
        Folder with the real data sets, see `trueup.datasets.load`.
    samples : int, optional
        Number of panels per cell; default 200 (quick: 20).
    seed : int
    progress : bool
        Show progress bars, and the time that each part took.
    parts : sequence of str, optional
        Names of the parts to run; default: all.
    """
    if samples is not None and samples < 2:
        raise TrueupError(f"samples: found {samples}, must be at least 2.")
    chosen = _chosen(parts)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    context = Context(
        out=folder,
        samples=samples or (QUICK_SAMPLES if quick else SAMPLES),
        quick=quick,
        data=None if data is None else str(data),
        seed=seed,
        progress=progress,
    )
    sections, times = [], []
    for part in chosen:
        name, start = part.__name__.replace("_", " "), time.perf_counter()
        try:
            sections.append(part(context))
        except TrueupError as error:
            if part is not real_data:
                raise
            sections.append(Section(title=name.capitalize(), verdict=f"Not run: {error}"))
        times.append(f"{name} {time.perf_counter() - start:.0f}")
        if progress:
            sys.stderr.write(f"{times[-1]} s\n")
    _write_tables(context)
    # The targets come first on the page.
    if chosen[-1] is figures_to_reach:
        sections.insert(0, sections.pop())
    how = f"{context.samples} panels per cell, seed {seed}" + (
        ", the small version" if quick else ""
    )
    write_summary(folder / "summary.md", TITLE, f"{INTRO}\n\nThis run: {how}.", sections)
    return write_page(
        folder / "index.html",
        title=TITLE,
        intro=f"{INTRO}\n\nThis run: {how}.",
        sections=sections,
        footer=f"Seconds by part: {', '.join(times)}.",
    )


def _chosen(names: Sequence[str] | None) -> list[Callable[[Context], Section]]:
    known = {part.__name__: part for part in PARTS}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise TrueupError(f"parts: {quoted(unknown[0])} is not known. Known: {', '.join(known)}.")
    return [part for name, part in known.items() if not names or name in names]


def _write_tables(context: Context) -> None:
    """Write all cells and rows as CSV, and as Parquet if pyarrow is installed."""
    tables = {"cells": [{"part": part} | cell.row() for part, cell in context.cells]}
    tables |= context.rows
    if context.points:
        tables["figures"] = [vars(point) for point in context.points]
    for name, rows in tables.items():
        if rows:
            write_table(rows, context.out / f"{name}.csv")
            with contextlib.suppress(MissingExtra):
                write_table(rows, context.out / f"{name}.parquet")

"""Reproduction of the paper: every table and figure, the claim about it, and a verdict.

`run` writes one offline page with every table and figure of *Empirical Bayes approach to Truth Discovery problems*, the
claim next to each and a verdict computed from the numbers, plus tidy tables of all cells.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import MissingExtra, TrueupError
from trueup.report.page import Section, write_page
from trueup.study.paper.alpha import alpha_table
from trueup.study.paper.cells import (
    constant_truth,
    emotions,
    random_truth,
    uniform_subsets,
    variable_truth,
)
from trueup.study.paper.context import Context
from trueup.study.paper.known import biased_variance, known_competence, table_one
from trueup.study.paper.partition import trade_off
from trueup.study.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

__all__ = ["PARTS", "run"]

PARTS: tuple[Callable[[Context], Section], ...] = (
    table_one,
    alpha_table,
    known_competence,
    biased_variance,
    constant_truth,
    random_truth,
    emotions,
    variable_truth,
    uniform_subsets,
    trade_off,
)
#: Parts that need the real data sets.
REAL = (emotions, variable_truth, uniform_subsets)

INTRO = (
    "Every table and figure of Empirical Bayes approach to Truth Discovery problems (Ben Shabat, Meir, Azriel), "
    "recomputed: what the paper claims, what we found, and how certain that is. A ratio below 1 means that the second "
    "step lowers the mean squared error. psi_H is the variance estimate as printed, about n times too large; psi_H/n "
    "and the plug-in variance are probably what was meant."
)


def run(
    out: str | PathLike[str] = "study-paper",
    *,
    quick: bool = False,
    data: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Path:
    """Run the study, and write its page and tables.

    Parameters
    ----------
    out : path
        Folder for `index.html`, `cells.csv`, `cells.parquet` and finished cells, from which a stopped run resumes.
    quick : bool
        Run a small version, as a preview.
    data : path, optional
        Folder with the real data sets, see `trueup.datasets.load`.
    samples : int, optional
        Number of panels of a cell; default 1,000 (quick: 50).
    seed : int
    progress : bool
        Show progress bars, and the time that each part took.
    """
    if samples is not None and samples < 2:
        raise TrueupError(f"samples: found {samples}, must be at least 2.")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    context = Context(
        out=folder,
        samples=samples or (50 if quick else 1000),
        repeats=4000 if quick else 100_000,
        quick=quick,
        data=data,
        seed=seed,
        progress=progress,
    )
    sections, times = [], []
    for part in PARTS:
        start = time.perf_counter()
        try:
            sections.append(part(context))
        except TrueupError as error:
            if part not in REAL and part is not trade_off:
                raise
            sections.append(
                Section(
                    title=_title(part),
                    verdict=f"Not run: {error}",
                    text="The data are not available.",
                )
            )
        times.append((_title(part), time.perf_counter() - start))
        if progress:
            sys.stderr.write(f"{times[-1][0]}: {times[-1][1]:.1f} s\n")
    rows = [cell.row() for cell in context.cells]
    write_table(rows, folder / "cells.csv")
    with contextlib.suppress(MissingExtra):  # only if pyarrow is installed
        write_table(rows, folder / "cells.parquet")
    footer = "Seconds by part: " + ", ".join(f"{name} {took:.0f}" for name, took in times) + "."
    return write_page(
        folder / "index.html",
        title="Empirical Bayes for truth discovery: the paper, recomputed",
        intro=INTRO,
        sections=sections,
        footer=footer,
    )


def _title(part: Callable[[Context], Section]) -> str:
    return part.__name__.replace("_", " ")

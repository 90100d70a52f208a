"""Reproduction of the paper: every table and figure, the claim about it, and a verdict.

`run` writes one offline page with every table and figure of *Empirical Bayes approach to Truth Discovery problems*, the
claim next to each and a verdict computed from the numbers, plus tidy tables of all cells.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import MissingExtra, TrueupError, counted
from trueup.io.outputs import check_page
from trueup.report.page import MARKS, Section, write_page
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
    from collections.abc import Callable, Mapping
    from os import PathLike

    from trueup.report.page import Holds

__all__ = ["PARTS", "PaperStudy", "run"]

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
PREVIEW = (
    " A first look at a few sizes with few samples: run it in full before you quote a verdict."
)


@dataclass(frozen=True)
class PaperStudy:
    """What came out of a run.

    Attributes
    ----------
    page : Path
        The page that was written.
    quick : bool
        Whether it was a small version, as a preview.
    verdicts : dict
        For the title of each part whether its statement holds: True, False, None (in part) or "not run".
    missing : dict
        Why a part could not run, by title; a part that was left out on request is not among them.
    """

    page: Path
    quick: bool
    verdicts: Mapping[str, Holds]
    missing: Mapping[str, str]

    @property
    def failed(self) -> tuple[str, ...]:
        """Titles of the parts that were run and whose statement does not hold."""
        return tuple(title for title, holds in self.verdicts.items() if holds is False)

    def __str__(self) -> str:
        """Count the verdicts in one line."""
        counts = Counter(MARKS[holds][2] for holds in self.verdicts.values())
        parts = [f"{words}: {counts[words]}" for _, _, words in MARKS.values() if counts[words]]
        run = "Quick run, few samples" if self.quick else "Full run"
        return f"{run}, {counted(len(self.verdicts), 'statement')} ({', '.join(parts)})."


def run(
    out: str | PathLike[str] = "study-paper",
    *,
    quick: bool = False,
    data: str | None = None,
    without_data: bool = False,
    samples: int | None = None,
    seed: int = 0,
    progress: bool = True,
    force: bool = False,
) -> PaperStudy:
    """Run the study, and write its page and tables.

    Parameters
    ----------
    out : path
        Folder for `index.html`, `cells.csv`, `cells.parquet` and finished cells, from which a stopped run resumes.
    quick : bool
        Run a small version, as a preview.
    data : path, optional
        Folder with the real data sets, see `trueup.datasets.load`.
    without_data : bool
        Leave out what needs the real data sets.
    samples : int, optional
        Number of panels of a cell; default 1,000 (quick: 50).
    seed : int
    progress : bool
        Show progress bars, and the time that each part took.
    force : bool
        Replace an `index.html` that trueup did not write, too.
    """
    if samples is not None and samples < 2:
        raise TrueupError(f"samples: found {samples}, must be at least 2.")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if not force:
        check_page(folder / "index.html", "out")  # before all that takes time
    context = Context(
        out=folder,
        samples=samples or (50 if quick else 1000),
        repeats=4000 if quick else 100_000,
        quick=quick,
        data=data,
        without_data=without_data,
        seed=seed,
        progress=progress,
    )
    sections, times, missing = [], [], {}
    for part in PARTS:
        start = time.perf_counter()
        if part in REAL and without_data:
            sections.append(_not_run(part, "left out, as it was asked for."))
        else:
            try:
                sections.append(part(context))
            except TrueupError as error:
                if part not in REAL and part is not trade_off:
                    raise
                sections.append(_not_run(part, f"the data are not available. {error}"))
                missing[sections[-1].title] = str(error)
        times.append((_title(part), time.perf_counter() - start))
        if progress:
            sys.stderr.write(f"{times[-1][0]}: {times[-1][1]:.1f} s\n")
    rows = [cell.row() for cell in context.cells]
    write_table(rows, folder / "cells.csv")
    with contextlib.suppress(MissingExtra):  # only if pyarrow is installed
        write_table(rows, folder / "cells.parquet")
    verdicts = {section.title: section.holds for section in sections}
    result = PaperStudy(folder / "index.html", quick, verdicts, missing)
    seconds = "Seconds by part: " + ", ".join(f"{name} {took:.0f}" for name, took in times) + "."
    mark = " (quick run)" if quick else ""
    write_page(
        result.page,
        title=f"Empirical Bayes for truth discovery: the paper, recomputed{mark}",
        intro=f"{INTRO}\n\n{result}{PREVIEW if quick else ''}",
        sections=[replace(section, title=f"{section.title}{mark}") for section in sections],
        footer=f"{seconds}\n\n{result}",
        force=force,
    )
    return result


def _not_run(part: Callable[[Context], Section], why: str) -> Section:
    return Section(title=_title(part), verdict=f"Not run: {why}", holds="not run")


def _title(part: Callable[[Context], Section]) -> str:
    return part.__name__.replace("_", " ").capitalize()

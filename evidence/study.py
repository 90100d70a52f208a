"""A study: parts that measure, run in order and written as one page, a summary in Markdown and tidy tables."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.summary import write_summary
from trueup.errors import MissingExtra, TrueupError, quoted
from trueup.report.page import Section, write_page
from trueup.study.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from evidence.second_step.context import Context

    Part = Callable[[Context], Section]


@dataclass(frozen=True)
class EvidenceStudy:
    """A study of one of the two steps.

    Attributes
    ----------
    title, intro : str
        Head of the page.
    parts : tuple of functions
        In the order in which they run; each measures, and returns its section of the page.
    context : function
        Makes the settings that all parts share.
    samples, quick_samples : int
        Number of panels per cell, and that of the small version.
    first : function, optional
        The part whose section comes first on the page, whenever it runs.
    skipped : tuple of functions
        Parts that are left out with a sentence where their data are not available.
    """

    title: str
    intro: str
    parts: tuple[Part, ...]
    context: Callable[..., Context]
    samples: int = 200
    quick_samples: int = 20
    first: Part | None = None
    skipped: tuple[Part, ...] = ()

    def run(
        self,
        out: str | PathLike[str],
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
            Folder for `index.html`, `summary.md`, the tables of the parts, and finished cells, from which a stopped
            run resumes as long as the code has not changed.
        quick : bool
            Run a small version, as a preview.
        data : path, optional
            Folder with the real data sets, see `trueup.datasets.load`.
        samples : int, optional
            Number of panels per cell.
        seed : int
        progress : bool
            Show progress bars, and the time that each part took.
        parts : sequence of str, optional
            Names of the parts to run; default: all.
        """
        if samples is not None and samples < 2:
            raise TrueupError(f"samples: found {samples}, must be at least 2.")
        chosen = self._chosen(parts)
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        context = self.context(
            out=folder,
            samples=samples or (self.quick_samples if quick else self.samples),
            quick=quick,
            data=None if data is None else str(data),
            seed=seed,
            progress=progress,
        )
        sections: dict[Any, Section] = {}
        times = []
        for part in chosen:
            name, start = part.__name__.replace("_", " "), time.perf_counter()
            try:
                sections[part] = part(context)
            except TrueupError as error:
                if part not in self.skipped:
                    raise
                sections[part] = Section(title=name.capitalize(), verdict=f"Not run: {error}")
            times.append(f"{name} {time.perf_counter() - start:.0f}")
            if progress:
                sys.stderr.write(f"{times[-1]} s\n")
        _write_tables(context)
        shown = sorted(sections, key=lambda part: part is not self.first)
        how = f"at most {context.samples} panels per cell unless said otherwise, seed {seed}" + (
            ", the small version" if quick else ""
        )
        intro = f"{self.intro}\n\nThis run: {how}."
        ordered = [sections[part] for part in shown]
        write_summary(folder / "summary.md", self.title, intro, ordered)
        return write_page(
            folder / "index.html",
            title=self.title,
            intro=intro,
            sections=ordered,
            footer=f"Seconds by part: {', '.join(times)}.",
        )

    def _chosen(self, names: Sequence[str] | None) -> list[Part]:
        known = {part.__name__: part for part in self.parts}
        unknown = [name for name in names or () if name not in known]
        if unknown:
            raise TrueupError(
                f"parts: {quoted(unknown[0])} is not known. Known: {', '.join(known)}."
            )
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

"""A study: parts that measure, run in order and written as one page, a summary in Markdown and tidy tables."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.summary import write_summary
from trueup.errors import MissingExtra, TrueupError, quoted
from trueup.report.page import Section, write_page
from trueup.study.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from evidence.points import Point
    from evidence.second_step.context import Context
    from trueup.study.harness import StudyCell

    Part = Callable[[Context], Section]


@dataclass(frozen=True)
class Settings:
    """How a study is run.

    Attributes
    ----------
    samples : int
        Number of panels per cell.
    quick : bool
        Whether grids are reduced, as a preview.
    data : str, optional
        Folder with the real data sets, see `trueup.datasets.load`.
    seed : int
    progress : bool
        Whether progress bars are shown, and the time that each part took.
    processes : int
        Number of processes for the tasks of a part.
    """

    samples: int
    quick: bool = False
    data: str | None = None
    seed: int = 0
    progress: bool = True
    processes: int = 2

    def __str__(self) -> str:
        how = f"at most {self.samples} panels per cell unless said otherwise, seed {self.seed}"
        return how + (", the small version" if self.quick else "")


@dataclass(frozen=True)
class Measured:
    """What a part found: its section, cells and tidy tables, figures with a range, and the time it took.

    `seconds` are those on the clock and of all processors; `missing` says that the data of the part are missing.
    """

    section: Section
    cells: Sequence[tuple[str, StudyCell]] = ()
    rows: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    points: Sequence[Point] = ()
    seconds: tuple[float, float] = (0.0, 0.0)
    missing: bool = False


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
    samples, short_samples, quick_samples : int
        Number of panels per cell for the documentation, that of the short run, and that of the preview.
    first : function, optional
        The part whose section comes first on the page, whenever it runs; it is the list of all figures.
    listed : function, optional
        Makes that list.
    skipped : tuple of functions
        Parts that are left out with a sentence where their data are not available.
    """

    title: str
    intro: str
    parts: tuple[Part, ...]
    context: Callable[..., Context]
    samples: int = 200
    short_samples: int = 20
    quick_samples: int = 20
    first: Part | None = None
    listed: Callable[[Sequence[Point]], Section] | None = None
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
        """Run the study one part after the other, and write its page and tables.

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
        settings = Settings(
            samples=self.quick_samples if quick else self.samples,
            quick=quick,
            data=None if data is None else str(data),
            seed=seed,
            progress=progress,
        )
        if samples is not None:
            if samples < 2:
                raise TrueupError(f"samples: found {samples}, must be at least 2.")
            settings = replace(settings, samples=samples)
        found = {}
        for name in self.chosen(parts):
            found[name] = self.measure(name, Path(out), settings)
            if progress:
                sys.stderr.write(f"{name.replace('_', ' ')} {found[name].seconds[0]:.0f} s\n")
        return self.write(Path(out), found, settings)

    def chosen(self, names: Sequence[str] | None) -> list[str]:
        """Return the names of the parts to run, in their order."""
        known = [part.__name__ for part in self.parts]
        unknown = [name for name in names or () if name not in known]
        if unknown:
            raise TrueupError(
                f"parts: {quoted(unknown[0])} is not known. Known: {', '.join(known)}."
            )
        return [name for name in known if not names or name in names]

    def measure(self, name: str, out: Path, settings: Settings) -> Measured:
        """Run a part."""
        part = next(part for part in self.parts if part.__name__ == name)
        out.mkdir(parents=True, exist_ok=True)
        context = self.context(out=out, **vars(settings))
        start = os.times()
        try:
            section, missing = part(context), False
        except TrueupError as error:
            if part not in self.skipped:
                raise
            title = name.replace("_", " ").capitalize()
            section, missing = Section(title=title, verdict=f"Not run: {error}"), True
        end = os.times()
        seconds = (end.elapsed - start.elapsed, sum(end[:4]) - sum(start[:4]))
        return Measured(section, context.cells, context.rows, context.points, seconds, missing)

    def in_order(self, found: Mapping[str, Measured]) -> dict[str, Section]:
        """Return the sections by part, as they come on the page; the list of figures has those of all parts."""
        sections = {name: one.section for name, one in found.items()}
        if self.first is not None and self.first.__name__ in sections:
            first = self.first.__name__
            if self.listed is not None:
                sections[first] = self.listed(
                    [point for name in self.chosen([*found]) for point in found[name].points]
                )
            sections = {first: sections.pop(first)} | sections
        return sections

    def intro_of(self, settings: Settings) -> str:
        """Return the head of the page."""
        return f"{self.intro}\n\nThis run: {settings}."

    def write(self, out: Path, found: Mapping[str, Measured], settings: Settings) -> Path:
        """Write page, summary and tables of the parts."""
        found = {name: found[name] for name in self.chosen([*found])}
        _write_tables(out, found.values())
        intro, sections = self.intro_of(settings), [*self.in_order(found).values()]
        write_summary(out / "summary.md", self.title, intro, sections)
        times = [
            f"{name.replace('_', ' ')} {one.seconds[0]:.0f} ({one.seconds[1]:.0f})"
            for name, one in found.items()
        ]
        return write_page(
            out / "index.html",
            title=self.title,
            intro=intro,
            sections=sections,
            footer=f"Seconds by part (of all processors): {', '.join(times)}.",
        )


def _write_tables(out: Path, found: Iterable[Measured]) -> None:
    """Write all cells and rows as CSV, and as Parquet if pyarrow is installed."""
    parts = list(found)
    tables = {"cells": [{"part": part} | cell.row() for one in parts for part, cell in one.cells]}
    for one in parts:
        tables |= one.rows
    tables["figures"] = [vars(point) for one in parts for point in one.points]
    for name, rows in tables.items():
        if rows:
            write_table(rows, out / f"{name}.csv")
            with contextlib.suppress(MissingExtra):
                write_table(rows, out / f"{name}.parquet")

"""All studies, two parts side by side; and whether all figures are in their ranges."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from evidence import first_step, intervals, ranking, second_step
from evidence.docs_page import print_page
from evidence.points import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidence.points import Point
    from evidence.study import EvidenceStudy, Measured, Settings

    #: What the parts of each study found.
    Found = dict[str, dict[str, Measured]]

STUDIES: dict[str, EvidenceStudy] = {
    "first": first_step.STUDY,
    "second": second_step.STUDY,
    "intervals": intervals.STUDY,
    "ranking": ranking.STUDY,
}
#: The pages that show them.
PAGES = {
    "first": "first-step-figures.md",
    "second": "second-step-figures.md",
    "intervals": "interval-figures.md",
    "ranking": "ranking-figures.md",
}
DOCS = Path(__file__).parents[1] / "docs"
PROCESSES = 2
#: Parts that take longest, the longest first: they begin first, so that no processor is idle at the end.
LONGEST = (
    "ablation",
    "renamed_workers",
    "families",
    "first_step_choice",
    "gold_questions",
    "real_sets",
    "real_data",
    "both_targets",
    "consensus_intervals",
    "bias",
    "synthetic_grid",
    "emotions_folds",
)


def measured(step: str, part: str, out: Path, settings: Settings) -> Measured:
    """Run a part of a study, in a process of its own."""
    return STUDIES[step].measure(part, out, settings)


def measure_all(
    parts: Mapping[str, Sequence[str]], settings: Mapping[str, Settings], out: Path
) -> Found:
    """Run parts of some studies side by side; a line on standard error when one is done."""
    jobs = [(step, part) for step, names in parts.items() for part in names]
    jobs.sort(key=lambda job: LONGEST.index(job[1]) if job[1] in LONGEST else len(LONGEST))
    found: Found = {step: {} for step in parts}
    start_anew = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(PROCESSES, len(jobs)), mp_context=start_anew) as pool:
        running = {
            pool.submit(measured, step, part, out / step, settings[step]): (step, part)
            for step, part in jobs
        }
        for done in as_completed(running):
            step, part = running[done]
            found[step][part] = one = done.result()
            clock, processor = one.seconds
            sys.stderr.write(
                f"{step}: {part.replace('_', ' ')} {clock:.0f} s ({processor:.0f} s of processor time)"
                f"{', not run: no data' if one.missing else ''}\n"
            )
    return found


def write_all(found: Found, settings: Mapping[str, Settings], out: Path, *, docs: bool) -> None:
    """Write page and tables of each study, and the pages of the documentation if wanted."""
    for step, parts in found.items():
        page = STUDIES[step].write(out / step, parts, settings[step])
        print(f"Written: {page}")
        if docs:
            print_page(STUDIES[step], DOCS / PAGES[step], parts, settings[step])
            print(f"Written: {DOCS / PAGES[step]}")


def say_all(found: Found, settings: Mapping[str, Settings], *, strict: bool) -> bool:
    """Print each figure with its range; return whether all are in it, or but for chance, unless `strict`."""
    lines: list[tuple[int, str]] = []
    for step, parts in found.items():
        for name in STUDIES[step].chosen([*parts]):
            lines += [_line(step, point, strict=strict) for point in parts[name].points]
    absent = [
        f"{step}: {name}"
        for step, parts in found.items()
        for name, one in parts.items()
        if one.missing
    ]
    print("\nFigures and their targets:")
    for _, line in sorted(lines, key=lambda pair: pair[0]):
        print(line)
    print()
    for step in found:
        print(f"This run: {step}: {settings[step]}.")
    if absent:
        print(f"Not run, because the data are not available: {', '.join(absent)}.")
    kinds = [kind for kind, _ in lines]
    inside, near, outside = (kinds.count(kind) for kind in (0, 1, 2))
    print(
        f"{len(lines)} figures: {inside} in range"
        + ("" if strict else f", {near} within {ALLOWED:g} standard errors of it (few panels)")
        + f", {outside} outside."
    )
    return not outside


def _line(step: str, point: Point, *, strict: bool) -> tuple[int, str]:
    """Return 0, 1 or 2 for a figure in range, near it and outside of it, and its line."""
    kind = 0 if point.reached else 1 if point.near and not strict else 2
    mark = ("in range", "by chance?", "OUTSIDE")[kind]
    return kind, f"{mark:<11}{step:<10}{point.what}: {point.found} (target: {point.wanted})"

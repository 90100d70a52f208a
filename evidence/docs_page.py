"""Put what parts of a study found into its page of the documentation; what other parts found stays there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evidence.points import Point
from evidence.summary import markdown_of, write_summary
from trueup.errors import TrueupError
from trueup.io.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evidence.study import EvidenceStudy, Measured, Settings

#: A row of the table of figures: number, what, found, target, reached.
ROW = re.compile(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \| (yes|no) \|$", re.MULTILINE)


def print_page(
    study: EvidenceStudy, page: Path, found: Mapping[str, Measured], settings: Settings
) -> None:
    """Write the page, or the sections of some parts.

    The list of figures has those of these parts, and of the others what the page says of them.
    """
    everything = study.chosen(None)
    if set(found) == set(everything):
        sections = [*study.in_order(found).values()]
        write_summary(page, study.title, study.intro_of(settings), sections)
        return
    first = study.first.__name__ if study.first is not None else None
    names = sorted(everything, key=lambda name: name != first)
    head, *sections_there = re.split(r"\n+(?=## )", page.read_text("utf-8").strip())
    if len(sections_there) != len(names):
        raise TrueupError(
            f"{page}: found {len(sections_there)} sections, but the study has {len(names)} parts. Run all of them."
        )
    texts = dict(zip(names, sections_there, strict=True))
    texts |= {name: markdown_of(one.section) for name, one in found.items()}
    if first is not None and study.listed is not None:
        new = [point for name in everything if name in found for point in found[name].points]
        numbers = {point.number for point in new}
        old = [point for point in points_of(sections_there[0]) if point.number not in numbers]
        texts[first] = markdown_of(study.listed([*old, *new]))
    with atomic_write(page) as temporary:
        text = "\n\n".join([head, *texts.values()])
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")


def points_of(text: str) -> list[Point]:
    """Return the figures in the table of figures."""
    return [
        Point(int(number), what, found, wanted, reached == "yes")
        for number, what, found, wanted, reached in ROW.findall(text)
    ]

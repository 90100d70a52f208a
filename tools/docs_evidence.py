"""What the studies in the folder evidence found: public crowds by family, both targets, and known truths."""  # noqa: INP001  a script

from __future__ import annotations

import csv
import re
import sys

import numpy as np
from docs_numbers import ROOT, numbers, table

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from evidence.crowds import TABLE, Crowds, figures

#: A page that `make evidence FULL=1` writes.
FIGURES = ROOT / "docs" / "second-step-figures.md"


@numbers("crowds")
def crowds() -> str:
    """Return a row for each family of crowds: those that understate differences most come first."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    families: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)

    def median(family: str, column: str) -> float:
        return float(np.median([float(row[column]) for row in families[family]]))

    ordered = sorted(families, key=lambda family: -median(family, "log_slope"))
    found = []
    for family in ordered:
        sources = dict.fromkeys(row["source"] for row in families[family])
        links = ", ".join(f"[{source}](https://github.com/{source})" for source in sources)
        found.append(
            [
                family,
                len(families[family]),
                f"{np.exp(median(family, 'minus_log_icc')) - 1:.2g}",
                f"{np.exp(median(family, 'log_slope')):.2f}",
                f"{median(family, 'omega'):.2f}",
                f"{np.median([abs(float(row['offset'])) for row in families[family]]):.2f}",
                links,
            ]
        )
    head = ["questions about", "crowds", "s²/τ²", "slope", "ω / s", "offset / s", "source"]
    return table(head, found)


@numbers("crowd-prior")
def crowd_prior() -> str:
    """Return the summary of the table of crowds beside the constants of the prior."""
    rows = [[what, found, prior or "–"] for what, found, prior in figures(Crowds.read())]
    return table(["figure", "table", "prior (full likelihood)"], rows)


def _rows(heading: str) -> list[list[str]]:
    """Return the table below a heading of the page, head first."""
    found = re.search(rf"^### {heading}\n\n((?:\|.*\n)+)", FIGURES.read_text("utf-8"), re.M)
    if found is None:
        raise ValueError(f"{FIGURES.name} has no table {heading}")
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()
    ]
    return [lines[0], *lines[2:]]


@numbers("gold-figures", slow=True)
def gold_figures() -> str:
    """Return what known truths bring, mean of five data sets."""
    rows = [[row[0], row[1], row[3], row[5]] for row in _rows("Mean of the data sets")[1:]]
    head = ["known truths", "squared error of the others", "inside the 95% intervals", "width"]
    return table(head, rows)


BY_SET = "Risk after / before the second step .*"


@numbers("target-risks", slow=True)
def target_risks() -> str:
    """Return the risk of both targets on five data sets."""
    head = ["data", "cells", "truth", "above 1.02", "worst", "consensus", "above 1.02", "worst"]
    return table(head, [row[:8] for row in _rows(BY_SET)[1:]])


@numbers("target-coverage", slow=True)
def target_coverage() -> str:
    """Return how many truths are inside either interval on five data sets."""
    head = ["data", "inside `truth_lower`, `truth_upper`", "inside `lower`, `upper`"]
    return table(head, [[row[0], *row[-2:]] for row in _rows(BY_SET)[1:]])

"""Target figures for a correct second step, each with its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidence.points import Point, near
from evidence.second_step.rules import OURS, Ours
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.answers.answers import Answers
from trueup.datasets.simulate import simulate
from trueup.pipeline.shrink import second_step
from trueup.report.page import PageTable, Section
from trueup.shrinkage import Normal
from trueup.study.harness import SecondStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidence.second_step.context import Context
    from trueup.core.arrays import Floats
    from trueup.shrinkage import ShrinkRule

NORMAL = "normal prior"
#: Range of the ratio with the normal prior, by truth and size.
RANGES = {
    ("constant", 3, 20): (0.18, 0.27),
    ("N(0, 1)", 3, 20): (0.77, 0.83),
    ("N(0, 25)", 3, 20): (0.98, 1.0),
    ("constant", 10, 100): (0.08, 0.15),
    ("N(0, 1)", 10, 100): (0.89, 0.93),
    ("N(0, 25)", 10, 100): (0.995, 1.002),
}
CLUSTERS = {(3, 20): 0.57, (3, 100): 0.37, (10, 100): 0.58}
ABSURD = 1e15
EXACT = 1e-9


def figures_to_reach(context: Context) -> Section:
    """Compute the figures that no other part has, and list all figures with a range."""
    _ranges(context)
    _absurd_answer(context)
    _invariance(context)
    return listed(context.points)


def listed(points: Sequence[Point]) -> Section:
    """Return the table of all figures with a range, missed ones first."""
    points = sorted(points, key=lambda point: (point.reached, point.number))
    missed = [point for point in points if not point.reached]
    return Section(
        title=f"Figures to reach: {len(points) - len(missed)} of {len(points)}",
        verdict=(
            "Target: every figure in its range. "
            f"{len(missed)} of {len(points)} are missed"
            + (f": {'; '.join(f'{p.what}: {p.found}' for p in missed)}." if missed else ".")
        ),
        holds=not missed,
        text=(
            "With the full step. Ranges are for at least 200 panels per cell; with fewer, a figure can miss its range "
            "by chance. Figures of parts that were not run are left out."
        ),
        tables=[
            PageTable(
                "Figures and their ranges, missed ones first",
                ["figure", "what", "found", "target", "reached"],
                [[p.number, p.what, p.found, p.wanted, p.reached] for p in points],
            )
        ],
    )


def _ranges(context: Context) -> None:
    steps = [
        SecondStep(NORMAL, None, Normal(caution=1.0)),
        SecondStep(OURS, None, Ours(caution=1.0)),
    ]
    names = dict.fromkeys([*(name for name, _, _ in RANGES), "three clusters"])
    cells = context.cells_of(
        "figures_to_reach", context.synthetic(names), list(CLUSTERS), ["mean"], steps
    )
    found = {(c.source, c.n, c.m, c.step): c for c in cells}
    for (name, n, m), (low, high) in RANGES.items():
        cell = found[name, n, m, NORMAL]
        context.points.append(
            Point(
                1,
                f"Plain mean, normal prior, {name}, n = {n}, m = {m}",
                f"{cell.ratio:.3f} ± {cell.ratio_se:.3f}",
                f"{low} to {high}",
                low <= round(cell.ratio, 3) <= high,
                near(cell.ratio, cell.ratio_se, low, high),
            )
        )
    for (n, m), high in CLUSTERS.items():
        cell = found["three clusters", n, m, OURS]
        context.points.append(
            Point(
                2,
                f"Plain mean, three clusters, n = {n}, m = {m}",
                f"{cell.ratio:.3f} ± {cell.ratio_se:.3f}",
                f"at most {high}",
                cell.ratio <= high,
                near(cell.ratio, cell.ratio_se, high=high),
            )
        )


def _estimates(matrix: Floats, rule: ShrinkRule) -> tuple[Floats, Floats]:
    """Return estimates and standard errors, panels x questions."""
    answers = Answers.from_matrix(matrix)
    moved = second_step(answers, run(find("mean"), answers), rule)
    shape = (-1, matrix.shape[-1])
    return moved.posterior.mean.reshape(shape), moved.std_error(answers).reshape(shape)


def _panels(context: Context, n: int, m: int, count: int) -> Floats:
    drawn = simulate(workers=n, questions=m, panels=count, bias=0.3, seed=context.seed)
    matrix = [drawn.answers.panel(number).to_matrix() for number in range(count)]
    return np.stack(matrix)


def _absurd_answer(context: Context) -> None:
    """Replace one answer by an absurd one, and compare all estimates."""
    count = 50
    before = _panels(context, 5, 12, count)
    after = before.copy()
    after[:, 0, 0] = ABSURD
    rest = after.reshape(count, -1)[:, 1:]
    old, error = _estimates(before, Ours(caution=1.0))
    new, _ = _estimates(after, Ours(caution=1.0))
    inside = (new >= rest.min(axis=1)[:, None]) & (new <= rest.max(axis=1)[:, None])
    moved = np.abs(new - old)[:, 1:] / error[:, 1:]
    context.points += [
        Point(
            6,
            f"One answer of {ABSURD:g} (n = 5, m = 12, {count} panels): estimates outside the other answers",
            f"{int((~inside).sum())} of {inside.size}",
            "0",
            bool(inside.all()),
        ),
        Point(
            6,
            "The same: largest move of the estimates of the other questions, in standard errors",
            f"{moved.max():.2f}",
            "less than 1",
            bool(moved.max() < 1.0),
        ),
    ]


def _invariance(context: Context) -> None:
    """Check that shifting, rescaling and reordering answers does the same to the estimates."""
    matrix = _panels(context, 5, 20, 8)
    rng = np.random.default_rng(context.seed)
    questions, workers = rng.permutation(20), rng.permutation(5)
    ours, normal = Ours(caution=1.0), Normal(caution=1.0)
    plain, _ = _estimates(matrix, ours)
    unit = np.abs(plain).max()
    worst = [np.abs(_estimates(matrix + 1000.0, ours)[0] - 1000.0 - plain).max() / unit]
    worst += [
        np.abs(_estimates(matrix * scale, ours)[0] / scale - plain).max() / unit
        for scale in (1e12, 1e-12)
    ]
    worst.append(np.abs(_estimates(matrix[:, :, questions], ours)[0] - plain[:, questions]).max())
    worst.append(
        np.abs(_estimates(matrix[:, workers], normal)[0] - _estimates(matrix, normal)[0]).max()
    )
    context.points.append(
        Point(
            10,
            "Shifted, rescaled and reordered answers: largest relative change of an estimate",
            f"{max(worst):.1e}",
            f"at most {EXACT:g}",
            bool(max(worst) <= EXACT),
        )
    )

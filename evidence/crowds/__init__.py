"""How public crowds with known truths err: the table behind the prior of `trueup.pipeline.crowd_prior`.

`crowds.csv` has a row for each of 54 crowds: its family, -log ICC(1) of its answers, the logarithm of the slope of the
truth on the consensus with its standard error, omega and the offset in units of the scatter of a single answer, the
weight of a crowd in its family, and the source of the answers.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trueup.pipeline import crowd_prior

if TYPE_CHECKING:
    from trueup.core.arrays import Floats

TABLE = Path(__file__).with_name("crowds.csv")


@dataclass(frozen=True, eq=False)
class Crowds:
    """The columns of the table that the figures come from."""

    x: Floats
    log_slope: Floats
    omega: Floats
    offset: Floats
    weight: Floats
    families: int

    @classmethod
    def read(cls, path: Path = TABLE) -> Crowds:
        """Read the table."""
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = ("minus_log_icc", "log_slope", "omega", "offset", "family_weight")
        x, log_slope, omega, offset, weight = (
            np.array([float(row[name]) for row in rows]) for name in names
        )
        families = len({row["family"] for row in rows})
        return cls(x, log_slope, omega, offset, weight, families)

    @property
    def compression(self) -> float:
        """Regression of the log slope on x through the origin, by weight."""
        w = self.weight
        return float(np.sum(w * self.x * self.log_slope) / np.sum(w * self.x**2))

    def spread(self, values: Floats) -> float:
        """Return the weighted root mean square."""
        return float(np.sqrt(np.sum(self.weight * values**2) / np.sum(self.weight)))

    @property
    def log_omega(self) -> tuple[float, float]:
        """Weighted mean and standard deviation of log omega, over crowds in which it is above 0."""
        some = self.omega > 0
        w, logs = self.weight[some], np.log(self.omega[some])
        mean = float(np.sum(w * logs) / w.sum())
        return mean, float(np.sqrt(np.sum(w * (logs - mean) ** 2) / w.sum()))


def figures(crowds: Crowds) -> list[tuple[str, str, str]]:
    """Return what each figure is, what the table shows, and the constant of the prior."""
    mean, deviation = crowds.log_omega
    prior = crowd_prior.SPREADS[None]
    rest = crowds.log_slope - crowds.compression * crowds.x
    return [
        ("crowds, families", f"{len(crowds.x)}, {crowds.families}", ""),
        ("log slope per x", f"{crowds.compression:.3f}", f"{crowd_prior.COMPRESSION:.3f}"),
        ("rms of log slopes", f"{crowds.spread(crowds.log_slope):.2f}", ""),
        ("the same around the line", f"{crowds.spread(rest):.2f}", f"{crowd_prior.SLOPE_SCALE:.2f} (Student)"),
        ("mean of log omega", f"{mean:.2f}", f"{prior[0]:.2f}"),
        ("sd of log omega", f"{deviation:.2f}", f"{prior[1]:.2f}"),
        ("rms offset", f"{crowds.spread(crowds.offset):.2f}", f"{crowd_prior.OFFSET_SCALE:.2f} (half of them)"),
    ]  # fmt: skip


def table_lines(crowds: Crowds) -> list[str]:
    """Return the figures as lines of text."""
    head = f"{'figure':<26}{'table':>10}  prior (full likelihood)"
    return [head, *(f"{name:<26}{found:>10}  {prior}" for name, found, prior in figures(crowds))]

"""The gate for continuous integration: fail if a system is worse than the baseline, or not better.

Each candidate is tested on one side at half of one minus the level, adjusted for all candidates by Holm's method. A
candidate that cannot be compared with the baseline leaves the gate undecided, unless another one decides it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.parameters import LARGEST, number, one_of
from trueup.errors import MOST_NAMES, TrueupError, listing
from trueup.ranking.pair import holm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.ranking.standings import Standings

FAIL_IF = ("worse", "not-better")
PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"


@dataclass(frozen=True)
class Gate:
    """What the gate decided.

    Attributes
    ----------
    decision : {"passed", "failed", "undecided"}
        What it decided.
    baseline : object
        The system that the others are compared with.
    fail_if : str
        What makes it fail.
    margin : float
        How much worse, or better, counts.
    failing, unknown : tuple
        Candidates that make it fail, and those that cannot be compared.
    candidates : tuple of dict
        For each candidate its difference to the baseline, with interval and adjusted one-sided p-value.
    said : str
        The decision in one line.
    """

    decision: str
    baseline: object
    fail_if: str
    margin: float
    failing: tuple[object, ...]
    unknown: tuple[object, ...]
    candidates: tuple[dict[str, object], ...]
    said: str

    @property
    def passed(self) -> bool:
        """Whether the gate is open; not where it is undecided."""
        return self.decision == PASSED

    def __str__(self) -> str:
        return self.said


def check_gate(margin: object, fail_if: object) -> None:
    """Check what can be checked before anything is compared."""
    number("margin", margin, 0.0, LARGEST)
    one_of("fail_if", fail_if, FAIL_IF)


def decide(
    standings: Standings, names: Sequence[object], baseline: object, margin: float, fail_if: str
) -> Gate:
    """Decide whether a gate is open."""
    check_gate(margin, fail_if)
    base = find_system(names, baseline)
    others = [s for s in range(len(names)) if s != base]
    if not others:
        raise TrueupError("there is no other system to compare it with.", argument="baseline")
    found = [standings.difference(s, base) for s in others]
    sign = standings.sign
    # Worse by more than the margin, or better by more than it.
    side = -sign if fail_if == "worse" else sign
    p = np.array([each.p_value(margin=side * margin, side=side) for each in found])
    adjusted = holm(p)
    clear = adjusted <= round((1.0 - standings.level) / 2, 12)
    fails = clear if fail_if == "worse" else ~clear & ~np.isnan(p)
    failing = tuple(names[s] for s, no in zip(others, fails, strict=True) if no)
    unknown = tuple(names[s] for s, no in zip(others, np.isnan(p), strict=True) if no)
    decision = FAILED if failing else UNDECIDED if unknown else PASSED
    rows: list[dict[str, object]] = []
    for s, each, value in zip(others, found, adjusted.tolist(), strict=True):
        low, high = each.interval
        numbers = {"difference": each.value, "lower": low, "upper": high, "adjusted_p": value}
        rows.append(
            {
                "system": names[s],
                **{key: None if np.isnan(one) else one for key, one in numbers.items()},
                "basis": each.basis,
            }
        )
    units = standings.scores.units
    said = _words(decision, fail_if, names[base], margin, failing, unknown, units)
    return Gate(decision, names[base], fail_if, float(margin), failing, unknown, tuple(rows), said)


def find_system(names: Sequence[object], name: object, argument: str = "baseline") -> int:
    """Return the number of a system; a text also finds a system whose name is written like it."""
    if not getattr(name, "ndim", 0):  # an array would be compared entry by entry
        if name in names:
            return names.index(name)
        alike = [number for number, each in enumerate(names) if str(each) == name]
        if len(alike) == 1:
            return alike[0]
    raise TrueupError(
        f"found {listing([name], 1)}, which is none of the systems {listing(names, MOST_NAMES)}.",
        argument=argument,
    )


def _words(
    decision: str,
    fail_if: str,
    baseline: object,
    margin: float,
    failing: tuple[object, ...],
    unknown: tuple[object, ...],
    units: str,
) -> str:
    base = listing([baseline], 1)
    by = f" by more than {margin:g}" if margin else ""
    if decision == UNDECIDED:
        what = f"{listing(unknown, MOST_NAMES)} cannot be compared with {base}: fewer than two shared {units}"
        return f"Gate undecided: {what}."
    if fail_if == "worse":
        what = (
            f"{listing(failing, MOST_NAMES)} clearly worse than {base}{by}"
            if failing
            else f"no system is clearly worse than {base}{by}"
        )
    else:
        what = (
            f"{listing(failing, MOST_NAMES)} not clearly better than {base}{by}"
            if failing
            else f"every other system is clearly better than {base}{by}"
        )
    return f"Gate {decision}: {what}."

"""The battery for second steps: ours pass it, and broken ones fail with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from trueup import TrueupError
from trueup.algorithms.check import CheckFailed
from trueup.shrinkage import LinearPrior, Posterior, ShrinkRule, check_shrink_rule, find, names


@pytest.mark.parametrize("name", names())
def test_every_rule_of_ours_passes(name: str) -> None:
    passed = check_shrink_rule(find(name), moves_along=name != "stein")
    assert len(passed) == (6 if name == "stein" else 7)


@dataclass(frozen=True)
class Broken(ShrinkRule):
    """Shrinks all panels toward one common mean, in absolute units."""

    how: str
    name = "broken"

    def fit(self, x: Any, v: Any, *, panels: Any = None, **known: Any) -> Any:
        how = self.how

        class Prior:
            def posterior(self, x: Any, v: Any, *, panels: Any = None, **known: Any) -> Posterior:
                b = np.zeros(len(x))
                mean = np.asarray(x, dtype=float)
                if how == "common":
                    mean = 0.5 * mean + 0.5 * mean.mean()
                elif how == "unit":
                    mean = mean + np.minimum(v, 1.0) * 1e-3
                elif how == "order":
                    mean = mean + 1e-3 * np.std(mean) * np.arange(len(mean))
                elif how == "nan":
                    mean = mean / np.std(mean) * np.std(mean)
                elif how == "short":
                    b = b[:-1]
                elif how == "zero":
                    mean = 0.9 * mean
                return Posterior(mean, np.asarray(v, dtype=float), b)

        return Prior()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("common", "alone|part of its"),
        ("unit", "another unit"),
        ("order", "order|part of its|alone"),
        ("nan", "finite"),
        ("short", "one number for each"),
        ("zero", "adding a constant"),
    ],
)
def test_a_broken_rule_is_told_what_is_wrong(how: str, reason: str) -> None:
    with pytest.raises(CheckFailed, match=reason):
        check_shrink_rule(Broken(how))


def test_something_else_is_refused() -> None:
    with pytest.raises(TrueupError, match="expected a ShrinkRule"):
        check_shrink_rule("normal")  # type: ignore[arg-type]


def test_an_error_inside_a_rule_is_a_failed_check() -> None:
    class Refuses(ShrinkRule):
        def fit(self, x: Any, v: Any, *, panels: Any = None, **known: Any) -> LinearPrior:
            raise TrueupError("no")

    with pytest.raises(CheckFailed, match="finite: no"):
        check_shrink_rule(Refuses())

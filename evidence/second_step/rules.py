"""The second steps to evaluate, in one tuple.

To evaluate another rule, add a line to `RULES`: a name, a variance rule (None: the default of the shrink rule) and a
shrink rule. It then runs in every cell of the synthetic grid and of the real data, and gets a column in their tables::

    RULES = (*RULES, SecondStep("sure", "moderated", Sure()))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.shrinkage import EBE, Adaptive, ShrinkRule
from trueup.study.harness import SecondStep
from trueup.variance.moderated import moderated

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers.answers import Answers
    from trueup.core.arrays import Floats, Ints
    from trueup.shrinkage import Prior
    from trueup.variance import Certainty


class _Last:
    """The last fitted prior, and the data it was fitted to."""

    key: tuple[object, ...] = ()
    prior: Any = None


@dataclass(frozen=True)
class Ours(ShrinkRule):
    """The adaptive rule with a caution factor; rules that differ only in this factor share the fit.

    The prior does not depend on the caution, and a study uses the same panels several times in a row.
    """

    caution: float = 1.0

    name = "adaptive"
    variance = "moderated"
    needs_holdout = True

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any) -> Prior:
        """Fit the adaptive rule, or reuse the last fit if the data are the same."""
        given = [x, v, panels, *(known.get(name) for name in ("v_interval", "nu", "groups"))]
        halves = known.get("halves")
        given += [known.get("covariates"), None if halves is None else halves.x]
        key = tuple(None if each is None else np.asarray(each).tobytes() for each in given)
        if key != _Last.key:
            _Last.prior = Adaptive(caution=1.0).fit(x, v, panels=panels, **known)
            _Last.key = key
        prior = _Last.prior
        shared: Prior = replace(prior, normal=replace(prior.normal, caution=self.caution))
        return shared


@dataclass(frozen=True)
class Unaware(Ours):
    """The adaptive rule without the groups and covariates of the questions."""

    def fit(self, x: Floats, v: Floats, *, panels: Ints | None = None, **known: Any) -> Prior:
        """Fit without groups and covariates."""
        return super().fit(x, v, panels=panels, **known | {"groups": None, "covariates": None})


@dataclass(frozen=True)
class Without:
    """The moderated variance without one of its pieces."""

    piece: str

    def __call__(self, answers: Answers, aggregate: Aggregate) -> Certainty:
        """Return the variances."""
        return moderated(answers, aggregate, skip=(self.piece,))


@dataclass(frozen=True)
class KnownVariance:
    """A known variance, the same for all questions."""

    value: float

    def __call__(self, answers: Answers, aggregate: Aggregate) -> Floats:  # noqa: ARG002
        """Return the variances."""
        return np.full(answers.n_questions, self.value)


#: The full step, which is that of target consensus, and a share of it: the default of version 0.1.
OURS, CAUTIOUS, CAUTION = "ours", "ours, 0.8", 0.8
PRINTED, PLUGIN, RIGHT = "psi_H", "plug-in", "right variance"
RULES: tuple[SecondStep, ...] = (
    SecondStep(OURS, None, Ours(caution=1.0)),
    SecondStep(CAUTIOUS, None, Ours(caution=CAUTION)),
    SecondStep(RIGHT, "moderated", EBE(positive=True)),
    SecondStep(PLUGIN, "plugin", EBE(positive=True)),
    SecondStep(PRINTED, "psi_H", EBE(positive=True)),
)

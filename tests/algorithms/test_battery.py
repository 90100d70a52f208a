"""The public battery: every algorithm of ours passes it, and broken ones do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from trueup.algorithms import (
    CATD,
    CRH,
    DTD,
    GTM,
    IPTD,
    PM,
    Algorithm,
    KDEm,
    State,
    StudentT,
    SubjectBias,
    check_algorithm,
    find,
    names,
)
from trueup.algorithms.check import CheckFailed

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats

VARIANTS: list[Algorithm] = [
    *(find(name) for name in names()),
    CATD(preset="paper"),
    DTD(preset="paper"),
    DTD(init="median"),
    GTM(soft=True),
    CRH(loss="absolute"),
    CRH(scale="var"),
    CRH(scale="none", per_count=False),
    PM(loss="absolute"),
    IPTD(variant="awg", lam=4.0),
    IPTD(variant="debias"),
    KDEm(kernel="gaussian"),
    KDEm(binned_above=3),
    SubjectBias(nu0=0.0),
    StudentT(errors="huber"),
    StudentT(nu0=0.0),
]


@pytest.mark.parametrize("algorithm", VARIANTS, ids=str)
def test_every_algorithm_passes_the_battery(algorithm: Algorithm) -> None:
    iterations = (
        2 if algorithm == SubjectBias(nu0=0.0) else 5
    )  # it collapses, and magnifies rounding
    assert len(check_algorithm(algorithm, max_iter=iterations)) == 10


@dataclass(frozen=True)
class BlackBox(Algorithm):
    """Midrange: no weights, no iteration."""

    name = "midrange"

    def truths(self, block: Block, state: State) -> Floats:
        start = block.indptr[:-1]
        low = np.minimum.reduceat(block.values, start)
        return low + 0.5 * (np.maximum.reduceat(block.values, start) - low)

    def weights(self, block: Block, state: State, x: Floats) -> None:
        return None


def test_a_black_box_passes_the_battery() -> None:
    assert check_algorithm(BlackBox())


@dataclass(frozen=True)
class _Mean(Algorithm):
    name = "broken"


class _NotFinite(_Mean):
    def truths(self, block: Block, state: State) -> Floats:
        x = super().truths(block, state)
        return np.where(block.counts == 1, np.nan, x)


class _Shrunk(_Mean):
    def truths(self, block: Block, state: State) -> Floats:
        return 0.9 * super().truths(block, state)


class _Unit(_Mean):
    def truths(self, block: Block, state: State) -> Floats:
        clipped: Floats = np.clip(super().truths(block, state), -1.0, 1.0)
        return clipped


class _BlockMean(_Mean):
    def truths(self, block: Block, state: State) -> Floats:
        x = super().truths(block, state)
        return x + 1e-3 * float(block.std.mean()) * (block.std > 0)


class _WholeSum(DTD):
    """Takes sums over all panels together."""

    def update(self, state: State, sums: Floats) -> State:
        state = super().update(state, sums)
        weight = state["weight"] + 0.1 * state["weight"].sum()
        return state.replace(weight=state.facts.weigh(weight))


class _CountsLoneAnswers(DTD):
    def update(self, state: State, sums: Floats) -> State:
        facts = replace(state.facts, n_informative=state.facts.n_answers)
        return super().update(State(facts, state.values), sums)


class _WrongShares(_Mean):
    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        return 1.01 * block.answer_weights(state["weight"])


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (_NotFinite(), "no finite truth"),
        (_Unit(), "truths of"),
        (_BlockMean(), "truths"),
        (_WholeSum(), "panel"),
        (_CountsLoneAnswers(), "one answer"),
        (_WrongShares(), "sum of shares"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Algorithm) else "",
)
def test_a_broken_algorithm_is_caught(broken: Algorithm, complaint: str) -> None:
    with pytest.raises(CheckFailed, match=complaint):
        check_algorithm(broken)

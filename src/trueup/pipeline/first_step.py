"""The first step of a request: which method, over which answers, and what it believes of the workers in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.native import HEAVY, MEAN, NORMAL, Native
from trueup.algorithms.registry import find
from trueup.errors import TrueupError
from trueup.pipeline.auto_method import CANDIDATES, choose
from trueup.pipeline.pooling import find_pooling
from trueup.variance.bias import Biases, estimate_biases

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.driver import Aggregate
    from trueup.algorithms.registry import Method
    from trueup.core.progress import Progress
    from trueup.engines.protocol import Engine
    from trueup.pipeline.pooling import Pooling
    from trueup.request import Plan
    from trueup.variance import WorkerNoise

#: The versions of the native method, in words.
VERSIONS = {
    MEAN: "all workers alike (the plain mean)",
    NORMAL: "unequal workers",
    HEAVY: "unequal workers with some answers far off",
}
#: Weights of models below which they are not worth mentioning, and from which on they prevail.
NOTICEABLE, MOSTLY = 0.01, 0.5


@dataclass(frozen=True, eq=False)
class FirstStep:
    """The method, and the answers that it is applied to.

    Attributes
    ----------
    algorithm : Algorithm
        The method.
    unbiased, combined : Engine
        The answers without biases that were removed before; the same with one answer for workers who are pooled.
    why : str
        Why the method was chosen, if it was.
    biases, pooling, noise : optional
        Biases that were removed before; workers who count as one; the noise of the workers, where it was computed.
    """

    algorithm: Algorithm
    unbiased: Engine
    combined: Engine
    why: str
    biases: Biases | None
    pooling: Pooling | None
    noise: WorkerNoise | None


def choose_first_step(
    engine: Engine, plan: Plan, bar: Progress, algorithm: Algorithm | None = None
) -> FirstStep:
    """Return the first step that a plan asks for, over answers on their scale; `algorithm` was chosen before."""
    named = algorithm
    if named is None and not plan.chooses:
        named = find_method(plan.method, plan)
    # The native method removes biases itself.
    removes = plan.bias is True and named is not None and not isinstance(named, Native)
    biases = estimate_biases(engine) if removes else None
    unbiased = engine if biases is None else biases.remove(engine)
    pooling = noise = None
    if plan.pools and engine.problem.worker_variance is None:
        pooling, noise = find_pooling(unbiased, plan.seed)
    combined = unbiased if pooling is None else pooling.pool(unbiased)
    why = ""
    if named is None:
        named, why = _chosen(combined, plan, bar)
        if plan.bias is True and not isinstance(named, Native):
            biases = estimate_biases(engine)
            unbiased, noise = biases.remove(engine), None
            combined = unbiased if pooling is None else pooling.pool(unbiased)
    return FirstStep(named, unbiased, combined, why, biases, pooling, noise)


def find_method(method: Method, plan: Plan) -> Algorithm:
    """Return a method by name; the native one leaves biases alone where the plan says so."""
    algorithm = find(method)
    if isinstance(algorithm, Native) and plan.bias is False:
        return replace(algorithm, biases=False)
    return algorithm


def _chosen(engine: Engine, plan: Plan, bar: Progress) -> tuple[Algorithm, str]:
    """Return the method that held-out workers choose, and why."""
    if engine.problem.worker_variance is not None:
        return find("blue"), "worker variances are known"
    if engine.problem.n_panels > 1:
        raise TrueupError(
            "auto chooses for one problem, and these are panels.",
            argument="method",
            remedy="Name a method, or take one panel at a time.",
        )
    candidates = [find_method(name, plan) for name in CANDIDATES]
    choice = choose(engine, candidates, seed=plan.seed, each=bar.step, **plan.limits)
    return candidates[int(choice.chosen[0])], choice.reason


def models_in_words(aggregate: Aggregate) -> str:
    """Say how much weight each version of the native method has; empty for other methods and for panels."""
    state = aggregate.state
    if not isinstance(aggregate.algorithm, Native) or aggregate.facts.n_panels > 1:
        return ""
    if not aggregate.facts.pool.any():
        return ""
    shares = {words: float(state[name + "weight"][0]) for name, words in VERSIONS.items()}
    heaviest_first = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{_in_per_cent(share)} {words}" for words, share in heaviest_first]
    text = f"weights of the three models: {', '.join(parts)}"
    # The plain mean knows no biases: with it they are removed only as far as the other models have weight.
    removed = 1.0 - shares[VERSIONS[MEAN]]
    if aggregate.bias is None or removed < NOTICEABLE:
        return text
    text += "; biases of the workers were found and removed"
    return text if removed >= MOSTLY else f"{text} in part"


def _in_per_cent(share: float) -> str:
    """Write a weight as a percentage; nothing is certain or impossible.

    >>> _in_per_cent(0.97), _in_per_cent(1.0), _in_per_cent(0.0)
    ('97%', 'above 99%', 'below 1%')
    """
    if share > 1.0 - NOTICEABLE:
        return "above 99%"
    return "below 1%" if share < NOTICEABLE else f"{share:.0%}"


def biases_of(aggregate: Aggregate) -> Biases | None:
    """Return the biases that the native method removed, None where it found none."""
    if not isinstance(aggregate.algorithm, Native) or aggregate.bias is None:
        return None
    facts, state = aggregate.facts, aggregate.state
    variance, shift = (facts.of_panels(state[name]) for name in ("bias_variance", "shift"))
    freedom = np.maximum(facts.panel_sum(facts.informative) - 1.0, 1.0)
    return Biases(aggregate.bias, np.sqrt(state["bias_error"]), variance, shift, freedom)

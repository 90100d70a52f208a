"""The native first step: the plain mean, normal workers and heavy-tailed workers, averaged by their likelihood.

    x_ij = theta_j + b_i + e_ij,    e_ij ~ sqrt(s_i) t_nu,    b_i ~ sqrt(tb2) t_6,    theta_j flat

Three versions: everybody alike (the plain mean), nu infinite (normal errors), and nu = 6 (heavy tails). The variances
and biases of the workers are learned in ten rounds of EM for each of the last two (`worker_learning`, `noise_models`).
Each version has a log marginal likelihood, from which the price of what was learned about the workers is subtracted;
their truths are averaged with the likelihoods as weights. Alike normal workers thus give the mean, unequal ones
inverse-variance weights without their biases, and absurd answers are ignored instead of averaged in.

Numbers are in units of the typical spread of the answers, `1.4826 median |x_ij - median_j| sqrt(k_j/(k_j - 1))`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.algorithms.answer_spread import panel_spreads
from trueup.algorithms.contract import Algorithm, State, Training
from trueup.algorithms.noise_models import NoiseModel, in_units, mean_model
from trueup.algorithms.worker_learning import Learned, WorkerLearning
from trueup.answers.cut import pieces_of
from trueup.core.arrays import segment_sum
from trueup.core.parameters import yes_or_no
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.engines.question_sample import sample_questions

if TYPE_CHECKING:
    from trueup.algorithms.facts import Facts
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats
    from trueup.engines.protocol import Engine, Kept

#: The versions, by the names that their vectors and weights begin with.
MEAN, NORMAL, HEAVY = "mean_", "normal_", "heavy_"
#: The vectors of truths and variances that the engine keeps of each.
KEPT = {
    MEAN: (vectors.MEAN_TRUTH, vectors.MEAN_VARIANCE),
    NORMAL: (vectors.NORMAL_TRUTH, vectors.NORMAL_VARIANCE),
    HEAVY: (vectors.HEAVY_TRUTH, vectors.HEAVY_VARIANCE),
}
#: Price of the heavy tails themselves, in log likelihood.
HEAVY_PRICE = 1.0
#: Versions with less than this share of the weight of the best are left out.
NEGLIGIBLE = 1e-9
#: Degrees of freedom of the variances, for each answer beyond the first of a question.
FREEDOM_SHARE = 0.6
#: Seed for the sample of questions of a very large problem.
SEED = 0
#: Questions that the first updates of a large problem look at: at least so many, and enough that workers have about so
#: many answers.
SAMPLED, ANSWERS_EACH = 20_000, 100
ROWS = 5


@dataclass(frozen=True)
class Native(Algorithm):
    """Mean, normal and heavy-tailed workers averaged by likelihood, with the biases of the workers removed.

    Parameters
    ----------
    biases : bool
        Whether biases of workers are learned and removed, where they are larger than noise explains.
    """

    biases: bool = True

    name = "native"
    max_updates = 10
    concludes = True

    def __post_init__(self) -> None:
        yes_or_no("biases", self.biases)

    def prepare(self, engine: Engine, facts: Facts) -> Training:
        """Return the answers in units of their typical spread, and the pooled variance in these units."""
        sample = sample_questions(engine, SEED)
        unit = panel_spreads(engine, sample, np.zeros(facts.n_panels))
        unit = np.where((unit > 0) & (facts.pool > 0), unit, 1.0)

        def view(block: Block, kept: Kept) -> Block:
            return in_units(block, kept[vectors.MEDIAN], block.of_panel(unit))

        scaled = engine.changed(view, reads=(vectors.MEDIAN,))

        def squares(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            weight, total = block.weigh(np.ones(block.n_workers))
            within = block.informative * block.by_question(block.squares(total / weight))
            return Visit(panel_sums=segment_sum(within, block.panel_questions)[None])

        within = scaled.sweep(squares).panel_sums[0]
        usable = (facts.overlap > 0) & (facts.pool > 0)
        pool = np.divide(within, facts.overlap, out=np.zeros(len(within)), where=usable)
        facts = replace(facts, pool=pool, unit=unit)
        return _with_sample(scaled, facts)

    def start(self, facts: Facts) -> State:
        pool = np.where(facts.pool > 0, facts.pool, 1.0)
        unit = np.ones(facts.n_panels) if facts.unit is None else facts.unit
        pool, unit = facts.spread(pool), facts.spread(unit)
        values = {
            "weight": 1.0 / pool,
            "pool": pool,
            "unit": unit,
            **Learned.begin(pool).vectors(NORMAL),
            **Learned.begin(np.minimum(pool, 1.0)).vectors(HEAVY),
        }
        return State(facts, values)

    def iterate(self, block: Block, state: State) -> tuple[Floats, Floats]:
        """Return the truths with heavy tails and the tallies of both models, in one pass."""
        models, truths = _models(state), []
        sums = np.zeros((ROWS * len(models), block.n_workers))
        for piece in pieces_of(block):
            fits = [model.fit(piece) for model in models]
            tallies = [model.tally(piece, fit) for model, fit in zip(models, fits, strict=True)]
            sums += np.concatenate(tallies)
            truths.append(fits[-1].t)
        return np.concatenate(truths), sums

    def update(self, state: State, sums: Floats) -> State:
        values: dict[str, Floats] = {}
        for number, (name, learning) in enumerate(self._learnings(state.facts)):
            rows = sums[ROWS * number : ROWS * (number + 1)]
            learned = learning.update(Learned.from_vectors(state.values, name), rows, state.step)
            values |= learned.vectors(name)
        return state.replace(**values)

    def _learnings(self, facts: Facts) -> tuple[tuple[str, WorkerLearning], ...]:
        return (
            (NORMAL, WorkerLearning(facts, heavy=False, biases=self.biases)),
            (HEAVY, WorkerLearning(facts, heavy=True, biases=self.biases)),
        )

    def conclude(self, engine: Engine, state: State) -> State:
        """Compute the truths of all versions, weigh them by likelihood, and let the engine keep their average."""
        facts = state.facts

        def fit(block: Block, kept: Kept) -> Visit:  # noqa: ARG001
            local = state.of(block)
            parts = [_versions(piece, local) for piece in pieces_of(block)]
            found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            levels = [found.pop(name) for name in (MEAN, NORMAL, HEAVY)]
            sums = [segment_sum(row * block.informative, block.panel_questions) for row in levels]
            return Visit(panel_sums=np.stack(sums), questions=found)

        likelihood = engine.sweep(fit).panel_sums
        models = {
            name: (Learned.from_vectors(state.values, name), learning)
            for name, learning in self._learnings(facts)
        }
        shift = np.zeros((3, facts.n_panels))
        for number, (learned, learning) in enumerate(models.values(), start=1):
            likelihood[number] += learning.price(learned)
            shift[number] = learning.shift(learned)
        likelihood[2] -= HEAVY_PRICE
        active = (facts.pool > 0) & np.isfinite(likelihood).all(axis=0)
        likelihood = np.where(active, likelihood, [[0.0], [-np.inf], [-np.inf]])
        weight, evidence = _weights(likelihood)
        self._average(engine, facts, weight, state["unit"])
        heavier = facts.spread(weight[2] > weight[1])
        log_unit = facts.of_panels(np.log(state["unit"]))
        normal, heavy = models[NORMAL][0], models[HEAVY][0]
        unit, share = state["unit"], [facts.spread(row) for row in weight]
        precision = share[0] / state["pool"]
        precision = precision + share[1] / normal.variance + share[2] / heavy.variance

        def of_heavier(name: str) -> Floats:
            of_heavy: Floats = getattr(heavy, name)
            of_normal: Floats = getattr(normal, name)
            return np.where(heavier, of_heavy, of_normal)

        values = {
            "weight": precision,
            "variance": of_heavier("variance") * unit**2,
            "shift": facts.spread((weight * shift).sum(axis=0)) * unit**2,
            "evidence": facts.spread(np.where(active, evidence, 0.0) - facts.overlap * log_unit),
        }
        if of_heavier("bias").any():
            values["bias"] = of_heavier("bias") * unit
            values["bias_error"] = of_heavier("bias_error") * unit**2
            values["bias_variance"] = of_heavier("bias_variance") * unit**2
        names = zip((MEAN, NORMAL, HEAVY), share, strict=True)
        return state.replace(**values, **{name + "weight": row for name, row in names})

    def _average(self, engine: Engine, facts: Facts, weight: Floats, unit: Floats) -> None:
        """Let the engine keep `t_j = sum_c w_c t_jc` and `v_j = sum_c w_c (v_jc + (t_jc - t_j)^2)`."""
        agree = facts.pool == 0
        panel_unit = facts.of_panels(unit)

        def visit(block: Block, kept: Kept) -> Visit:
            shares = [block.of_panel(row) for row in weight]
            used = [
                (share, kept[truth], kept[variance])
                for (truth, variance), share in zip(KEPT.values(), shares, strict=True)
                if share.any()
            ]
            t = sum(share * t for share, t, _ in used)
            v = sum(share * (v + (t_c - t) ** 2) for share, t_c, v in used)
            scale = block.of_panel(panel_unit)
            offset = kept[vectors.MEDIAN] + scale * t
            # Where all agree a lone answer says nothing about its author.
            alone = np.where(block.counts >= 2, 0.0, np.nan)
            variance = np.where(block.of_panel(agree), alone, scale**2 * v)
            return Visit(
                questions={
                    vectors.OFFSET: offset,
                    vectors.AGGREGATE: block.centre + offset,
                    vectors.MODEL_VARIANCE: variance,
                }
            )

        names = [name for pair in KEPT.values() for name in pair]
        engine.sweep(visit, reads=(vectors.MEDIAN, *names), answers=False)

    def truths(self, block: Block, state: State) -> Floats:
        """Return the truths relative to the centre of their question, given the final state."""
        unit = _of_question(block, state["unit"])
        scaled = in_units(block, block.median, unit)
        total, fits = np.zeros(block.n_questions), []
        fits.append(mean_model(scaled, _of_question(block, state["pool"]))[0])
        fits += [model.evidence(scaled, model.fit(scaled))[0] for model in _models(state)]
        for name, fit in zip((MEAN, NORMAL, HEAVY), fits, strict=True):
            total += _of_question(block, state[name + "weight"]) * fit.t
        return block.median + unit * total

    def weights(self, block: Block, state: State, x: Floats) -> Floats:
        """Return the share of each answer, averaged over the versions."""
        scaled = in_units(block, block.median, _of_question(block, state["unit"]))
        equal = block.answer_weights(np.ones(block.n_workers))
        share = equal * state[MEAN + "weight"].take(block.workers)
        for name, model in zip((NORMAL, HEAVY), _models(state), strict=True):
            weight = state[name + "weight"].take(block.workers)
            if weight.any():
                share += weight * model.shares(scaled, model.fit(scaled))
        return share / block.spread(block.by_question(share))


def _with_sample(engine: Engine, facts: Facts) -> Training:
    """Return what workers are learned from, with a sample of questions for the first updates of a large problem."""
    problem = engine.problem
    per_question = max(problem.n_answers / max(problem.n_questions, 1), 1.0)
    size = int(max(ANSWERS_EACH * problem.n_workers / per_question, SAMPLED))
    if problem.n_panels > 1 or 2 * size > problem.n_questions:
        return Training(engine, facts)
    sample = sample_questions(engine, SEED, size)

    def count(block: Block, kept: Kept) -> Visit:
        several = sample.inside(block, kept) * block.informative
        sums = [block.by_worker(None, several), block.by_worker(block.precision, several)]
        overlap = segment_sum(several * (block.counts - 1.0), block.panel_questions)
        return Visit(sums=np.stack(sums), panel_sums=overlap[None])

    sweep = engine.sweep(count, reads=sample.reads)
    n_informative, precision = sweep.sums
    sampled = replace(
        facts, n_informative=n_informative, precision=precision, overlap=sweep.panel_sums[0]
    )
    return Training(engine, facts, sample, sampled)


def _versions(block: Block, state: State) -> dict[str, Floats]:
    """Return truth, variance and log marginal likelihood of each question in all versions, given the workers."""
    median = block.median
    scaled = in_units(block, median, _of_question(block, state["unit"]))
    fit, likelihood = mean_model(scaled, _of_question(block, state["pool"]))
    found = {vectors.MEDIAN: median, **_kept(MEAN, fit.t, fit.v), MEAN: likelihood}
    for name, model in zip((NORMAL, HEAVY), _models(state), strict=True):
        rough = model.fit(scaled)
        shares = model.shares(scaled, rough)
        shares *= shares
        bias_part = block.by_question(shares, state[name + "bias_error"])
        fit, likelihood = model.evidence(scaled, rough)
        found |= {**_kept(name, fit.t, fit.v + bias_part), name: likelihood}
    return found


def _kept(name: str, t: Floats, v: Floats) -> dict[str, Floats]:
    truth, variance = KEPT[name]
    return {truth: t, variance: v}


def _models(state: State) -> tuple[NoiseModel, NoiseModel]:
    normal, heavy = (
        NoiseModel(name == HEAVY, state[name + "variance"], state[name + "bias"])
        for name in (NORMAL, HEAVY)
    )
    return normal, heavy


def _of_question(block: Block, per_worker: Floats) -> Floats:
    """Return for each question a number that all workers of a panel have in common."""
    return per_worker[block.workers[block.indptr[:-1]]]


def _weights(likelihood: Floats) -> tuple[Floats, Floats]:
    """Return the weights of the versions and the log of the sum of their likelihoods, for each panel."""
    peak = likelihood.max(axis=0)
    weight = np.exp(likelihood - peak)
    evidence = peak + np.log(weight.sum(axis=0))
    weight = np.where(weight < NEGLIGIBLE, 0.0, weight)
    return weight / weight.sum(axis=0), evidence

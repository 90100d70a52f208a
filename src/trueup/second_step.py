"""The second step on the outcome of any first step: variances, halves, prior, posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.contract import State
from trueup.arrays import expand
from trueup.draws import sample_of
from trueup.halves import halve
from trueup.variance import Certainty, certainty, worker_noise
from trueup.variance.moderated import moderated

if TYPE_CHECKING:
    from trueup.algorithms.driver import Aggregate
    from trueup.answers import Answers
    from trueup.arrays import Bools, Floats, Ints
    from trueup.shrinkage import Posterior, Prior, ShrinkRule
    from trueup.variance import WorkerNoise

#: Degrees of freedom from which on variances are as good as known, and the fewest that a quantile is taken at.
MANY = 300.0
FEWEST = 3.0
#: What questions are moved toward, by the prior they have.
TOWARD = {
    "normal": "their common mean",
    "mixture": "the middle of their cluster",
    "scale mixture": "their common mean",
    "groups": "the mean of their group",
    "group means": "the mean of their group",
    "regression": "what the covariates predict",
}


@dataclass(frozen=True, eq=False)
class SecondStepResult:
    """What came out.

    Attributes
    ----------
    posterior : Posterior
        Estimates and their variances.
    prior : Prior
        What was learned of the questions; it can be used on new ones.
    certainty : Certainty
        How sure the first step was.
    unknown : array
        Questions of which no variance can be known.
    alone : array
        Questions of panels in which no question has two answers, so that workers cannot be compared.
    noise : WorkerNoise or None
        The noise of the workers, where it was needed.
    tried : tuple of str
        What the caller knew of the questions and no panel has used: "groups", "covariates".
    """

    posterior: Posterior
    prior: Prior
    certainty: Certainty
    unknown: Bools
    alone: Bools
    noise: WorkerNoise | None
    tried: tuple[str, ...] = ()

    def std_error(self, answers: Answers) -> Floats:
        """Return the standard error of each estimate, NaN where it cannot be known.

        An error that all questions share through the biases of the workers is part of it.
        """
        shift = self.certainty.shift[answers.question_panel]
        return np.sqrt(np.where(self.unknown, np.nan, self.posterior.variance + shift))

    def quantile(self, answers: Answers, level: float) -> Floats:
        """Return the number of standard errors on each side of an interval, for each question.

        Student's quantile where the variances are estimates, normal where they are as good as known. Noise and common
        shift have degrees of freedom of their own, which are joined after Satterthwaite.
        """
        panel, sure = answers.question_panel, self.certainty
        noise, shift = self.posterior.variance, sure.shift[panel]
        nu = np.maximum(sure.nu, FEWEST)[panel]
        total = noise + shift
        share = np.divide(shift, total, out=np.zeros(len(total)), where=total > 0)
        below = (1.0 - share) ** 2 / nu + share**2 / sure.shift_nu[panel]
        freedom = np.divide(1.0, below, out=np.full(len(below), np.inf), where=below > 0)
        return student_quantile(0.5 + 0.5 * level, freedom)

    def half_width(self, answers: Answers, level: float) -> Floats:
        """Return half the width of the interval of each question."""
        return self.quantile(answers, level) * self.std_error(answers)

    @property
    def models(self) -> list[str]:
        """What was believed of the true values of each panel, where the rule says."""
        model = getattr(self.prior, "model", None)
        return [] if model is None else list(model)

    @property
    def expected_gain(self) -> float:
        """Share by which the second step is expected to lower the mean squared error, NaN if unknown."""
        before = float(np.sum(self.certainty.v_interval))
        if self.unknown.any() or not np.isfinite(before) or before <= 0:
            return float("nan")
        return 1.0 - float(np.sum(self.posterior.variance)) / before

    def __str__(self) -> str:
        moved = float(np.mean(self.posterior.shrinkage))
        said = []
        if moved == 0:
            said.append("the second step left all questions where they were")
        else:
            kinds = {TOWARD.get(model, model) for model in self.models} - {"none"}
            toward = " or ".join(sorted(kinds)) or "the others"
            text = (
                f"the second step moved questions {moved:.1%} of the way toward {toward} on average"
            )
            gain = self.expected_gain
            if gain > 0:
                text += f"; if workers err independently, squared errors fall by about {gain:.1%}"
            said.append(text)
        said += [
            f"the {name} did not predict held-out workers better, and were not used"
            for name in self.tried
        ]
        return "; ".join(said)


def second_step(
    answers: Answers,
    aggregate: Aggregate,
    rule: ShrinkRule,
    variance: Any = None,
    *,
    groups: Ints | None = None,
    covariates: Floats | None = None,
    noise: WorkerNoise | None = None,
    seed: int = 0,
) -> SecondStepResult:
    """Apply a shrink rule to the aggregates of a first step.

    Parameters
    ----------
    variance : str, number, array or callable, optional
        The variance rule; default: the one that belongs to the shrink rule, or what is known.
    groups, covariates : arrays, optional
        What is known of the questions.
    noise : WorkerNoise, optional
        The noise of the workers, where it has been computed already.
    seed : int
        Of the random halves of the workers, and of the sample of questions that priors are fitted on.
    """
    # Known variances need no second answer to a question.
    given = variance is not None and not isinstance(variance, str)
    alone = (aggregate.facts.overlap == 0)[answers.question_panel]
    alone = alone & (not aggregate.algorithm.needs_variance) & (not given)
    if noise is None and rule.variance == "moderated" and not alone.all():
        noise = worker_noise(answers, bias=aggregate.bias, facts=aggregate.facts)
    sure = _certainty(answers, aggregate, rule, variance, alone, noise)
    unknown = alone | np.isnan(sure.v)
    v, v_interval = (np.where(unknown, 0.0, each) for each in (sure.v, sure.v_interval))
    x = aggregate.x
    known: dict[str, Any] = {"v_interval": v_interval, "groups": groups, "covariates": covariates}
    sample = sample_of(answers, seed)
    halves = None
    if rule.earns and not unknown.any() and not np.isnan(aggregate.variance).any():
        noise = noise or worker_noise(answers, bias=aggregate.bias, facts=aggregate.facts)
        if sample is None:
            halves = halve(answers, aggregate, sure, noise, seed=seed)
        elif answers.n_panels == 1:
            halves = halve(*_part(answers, aggregate, sure, noise, sample), seed=seed)
    panels = answers.panel_questions
    if sample is None:
        prior = rule.fit(x, v, panels=panels, nu=sure.nu, halves=halves, **known)
    else:
        part = {name: None if each is None else each[sample] for name, each in known.items()}
        borders = np.searchsorted(sample, panels)
        prior = rule.fit(x[sample], v[sample], panels=borders, nu=sure.nu, halves=halves, **part)
    posterior = prior.posterior(x, v, panels=panels, **known)
    # What is known exactly stays where it is.
    exact = (v_interval == 0) & ~unknown & (posterior.shrinkage < 1)
    moved = replace(
        posterior,
        mean=np.where(exact, x, posterior.mean),
        variance=np.where(unknown, sure.v, np.where(exact, 0.0, posterior.variance)),
        shrinkage=np.where(exact, 0.0, posterior.shrinkage),
    )
    models = {str(model) for model in getattr(prior, "model", ())}
    tried = tuple(
        name
        for name, given, used in (
            ("groups", groups is not None, {"groups", "group means"}),
            ("covariates", covariates is not None, {"regression"}),
        )
        if given and not models & used
    )
    return SecondStepResult(moved, prior, sure, unknown, alone, noise, tried)


def _certainty(
    answers: Answers,
    aggregate: Aggregate,
    rule: ShrinkRule,
    variance: Any,
    alone: Bools,
    noise: WorkerNoise | None,
) -> Certainty:
    """Return the variances by the rule asked for, or that belongs to the second step."""
    algorithm = aggregate.algorithm
    if variance is None and algorithm.needs_variance:
        return Certainty.plain(aggregate.variance, answers)
    if alone.all():
        return Certainty.plain(np.zeros(answers.n_questions), answers)
    wanted = rule.variance if variance is None else variance
    if (
        variance is None
        and wanted in ("moderated", "plugin")
        and np.isnan(aggregate.variance).any()
    ):
        # A black box: it can only be asked again without some of its workers.
        if rule.name == "none":
            return Certainty.plain(aggregate.variance, answers)
        wanted = "jackknife"
    if isinstance(wanted, str) and wanted == "moderated":
        return moderated(answers, aggregate, noise=noise)
    return certainty(wanted, answers, aggregate)


def _part(
    answers: Answers,
    aggregate: Aggregate,
    sure: Certainty,
    noise: WorkerNoise,
    questions: Ints,
) -> tuple[Answers, Aggregate, Certainty, WorkerNoise]:
    """Cut everything down to some questions of a single problem."""
    few = answers.subset(questions)
    position = expand(answers.indptr[questions], answers.counts[questions])
    in_use = np.unique(answers.workers[position])  # in the order in which the subset numbers them
    values = {name: value[in_use] for name, value in aggregate.state.values.items()}
    bias = aggregate.bias
    part = replace(
        aggregate,
        centre=aggregate.centre[questions],
        offset=aggregate.offset[questions],
        bias=None if bias is None else bias[in_use],
        state=State(aggregate.facts, values, aggregate.state.step),
    )
    sure = replace(sure, v=sure.v[questions], gross=sure.gross[questions])
    return few, part, sure, replace(noise, variance=noise.variance[in_use])


def student_quantile(p: float, freedom: Floats) -> Floats:
    """Return Student's quantile at each number of degrees of freedom; the normal one where there are many."""
    from scipy.special import ndtri, stdtrit

    return np.where(freedom >= MANY, ndtri(p), stdtrit(np.clip(freedom, 1.0, MANY), p))

"""Against other models of the same data: error and time side by side, on small problems with known truths.

    python benchmarks/peers.py            ten draws of three problems, a quarter of an hour
    python benchmarks/peers.py --quick    a small draw of each, short chains, to try the script

Workers have biases and unequal variances, and answer a few questions each:

- `mean`: the plain average of each question;
- `sureal`: subject bias and inconsistency by alternating projection, the default of ITU-T P.910;
- `statsmodels`: MixedLM with crossed random effects of worker and question, BLUPs;
- `numpyro`: NUTS on the model that the data of the first problem are drawn from, `x_ij = theta_j + b_i + sigma_i e_ij`
  with normal theta and b and log-normal sigma; compiling is part of the time;
- `trueup`: `method="native"`, the adaptive second step, with and without `bias=True`. By default estimates of facts
  take the part of that step which people who guess facts have left to do; here the answers are simulated, nobody has
  done any of it, and `target="consensus"` takes all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import math
import time
import warnings
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import draw, inline, machine, write_section

import trueup

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.core.arrays import Floats, Ints

EACH, BIAS = 5, 0.7
CHAINS, WARM_UP, DRAWS = 2, 500, 1000
OURS = "trueup, bias=True"
PROBLEMS: dict[str, dict[str, Any]] = {
    "normal truths": {"truth": "normal"},
    "skewed truths": {"truth": "exponential"},
    "truths in three clusters": {"truth": "clustered", "truth_scale": 0.3},
}


@dataclass(frozen=True)
class Size:
    """Of a problem."""

    questions: int = 300
    workers: int = 40


@dataclass(frozen=True)
class Table:
    """Answers as columns of numbers, and as questions x workers."""

    question: Ints
    worker: Ints
    answer: Floats
    matrix: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Table:
        """Lay out workers x questions, NaN where there is no answer."""
        question, worker = np.nonzero(~np.isnan(matrix.T))
        return cls(question, worker, matrix.T[question, worker], matrix.T)


def mean(table: Table) -> Floats:
    """Return the plain averages."""
    return np.asarray(np.nanmean(table.matrix, axis=1))


def ours(table: Table, **options: Any) -> Floats:
    """Return our estimates."""
    return trueup.estimate(table.matrix.T, "native", **options).estimate


def sureal(table: Table) -> Floats:
    """Return the quality scores of sureal."""
    from sureal.subjective_model import SubjectMLEModelProjectionSolver

    reader = SimpleNamespace(opinion_score_3darray=table.matrix[:, :, None])
    with contextlib.redirect_stdout(io.StringIO()):
        result = SubjectMLEModelProjectionSolver._run_modeling(reader)  # noqa: SLF001
    return np.asarray(result["quality_scores"])


def statsmodels(table: Table) -> Floats:
    """Return intercept and best linear unbiased predictions of a crossed mixed model."""
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM

    frame = pd.DataFrame(
        {"answer": table.answer, "question": table.question, "worker": table.worker, "all": 1}
    )
    parts = {"question": "0 + C(question)", "worker": "0 + C(worker)"}
    model = MixedLM.from_formula(
        "answer ~ 1", groups="all", re_formula="0", vc_formula=parts, data=frame
    )
    found = model.fit(reml=True)
    effects = found.random_effects[1]
    middle = float(found.fe_params["Intercept"])
    names = [f"question[C(question)[{j}]]" for j in range(len(table.matrix))]
    return np.asarray(middle + effects[names].to_numpy())


def numpyro(table: Table, *, short: bool) -> Floats:
    """Return posterior means by Hamiltonian Monte Carlo."""
    import jax
    import numpyro as pyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    m, n = table.matrix.shape
    centre, unit = float(table.answer.mean()), float(table.answer.std())

    def model(question: Any, worker: Any, answer: Any) -> None:
        middle = pyro.sample("middle", dist.Normal(0.0, 1.0))
        spread = pyro.sample("spread", dist.HalfNormal(2.0))
        biased = pyro.sample("biased", dist.HalfNormal(1.0))
        level = pyro.sample("level", dist.Normal(0.0, 1.0))
        uneven = pyro.sample("uneven", dist.HalfNormal(1.0))
        with pyro.plate("questions", m):
            theta = pyro.sample("theta", dist.Normal(middle, spread))
        with pyro.plate("workers", n):
            bias = biased * pyro.sample("bias", dist.Normal(0.0, 1.0))
            noise = jax.numpy.exp(level + uneven * pyro.sample("noise", dist.Normal(0.0, 1.0)))
        expected = theta[question] + bias[worker]
        pyro.sample("answer", dist.Normal(expected, noise[worker]), obs=answer)

    chain = MCMC(
        NUTS(model),
        num_warmup=100 if short else WARM_UP,
        num_samples=100 if short else DRAWS,
        num_chains=CHAINS,
        progress_bar=False,
    )
    answer = (table.answer - centre) / unit
    chain.run(jax.random.PRNGKey(0), table.question, table.worker, answer)
    theta = np.asarray(chain.get_samples()["theta"])
    return np.asarray(centre + unit * theta.mean(axis=0))


def peers(*, quick: bool) -> dict[str, Callable[[Table], Floats]]:
    """Return what is compared, as far as it is installed."""
    found: dict[str, Callable[[Table], Floats]] = {
        "mean": mean,
        "trueup": partial(ours, bias=False),
        OURS: partial(ours, bias=True),
        f"{OURS}, consensus": partial(ours, bias=True, target="consensus"),
        "sureal": sureal,
        "statsmodels": statsmodels,
        "numpyro": partial(numpyro, short=quick),
    }
    return {
        name: peer
        for name, peer in found.items()
        if name.startswith(("mean", "trueup")) or importlib.util.find_spec(name)
    }


@dataclass(frozen=True)
class Score:
    """Root mean squared error and seconds of each draw."""

    error: Floats
    seconds: Floats


def compare(
    problem: dict[str, Any], size: Size, draws: int, found: dict[str, Callable[[Table], Floats]]
) -> dict[str, Score]:
    """Let all estimate the same draws."""
    errors: dict[str, list[float]] = {name: [] for name in found}
    times: dict[str, list[float]] = {name: [] for name in found}
    for seed in range(draws):
        drawn = trueup.simulate(
            workers=size.workers,
            questions=size.questions,
            answers_per_question=EACH,
            bias=BIAS,
            variance="inverse_gamma",
            seed=seed,
            **problem,
        )
        table = Table.of(drawn.answers.to_matrix())
        for name, peer in found.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimate = peer(table)
            times[name].append(time.perf_counter() - start)
            errors[name].append(float(np.sqrt(np.mean((estimate - drawn.truth) ** 2))))
            print(f"{seed} {name}: {errors[name][-1]:.4f}, {times[name][-1]:.2f} s", flush=True)
    return {name: Score(np.array(errors[name]), np.array(times[name])) for name in found}


def with_error(values: Floats, sign: str = "") -> str:
    """Return mean and standard error."""
    spread = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():{sign}.4f} ± {spread:.4f}"


def verdict(gap: Floats) -> str:
    """Say in a word what the differences of the errors show; nothing with a single draw."""
    if len(gap) < 2:
        return ""
    limit = 2.0 * gap.std(ddof=1) / math.sqrt(len(gap))
    if abs(gap.mean()) <= limit:
        return "as good"
    return "better" if gap.mean() < 0 else "worse"


def table_of(scores: dict[str, Score]) -> list[str]:
    """Return the results of one problem, the smallest error first."""
    lines = [
        f"| | RMSE | difference to {OURS} | | seconds | / {OURS} |",
        "|---|---|---|---|---|---|",
    ]
    base = scores[OURS]
    for name, score in sorted(scores.items(), key=lambda each: each[1].error.mean()):
        gap = score.error - base.error
        seconds = score.seconds.mean()
        lines.append(
            f"| {name} | {with_error(score.error)} | "
            + (" | |" if name == OURS else f"{with_error(gap, '+')} | {verdict(gap)} |")
            + f" {seconds:.3f} | {seconds / base.seconds.mean():.1f} |"
        )
    return lines


def chart(results: dict[str, dict[str, Score]]) -> str:
    """Draw error over time."""
    import altair as alt

    rows = [
        {
            "problem": problem,
            "estimator": name,
            "seconds": float(score.seconds.mean()),
            "RMSE": float(score.error.mean()),
        }
        for problem, scores in results.items()
        for name, score in scores.items()
    ]
    points = alt.Chart().mark_point(filled=True, size=80)
    shown = points.encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log")),
        y=alt.Y("RMSE:Q", scale=alt.Scale(zero=False)),
        color=alt.Color("estimator:N", sort=None),
    ).properties(width=300, height=240)
    picture = alt.layer(shown, data=inline(rows)).facet(
        column=alt.Column("problem:N", sort=None, title=None)
    )
    return draw("peers", picture)


def main() -> None:
    """Compare on all problems and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one small draw; nothing is written")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    found = peers(quick=options.quick)
    if "numpyro" in found:
        import numpyro as pyro

        pyro.set_host_device_count(CHAINS)
    trueup.estimate(trueup.simulate(seed=1).answers)  # what is imported at the first call
    draws, size = (1, Size(100, 20)) if options.quick else (options.draws, Size())
    results = {name: compare(problem, size, draws, found) for name, problem in PROBLEMS.items()}
    lines = [
        "## Against other models",
        "",
        f"`benchmarks/peers.py`. {machine('numpy', 'sureal', 'statsmodels', 'numpyro', 'jax')}.",
        "",
        f"{draws} draws: {size.questions} questions, {size.workers} workers, {EACH} answers to a question. Biases have",
        f"standard deviation {BIAS}, worker variances are inverse gamma with mean 1. Mean over draws ± standard error;",
        "differences are taken draw by draw, and count beyond two standard errors.",
        f"numpyro: {CHAINS} chains, {WARM_UP} + {DRAWS} steps each. On normal truths its model is that of the data,",
        "but for the shape of the distribution of the variances: nothing can be expected to do better. On the others",
        "its prior is wrong, as is that of the mixed model; who looks at the answers first could write a better one.",
        "Only numpyro gives the whole posterior.",
        "",
    ]
    for name, scores in results.items():
        lines += [f"### {name[:1].upper()}{name[1:]}", "", *table_of(scores), ""]
    if not options.quick:
        write_section("peers", [*lines, chart(results)])
    print("\n".join(lines))


if __name__ == "__main__":
    main()

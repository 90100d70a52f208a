"""Choice of the first step: every candidate, and the one chosen on held-out workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.panel_estimates import estimate_of, panels_of
from evidence.points import Point, near
from evidence.processes import run_tasks
from evidence.second_step.cell_tables import mean
from evidence.second_step.charts import marks
from trueup.algorithms.driver import run
from trueup.algorithms.registry import find
from trueup.datasets.simulate import simulate
from trueup.pipeline.shrink import second_step
from trueup.report.page import Figure, PageTable, Section
from trueup.shrinkage import Adaptive
from trueup.study.harness import losses_of, ratio_error, seed_of
from trueup.study.sources import Drawn, Synthetic

if TYPE_CHECKING:
    from evidence.second_step.context import Context
    from trueup.study.sources import PanelSource

SETS = ("emotions", "pies", "dots", "nflx_public", "calories", "groceries")
SIZES = ((3, 24), (5, 10), (5, 24), (10, 24), (10, 50))
SIMULATED_SIZES = ((5, 20), (10, 20))
CONTAMINATED_SIZES = ((3, 50), (5, 50), (10, 50))
#: First steps that the default is compared with, whether it chooses among them or not.
CANDIDATES = ("native", "mean", "median", "crh", "gtm", "iptd")
AUTO, DEFAULT = "auto", CANDIDATES[0]
SIMULATED = (
    Synthetic("synthetic, equal workers", {"variance": "fixed"}),
    Synthetic("synthetic, unequal workers", {}),
)


@dataclass(frozen=True)
class Contaminated:
    """Sparse answers, about one per worker; one worker in five has a 100-fold standard deviation."""

    name: str
    truth_scale: float

    def fits(self, n: int, m: int) -> bool:
        """Return whether the size is positive: any such panel can be simulated."""
        return n >= 1 and m >= 1

    def draw(self, panels: int, n: int, m: int, seed: int) -> Drawn:
        """Simulate panels with n answers to each question."""
        bad = np.random.default_rng(seed).random(panels * n * m) < 0.2
        drawn = simulate(
            workers=n * m,
            questions=m,
            panels=panels,
            answers_per_question=n,
            truth_scale=self.truth_scale,
            variance=np.where(bad, 1e4, 1.0),
            seed=seed,
        )
        return Drawn(drawn.answers, drawn.truth)


CONTAMINATED = (
    Contaminated("contaminated, wide truth", 100.0),
    Contaminated("contaminated, narrow truth", 1.0),
)


def first_step_choice(context: Context) -> Section:
    """Compare the candidates with the one chosen on held-out workers."""
    real, missing = context.available(("emotions",) if context.quick else SETS)
    plan: list[tuple[PanelSource, tuple[tuple[int, int], ...]]] = [
        (source, SIZES) for source in real
    ]
    plan += [(source, SIMULATED_SIZES) for source in SIMULATED]
    plan += [(source, CONTAMINATED_SIZES) for source in CONTAMINATED]
    if context.quick:
        plan = [(source, sizes[1:3]) for source, sizes in plan]
    tasks = [
        (f"{source.name} {n}x{m}", partial(_cell, source, n, m, context.samples, context.seed))
        for source, sizes in plan
        for n, m in sizes
        if source.fits(n, m)
    ]
    rows = run_tasks(context, "first_step_choice", tasks)
    contaminated = [source.name for source in CONTAMINATED]
    usual = [row for row in rows if row["data"] not in contaminated]
    excess = {name: mean(row[name] for row in usual) - 1 for name in (AUTO, *CANDIDATES)}
    worst = {name: max(row[name] for row in usual) - 1 for name in (AUTO, *CANDIDATES)}
    bad = {(row["data"], row["n"]): row for row in rows if row["data"] in contaminated}
    errors = np.array([row["se"] for row in usual])
    mean_error = float(np.sqrt(np.sum(errors**2)) / len(errors))
    worst_error = max(usual, key=lambda row: row[AUTO])["se"]
    context.points += [
        Point(
            9, f"auto above the best first step of a cell in hindsight, mean of {len(usual)} cells",
            f"{excess[AUTO]:.1%}", "at most 4%", excess[AUTO] <= 0.04, near(excess[AUTO], mean_error, high=0.04),
        ),
        Point(
            9, "The same, worst cell", f"{worst[AUTO]:.1%}", "at most 15%", worst[AUTO] <= 0.15,
            near(worst[AUTO], worst_error, high=0.15),
        ),
    ]  # fmt: skip
    for name in contaminated:
        row = bad[name, 5]
        found = f"{row[AUTO]:.2f} ± {row['se']:.2f} times, {DEFAULT} {row[DEFAULT]:.2f} times"
        what = f"{name.capitalize()}, n = 5: risk of auto relative to the best first step"
        by_chance = near(row[AUTO], row["se"], high=3)
        context.points.append(Point(9, what, found, "at most 3 times", row[AUTO] <= 3, by_chance))
    names = (AUTO, *CANDIDATES)
    shown = [
        [
            row["data"], row["n"], row["m"], *(round(row[name], 3) for name in names),
            round(row["se"], 3), row["best"], f"{row['kept']:.0%}",
        ]
        for row in sorted(rows, key=lambda row: -row[AUTO])
    ]  # fmt: skip
    return Section(
        title=(
            f"First step: auto is {excess[AUTO]:.1%} above the best choice in hindsight, always {DEFAULT} "
            f"{excess[DEFAULT]:.1%}"
        ),
        verdict=(
            "Target: auto at most 4% above the best on average, 15% in the worst cell. "
            f"Risk above that of the best first step of the cell in hindsight, mean and worst of {len(usual)} cells: "
            + ", ".join(
                f"{name} {excess[name]:.1%} ({worst[name]:.0%})"
                for name in sorted(names, key=lambda name: excess[name])
            )
            + ". Times the best: "
            + "; ".join(
                f"{name}, n = {n}: auto {row[AUTO]:.2f}, {DEFAULT} {row[DEFAULT]:.2f}"
                for (name, n), row in bad.items()
            )
            + "."
        ),
        holds=excess[AUTO] <= 0.04 and worst[AUTO] <= 0.15,
        text=(
            "Each first step is followed by the full adaptive second step, that of target consensus. auto is the "
            f"default of `trueup.estimate`: it starts from {DEFAULT} and replaces it if that predicts held-out workers "
            "worse. The best of a cell is the candidate with the smallest risk over its panels, which no rule knows. "
            "Contaminated: about one answer per worker, one worker in five with a 100-fold standard deviation; truths "
            "with the standard deviation of the answers of these workers (100) or of the others (1). "
            + missing
        ),
        figures=[
            Figure(
                "Risk relative to the best first step of the cell",
                marks(
                    [
                        {
                            "cell": f"{row['data']} {row['n']} × {row['m']}",
                            "risk / best": row[name],
                            "first step": name,
                        }
                        for row in sorted(rows, key=lambda row: -row[AUTO])
                        for name in names
                    ],
                    name="cell",
                    value="risk / best",
                    colour="first step",
                    log=True,
                ),
                note="1 is the best candidate of the cell in hindsight.",
            )
        ],
        tables=[
            PageTable(
                "Risk relative to the best first step of the cell in hindsight, worst cells of auto first",
                ["data", "n", "m", *names, "± of auto", "best", f"{DEFAULT} kept"],
                shown,
            )
        ],
    )


def _cell(source: PanelSource, n: int, m: int, samples: int, seed: int) -> list[dict[str, Any]]:
    """Run all candidates on the panels of a cell, and the default on each panel."""
    answers, truth = source.draw(samples, n, m, seed_of(seed, source, n, m))
    losses = []
    for name in CANDIDATES:
        aggregate = run(find(name), answers)
        moved = second_step(answers, aggregate, Adaptive(caution=1.0), seed=seed)
        losses.append(losses_of(answers.panel_questions, moved.posterior.mean, truth))
    chosen = [estimate_of(panel, target="consensus", seed=seed) for panel in panels_of(answers)]
    by_candidate = np.stack(losses)
    estimates = np.concatenate([est.estimate for est in chosen])
    auto = losses_of(answers.panel_questions, estimates, truth)
    risk = by_candidate.mean(axis=1)
    best = int(risk.argmin())
    row = {
        "data": source.name,
        "n": n,
        "m": m,
        "samples": answers.n_panels,
        "best": CANDIDATES[best],
        "best_risk": float(risk[best]),
        AUTO: float(auto.mean() / risk[best]),
        "se": ratio_error(auto, by_candidate[best]),
        "kept": float(np.mean([est.diagnosis.method == DEFAULT for est in chosen])),
    }
    relative = zip(CANDIDATES, risk / risk[best], strict=True)
    return [row | {name: float(ratio) for name, ratio in relative}]

"""The numbers of the documentation that no code block prints: what each `<!-- numbers: NAME -->` of a page holds.

Everything is simulated with fixed seeds, so that anybody can print the same. A ratio is a mean squared error divided by
another one; below 1 is better.
"""  # noqa: INP001  a script

from __future__ import annotations

import functools
import re
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import trueup
from trueup.algorithms import find, run
from trueup.pipeline.auto_method import choose
from trueup.pipeline.shrink import second_step
from trueup.shrinkage import EBE, MEBE, Adaptive, Identity, Mixture, Morris, Normal, Stein, Sure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[1]
PANELS = 100
SEED = 1

# Name -> function that returns the Markdown.
NUMBERS: dict[str, Callable[[], str]] = {}
# Those that take long: `make docs-figures` prints them, the tests do not.
SLOW: set[str] = set()


def numbers(name: str, *, slow: bool = False) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Make a function known under a name."""

    def known(function: Callable[[], str]) -> Callable[[], str]:
        NUMBERS[name] = functools.cache(function)
        if slow:
            SLOW.add(name)
        return NUMBERS[name]

    return known


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


# First steps: six situations, the error of each method against that of the mean

METHODS = (
    "mean", "median", "weighted_median", "blue", "dtd", "catd", "gtm", "crh", "pm", "ptd", "iptd", "kdem",
    "subject_bias", "student_t", "native", "auto",
)  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """A kind of data: its name in a table, what it is, and how it is simulated."""

    name: str
    meaning: str
    options: dict[str, Any]
    gross: float = 0.0  # share of answers whose error is 15 times as large


SITUATIONS = (
    Situation("alike", "8 equally good workers, 30 questions", {"variance": "fixed"}),
    Situation("unlike", "8 workers, some much better than others", {"variance": "inverse_gamma"}),
    Situation(
        "sparse",
        "40 unlike workers, 60 questions with 4 answers each",
        {"workers": 40, "questions": 60, "answers_per_question": 4, "variance": "inverse_gamma"},
    ),
    Situation(
        "spammers",
        "of 8 workers, each with probability 0.3 one who does not look at the question",
        {"spammers": 0.3},
    ),
    Situation("gross errors", "one answer in ten is 15 times as wrong", {}, gross=0.1),
    Situation(
        "biased", "harsh and lenient workers, 60% of the answers", {"bias": 1.0, "density": 0.6}
    ),
)


def drawn(situation: Situation, panels: int = PANELS) -> tuple[trueup.Answers, Any, Any]:
    """Simulate a situation: answers, truth, and the variance of each worker."""
    size: dict[str, Any] = {"workers": 8, "questions": 30, "panels": panels, "seed": SEED}
    made = trueup.simulate(**{**size, **situation.options})
    if not situation.gross:
        return made.answers, made.truth, made.worker_variance
    rng = np.random.default_rng(SEED)
    workers, questions = size["workers"], size["questions"]
    truth = made.truth.reshape(panels, 1, questions)
    noise = np.sqrt(made.worker_variance).reshape(panels, workers, 1)
    wild = np.where(rng.random((panels, workers, questions)) < situation.gross, 15.0, 1.0)
    x = truth + noise * wild * rng.normal(size=wild.shape)
    return trueup.Answers.from_matrix(x), made.truth, made.worker_variance


@functools.cache
def method_ratios() -> dict[str, list[float]]:
    """Return the ratios of all methods in all situations."""
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    for situation in SITUATIONS:
        answers, truth, variance = drawn(situation)
        base = np.mean((run(find("mean"), answers).x - truth) ** 2)
        for name in METHODS:
            if name == "auto":
                choice = choose(answers)
                each = np.array([run(find(one), answers).x for one in choice.candidates])
                chosen = choice.chosen[answers.question_panel]
                x = each[chosen, np.arange(answers.n_questions)]
            else:
                known = replace(answers, worker_variance=variance) if name == "blue" else answers
                x = run(find(name), known).x
            found[name].append(float(np.mean((x - truth) ** 2) / base))
    return found


def _two(values: Sequence[float]) -> list[str]:
    return ["not finite" if not np.isfinite(value) else f"{value:.2f}" for value in values]


def _row(name: str) -> Callable[[], str]:
    def row() -> str:
        head = ["error / error of the mean", *(each.name for each in SITUATIONS)]
        return table(head, [[f"`{name}`", *_two(method_ratios()[name])]])

    return row


for _name in METHODS:
    numbers(f"method-{_name}")(_row(_name))


@numbers("situations")
def situations() -> str:
    """Return what the situations are."""
    return table(
        ["situation", "what it is"], [[each.name, each.meaning] for each in SITUATIONS]
    ).replace("---:", "---")


@numbers("methods")
def methods() -> str:
    """Return the table of all methods."""
    head = ["method", *(each.name for each in SITUATIONS)]
    rows = [
        [f"[`{name}`]({name.replace('_', '-')}.md)", *_two(ratios)]
        for name, ratios in method_ratios().items()
    ]
    return table(head, rows)


# Second steps: what they do to the plain mean, on several kinds of true values

RULES: dict[str, tuple[Any, Any]] = {
    "none": (Identity(), None),
    "adaptive": (Adaptive(), None),
    "normal": (Normal(), None),
    "mixture": (Mixture(), None),
    "paper": (EBE(), None),
    "EBE(positive=True)": (EBE(positive=True), "plugin"),
    "stein": (Stein(), None),
    "mebe": (MEBE(), None),
    "morris": (Morris(), None),
    "sure": (Sure(), None),
}
TRUTHS: dict[str, tuple[str, dict[str, Any]]] = {
    "equal": ("all true values are equal", {"truth": "constant"}),
    "close": ("standard deviation 0.3, where that of an answer is about 1", {"truth_scale": 0.3}),
    "similar": ("standard deviation 1, as an answer", {}),
    "far apart": ("standard deviation 5", {"truth_scale": 5.0}),
    "clusters": ("three clusters at 0, 10 and 30", {"truth": "clustered"}),
    "uneven": (
        "as *similar*, but few answers per question and not equally many",
        {"workers": 10, "density": 0.25},
    ),
    "shared error": (
        "as *similar*, and half of every error is common to all workers",
        {"correlation": 0.5},
    ),
    "compressed": (
        "as *similar*, and the whole crowd sees only six tenths of every difference",
        {"compress": 0.6},
    ),
}


def answered(
    workers: int = 5,
    questions: int = 30,
    panels: int = PANELS,
    compress: float = 1.0,
    **options: Any,
) -> tuple[trueup.Answers, Any]:
    """Simulate answers; with `compress` all workers see only this share of the differences between true values."""
    answers, truth = trueup.simulate(workers, questions, panels=panels, seed=SEED, **options)
    if compress == 1.0:
        return answers, truth
    seen = compress * truth
    rng = np.random.default_rng(SEED)
    x = seen.reshape(panels, 1, questions) + rng.normal(size=(panels, workers, questions))
    return trueup.Answers.from_matrix(x), truth


@functools.cache
def rule_ratios() -> dict[str, list[float]]:
    """Return the ratios of all second steps after the plain mean: 5 workers, 30 questions."""
    found: dict[str, list[float]] = {name: [] for name in RULES}
    for _, options in TRUTHS.values():
        answers, truth = answered(**options)
        first = run(find("mean"), answers)
        before = np.mean((first.x - truth) ** 2)
        for name, (rule, variance) in RULES.items():
            moved = second_step(answers, first, rule, variance).posterior.mean
            found[name].append(float(np.mean((moved - truth) ** 2) / before))
    return found


def _rule_row(name: str) -> Callable[[], str]:
    def row() -> str:
        return table(["error after / before", *TRUTHS], [[f"`{name}`", *_two(rule_ratios()[name])]])

    return row


for _name in RULES:
    numbers(f"shrink-{re.sub(r'[^a-z]', '', _name.lower().split('(')[0])}")(_rule_row(_name))


@numbers("truths")
def truths() -> str:
    """Return what the kinds of true values are."""
    rows = [[name, meaning] for name, (meaning, _) in TRUTHS.items()]
    return table(["true values", "what they are"], rows).replace("---:", "---")


@numbers("rules")
def rules() -> str:
    """Return the table of all second steps."""
    page = {"EBE(positive=True)": "paper"}
    rows = [
        [f"[`{name}`](shrink/{page.get(name, name)}.md)", *_two(ratios)]
        for name, ratios in rule_ratios().items()
    ]
    return table(["second step", *TRUTHS], rows)


@functools.cache
def grouped(*, useful: bool) -> tuple[float, float, float]:
    """Return the ratios without and with what is known of the questions: five groups of ten, then a regression."""
    rng = np.random.default_rng(SEED)
    groups = np.repeat(np.arange(5), 10)
    inside = rng.normal(0.0, 0.5 if useful else 1.0, (PANELS, 1, 50))
    middle = rng.normal(0.0, 5.0 if useful else 0.0, (PANELS, 1, 5))[:, :, groups]
    x = middle + inside + rng.normal(size=(PANELS, 5, 50))
    answers, truth = trueup.Answers.from_matrix(x), (middle + inside).ravel()
    first = run(find("mean"), answers)
    before = np.mean((first.x - truth) ** 2)
    told = {"groups": np.tile(groups, PANELS)}
    number = {"covariates": (middle if useful else rng.normal(size=middle.shape)).reshape(-1, 1)}
    ratios = [
        float(
            np.mean((second_step(answers, first, Adaptive(), **known).posterior.mean - truth) ** 2)
            / before
        )
        for known in ({}, told, number)
    ]
    return ratios[0], ratios[1], ratios[2]


@numbers("groups")
def groups() -> str:
    """Return what known groups are worth, right and useless ones."""
    rows = [
        [name, *_two(grouped(useful=useful)[:2])]
        for name, useful in (("five groups, far apart", True), ("labels that mean nothing", False))
    ]
    return table(["error after / before", "without `groups=`", "with `groups=`"], rows)


@numbers("regression")
def regression() -> str:
    """Return what a covariate is worth, a right and a useless one."""
    rows = [
        [name, *_two(grouped(useful=useful)[::2])]
        for name, useful in (
            ("a covariate that predicts", True),
            ("a covariate that means nothing", False),
        )
    ]
    return table(["error after / before", "without `covariates=`", "with `covariates=`"], rows)


# The paper


@numbers("table1")
def table1() -> str:
    """Return Table 1 of the paper, exactly computed, beside what is printed."""
    data = trueup.datasets.table1()
    x, truth = data.answers.to_matrix(), data.truth_array
    known = dict(enumerate(((x - truth) ** 2).mean(axis=1).tolist()))
    printed = {
        "mean": ("11, 9.25, 12.75, 10", "9.41"),
        "BLUE": ("9.85, 10.6, 16.6, 12.95", "8.22"),
        "EbBlue": ("10.25, 10.82, 15.5, 12.65", "6.68"),
    }
    ways: dict[str, dict[str, Any]] = {
        "mean": {"method": "mean", "shrink": "none"},
        "BLUE": {"method": "blue", "shrink": "none", "worker_variance": known},
        "EbBlue": {"method": "blue", "shrink": "paper", "worker_variance": known},
    }
    rows = []
    for name, way in ways.items():
        found = trueup.estimate(x, **way).estimate
        exact = ", ".join(f"{value:.2f}" for value in found)
        rows.append([name, *printed[name], exact, f"{np.mean((found - truth) ** 2):.2f}"])
    return table(["", "printed", "loss", "computed", "loss"], rows)


@functools.cache
def psi_by_workers() -> list[tuple[int, float, float, float]]:
    """Return for numbers of workers: psi_H over the right variance, and the ratios of risks with each and with ours."""
    found = []
    for n in (2, 3, 5, 10, 20):
        answers, truth = trueup.simulate(n, 30, panels=PANELS, truth_scale=2.0, seed=SEED)
        first = run(find("mean"), answers)
        before = np.mean((first.x - truth) ** 2)
        psi = trueup.variance.psi_h(answers, first).mean()
        right = trueup.variance.plugin(answers, first).mean()
        paper, ours = (
            np.mean((second_step(answers, first, rule).posterior.mean - truth) ** 2) / before
            for rule in (EBE(), Adaptive())
        )
        found.append((n, float(psi / right), float(paper), float(ours)))
    return found


@numbers("psi")
def psi() -> str:
    """Return how far psi_H is off, and what it does."""
    head = [
        "workers",
        "ψ_H / variance of the mean",
        "error after / before, paper",
        "the same, trueup",
    ]
    return table(head, [[n, f"{off:.1f}", *_two(rest)] for n, off, *rest in psi_by_workers()])


# Shared errors, spread of the truth, coverage


@functools.cache
def by_compression() -> list[tuple[float, float, float]]:
    """Return for shares of the differences that the crowd sees: ratios of both targets; 5 workers."""
    found = []
    for share in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5):
        answers, truth = answered(panels=50, compress=share, variance="fixed")
        ratios = []
        for target in ("truth", "consensus"):
            est = trueup.estimate(answers, "mean", "normal", transform="none", target=target)
            before = np.mean((est.base - truth) ** 2)
            ratios.append(float(np.mean((est.estimate - truth) ** 2) / before))
        found.append((share, ratios[0], ratios[1]))
    return found


@numbers("compression")
def compression() -> str:
    """Return the table behind the picture of a crowd that sees smaller differences than there are."""
    head = [
        "differences that the crowd sees",
        '`target="truth"` (default)',
        '`target="consensus"`',
    ]
    rows = [
        [f"{share:.0%}", *(f"{value:.3f}" for value in rest)] for share, *rest in by_compression()
    ]
    return table(head, rows)


@functools.cache
def by_spread() -> list[tuple[float, float, float, float, float]]:
    """Return for spreads of the truth: simulated and expected ratios with 3 and with 10 workers of variance 1."""
    m, found = 40, []
    for spread in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0):
        row = []
        for n in (3, 10):
            made = {"panels": PANELS, "variance": "fixed", "truth_scale": spread, "seed": SEED}
            answers, truth = trueup.simulate(n, m, **made)  # type: ignore[arg-type]
            first = run(find("mean"), answers)
            before = np.mean((first.x - truth) ** 2)
            moved = second_step(answers, first, Adaptive()).posterior.mean
            row.append(float(np.mean((moved - truth) ** 2) / before))
            row.append(1 - (m - 3) / m * (1 / n) / (1 / n + spread**2))
        found.append((spread, *row))
    return found  # type: ignore[return-value]


@numbers("spread")
def spread() -> str:
    """Return the table behind the picture of the spread."""
    head = ["spread of the truth", "3 workers", "formula", "10 workers", "formula"]
    return table(head, [[f"{at:g}", *_two(rest)] for at, *rest in by_spread()])


#: Known truths with which the coverage of intervals for the truth is shown.
GOLD = (0, 3, 20)


@functools.cache
def coverage() -> list[tuple[float, ...]]:
    """Return for shares of common error how many 95% intervals contain the truth.

    First those for the consensus, then those for the truth with 0, 3 and 20 known truths.
    """
    found = []
    for share in (0.0, 0.2, 0.4, 0.6):
        inside = np.zeros(1 + len(GOLD))
        for seed in range(20):
            answers, truth = trueup.simulate(8, 80, truth_scale=2.0, correlation=share, seed=seed)
            for number, count in enumerate(GOLD, start=1):
                known = dict(enumerate(truth[:count].tolist())) or None
                est = trueup.estimate(answers, method="native", gold=known)
                within = (est.truth_lower <= truth) & (truth <= est.truth_upper)
                inside[number] += within[20:].mean() / 20
                if not count:
                    inside[0] += ((est.lower <= truth) & (truth <= est.upper))[20:].mean() / 20
        found.append((share, *inside.tolist()))
    return found


@numbers("coverage", slow=True)
def coverage_table() -> str:
    """Return the table behind the picture of coverage."""
    head = [
        "share of common error",
        "`lower`, `upper`",
        "`truth_lower`, `truth_upper`",
        "with 3 gold questions",
        "with 20",
    ]
    return table(
        head, [[f"{share:.0%}", *(f"{one:.0%}" for one in rest)] for share, *rest in coverage()]
    )


# What the benchmarks print: copied, so not among what the tests look at


def _benchmark_file() -> str:
    return (ROOT / "benchmarks" / "results.md").read_text("utf-8")


def _benchmark(heading: str, section: str = "") -> tuple[str, str]:
    """Return the heading that begins or ends so, in a section of the results, and what stands below it."""
    text = _benchmark_file().partition(f"<!-- begin {section}")[2] if section else _benchmark_file()
    found = re.search(rf"^#+ ({heading})\n\n(.*?)(?=^#|^<!--|\Z)", text, re.M | re.S)
    if found is None:
        raise ValueError(f"benchmarks/results.md has no heading {heading}")
    return found[1], found[2].strip()


@numbers("sureal", slow=True)
def sureal() -> str:
    """Return the lines of the benchmark about sureal."""
    return "\n".join(f"> {line}" for line in _benchmark("sureal")[1].splitlines())


@numbers("speed", slow=True)
def speed() -> str:
    """Return the table of the benchmark of first steps."""
    title, text = _benchmark(r"[\d,]+ answers, .* workers", "first step")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")][:3]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    machine = re.search(r"[^.`]+ processors?, .*numpy [\d.]+\d", _benchmark_file())
    where = machine[0].strip() if machine else ""
    said = textwrap.fill(f"{title}, 14 iterations ({where}):", 118)
    return f"{said}\n\n{table(rows[0], rows[2:])}"


def _growth() -> dict[str, list[tuple[int, float, float]]]:
    """Return answers, seconds and bytes of the benchmark of growth, for each engine."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for line in _benchmark("Growth")[1].splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[1].isdigit() and len(cells) == 6:
            found.setdefault(cells[0], []).append(
                (int(cells[1]), float(cells[2]), 1e6 * float(cells[4]))
            )
    return found


@numbers("growth", slow=True)
def growth() -> str:
    """Return the table and the exponents of the benchmark of growth."""
    text = _benchmark("Growth")[1]
    keep = [line for line in text.splitlines() if line.startswith(("|", "-")) or "exponent" in line]
    return "\n".join(keep).replace("\n-", "\n\n-", 1)


@numbers("billions", slow=True)
def billions() -> str:
    """Return what a billion and a trillion answers would take, from the two largest sizes on disk."""
    (small, quick, _), (large, slow, _) = _growth()["disk"][-2:]
    # Nothing grows more slowly than the answers for long.
    slope = max(1.0, np.log(slow / quick) / np.log(large / small))
    rows = []
    for size, name in ((10**9, "a billion"), (10**12, "a trillion")):
        seconds = slow * (size / large) ** slope
        rows.append([f"{name} answers", _duration(seconds), f"{60 * size / 1e9:,.0f} GB"])
    return table(["", "time on disk", "room on the disk"], rows)


def _tables(heading: str, section: str) -> str:
    """Return the tables of a benchmark below its first heading, with what stands above each but the text."""
    text = _benchmark_file().partition(f"<!-- begin {section} -->")[2].partition("<!-- end")[0]
    lines = text.partition(f"## {heading}\n")[2].splitlines()
    keep = [line for line in lines if line.startswith(("|", "###")) or not line]
    said = [f"**{line.lstrip('# ')}**" if line.startswith("#") else line for line in keep]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(said)).strip()


@numbers("average", slow=True)
def average() -> str:
    """Return the tables against the average of each question."""
    return _tables("Against the average of each question", "alternatives")


@numbers("updates", slow=True)
def updates() -> str:
    """Return the table of the benchmark of updates."""
    return _tables("Updates", "update")


@numbers("cluster", slow=True)
def cluster() -> str:
    """Return the table of an iteration on Spark."""
    return _tables("Spark", "spark")


@numbers("models", slow=True)
def models() -> str:
    """Return the tables against other models of the same data."""
    return _tables("Against other models", "peers")


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


@numbers("batting")
def batting() -> str:
    """Return what the second step does to the batting averages of 1970."""
    data = trueup.datasets.batting()
    rule = Normal(caution=1.0)
    moved = rule.fit(data.x, data.variance).posterior(data.x, data.variance)
    before, after = (np.mean((each - data.truth) ** 2) for each in (data.x, moved.mean))
    return textwrap.fill(
        f"Over the {len(data.players)} players the squared error falls to {after / before:.0%} of what it was, "
        f"and {np.sum(np.abs(moved.mean - data.truth) < np.abs(data.x - data.truth))} of them "
        "are closer to the rest of their season.",
        118,
    )

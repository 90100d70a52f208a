"""The report of an estimate: read by a real browser, true to the numbers, harmless whatever people are called."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
import warnings
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import browser
import trueup
import trueup.disk
from trueup import estimate, simulate
from trueup.errors import MissingExtra, TrueupError, TrueupWarning
from trueup.report import bundle as bundle_module
from trueup.report.bundle import bundle
from trueup.report.names import distinct, shown
from trueup.report.sections.prior_shape import prior_shape
from trueup.report.sections.report_data import ReportData
from trueup.report.sections.second_step import RiskCurve, risk_curve
from trueup.report.single_chart import specification
from trueup.shrinkage import EBE
from trueup.theory import gain_estimate

if TYPE_CHECKING:
    from pathlib import Path

NEEDS = 'needs pip install "trueup[report]"'
altair = pytest.importorskip("altair", reason=NEEDS)
pytest.importorskip("vl_convert", reason=NEEDS)

SECTIONS = [
    "Result",
    "How far the truth may be",
    "Estimates",
    "Comparison with known truths",
    "Suspicious answers",
    "Workers",
    "Workers with correlated errors",
    "How the estimates were made",
    "Do the workers agree?",
    "Distribution of true values",
    "How far questions moved",
    "How much the second step helps",
    "Assumptions, and how to reproduce this",
]
RUN = "document.documentElement.dataset.owned=1"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><img src=http://page.test/x.png onerror='{RUN}'>",
    "\"quoted\" 'single' & </td></table>",
    "two\nlines\tand a tab",
    "emoji 👩‍👩‍👧 🎉",
    "עברית מימין לשמאל",
    "\u202egnirts desrever",
    "half \ud83d pair",
    "x" * 10_000,
    "y" * 5_000 + "1",
    "y" * 5_000 + "2",
    " ",
    "${alert(1)}",
    "datum.value",
]
ACTS = """(() => {
  const box = document.querySelector(".data"), table = box.querySelector("table");
  const names = () => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
  const head = (name) => [...table.tHead.rows[0].cells].find((cell) => cell.textContent === name);
  const button = head("estimate").querySelector("button");
  const found = { before: names() };
  button.focus();
  found.focus = document.activeElement === button;
  button.click();
  found.falling = names();
  found.state = [head("estimate").getAttribute("aria-sort")];
  button.click();
  found.rising = names();
  found.state.push(head("estimate").getAttribute("aria-sort"), head("lower").getAttribute("aria-sort"));
  head("question").querySelector("button").click();
  found.named = names();
  const input = box.querySelector("input[type=search]");
  found.label = input.labels[0].textContent.trim();
  const search = (text) => {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    return [names(), box.querySelector("[role=status]").textContent];
  };
  found.some = search("Q1");
  found.none = search("no such thing");
  found.all = search("");
  return found;
})()"""


def hostile_answers(seed: int = 0) -> dict[str, list[Any]]:
    """Answers in which everything is called something odd."""
    draw = np.random.default_rng(seed)
    rows = [
        (question, worker, 50 + j + draw.normal() * (1 + i / 3))
        for j, question in enumerate(HOSTILE)
        for i, worker in enumerate(HOSTILE)
        if (i + j) % 4
    ]
    names = ("question", "worker", "answer")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def named_answers(**options: Any) -> tuple[dict[str, list[Any]], Any]:
    """Simulated answers with names, and their truths."""
    usual: dict[str, Any] = {"truth_mean": 50.0, "variance_scale": 4.0, "density": 0.6, "seed": 3}
    data = simulate(12, 40, **usual | options)
    answers = data.answers
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    value = answers.values + answers.centre[question]
    frame = {
        "question": [f"q{j}" for j in question.tolist()],
        "worker": [f"w{i}" for i in answers.workers.tolist()],
        "answer": value.tolist(),
    }
    return frame, data.truth


@pytest.fixture(scope="module")
def est() -> Any:
    return estimate(named_answers()[0])


@pytest.fixture(scope="module")
def page(est: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    truth = named_answers()[1]
    order = [int(str(name)[1:]) for name in est.answers.question_ids.tolist()]
    path: Path = est.report(
        tmp_path_factory.mktemp("report") / "report.html",
        command="trueup estimate 'my answers.csv' --report report.html",
        truth=truth[order],
    )
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = estimate(hostile_answers()).report(
        tmp_path_factory.mktemp("hostile") / "report.html", command=HOSTILE[1]
    )
    return path


@pytest.fixture(scope="module")
def seen(chromium: browser.Browser, page: Path) -> browser.Seen:
    """The report in a wide window, its first table sorted and searched after all else."""
    return chromium.look(page, script=ACTS)


@pytest.fixture(scope="module")
def page_on_phone(chromium: browser.Browser, page: Path) -> browser.Seen:
    return chromium.look_on_phone(page, 360)


@pytest.fixture(scope="module")
def hostile_on_phone(chromium: browser.Browser, hostile: Path) -> browser.Seen:
    return chromium.look_on_phone(hostile, 360)


def figures(html: str) -> int:
    return html.count("<figure id=")


def drawn(dom: str) -> int:
    """Return how many drawings have marks in them."""
    drawings = re.findall(r'<svg[^>]*class="marks".*?</svg>', dom, re.DOTALL)
    kinds = r'class="mark-(line|rect|symbol|rule|area)\b'
    return sum(re.search(kinds, each) is not None for each in drawings)


def text(cell: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", cell))


def table(html: str, search: str) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of a table that can be searched, as texts."""
    found = re.search(rf'data-search="{search}">.*?<table>(.*?)</table>', html, re.DOTALL)
    assert found is not None
    head, body = found[1].split("</thead>")
    rows = [
        [text(cell) for cell in re.split(r"<t[hd][^>]*>", row)[1:]]
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    ]
    return [text(cell) for cell in re.split(r"<th [^>]*>", head)[1:]], rows


def number(cell: str) -> float:
    return float("nan") if cell == "–" else float(cell.replace(",", ""))


def column(html: str, search: str, name: str) -> Any:
    head, rows = table(html, search)
    at = head.index(name)
    return np.array([number(row[at]) for row in rows])


# -- in a browser ------------------------------------------------------------------------------------


@pytest.mark.needs("browser")
def test_every_chart_is_drawn_without_a_complaint(page: Path, seen: browser.Seen) -> None:
    assert figures(page.read_text("utf-8")) >= 7
    assert drawn(seen.dom) == figures(page.read_text("utf-8"))
    assert seen.console == []


@pytest.mark.needs("browser")
def test_the_network_is_left_alone(seen: browser.Seen, hostile_on_phone: browser.Seen) -> None:
    assert seen.requests == []
    assert hostile_on_phone.requests == []


@pytest.mark.needs("browser")
def test_odd_names_are_shown_and_never_run(
    chromium: browser.Browser, hostile: Path, hostile_on_phone: browser.Seen, tmp_path: Path
) -> None:
    html = hostile.read_text("utf-8")
    # Escaping must do without the policy that the page has as well.
    unguarded = tmp_path / "unguarded.html"
    unguarded.write_text(re.sub(r"<meta http-equiv.*?>", "", html, count=1), "utf-8")
    assert "Content-Security-Policy" not in unguarded.read_text("utf-8")
    for seen in (hostile_on_phone, chromium.look(unguarded)):
        assert "data-owned" not in seen.elements[0].attributes
        assert "img" not in {element.name for element in seen.elements}
        assert drawn(seen.dom) == figures(html)
        assert seen.console == []
        assert seen.requests == []
    names = {row[0] for row in table(html, "a question")[1]}
    assert len(names) == len(HOSTILE)
    assert f"<script>{RUN}</script>" in names
    assert "half \\ud83d pair" in names
    assert "two⏎lines⇥and a tab" in names
    assert max(map(len, names)) <= 84


@pytest.mark.needs("browser")
@pytest.mark.parametrize("which", ["page", "hostile"])
def test_a_phone_of_360_pixels_is_wide_enough_in_light_and_dark(
    which: str, request: pytest.FixtureRequest
) -> None:
    html = request.getfixturevalue(which).read_text("utf-8")
    dark, light = request.getfixturevalue(f"{which}_on_phone").found
    for seen in (light, dark):
        assert seen["width"] <= 360
        assert len(seen["charts"]) == figures(html)
        assert max(seen["charts"]) <= 360
        assert seen["axis"] == seen["ink"]
    assert light["ink"] != dark["ink"]


@pytest.mark.needs("browser")
def test_tables_can_be_sorted_and_searched(seen: browser.Seen, est: Any) -> None:
    acts = seen.found[0]
    ids = [str(name) for name in est.answers.question_ids.tolist()]
    value = dict(zip(ids, est.estimate.tolist(), strict=True))
    assert acts["before"] == ids
    assert acts["focus"]
    assert acts["state"] == ["descending", "ascending", None]
    for names, sign in ((acts["falling"], -1), (acts["rising"], 1)):
        assert sorted(names) == sorted(ids)
        # As they are shown: equal to the last digit counts as equal.
        assert (sign * np.diff([value[name] for name in names]) > -0.02).all()
    assert acts["named"] == sorted(ids, key=lambda name: int(name[1:]))
    assert acts["label"] == "Find a question"
    some = [name for name in acts["named"] if "q1" in name]
    assert acts["some"] == [some, f"{len(some)} of {len(ids)} rows"]
    assert acts["none"] == [[], f"0 of {len(ids)} rows"]
    assert acts["all"] == [acts["named"], f"{len(ids)} rows"]


# -- what it says -------------------------------------------------------------------------------------


def test_the_sections_come_in_order_and_the_result_before_the_contents(page: Path) -> None:
    html = page.read_text("utf-8")
    assert [
        unescape(each) for each in re.findall(r"<section[^>]*><h2>(.*?)</h2>", html)
    ] == SECTIONS
    assert html.index("<h2>Result") < html.index("<nav") < html.index("<h2>Estimates")


def test_the_numbers_are_those_of_the_estimate(page: Path, est: Any) -> None:
    html = page.read_text("utf-8")
    for name, values in (
        ("estimate", est.estimate),
        ("lower", est.lower),
        ("upper", est.upper),
        ("std. error", est.std_error),
        ("aggregate", est.base),
        ("shrinkage", est.shrinkage),
        ("answers", est.answers.counts),
    ):
        assert np.allclose(column(html, "a question", name), values, rtol=0, atol=0.00501), name
    assert [row[0] for row in table(html, "a question")[1]] == est.answers.question_ids.tolist()
    workers = est.workers
    weight, variance = (np.asarray(workers[name], dtype=float) for name in ("weight", "variance"))
    assert np.allclose(column(html, "a worker", "weight %"), 100 * weight, atol=0.0501)
    assert np.allclose(column(html, "a worker", "variance"), variance, rtol=1e-3)
    assert np.allclose(column(html, "a worker", "typical error"), np.sqrt(variance), atol=0.0501)
    low, high = column(html, "a worker", "from"), column(html, "a worker", "to")
    assert (low < np.sqrt(variance)).all()
    assert (np.sqrt(variance) < high).all()


def test_what_was_read_and_chosen_is_said(page: Path, est: Any) -> None:
    html = unescape(page.read_text("utf-8"))
    answers = est.answers
    assert (
        f"{answers.n_answers:,} answers from 12 workers to 40 questions. No row was left out"
        in html
    )
    assert est.diagnosis.why in html
    assert f"{est.second_step.expected_gain:.0%}" in html
    assert "an error that all workers share is not included" in html
    assert "arXiv 2206.04816" in html
    assert f"trueup {trueup.__version__}" in html
    assert "trueup estimate 'my answers.csv' --report report.html" in html


def test_the_result_comes_with_title_unit_and_date(tmp_path: Path) -> None:
    frame, truth = named_answers()
    est = estimate(frame, transform="none")
    html = est.report(
        tmp_path / "r.html", title=" Heights \n of <people>", unit="<cm>", truth=truth
    ).read_text("utf-8")
    assert "<h1>Heights of &lt;people&gt;</h1>" in html
    assert re.search(r"<header>.*\d{4}-\d\d-\d\d\. Unit: &lt;cm&gt;\.", html, re.DOTALL)
    page = unescape(html)
    assert re.search(r"typically been about [\d.]+ <cm> off the truth", page)
    assert re.search(r"<b>±[\d.]+ <cm></b> <span>typical 95% interval", page)
    assert re.search(r"The estimates range from [\d.]+ to [\d.]+ <cm>", page)
    assert '"title":"value (\\u003ccm>)"' in html
    assert "typical error of an answer (\\u003ccm>)" in html
    assert "answer units" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    with pytest.raises(TrueupError, match="unit: found 7"):
        est.report(tmp_path / "r.html", unit=7)  # type: ignore[arg-type]


def test_gold_does_not_count_in_typical_certainty() -> None:
    frame, truth = named_answers()
    gold = {f"q{j}": float(truth[j]) for j in range(25)}  # most of the forty
    est = estimate(frame, gold=gold, transform="none", target="consensus")
    data = ReportData(est)
    assert data.is_gold.sum() == 25
    assert data.typical_margin == np.median(data.half_width[~data.is_gold]) > 0


def test_no_gain_is_said_that_rests_on_one_question(tmp_path: Path) -> None:
    x = simulate(workers=5, questions=30, truth_scale=0.7, seed=2).answers.to_matrix()
    options: dict[str, Any] = {"transform": "none", "target": "consensus"}
    usual = estimate(x, "mean", "normal", **options)
    assert 0 < ReportData(usual).gain == usual.second_step.expected_gain
    # One question that everybody answers very poorly, and says so: nearly all of the gain is there.
    question, worker = (each.ravel() for each in np.meshgrid(np.arange(30), np.arange(5)))
    poor, draw = question == 4, np.random.default_rng(0)
    frame = {
        "question": question,
        "worker": worker,
        "answer": x.ravel() + 20.0 * poor * draw.normal(size=150),
        "v": np.where(poor, 400.0, 1.0),
    }
    odd = estimate(frame, "mean", "normal", answer_variance="v", **options)
    assert odd.second_step.expected_gain > 0.9
    assert np.isnan(ReportData(odd).gain)
    said = unescape(odd.report(tmp_path / "r.html").read_text("utf-8"))
    assert "a single question has most of the expected error, so no figure is given" in said
    assert "is expected to lower" not in said
    x[:, 4] *= 60.0
    odd = estimate(x, "mean", "normal", variance="plugin", **options)
    page = odd.report(tmp_path / "r.html", truth=np.zeros(30)).read_text("utf-8")
    assert "Most of the squared error comes from a single question" in page
    assert "<h2>How much the second step helps" not in page
    for words in ("lowered the mean squared error by", "raised the mean squared error by"):
        assert words not in page


def test_statisticians_figures_are_folded_away(page: Path) -> None:
    html = page.read_text("utf-8")
    head = html[: html.index("<h2>How the estimates were made")]
    for word in ("prior", "ICC", "Krippendorff", "expected to lower"):
        assert word not in re.sub(r"<(script|style).*?</\1>", "", head, flags=re.DOTALL), word
    folded = re.findall(r'<h2>([^<]*)</h2>\n<details class="fold"><summary>For stat', html)
    assert [unescape(title) for title in folded] == SECTIONS[8:12]
    assert not re.search(r"<details[^>]* open", html)


def test_every_caption_says_what_it_shows_and_of_how_many(page: Path, est: Any) -> None:
    html = page.read_text("utf-8")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", html, re.DOTALL)
    assert len(captions) == figures(html)
    for caption in captions:
        assert f"{est.answers.n_answers} answers from 12 workers to 40 questions." in caption
    assert sum("95% interval" in caption for caption in captions) >= 4


def test_long_names_lose_their_middle_and_keep_it_for_who_asks(tmp_path: Path) -> None:
    frame, _ = named_answers()
    long = {f"q{j}": f"study/{'part/' * 20}{j}.wav" for j in range(40)}
    frame["question"] = [long[name] for name in frame["question"]]
    html = estimate(frame).report(tmp_path / "r.html").read_text("utf-8")
    for name in long.values():
        cell = f'<bdi title="{name}">{name[:53]}…{name[-26:]}</bdi>'
        assert cell in html
        assert f'"id":"{name}"' in html


def test_errors_against_the_truth_are_shown(page: Path, est: Any) -> None:
    order = [int(str(name)[1:]) for name in est.answers.question_ids.tolist()]
    truth = named_answers()[1][order]
    html = unescape(page.read_text("utf-8"))
    for values in (est.base, est.estimate):
        assert f"{np.mean((values - truth) ** 2):.4g}</td>" in html
    inside = np.mean((est.lower <= truth) & (truth <= est.upper))
    assert f"<b>{inside:.0%}</b> <span>of the truths are in their interval" in html
    assert np.allclose(column(html, "a question", "truth"), truth, atol=0.0501)


def test_dropped_rows_warnings_and_known_truths_are_said(tmp_path: Path) -> None:
    frame, truth = named_answers(correlation=0.5)
    frame["answer"][:3] = [float("nan")] * 3
    gold = {f"q{j}": float(truth[j]) for j in range(0, 40, 2)}
    html = unescape(estimate(frame, gold=gold).report(tmp_path / "a.html").read_text("utf-8"))
    assert f"3 of {len(frame['answer'])} rows were left out because they hold no answer" in html
    assert "should contain the truth itself" in html
    assert "20 known truths" in html
    with pytest.warns(TrueupWarning, match="past their mean"):
        bad = estimate(
            simulate(workers=9, questions=8, truth_scale=0.1, seed=1).answers, "mean", "paper"
        )
    html = unescape(bad.report(tmp_path / "b.html").read_text("utf-8"))
    assert '<div class="call warning">' in html
    assert "reversed their order" in html


def test_of_very_many_questions_the_least_certain_are_listed(tmp_path: Path) -> None:
    data = simulate(workers=40, questions=2500, answers_per_question=4, seed=1)
    found = estimate(data.answers)
    html = found.report(tmp_path / "r.html").read_text("utf-8")
    rows = table(html, "a question")[1]
    assert len(rows) == 1000
    least = np.sort(found.std_error)[-1000:]
    assert np.allclose(column(html, "a question", "std. error"), least[::-1], atol=0.00501)
    assert "-o truths.csv" in html
    assert (
        "Of 2,500 questions, the 30 least certain and the 30 others that moved most are shown"
        in html
    )


def estimates() -> dict[str, Any]:
    """All sorts of estimates, by what is special about them."""
    x = simulate(workers=8, questions=40, seed=1).answers.to_matrix()
    clusters = simulate(workers=8, questions=60, truth="clustered", variance_scale=20, seed=2)
    steps = np.repeat([0.0, 4.0, 9.0, 15.0], 10)
    alone = {"question": [1, 2, 3, 4], "worker": list("abcd"), "answer": [1.0, 2.0, 3.0, 4.0]}
    return {
        "one answer": lambda: estimate([[1.0]]),
        "one question": lambda: estimate([[1.0], [2.0]]),
        "two by two": lambda: estimate([[1.0, 2.0], [3.0, 4.0]]),
        "all alike": lambda: estimate(np.ones((4, 10))),
        "nobody shares": lambda: estimate(alone),
        "no second step": lambda: estimate(x, shrink="none"),
        "the paper's": lambda: estimate(x, "mean", EBE(positive=True), "plugin"),
        "unequal": lambda: estimate(x, shrink="morris"),
        "median": lambda: estimate(x, "median"),
        "density": lambda: estimate(x, "kdem"),
        "own bias": lambda: estimate(x, "subject_bias"),
        "biases": lambda: estimate(x + np.arange(8.0)[:, None], bias=True),
        "known noise": lambda: estimate(x, worker_variance=np.ones(8)),
        "clusters": lambda: estimate(clusters.answers, shrink="mixture"),
        "far out": lambda: estimate(np.where(np.arange(40) == 3, 1e9, x)),
        "groups": lambda: estimate(x + steps, groups=np.repeat(["a", "b", HOSTILE[0], "d"], 10)),
        "covariates": lambda: estimate(x + steps, covariates=steps),
        "log": lambda: estimate(np.exp(x), transform="log"),
        "logit": lambda: estimate(1 / (1 + np.exp(-x)), transform="logit"),
        "bounds": lambda: estimate(np.expm1(np.abs(x)), transform="log1p", bounds=(0, 20)),
        "huge": lambda: estimate(x * 1e12),
        "tiny": lambda: estimate(x * 1e-12),
        "copies": lambda: estimate(np.vstack([x, x[2] + 0.01])),
        "panels": lambda: estimate(
            simulate(workers=5, questions=12, panels=3, seed=1).answers, method="mean"
        ),
    }


@pytest.mark.parametrize("kind", list(estimates()))
def test_every_estimate_has_a_report_a_card_and_charts(kind: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        found = estimates()[kind]()
    truth = np.where(np.arange(found.answers.n_questions) % 3 == 0, np.nan, found.base)
    html = found.report(tmp_path / "r.html", truth=truth).read_text("utf-8")
    assert html.count("<section") >= 4
    seen = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    words = re.sub(r"<[^>]*>", " ", seen)
    assert not re.search(r"\b(nan|None|inf)\b", words), kind
    assert "</table>" in found._repr_html_()
    for chart in ("estimates", "workers", "prior"):
        try:
            spec = specification(found, chart)  # altair takes long to read one
        except TrueupError as error:
            assert str(error).startswith("kind:")  # noqa: PT017 - some have no such chart
        else:
            assert "var(--" not in json.dumps(spec)


@pytest.mark.needs("browser")
@pytest.mark.parametrize("kind", ["one answer", "clusters", "groups", "logit", "copies", "panels"])
def test_charts_of_special_estimates_are_drawn(
    kind: str, chromium: browser.Browser, tmp_path: Path
) -> None:
    path = estimates()[kind]().report(tmp_path / "r.html")
    seen = chromium.look(path)
    assert drawn(seen.dom) == figures(path.read_text("utf-8"))
    assert seen.console == []
    assert seen.requests == []


def test_pairs_that_err_together_are_named(tmp_path: Path) -> None:
    x = simulate(workers=8, questions=60, seed=1).answers.to_matrix()
    found = estimate(np.vstack([x, x[5] + 0.01]))
    html = found.report(tmp_path / "r.html").read_text("utf-8")
    assert "1 pair of workers stands out" in html
    assert "correlated errors with \u20688\u2069" in html


# -- what it rests on -----------------------------------------------------------------------------------


def test_the_curve_is_that_of_theory() -> None:
    found = estimate(simulate(workers=6, questions=40, truth_scale=0.7, seed=2).answers, "mean")
    curve = risk_curve(found)
    assert curve is not None
    gain = gain_estimate(found.aggregate.x, curve.psi, curve.v)
    assert np.isclose(1 - curve.ratio(curve.m - 3), gain.relative)
    grid = np.linspace(0, 3 * curve.best, 301)
    assert np.isclose(grid[np.argmin([curve.ratio(a) for a in grid])], curve.best)
    assert np.isclose(curve.ratio(2 * curve.best), 1.0)


def test_pure_noise_never_gains_more_than_everything() -> None:
    for squares in (1e-9, 1.0):
        curve = RiskCurve(
            m=10, psi=1.0, v=1.0, squares=max(squares, 9.0), taken=1.0, printed=np.nan
        )
        assert 0 <= curve.ratio(curve.best) < 1


def test_a_pull_that_does_harm_is_said_to(tmp_path: Path) -> None:
    data = simulate(workers=10, questions=40, truth_scale=2.0, seed=1)
    found = estimate(data.answers, "mean", "paper")
    curve = risk_curve(found)
    assert curve is not None
    assert np.isclose(
        curve.taken, 37
    )  # m - 3, with the variance of a worker in place of that of a mean of ten
    assert curve.ratio(curve.taken) > 1
    assert "it is expected to do harm" in found.report(tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize("kind", ["clusters", "groups", "covariates", "the paper's", "unequal"])
def test_a_prior_that_is_drawn_is_a_density_around_the_aggregates(kind: str) -> None:
    found = estimates()[kind]()
    prior = prior_shape(found)
    x = found.aggregate.x
    at = np.linspace(x.min() - 50, x.max() + 50, 40_001)
    noise = np.full(1, 0.5)
    assert np.isclose(np.sum(prior.density(at, noise)) * (at[1] - at[0]), 1.0, atol=1e-3)
    assert abs(prior.mean - x.mean()) < 0.2 * x.std() + 0.1
    assert prior.variance < 1.5 * x.var()


# -- size -------------------------------------------------------------------------------------------


def test_a_report_of_very_many_questions_is_small(tmp_path: Path) -> None:
    data = simulate(workers=300, questions=100_000, answers_per_question=2, seed=1)
    path = estimate(data.answers, method="mean").report(tmp_path / "r.html", truth=data.truth)
    assert path.stat().st_size < 3e6


def test_long_names_do_not_make_it_large(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    frame = {
        "question": [f"{'q' * 500}{j % 2000}" for j in range(8000)],
        "worker": [f"{'w' * 500}{j % 1999}" for j in range(8000)],
        "answer": draw.normal(size=8000) * 1e4,
    }
    path = estimate(frame, method="mean", duplicates="mean").report(tmp_path / "r.html")
    assert path.stat().st_size < 5e6
    assert f'title="{"q" * 500}7"' in path.read_text("utf-8")


def test_the_script_for_charts_is_made_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = []

    def make() -> str:
        made.append(1)
        return "window.vegaEmbed = 1;"

    def installed() -> str:
        fake = types.ModuleType("vl_convert")
        fake.__dict__.update(__version__="0.0.test", javascript_bundle=make)
        monkeypatch.setitem(sys.modules, "vl_convert", fake)
        return bundle()

    monkeypatch.setenv(bundle_module.CACHE, str(tmp_path / "new" / "folder"))
    first = installed()
    assert installed() == first
    assert len(made) == 1
    (kept,) = (tmp_path / "new" / "folder").iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])  # cut short
    assert installed() == first
    assert len(made) == 2
    assert installed() == first
    assert len(made) == 2
    monkeypatch.setenv(bundle_module.CACHE, str(kept / "not a folder"))
    assert installed() == first
    assert len(made) == 3


# -- in Python -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "start"),
    [("pdf", b"%PDF-"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE")],
)
def test_a_plot_is_saved_as_what_its_name_says(
    est: Any, tmp_path: Path, suffix: str, start: bytes
) -> None:
    path = tmp_path / f"figure.{suffix}"
    offline = {"inline": True} if suffix == "html" else {}
    est.plot().save(path, **offline)
    written = path.read_bytes()
    assert written.startswith(start)
    assert len(written) > 5000
    assert b'src="http' not in written


def test_plot_returns_altair_charts(est: Any) -> None:
    for chart in (*map(est.plot, ("workers", "prior", "estimates")), est.plot()):
        assert isinstance(chart, altair.LayerChart)
        spec = chart.to_dict()
        assert spec["width"] > 100
        assert "#0072B2" in json.dumps(spec)
    rows = (
        [row for data in spec["datasets"].values() for row in data]
        if "datasets" in spec
        else spec["data"]["values"]
    )
    value = dict(zip(est.answers.question_ids.tolist(), est.estimate.tolist(), strict=True))
    assert {row["q"]: row["estimate"] for row in rows} == value
    with pytest.raises(TrueupError, match="kind: found array"):
        est.plot(np.ones(2))
    with pytest.raises(TrueupError, match='kind: found "pie"'):
        est.plot("pie")
    with pytest.raises(TrueupError, match="unit: found 3, must be text"):
        est.plot(unit=3)


@pytest.mark.parametrize("kind", ["estimates", "truth", "workers"])
def test_a_plot_shows_the_unit(est: Any, kind: str) -> None:
    without, with_unit = (json.dumps(specification(est, kind, unit)) for unit in (None, "cm"))
    assert "(answer units)" in without
    assert "(cm)" in with_unit
    assert "answer units" not in with_unit


def test_a_notebook_shows_a_card_without_scripts(est: Any) -> None:
    html = est._repr_html_()
    assert len(html) < 6000
    for name, value in zip(
        est.answers.question_ids.tolist()[:8], est.estimate[:8].tolist(), strict=True
    ):
        assert f"<bdi>{name}</bdi></th>" in html
        assert f"{value:,.2f}</td>" in html
    assert est.diagnosis.method in html
    odd = estimate(hostile_answers())._repr_html_()
    for card in (html, odd):
        names = [element.name for element in browser.elements(card)]
        assert not {"script", "img", "link", "iframe"} & set(names)
        assert names.count("tr") == 9
    assert "&lt;script&gt;" in odd
    odd.encode("utf-8")  # half a surrogate pair is written out


def test_without_the_extras_the_message_says_what_to_install(
    est: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r'pip install "trueup\[report\]"'):
        est.report(tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MissingExtra, match=r'Package altair.*pip install "trueup\[report\]"'):
        est.plot()
    assert est._repr_html_()


def test_a_report_does_without_altair(
    est: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    assert est.report(tmp_path / "r.html").exists()


def test_an_estimate_loads_nothing_of_the_report() -> None:
    code = (
        "import sys, trueup; trueup.estimate([[1.0, 2.0], [2.0, 4.0]]);"
        "print([m for m in sys.modules if m.startswith(('trueup.report', 'altair', 'vl_convert'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("truth", [[1.0], "many", np.full(40, np.inf)])
def test_a_truth_of_the_wrong_form_is_refused(est: Any, truth: Any, tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="truth: "):
        est.report(tmp_path / "r.html", truth=truth)


def test_names_stay_short_and_distinct() -> None:
    names = [shown(name) for name in HOSTILE]
    assert max(map(len, names)) <= 80 + 6 * 1
    assert all(name.isprintable() or "\u200d" in name for name in names)
    assert len(set(distinct(HOSTILE, 20))) == len(HOSTILE)
    assert distinct(["a"] * 3) == ["a", "a (2)", "a (3)"]


def test_a_report_replaces_a_page_and_nothing_else(est: Any, tmp_path: Path) -> None:
    page, answers = tmp_path / "r.html", tmp_path / "answers.csv"
    page.touch()
    answers.write_text("question,worker,answer\n1,2,3\n")
    for _ in range(2):
        assert est.report(page).read_text("utf-8").endswith("</html>\n")
    page.write_text("<!DOCTYPE html><p>Made by somebody else</p>")
    for path in (page, answers):
        before = path.read_text()
        with pytest.raises(
            TrueupError, match=r"is there already and is no report of trueup.*force=True"
        ):
            est.report(path)
        assert path.read_text() == before
        assert "Made by trueup" in est.report(path, force=True).read_text("utf-8")


def test_a_report_of_an_estimate_on_disk_asks_for_no_answers_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("duckdb", reason='needs pip install "trueup[files]"')
    frame = pandas.DataFrame(named_answers()[0]).sort_values(["question", "worker"])
    frame.to_csv(tmp_path / "answers.csv", index=False)
    in_memory = estimate(frame, "mean").report(tmp_path / "memory.html", command="-")
    on_disk = trueup.disk.estimate(tmp_path / "answers.csv", tmp_path / "o.parquet", "mean")
    monkeypatch.setattr(type(on_disk), "answers", None)
    with on_disk:
        pages = in_memory, on_disk.report(tmp_path / "disk.html", command="-")
    first, second = (column(page.read_text("utf-8"), "a question", "upper") for page in pages)
    assert np.allclose(np.sort(first), np.sort(second))
    assert figures(pages[0].read_text("utf-8")) == figures(pages[1].read_text("utf-8"))

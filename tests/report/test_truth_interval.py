"""The report says how far the truth may be: in words first, then in a chart, with its sources and its limits."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evidence.crowds import TABLE
from trueup import estimate, simulate
from trueup.errors import TrueupError
from trueup.report.sections.public_crowds import CROWDS, FAMILIES
from trueup.report.sections.report_data import ReportData
from trueup.report.sections.truth_interval import MOST_SHOWN, truth_interval_chart
from trueup.report.sections.truth_reach import TruthReach
from trueup.report.single_chart import specification

if TYPE_CHECKING:
    from pathlib import Path

    import browser

NEEDS = 'needs pip install "trueup[report]"'
pytest.importorskip("altair", reason=NEEDS)
pytest.importorskip("vl_convert", reason=NEEDS)

TITLE = "How far the truth may be"
DATA = simulate(workers=8, questions=40, truth_mean=50.0, seed=1)
ANSWERS = DATA.answers.to_matrix()


def html_of(est: Any, path: Path, **options: Any) -> str:
    page: str = unescape(est.report(path / "r.html", **options).read_text("utf-8"))
    return page


def words(html: str) -> str:
    """Return what a reader sees."""
    seen = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", seen))


def titles(html: str) -> list[str]:
    return re.findall(r"<section[^>]*><h2>(.*?)</h2>", html)


def gold(count: int) -> Any:
    return np.where(np.arange(len(DATA.truth)) < count, DATA.truth, np.nan)


def understated() -> tuple[Any, Any]:
    """Return answers that understate differences by half, unlike those of public crowds, and half of the truths."""
    draw = np.random.default_rng(0)
    truth = draw.normal(0.0, 3.0, 40)
    answers = 0.5 * truth + draw.normal(0.0, 0.3, (9, 40))
    return answers, np.where(np.arange(40) < 16, truth, np.nan)


def test_the_sources_are_those_of_the_evidence() -> None:
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            counts[row["family"], row["source"]].append(int(row["questions"]))
    table = {(family.task, family.source): family[1:3] for family in FAMILIES}
    assert table == {key: (len(questions), sum(questions)) for key, questions in counts.items()}
    assert sum(map(len, counts.values())) == CROWDS == 54


def test_the_distance_comes_first_then_the_interval(tmp_path: Path) -> None:
    est = estimate(ANSWERS)
    html = html_of(est, tmp_path)
    outlook = est.solution.outlook
    lead = words(re.findall(r'<div class="lead">(.*?)</div>', html, re.DOTALL)[0])
    assert re.search(
        f"Crowds of this kind have typically been about {outlook.distance:.2g} off the truth; the interval for the "
        f"truth, which holds 95% of truths over crowds like the public ones, reaches ±{outlook.half_width:.2g}. "
        "What infinitely many such workers would say is known to ±",
        lead,
    )
    assert titles(html)[:3] == ["Result", TITLE, "Estimates"]
    text = words(html)
    assert est.diagnosis.target[1:] in text
    assert outlook.next_gold.replace("± ", "±") in text
    assert "54 public crowds of 19 families" in text
    assert "one family of language models" in text
    for family in FAMILIES:
        assert f"{family.task} {family.crowds} {family.questions:,} {family.source}" in text


def test_the_chart_has_both_intervals_of_thirty_questions_from_highest_to_lowest() -> None:
    est = estimate(ANSWERS)
    rows = truth_interval_chart(ReportData(est, DATA.truth))["data"]["values"]
    assert len(rows) == MOST_SHOWN == 30
    indices = [int(row["q"]) for row in rows]
    shown = est.estimate[indices]
    assert shown[0] == est.estimate.max()
    assert shown[-1] == est.estimate.min()
    assert (np.diff(shown) <= 0).all()
    ranks = np.argsort(np.argsort(-est.estimate, kind="stable"))[indices]
    assert set(np.diff(ranks)) <= {1, 2}
    for name, values in (
        ("low", est.lower),
        ("high", est.upper),
        ("truth_low", est.truth_lower),
        ("truth_high", est.truth_upper),
        ("known", DATA.truth),
    ):
        assert [row[name] for row in rows] == values[indices].tolist()


def test_the_second_step_for_the_truth_promises_no_gain(tmp_path: Path) -> None:
    # Poor answers, so that a part of the step is taken in spite of what crowds understate.
    noisy = simulate(workers=4, questions=60, truth_scale=0.5, variance_scale=4.0, seed=2)
    promise = "expected to lower the mean squared error by"
    for target in ("truth", "consensus"):
        est = estimate(noisy.answers, "mean", target=target)
        assert est.second_step.expected_gain > 0.1
        html = html_of(est, tmp_path)
        assert (promise in html) == (target == "consensus")
        share = f"{est.shrinkage.mean():.0%} of the way"
        assert share in html
        assert ("It was taken only in part" in html) == (target == "truth")
    still = words(html_of(estimate(ANSWERS), tmp_path))
    assert "It was not taken, because it would lead away from the truth" in still
    assert "too little data" not in still


def test_for_the_consensus_the_truth_is_an_aside(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    ratings = np.clip(np.round(draw.normal(3.0, 1.0, 40) + draw.normal(0.0, 0.7, (8, 40))), 1, 5)
    est = estimate(ratings)
    assert est.solution.target == "consensus"
    html = html_of(est, tmp_path)
    lead = words(re.findall(r'<div class="lead">(.*?)</div>', html, re.DOTALL)[0])
    assert "truth" not in lead
    order = titles(html)
    assert order.index(TITLE) > order.index("Workers")
    assert "for opinions and ratings that is all there is to know" in html
    spec = truth_interval_chart(ReportData(est))["layer"][0]
    assert spec["encoding"]["color"]["scale"]["range"][-1] == "var(--faint)"


@pytest.mark.parametrize(
    ("answers", "options", "why"),
    [
        (ANSWERS, {"shrink": "paper"}, "the second step paper stays as it was published"),
        (np.ones((4, 10)), {}, "all answers to a question agree"),
        ([[1.0, np.nan], [np.nan, 2.0]], {}, "no question has two answers"),
    ],
)
def test_an_unknown_interval_says_why(
    answers: Any, options: dict[str, Any], why: str, tmp_path: Path
) -> None:
    est = estimate(answers, **options)
    html = html_of(est, tmp_path)
    assert TITLE not in titles(html)
    assert f"The interval for the truth is unknown: {why}" in html
    with pytest.raises(TrueupError, match=f'kind: "truth" needs .*{why}'):
        specification(est, "truth")


def test_with_known_truths_there_is_one_interval(tmp_path: Path) -> None:
    est = estimate(ANSWERS, gold=gold(5))
    data = ReportData(est)
    reach = TruthReach(data)
    assert reach.merged
    html = html_of(est, tmp_path)
    outlook = est.solution.outlook
    assert (
        f"After 5 known truths, a typical estimate of this crowd is about {reach.distance_words}"
        in html
    )
    assert f"reaches ±{outlook.half_width:.2g}" in html
    assert "5 known truths of this crowd updated what they teach" in html
    assert "Questions whose truth was given are left out" in html
    assert "truth lower" not in html
    spec = truth_interval_chart(data)
    assert not {str(j) for j in range(5)} & {row["q"] for row in spec["data"]["values"]}
    assert "_consensus" not in json.dumps(spec)


def test_a_published_rule_that_was_calibrated_has_one_interval_too(tmp_path: Path) -> None:
    few, many = (estimate(ANSWERS, shrink="morris", gold=gold(count)) for count in (3, 12))
    assert (few.calibration is None, many.calibration is None) == (True, False)
    text = words(html_of(few, tmp_path))
    assert "The interval for the truth is unknown: the second step morris stays" in text
    assert "should contain the truth itself" not in text
    text = words(html_of(many, tmp_path))
    assert "The interval for the truth is unknown" not in text
    assert "should contain the truth itself: 12 known truths tell how large" in text


def test_a_crowd_that_teaches_itself_names_no_other(tmp_path: Path) -> None:
    answers, known = understated()
    est = estimate(answers, gold=known)
    assert est.calibration is not None
    text = words(html_of(est, tmp_path))
    assert "From 16 known truths of this crowd alone" in text
    assert "grongen/anduryl" not in text
    assert "assume that the questions with known truths are like all others" in text


def test_truths_inside_either_interval_are_counted(tmp_path: Path) -> None:
    est = estimate(ANSWERS)
    shift = 1.2 * np.median(est.upper - est.lower)  # an error that all workers share
    truth = DATA.truth + shift
    html = html_of(est, tmp_path, truth=truth)
    for low, high, whose in (
        (est.lower, est.upper, "consensus"),
        (est.truth_lower, est.truth_upper, "truth"),
    ):
        share = np.mean((low <= truth) & (truth <= high))
        assert (
            f"<b>{share:.0%}</b> <span>of the truths are in their interval for the {whose}" in html
        )
    assert (
        "The interval for the consensus leaves it out; the interval for the truth allows for it"
        in html
    )
    far = html_of(est, tmp_path, truth=DATA.truth + 100.0)
    assert "this crowd errs more than most" in far


def test_on_logarithms_distances_are_factors(tmp_path: Path) -> None:
    est = estimate(np.exp(ANSWERS - 50.0), transform="log")
    html = html_of(est, tmp_path)
    outlook = est.solution.outlook
    assert f"have typically been about a factor of {outlook.distance:.3g} off the truth" in html
    assert f"reaches a factor of {outlook.half_width:.2g}" in html
    spec = truth_interval_chart(ReportData(est))
    scale = spec["layer"][0]["encoding"]["x"]["scale"]
    rows = spec["data"]["values"]
    assert scale["type"] == "log"
    assert scale["domain"][0] < min(row["truth_low"] for row in rows)
    assert scale["domain"][1] > max(row["truth_high"] for row in rows)


def test_truths_given_as_gold_are_no_test(tmp_path: Path) -> None:
    known = np.exp(gold(15) - 50.0)
    est = estimate(np.exp(ANSWERS - 50.0), transform="log", gold=known)
    html = html_of(est, tmp_path, truth=np.exp(DATA.truth - 50.0))
    assert "The truth of 25 questions is known besides the 15 given as gold" in html
    alike = np.ones((4, 10))
    assert "besides" not in html_of(estimate(alike), tmp_path, truth=np.ones(10))


def test_panels_of_both_targets_are_told_apart(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    rows = [
        {"panel": panel, "question": f"{panel}{j}", "worker": i, "answer": value}
        for panel in ("ratings", "guesses")
        for j in range(12)
        for i in range(6)
        for value in [round(draw.normal(3.0, 0.8)) if panel == "ratings" else draw.normal(9.0, 2.0)]
    ]
    frame = {name: [row[name] for row in rows] for name in rows[0]}
    est = estimate(frame, "mean", panel="panel")
    assert est.solution.target == "both"
    text = words(html_of(est, tmp_path))
    assert "Panels of ratings aim at the consensus" in text
    assert "In panels of ratings it was taken in full" in text
    assert "95% consensus" in str(est)


def test_a_card_has_the_columns_of_the_text() -> None:
    est = estimate(ANSWERS)
    html = est._repr_html_()
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', html)
    assert head == ["question", "estimate", "95% consensus", "95% truth", "answers"]
    assert f"{est.truth_lower[0]:.2f} to {est.truth_upper[0]:.2f}" in html
    assert "target truth" in html
    assert "95% interval" in estimate(ANSWERS, gold=gold(3))._repr_html_()


@pytest.mark.needs("browser")
@pytest.mark.parametrize("width", [360, 1000])
def test_the_chart_is_drawn_and_the_sources_are_folded(
    width: int, chromium: browser.Browser, tmp_path: Path
) -> None:
    path = estimate(ANSWERS).report(tmp_path / "r.html", truth=DATA.truth)
    script = """(() => {
      const section = document.getElementById("how-far-the-truth-may-be"), fold = section.querySelector("details");
      const before = fold.open;
      fold.open = true;
      return {
        before, rows: fold.querySelectorAll("tbody tr").length, width: document.documentElement.scrollWidth,
        legend: [...section.querySelectorAll("svg .role-legend-label text")].map((each) => each.textContent),
      };
    })()"""
    seen = chromium.look(path, width=width, phone=width < 500, script=script)
    assert seen.console == []
    found = seen.found[0]
    assert not found["before"]
    assert found["rows"] == len(FAMILIES)
    assert found["width"] <= width
    assert found["legend"] == [
        "estimate",
        "95% interval for the consensus",
        "95% interval for the truth",
        "known truth",
    ]

"""Single answers that do not fit: against plain loops and refits, power, false alarms, invariance and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import pytest

import trueup
from commands import need_cli, printed
from plain_surprise import one_by_one
from trueup.algorithms.driver import run
from trueup.algorithms.native import Native
from trueup.findings.answers import OddAnswers, _listed
from trueup.findings.surprise import surprise
from trueup.variance.correlated import sample

if TYPE_CHECKING:
    from pathlib import Path

    from trueup.core.arrays import Floats


def heights(seed: int, workers: int = 8, questions: int = 40, density: float = 0.9) -> Floats:
    """Heights in cm, rounded: truth N(172, 8), biases with sd 1.5, noise of about 4, unequal."""
    rng = np.random.default_rng(seed)
    truth, bias = rng.normal(172, 8, questions), rng.normal(0, 1.5, workers)
    noise = 4 * np.exp(rng.normal(0, 0.4, workers))
    x = np.round(truth + bias[:, None] + noise[:, None] * rng.normal(size=(workers, questions)))
    x[rng.random(x.shape) > density] = np.nan
    return x


def spoiled(seed: int, factor: float = 10.0) -> tuple[Floats, tuple[int, int]]:
    """Heights with one answer multiplied, and where it is."""
    x, rng = heights(seed), np.random.default_rng([seed, 1])
    there = np.argwhere(~np.isnan(x))
    worker, question = there[rng.integers(len(there))].tolist()
    x[worker, question] *= factor
    return x, (question, worker)


def plain(workers: int, questions: int, answers: int, seed: int, spread: float = 0.0) -> Floats:
    """Normal answers to random workers' questions; noise and biases of workers differ by `spread`."""
    rng = np.random.default_rng(seed)
    noise, bias = np.exp(rng.normal(0, spread, workers)), rng.normal(0, spread, workers)
    x = rng.normal(size=questions) + bias[:, None]
    x = x + noise[:, None] * rng.normal(size=(workers, questions))
    given = np.argsort(rng.random((workers, questions)), axis=0) < answers
    return np.where(given, x, np.nan)


def odd(x: Any, **options: Any) -> OddAnswers:
    found = trueup.estimate(x, **options).findings.answers
    return cast("OddAnswers", found)


def places(found: OddAnswers) -> list[tuple[Any, Any]]:
    return list(zip(found.question_ids.tolist(), found.worker_ids.tolist(), strict=True))


# -- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_numbers_are_those_of_plain_loops_with_normal_errors(spread: float) -> None:
    x = plain(8, 30, 5, seed=3, spread=spread)
    aggregate = run(Native(), trueup.Answers.of(x))
    assert aggregate.state["heavy_weight"][0] < aggregate.state["normal_weight"][0]
    assert aggregate.state["normal_bias"].any() == (spread > 0)
    found = surprise(aggregate)
    expected, deviation, freedom = np.array(one_by_one(aggregate, "normal_")).T
    np.testing.assert_allclose(found.expected, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-8)
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-8)
    answers = aggregate.engine.gather().answers
    np.testing.assert_allclose(found.z, (answers - expected) / deviation, rtol=1e-7, atol=1e-9)


def test_the_numbers_are_those_of_plain_loops_with_gross_errors() -> None:
    x, _ = spoiled(5)
    aggregate = run(Native(), trueup.Answers.of(x))
    assert aggregate.state["heavy_weight"][0] > 0.9
    found = surprise(aggregate)
    expected, deviation, freedom = np.array(one_by_one(aggregate, "heavy_")).T
    np.testing.assert_allclose(found.expected, expected, rtol=1e-8)
    factor = found.deviation / deviation
    assert np.ptp(factor) < 1e-8  # one for all: the errors are normal but for the gross one
    assert 1.0 < factor[0] < 1.5
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-8)


def test_what_would_fit_is_what_the_method_says_without_the_answer() -> None:
    """Refit everything without one answer: the truth of its question plus the bias of its worker."""
    x, spot = spoiled(2)
    aggregate = run(Native(), trueup.Answers.of(x))
    found, answers = surprise(aggregate), aggregate.engine.gather()
    question = np.repeat(np.arange(answers.n_questions), answers.counts)
    typo = np.flatnonzero((question == spot[0]) & (answers.workers == spot[1]))
    for place in [*range(0, answers.n_answers, 17), *typo.tolist()]:
        j, i = int(question[place]), int(answers.workers[place])
        fewer = x.copy()
        fewer[i, j] = np.nan
        refit = run(Native(), trueup.Answers.of(fewer))
        bias = 0.0 if refit.bias is None else refit.bias[i]
        assert abs(found.expected[place] - refit.x[j] - bias) < 0.25 * found.deviation[place]


def test_intervals_hold_as_many_answers_as_they_say() -> None:
    inside, total = 0, 0
    for seed in range(20):
        found = surprise(run(Native(), trueup.Answers.of(plain(12, 60, 6, seed, spread=0.4))))
        p_value = found.probability(found.z, np.arange(len(found.z)))
        inside, total = inside + int((p_value > 0.05).sum()), total + len(found.z)
    assert 0.943 < inside / total < 0.967


# -- what is found ---------------------------------------------------------------------------------


def test_a_tenfold_answer_comes_first() -> None:
    first = others = 0
    for seed in range(30):
        x, spot = spoiled(seed)
        found = odd(x)
        first += places(found)[:1] == [spot]
        others += len(found) - 1
        assert "a factor of 10 too large?" in found.hint
    assert first >= 28
    assert others <= 3


@pytest.mark.parametrize("factor", [0.1, 0.01, 100.0, 1000.0, -1.0])
def test_shifted_points_and_signs_are_found_and_named(factor: float) -> None:
    hint = {
        0.1: "a factor of 10 too small?",
        0.01: "a factor of 100 too small?",
        100.0: "a factor of 100 too large?",
        1000.0: "a factor of 1000 too large?",
        -1.0: "wrong sign?",
    }[factor]
    for seed in range(3):
        x, spot = spoiled(seed, factor)
        found = odd(x, transform="none")
        assert places(found)[0] == spot
        assert found.hint[0] == hint
        assert found.lower[0] < found.expected[0] < found.upper[0]
        assert abs(x[spot[::-1]] / factor - found.expected[0]) < 15


def test_swapped_digits_are_found() -> None:
    for seed in range(10):
        x = heights(seed)
        worker, question = np.argwhere(~np.isnan(x))[7 * seed].tolist()
        text = str(int(x[worker, question]))
        x[worker, question] = float(text[1] + text[0] + text[2:])  # 172 becomes 712
        found = odd(x)
        assert places(found)[0] == (question, worker)
        assert found.hint[0] is None


def test_many_errors_are_all_found() -> None:
    x = heights(1, 20, 200, 0.4)
    there = np.argwhere(~np.isnan(x))
    bad = there[np.random.default_rng(0).choice(len(there), 40, replace=False)]
    x[bad[:, 0], bad[:, 1]] *= 10
    found = odd(x)
    wrong = {(j, i) for i, j in bad.tolist()}
    assert wrong <= set(places(found))
    assert len(found) <= 44


@pytest.mark.parametrize(
    ("workers", "questions", "answers"), [(5, 20, 3), (8, 40, 5), (20, 200, 3), (50, 1000, 6)]
)
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_clean_answers_are_hardly_ever_listed(
    workers: int, questions: int, answers: int, spread: float
) -> None:
    listed = judged = panels = 0
    repeats = 6 if questions == 1000 else 30
    for seed in range(repeats):
        x = plain(workers, questions, answers, seed, spread)
        found = surprise(run(Native(), trueup.Answers.of(x)))
        number = len(_listed(found)[0])
        listed, panels = listed + number, panels + (number > 0)
        judged += int(found.judged.sum())
    assert listed <= 0.001 * judged + 1
    assert panels <= 0.1 * repeats + 1


def test_noisy_and_biased_workers_are_not_odd() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=40) + rng.normal(size=(6, 40))
    x[0] += 12 * rng.normal(size=40)
    x[1] += 20
    assert len(odd(x)) == 0


def test_one_absurd_answer_does_not_make_its_neighbours_odd() -> None:
    for answers in (3, 4, 8):
        x = plain(answers, 40, answers, seed=6)
        x[1, 5] = 1e6
        assert places(odd(x)) == [(5, 1)]


def test_nothing_is_said_where_no_majority_agrees() -> None:
    two_and_two, all_apart = plain(4, 40, 4, seed=6), plain(3, 40, 3, seed=6)
    two_and_two[2:, 5] += 1000.0
    all_apart[:, 5] = [0.0, 1000.0, 2000.0]
    assert len(odd(two_and_two)) == len(odd(all_apart)) == 0
    all_apart[:, 5] = [0.0, 8.0, 2000.0]  # two that differ a little, and one that is absurd
    assert places(odd(all_apart)) == [(5, 2)]
    x = plain(5, 40, 5, seed=6)
    x[3:, 5] += 1000.0
    assert sorted(places(odd(x))) == [(5, 3), (5, 4)]


def test_a_step_of_a_rating_scale_is_not_odd_and_the_other_end_is() -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(2, 5, 300)
    x = truth + rng.choice([-1.0, 0.0, 1.0], p=[0.02, 0.96, 0.02], size=(6, 300))
    x[:, 0] = 5.0
    assert len(odd(x, transform="none")) == 0
    x[2, 0] = 1.0
    assert places(odd(x, transform="none")) == [(0, 2)]


def test_where_all_agree() -> None:
    x = np.tile(np.arange(10.0, 30.0), (4, 1))
    assert places(odd(x)) == []
    x[1, 3] = 130.0
    found = odd(x)
    assert places(found) == [(3, 1)]
    assert found.expected[0] == pytest.approx(13.0, abs=0.01)


def test_two_answers_and_one_worker() -> None:
    for x in (plain(2, 20, 2, seed=1), plain(1, 20, 1, seed=1)):
        findings = trueup.estimate(x).findings
        assert findings.answers is None
        said = "suspicious answers: no question has three answers"
        assert sum(text.startswith(said) for text in findings.missing) == 1
        assert "Suspicious answers" not in str(findings)
    x = plain(4, 20, 4, seed=2)
    x[2:, :5] = np.nan
    x[1, 0] = x[3, 9] = 1e6  # of the two answers to the first question, either could be wrong
    found = odd(x)
    assert places(found) == [(9, 3)]
    assert found.n_judged == 60
    assert "5 questions have fewer than three answers" in str(found)


# -- what it does not depend on ---------------------------------------------------------------------


def test_shifted_and_stretched_answers_are_as_odd() -> None:
    x, _ = spoiled(3)
    found, moved = odd(x, transform="none"), odd(-2.5 * x + 40.0, transform="none")
    assert places(found) == places(moved)
    np.testing.assert_allclose(moved.z, -found.z, rtol=1e-6)
    np.testing.assert_allclose(moved.surprise, found.surprise, rtol=1e-6)
    np.testing.assert_allclose(moved.expected, -2.5 * found.expected + 40.0, rtol=1e-8)
    np.testing.assert_allclose(moved.lower, -2.5 * found.upper + 40.0, rtol=1e-8)


def table(x: Floats) -> pd.DataFrame:
    worker, question = np.nonzero(~np.isnan(x))
    names = {"question": [f"q{j}" for j in question], "worker": [f"w{i}" for i in worker]}
    return pd.DataFrame({**names, "answer": x[worker, question]})


def test_order_and_names_do_not_matter() -> None:
    x, _ = spoiled(4)
    x[0, 0], x[3, 20] = 400.0, 20.0
    frame = table(x)
    found = odd(frame).frame
    assert len(found) == 3
    assert isinstance(found, pd.DataFrame)
    shuffled = odd(frame.sample(frac=1, random_state=1)).frame
    renamed = odd(frame.assign(worker="x" + frame["worker"].str[::-1])).frame
    renamed["worker"] = renamed["worker"].str[:0:-1]
    pd.testing.assert_frame_equal(shuffled, found, rtol=1e-8)
    pd.testing.assert_frame_equal(renamed, found, rtol=1e-8)


def test_any_first_step_gives_nearly_the_same() -> None:
    x, spot = spoiled(6)
    for method in ("native", "mean", "median"):
        for bias in (True, False):
            assert places(odd(x, method=method, bias=bias)) == [spot]


@pytest.mark.parametrize("transform", ["none", "proportional"])
def test_disk_finds_what_memory_finds(tmp_path: Path, transform: str) -> None:
    pytest.importorskip("duckdb", reason="needs duckdb")
    from trueup import disk

    x, _ = spoiled(7)
    x[0, 0] = 0.37
    frame = table(x)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    found = odd(frame, transform=transform)
    assert len(found) == 2
    assert 0.37 in found.answer  # to the last digit, also after logarithms
    target = tmp_path / "out.parquet"
    with disk.estimate(tmp_path / "answers.csv", target, transform=transform) as est:
        other = est.findings.answers
        assert other is not None
        assert places(other) == places(found)
        assert other.answer.tolist() == found.answer.tolist()
        np.testing.assert_allclose(other.z, found.z, rtol=1e-6)
        np.testing.assert_allclose(other.expected, found.expected, rtol=1e-8)


def test_of_very_many_answers_a_sample_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    x = plain(12, 400, 12, seed=5)
    x[np.arange(400) % 12, np.arange(400)] += 100.0
    x = np.exp(x / 10.0)
    monkeypatch.setattr(sample, "MANY", 1000)
    monkeypatch.setattr(sample, "ENOUGH", 1000)
    found = odd(x, transform="log")
    assert found.note == f"Based on a sample of {found.n_questions} of 400 questions."
    assert found.note in str(found)
    assert len(found) == found.n_questions
    for (question, worker), answer in zip(places(found), found.answer.tolist(), strict=True):
        assert worker == question % 12
        assert x[worker, question] == answer


# -- words -------------------------------------------------------------------------------------------


def test_words() -> None:
    x, (question, worker) = spoiled(2)
    est = trueup.estimate(x)
    found = est.findings.answers
    assert found is not None
    text = str(found)
    assert (
        f"question {question}, worker {worker}: {x[worker, question]:g}; the other answers suggest about 1"
        in text
    )
    assert text.startswith(f"{len(found)} of {found.n_judged} answers ")
    assert text.splitlines() == found.lines(10)
    assert "Nothing was removed" in text
    assert est.findings.answers is found
    everything = str(est.findings)
    assert "\nSuspicious answers\n" in everything
    assert found.describe(0) in everything
    assert list(found.frame.columns) == [
        "question", "worker", "answer", "expected", "lower", "upper", "surprise", "z", "hint",
    ]  # fmt: skip
    assert str(odd(plain(8, 40, 5, seed=1))).startswith("No answer is suspicious (200 answers")


def test_long_lists_are_cut() -> None:
    x = heights(1, 20, 100, 0.5)
    x[:, :20] = np.where(np.arange(20)[:, None] == np.arange(20), 5000.0, x[:, :20])
    found = odd(x, transform="none")
    assert len(found) == 20
    lines = found.lines(5)
    assert len([line for line in lines if line.startswith("  question")]) == 5
    assert "  ... and 15 more" in lines


def test_hostile_ids_stay_on_their_line() -> None:
    x, (question, worker) = spoiled(2)
    frame = table(x)
    names = {f"q{question}": 'q\n\x1b[31m"x' * 20}
    frame["question"] = frame["question"].replace(names)
    frame["worker"] = frame["worker"].replace({f"w{worker}": "w\u2028\r\nx"})
    found = odd(frame)
    assert len(found) == 1
    assert all(line.isprintable() for line in str(found).split("\n"))
    assert len(str(found).splitlines()) == 3
    assert found.frame["question"][0] == names[f"q{question}"]


def test_panels_are_told_to_be_taken_one_by_one() -> None:
    panels = np.stack([plain(4, 10, 4, seed) for seed in range(2)])
    findings = trueup.estimate(panels, method="native").findings
    assert findings.answers is None
    assert any("suspicious answers" in text for text in findings.missing if "panel" in text)


def test_the_command_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_cli()
    monkeypatch.chdir(tmp_path)
    x, (question, worker) = spoiled(2)
    table(x).to_csv("answers.csv", index=False)
    line = ("diagnose", "answers.csv", "--resamples", "0", "--answers")
    text = printed(*line, "odd.json")
    assert f"question q{question}, worker w{worker}" in text
    assert text.endswith("Written: odd.json\n")
    rows = pd.read_json("odd.json").to_dict("records")
    assert [(row["question"], row["worker"]) for row in rows] == [(f"q{question}", f"w{worker}")]
    assert rows[0]["hint"] == "a factor of 10 too large?"
    table(plain(8, 40, 5, seed=1)).to_csv("answers.csv", index=False)
    printed(*line, "odd.csv")
    assert pd.read_csv("odd.csv").shape == (0, 9)


@pytest.mark.filterwarnings("error")
def test_a_worker_alone_on_a_question_is_no_division_by_zero() -> None:
    """Found by fuzzing: biases, and a question with one answer."""
    x = np.zeros((4, 8))
    x[3, [2, 4, 5, 6, 7]] = 0.25
    x[:3, 3] = np.nan
    found = trueup.diagnose_all(x).answers
    assert found is not None
    assert np.isfinite(found.surprise).all()

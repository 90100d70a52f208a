"""estimate(): any input, the caller's own kind of frame out, in words a person can read."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import trueup
from frames_by_library import FRAMES, rows
from trueup import Answers, TrueupError, TrueupWarning
from trueup.algorithms import DTD, Algorithm

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS: dict[str, list[Any]] = {
    "question": ["q2", "q1", "q1", "q2", "q3", "q1", "q3", "q2"],
    "worker": ["eve", "ann", "bob", "ann", "bob", "eve", "ann", "bob"],
    "answer": [9.0, 1.0, 1.5, 4.0, 7.0, 5.0, 7.5, 4.5],
}
QUESTION_COLUMNS = [
    "question", "estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error", "base",
    "base_std_error", "shrinkage", "n_answers",
]  # fmt: skip
WORKER_COLUMNS = ["worker", "weight", "variance", "bias", "n_answers", "flag"]


@pytest.mark.parametrize("kind", FRAMES)
def test_the_frames_are_of_the_callers_kind(kind: str) -> None:
    make, expected = FRAMES[kind]
    est = trueup.estimate(make(COLUMNS), method="mean")
    assert isinstance(est.questions, expected)
    assert isinstance(est.workers, expected)
    questions, workers = rows(est.questions), rows(est.workers)
    assert list(questions) == QUESTION_COLUMNS
    assert list(workers) == WORKER_COLUMNS
    ordered = kind not in ("polars lazy", "duckdb")
    assert questions["question"] == (["q2", "q1", "q3"] if ordered else ["q1", "q2", "q3"])
    assert workers["worker"] == (["eve", "ann", "bob"] if ordered else ["ann", "bob", "eve"])
    by_question = dict(zip(questions["question"], questions["estimate"], strict=True))
    assert by_question == pytest.approx({"q1": 2.5, "q2": 17.5 / 3, "q3": 7.25})
    assert dict(zip(questions["question"], questions["n_answers"], strict=True)) == {
        "q1": 3,
        "q2": 3,
        "q3": 2,
    }


def test_arrays_sparse_matrices_files_and_frames_agree(tmp_path: Path) -> None:
    matrix = np.array([[1.0, 4.0, 7.5], [1.5, 4.5, 7.0], [5.0, 9.0, np.nan]])
    worker, question = np.nonzero(~np.isnan(matrix))
    frame = pd.DataFrame(
        {"question": question, "worker": worker, "answer": matrix[worker, question]}
    )
    frame.to_parquet(tmp_path / "answers.parquet")
    frame.to_csv(tmp_path / "answers.csv", index=False)
    sparse = csr_array((matrix[worker, question], (worker, question)), shape=(3, 3))
    expected = trueup.estimate(matrix).estimate
    for other in (sparse, tmp_path / "answers.parquet", str(tmp_path / "answers.csv")):
        est = trueup.estimate(other)
        np.testing.assert_allclose(est.estimate, expected, rtol=1e-12)
        assert rows(est.questions)["question"] == [0, 1, 2]
    np.testing.assert_allclose(trueup.estimate(frame).estimate, expected, rtol=1e-12)


def test_columns_by_other_names() -> None:
    other = {"task": COLUMNS["question"], "worker": COLUMNS["worker"], "label": COLUMNS["answer"]}
    named = {"item": COLUMNS["question"], "judge": COLUMNS["worker"], "score": COLUMNS["answer"]}
    expected = trueup.estimate(COLUMNS).estimate
    np.testing.assert_array_equal(trueup.estimate(other).estimate, expected)
    est = trueup.estimate(named, question="item", worker="judge", answer="score")
    np.testing.assert_array_equal(est.estimate, expected)


def test_order_of_rows_changes_nothing() -> None:
    answers, _ = trueup.simulate(workers=12, questions=80, density=0.4, seed=3)
    matrix = answers.to_matrix()
    worker, question = np.nonzero(~np.isnan(matrix))
    frame = pl.DataFrame(
        {"question": question, "worker": worker, "answer": matrix[worker, question]}
    )
    straight = trueup.estimate(frame, method="dtd").questions.sort("question")
    mixed = trueup.estimate(frame.sample(fraction=1.0, shuffle=True, seed=1), method="dtd")
    np.testing.assert_allclose(
        mixed.questions.sort("question")["estimate"], straight["estimate"], rtol=1e-9
    )


def test_missing_answers_are_dropped_counted_and_mentioned() -> None:
    frame = pd.DataFrame(COLUMNS)
    extra = pd.DataFrame({"question": ["q9"], "worker": ["zoe"], "answer": [np.nan]})
    frame = pd.concat([frame, extra])
    est = trueup.estimate(frame)
    assert "q9" not in est.questions["question"].tolist()
    assert "1 of 9 rows dropped" in str(est)


def test_an_interval_that_cannot_be_known_is_null_with_the_reason() -> None:
    frame = pl.DataFrame({"question": ["a", "b"], "worker": ["x", "y"], "answer": [1.0, 2.0]})
    est = trueup.estimate(frame)
    assert est.questions["estimate"].to_list() == [1.0, 2.0]
    assert est.questions["lower"].to_list() == [None, None]
    assert est.questions["truth_upper"].to_list() == [None, None]
    reason = "truth_lower and truth_upper are unknown, because no question has two answers"
    assert reason in est.diagnosis.target
    assert est.workers["variance"].to_list() == [None, None]
    assert est.workers["flag"].to_list() == ["shares no question with other workers"] * 2
    assert any("unknown" in text for text in est.diagnosis.assumptions)
    assert "unknown" in str(est)


def test_constant_raters_are_flagged() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(3.3, 1, (5, 8))
    matrix[2] = 3.3
    assert trueup.estimate(matrix).findings.flags == [
        None,
        None,
        "always the same answer",
        None,
        None,
    ]


def test_one_answer_one_worker_one_question() -> None:
    assert trueup.estimate([[4.5]]).estimate.tolist() == [4.5]
    assert trueup.estimate([[4.5, 2.0, 1.0]]).estimate.tolist() == [4.5, 2.0, 1.0]
    assert trueup.estimate([[4.0], [2.0]], method="mean").estimate.tolist() == [3.0]


def test_intervals_widen_with_the_level() -> None:
    answers, _ = trueup.simulate(seed=1)
    narrow = trueup.estimate(answers, level=0.5, target="consensus")
    wide = trueup.estimate(answers, level=0.99, target="consensus")
    assert (wide.upper - wide.lower > narrow.upper - narrow.lower).all()
    assert (wide.truth_upper - wide.truth_lower > narrow.truth_upper - narrow.truth_lower).all()
    half = 0.5 * (narrow.upper - narrow.lower)
    np.testing.assert_allclose(half, 0.6744897501960817 * narrow.std_error, rtol=3e-3)


def test_intervals_of_the_mean_cover_as_often_as_they_say() -> None:
    simulation = trueup.simulate(workers=10, questions=50, panels=400, seed=2)
    est = trueup.estimate(simulation.answers, method="mean")
    covered = np.mean((est.lower <= simulation.truth) & (simulation.truth <= est.upper))
    # 20,000 questions in 400 panels that share their variance estimate: standard error below 0.003.
    assert 0.93 < covered < 0.96


def test_transform_and_bounds() -> None:
    rng = np.random.default_rng(5)
    truth = np.exp(rng.normal(3, 1, 40))
    matrix = truth * np.exp(rng.normal(0, 0.3, (6, 40)))
    log = trueup.estimate(matrix, method="mean", shrink="none", transform="log")
    np.testing.assert_allclose(log.estimate, np.exp(np.log(matrix).mean(axis=0)), rtol=1e-12)
    assert (log.lower > 0).all()
    assert (log.lower < log.estimate).all()
    assert (log.estimate < log.upper).all()
    kept = trueup.estimate(matrix, method="mean", bounds=(5.0, 50.0))
    for values in (kept.estimate, kept.lower, kept.upper, kept.truth_lower, kept.truth_upper):
        assert values.min() >= 5.0
        assert values.max() <= 50.0


def test_a_standard_error_is_carried_back_through_the_transform() -> None:
    answers, _ = trueup.simulate(truth_mean=2.0, truth_scale=0.2, variance_scale=1e-4, seed=1)
    matrix = np.exp(answers.to_matrix())
    log = trueup.estimate(matrix, transform="log")
    np.testing.assert_allclose((log.upper - log.lower) / 2 / 1.959964, log.std_error, rtol=1e-2)


def test_an_interval_too_large_for_a_number_is_an_error() -> None:
    wild = [[1e149, 1e-149], [1e-149, 1e149], [1.0, 1.0]]
    options: dict[str, Any] = {"method": "mean", "transform": "log", "level": 1 - 1e-8}
    with pytest.raises(TrueupError, match="bounds="):
        trueup.estimate(wild, **options)
    kept = trueup.estimate(wild, **options, bounds=(0.0, 1e10))
    assert kept.upper.max() == 1e10


def test_known_variances_are_not_forgotten_where_nobody_disagrees() -> None:
    for matrix in ([[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]]):
        known = dict.fromkeys(range(len(matrix)), 4.0)
        est = trueup.estimate(matrix, method="blue", worker_variance=known)
        np.testing.assert_allclose(est.std_error, (4.0 / len(matrix)) ** 0.5)
        assert est.estimate.tolist() == [1.0, 2.0]


def test_variances_of_answers_are_carried_to_the_scale_of_the_transform() -> None:
    matrix = np.array([[100.0, 10.0], [120.0, 11.0]])
    variance = np.array([[4.0, 1.0], [9.0, 2.0]])
    est = trueup.estimate(matrix, method="blue", transform="log", answer_variance=variance)
    weight = matrix**2 / variance  # one over the variance of the logarithm
    expected = np.exp((weight * np.log(matrix)).sum(axis=0) / weight.sum(axis=0))
    np.testing.assert_allclose(est.estimate, expected)
    np.testing.assert_allclose(est.std_error, expected / np.sqrt(weight.sum(axis=0)))


def test_known_variances_that_a_method_does_not_use_are_mentioned() -> None:
    with pytest.warns(TrueupWarning, match='method="blue"'):
        trueup.estimate(COLUMNS, method="dtd", worker_variance={"ann": 1.0})


def test_published_dtd_warns_of_a_dictator() -> None:
    answers, _ = trueup.simulate(workers=3, questions=10, seed=4)
    with pytest.warns(TrueupWarning, match="one worker has more than 90%"):
        est = trueup.estimate(answers, method=DTD(preset="paper"))
    assert est.diagnosis.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not trueup.estimate(answers, method="dtd").diagnosis.warnings


def test_truths_that_still_move_are_reported() -> None:
    answers, _ = trueup.simulate(workers=6, questions=30, seed=4)
    with pytest.warns(TrueupWarning, match="had not converged"):
        est = trueup.estimate(answers, method="crh", max_iter=1)
    assert not est.diagnosis.settled
    assert "1 iteration, not converged" in str(est)


def test_panels_come_back_with_their_ids() -> None:
    frame = pd.DataFrame(COLUMNS)
    both = pd.concat([frame.assign(run="one"), frame.assign(run="two", answer=2 * frame["answer"])])
    est = trueup.estimate(Answers.from_frame(both, panel="run"), method="mean")
    assert est.questions["panel"].tolist() == ["one"] * 3 + ["two"] * 3
    assert est.workers["panel"].tolist() == ["one"] * 3 + ["two"] * 3
    np.testing.assert_allclose(est.estimate[3:], 2 * est.estimate[:3])


def test_known_worker_variances_by_mapping_and_by_column() -> None:
    known = {"ann": 1.0, "bob": 2.0, "eve": 9.0}
    column = {**COLUMNS, "variance": [known[name] for name in COLUMNS["worker"]]}
    by_mapping = trueup.estimate(COLUMNS, method="blue", worker_variance=known)
    by_column = trueup.estimate(column, method="blue", worker_variance="variance")
    np.testing.assert_array_equal(by_mapping.estimate, by_column.estimate)
    expected = (1.0 / 1 + 1.5 / 2 + 5.0 / 9) / (1 / 1 + 1 / 2 + 1 / 9)
    assert by_mapping.estimate[1] == pytest.approx(expected)
    assert by_mapping.std_error[1] == pytest.approx((1 / (1 + 1 / 2 + 1 / 9)) ** 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "blue"}, "worker_variance"),
        ({"method": "nope"}, "method"),
        ({"shrink": "paper?"}, "shrink"),
        ({"level": 1.0}, "level"),
        ({"duplicates": "last"}, "duplicates"),
        ({"transform": "sqrt"}, "transform"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"question": "item"}, "item"),
        ({"worker_variance": {"nobody": 1.0}}, "worker_variance"),
        ({"worker_variance": {"ann": -1.0}}, "worker_variance"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        trueup.estimate(COLUMNS, **options)


def test_print_is_what_a_person_would_quote() -> None:
    text = str(trueup.estimate(COLUMNS, method="mean"))
    assert text.splitlines()[0] == "8 answers from 3 workers to 3 questions"
    assert "method mean, shrink adaptive" in text
    assert "95% consensus" in text
    assert "95% truth" in text
    assert "95% interval" in str(trueup.estimate(COLUMNS, method="mean", target="consensus"))
    assert "an error that all workers share is not included" in text
    assert repr(trueup.estimate(COLUMNS, method="mean")) == text


def test_odd_ids_do_not_break_the_printed_table() -> None:
    odd = {"question": ["a\nb", "a\nb", "\x1b[31m"], "worker": [1, 2, 1], "answer": [1.0, 2.0, 3.0]}
    est = trueup.estimate(odd, method="mean")
    assert "\x1b" not in str(est)
    assert "a\\nb" in str(est)
    assert est.questions["question"].tolist() == ["a\nb", "\x1b[31m"]


def test_a_user_algorithm_without_weights_has_estimates_and_no_intervals() -> None:
    class First(Algorithm):
        def truths(self, block: Any, state: Any) -> Any:
            return block.values[block.indptr[:-1]]

        def weights(self, block: Any, state: Any, x: Any) -> None:
            return None

    est = trueup.estimate([[1.0, 2.0], [3.0, 5.0]], method=First(), shrink="none")
    assert est.estimate.tolist() == [1.0, 2.0]
    assert np.isnan(est.lower).all()
    assert any("how much each answer counts" in text for text in est.diagnosis.assumptions)
    assert est.diagnosis.method == "First"
    # The second step asks it again without some of its workers: the questions move by 2 and 3,
    # which gives the variances 1 and 2.25, and these are pooled.
    again = trueup.estimate([[1.0, 2.0], [3.0, 5.0]], method=First())
    np.testing.assert_allclose(again.base_std_error, (0.5 * (1.0 + 2.25)) ** 0.5)


def test_options_of_answers_belong_where_the_answers_are_made() -> None:
    answers = Answers.of(COLUMNS)
    with pytest.raises(TrueupError, match=r"Answers\.of"):
        trueup.estimate(answers, worker_variance={"u": 1.0})


@pytest.mark.parametrize("method", ["auto", "native", "gtm", "crh", "dtd", "student_t"])
def test_answers_that_differ_by_next_to_nothing_agree(method: str) -> None:
    """Squares of such differences are hardly numbers, and their inverse is none."""
    x = np.zeros((4, 6))
    x[3, 2:5] = 1.0, 1.0, 1e-161
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        est = trueup.estimate(x, method)
    np.testing.assert_allclose(
        est.estimate, trueup.estimate(np.where(x < 1, 0.0, x), method).estimate, atol=1e-150
    )


def test_narrow_numbers_of_numpy_are_numbers() -> None:
    """Limits beyond what 32 bits hold are limits all the same."""
    x = np.random.default_rng(0).normal(size=(4, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = trueup.estimate(x, "weighted_median", tol=np.float32(0.5))  # type: ignore[arg-type]
        algorithm = trueup.algorithms.WeightedMedian(nu0=np.float32(0.5))  # type: ignore[arg-type]
        est = trueup.estimate(x, algorithm)
        needed = est.findings.asked(target_se=np.float32(0.5)).answers_needed  # type: ignore[arg-type]
        assert needed is not None
        assert needed.target == 0.5
    assert found.diagnosis.settled
    with pytest.raises(TrueupError, match=r"^tol: "):
        trueup.estimate(x, tol=10**400)


@pytest.mark.parametrize("method", [np.arange(3.0), 7, "best"])
def test_what_is_no_method_is_refused_before_anything_is_read(method: Any) -> None:
    with pytest.raises(TrueupError, match=r"^method: "):
        trueup.estimate("no such file.csv", method)

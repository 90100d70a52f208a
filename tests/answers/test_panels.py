"""Panels drawn from answers, each against the same panel cut out of the matrix by a plain loop."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trueup
from trueup import Answers, AnswersError, TrueupError
from trueup.answers import panels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from trueup.core.arrays import Floats, Ints

WORKERS, QUESTIONS = 7, 9

MAKERS: dict[str, Callable[[Answers, int], Answers]] = {
    "sample": lambda answers, seed: answers.sample(20, workers=3, questions=4, seed=seed),
    "sample all workers": lambda answers, seed: answers.sample(
        20, workers=answers.n_workers, questions=2, seed=seed
    ),
    "sample all questions": lambda answers, seed: answers.sample(
        20, workers=2, questions=answers.n_questions, seed=seed
    ),
    "bootstrap": lambda answers, seed: answers.bootstrap(20, seed=seed),
    "jackknife": lambda answers, seed: answers.jackknife(3, seed=seed),
    "delete one": lambda answers, seed: answers.jackknife(answers.n_workers, seed=seed),
    "sample answers": lambda answers, seed: answers.sample_answers(
        20, answers_each=2, questions=3, seed=seed
    ),
}
WHOLE_WORKERS = [name for name in MAKERS if name != "sample answers"]


def complete() -> Answers:
    return Answers.of(np.arange(WORKERS * QUESTIONS, dtype=float).reshape(WORKERS, QUESTIONS))


def scattered(variance: str = "") -> Answers:
    """Make sparse answers of the same shape: some questions have one answer, some workers two."""
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(WORKERS, QUESTIONS)).round(3)
    matrix[rng.random(matrix.shape) < 0.45] = np.nan
    matrix[:, 0] = [1.0, *[np.nan] * (WORKERS - 1)]
    matrix[1] = [np.nan, 2.0, *[np.nan] * (QUESTIONS - 2)]
    options: dict[str, Any] = {}
    if variance == "answer":
        options["answer_variance"] = rng.exponential(size=matrix.shape)
    if variance == "worker":
        options["worker_variance"] = [1.0, np.nan, 3.0, 4.0, 5.0, 6.0, 7.0]
    answers = Answers.of(matrix, **options)
    assert (answers.n_workers, answers.n_questions) == (WORKERS, QUESTIONS)
    return answers


def source(numbers: Ints | None) -> Ints:
    assert numbers is not None
    return numbers


def laid_out(answers: Answers, per_answer: Floats, number: int) -> Floats:
    """Return a number per answer of a panel as a matrix workers x questions, by a loop."""
    q0, q1 = answers.panel_questions[number : number + 2].tolist()
    w0, w1 = answers.panel_workers[number : number + 2].tolist()
    matrix = np.full((w1 - w0, q1 - q0), np.nan)
    for j in range(q0, q1):
        previous = w0 - 1
        for at in range(answers.indptr[j], answers.indptr[j + 1]):
            worker = int(answers.workers[at])
            assert previous < worker < w1
            matrix[worker - w0, j - q0] = per_answer[at]
            previous = worker
    return matrix


def members(answers: Answers, number: int) -> tuple[Ints, Ints]:
    """Return the numbers in the base of the workers and questions of a panel."""
    workers = source(answers.worker_source)[slice(*answers.panel_workers[number : number + 2])]
    questions = source(answers.question_source)[
        slice(*answers.panel_questions[number : number + 2])
    ]
    return workers, questions


def same(one: Answers, other: Answers) -> bool:
    names = ("indptr", "workers", "values", "centre", "panel_questions", "panel_workers",
             "question_source", "worker_source")  # fmt: skip
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WHOLE_WORKERS)
def test_a_panel_has_all_answers_of_its_workers_to_its_questions(name: str, seed: int) -> None:
    base = scattered()
    drawn = MAKERS[name](base, seed)
    # What is drawn depends on the sizes alone, so the complete answers tell who was drawn.
    twin = MAKERS[name](complete(), seed)
    assert drawn.n_panels == twin.n_panels

    for b in range(drawn.n_panels):
        workers, questions = members(twin, b)
        expected = base.to_matrix()[np.ix_(workers, questions)]
        there = ~np.isnan(expected)
        rows, columns = there.any(axis=1), there.any(axis=0)
        found = members(drawn, b)
        assert found[0].tolist() == workers[rows].tolist()
        assert found[1].tolist() == questions[columns].tolist()
        np.testing.assert_array_equal(
            laid_out(drawn, drawn.answers, b), expected[np.ix_(rows, columns)]
        )


@pytest.mark.parametrize("name", MAKERS)
def test_every_answer_keeps_its_value_its_precision_and_its_author(name: str) -> None:
    base = scattered("answer")
    drawn = MAKERS[name](base, 1)
    assert base.precision is not None
    assert drawn.precision is not None
    assert drawn.answer_variance == base.answer_variance
    precision = laid_out(base, base.precision, 0)

    for b in range(drawn.n_panels):
        here = np.ix_(*members(drawn, b))
        for found, expected in (
            (laid_out(drawn, drawn.answers, b), base.to_matrix()[here]),
            (laid_out(drawn, drawn.precision, b), precision[here]),
        ):
            there = ~np.isnan(found)
            assert there.any(axis=0).all()
            assert there.any(axis=1).all()
            np.testing.assert_array_equal(found[there], expected[there])


@pytest.mark.parametrize("name", MAKERS)
def test_known_worker_variances_go_along(name: str) -> None:
    base = scattered("worker")
    drawn = MAKERS[name](base, 1)

    assert base.worker_variance is not None
    assert drawn.worker_variance is not None
    np.testing.assert_array_equal(
        drawn.worker_variance, base.worker_variance[source(drawn.worker_source)]
    )
    assert drawn.worker_ids.tolist() == source(drawn.worker_source).tolist()


@pytest.mark.parametrize("name", MAKERS)
def test_one_panel_is_the_same_alone(name: str) -> None:
    base = scattered("worker")
    drawn = MAKERS[name](base, 2)
    assert drawn.worker_variance is not None

    for b in range(drawn.n_panels):
        alone = drawn.panel(b)
        workers, questions = members(drawn, b)
        np.testing.assert_array_equal(alone.to_matrix(), laid_out(drawn, drawn.answers, b))
        assert source(alone.worker_source).tolist() == workers.tolist()
        assert source(alone.question_source).tolist() == questions.tolist()
        assert alone.worker_variance is not None
        here = slice(*drawn.panel_workers[b : b + 2])
        np.testing.assert_array_equal(alone.worker_variance, drawn.worker_variance[here])
        assert (alone.n_panels, alone.n_workers) == (1, len(workers))


@pytest.mark.parametrize("name", MAKERS)
def test_the_seed_decides_the_draw(name: str) -> None:
    make, base = MAKERS[name], complete()

    assert same(make(base, 3), make(base, 3))
    assert not same(make(base, 3), make(base, 4))


@pytest.mark.parametrize("answers", [complete(), scattered()], ids=["complete", "scattered"])
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("table", [1, 50])
def test_the_size_of_the_inner_tables_changes_nothing(
    name: str, table: int, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = MAKERS[name](answers, 1)
    monkeypatch.setattr(panels, "TABLE", table)

    assert same(MAKERS[name](answers, 1), expected)


@pytest.mark.parametrize("first", [name for name in MAKERS if name != "sample all questions"])
@pytest.mark.parametrize("second", ["sample all workers", "bootstrap", "delete one"])
def test_a_panel_can_be_drawn_from_again(first: str, second: str) -> None:
    base = scattered()
    middle = MAKERS[first](base, 1).panel(1)

    drawn = MAKERS[second](middle, 2)

    for b in range(drawn.n_panels):
        found = laid_out(drawn, drawn.answers, b)
        there = ~np.isnan(found)
        expected = base.to_matrix()[np.ix_(*members(drawn, b))]
        np.testing.assert_array_equal(found[there], expected[there])
    assert set(source(drawn.worker_source)) <= set(source(middle.worker_source))
    assert set(source(drawn.question_source)) <= set(source(middle.question_source))
    assert drawn.worker_ids.tolist() == source(drawn.worker_source).tolist()


def test_sampled_panels_of_complete_answers_have_the_size_asked_for() -> None:
    drawn = complete().sample(50, workers=3, questions=4)

    assert np.diff(drawn.panel_workers).tolist() == [3] * 50
    assert np.diff(drawn.panel_questions).tolist() == [4] * 50
    for b in range(50):
        assert all(len(set(numbers)) == len(numbers) for numbers in members(drawn, b))


def test_sampled_answers_are_so_many_for_each_of_so_many_questions() -> None:
    base = scattered()
    drawn = base.sample_answers(200, answers_each=3, questions=4)

    assert drawn.counts.tolist() == [3] * 800
    assert np.diff(drawn.panel_questions).tolist() == [4] * 200
    for b in range(200):
        _, questions = members(drawn, b)
        assert len(set(questions.tolist())) == 4
    assert set(source(drawn.question_source)) == set(np.flatnonzero(base.counts >= 3))


def test_a_worker_drawn_twice_is_two_workers_with_the_same_answers() -> None:
    base = complete()
    drawn = base.bootstrap(30, seed=1)

    assert np.diff(drawn.panel_workers).tolist() == [WORKERS] * 30
    assert np.diff(drawn.panel_questions).tolist() == [QUESTIONS] * 30
    repeated = 0
    for b in range(30):
        workers, _ = members(drawn, b)
        repeated += WORKERS - len(set(workers.tolist()))
        np.testing.assert_array_equal(drawn.panel(b).to_matrix(), base.to_matrix()[workers])
    assert repeated > 0


@pytest.mark.parametrize("groups", range(2, WORKERS + 1))
def test_the_groups_left_out_share_the_workers_evenly(groups: int) -> None:
    drawn = complete().jackknife(groups, seed=groups)

    out = [set(range(WORKERS)) - set(members(drawn, b)[0].tolist()) for b in range(groups)]
    assert sorted(worker for group in out for worker in group) == list(range(WORKERS))
    assert max(map(len, out)) - min(map(len, out)) <= 1


def test_a_panel_in_which_no_answer_is_left_has_no_questions() -> None:
    drawn = Answers.of([[1.0, np.nan], [np.nan, 2.0]]).sample(20, workers=1, questions=1)
    sizes = np.diff(drawn.panel_questions)

    assert drawn.n_panels == 20
    assert sizes.tolist() == np.diff(drawn.panel_workers).tolist()
    assert sorted(set(sizes.tolist())) == [0, 1]
    assert drawn.panel(int(np.argmin(sizes))).n_answers == 0


# -- the draws are uniform -------------------------------------------------------------------------


def assert_uniform(draws: Iterable[Hashable], possible: Iterable[Hashable]) -> None:
    """Compare the counts of the draws with equal ones: chi-square below mean plus 5 sd."""
    counts = Counter(draws)
    cells = list(possible)
    assert set(counts) <= set(cells)
    expected = counts.total() / len(cells)
    assert expected >= 10
    chi_square = sum((counts[cell] - expected) ** 2 / expected for cell in cells)
    freedom = len(cells) - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


def test_sample_draws_every_pair_of_subsets_alike() -> None:
    drawn = Answers.of(np.ones((5, 4))).sample(3000, workers=2, questions=2, seed=7)

    draws = [tuple(tuple(part.tolist()) for part in members(drawn, b)) for b in range(3000)]
    assert_uniform(draws, product(combinations(range(5), 2), combinations(range(4), 2)))


def test_sample_answers_draws_every_subset_of_answers_alike() -> None:
    matrix = np.ones((4, 4))
    matrix[2:, 3] = np.nan  # too few answers for the last question
    drawn = Answers.of(matrix).sample_answers(3000, answers_each=3, questions=2, seed=7)

    draws = []
    for b in range(3000):
        workers, questions = members(drawn, b)
        there = ~np.isnan(drawn.panel(b).to_matrix())
        draws.append(
            (tuple(questions.tolist()), *(tuple(workers[row].tolist()) for row in there.T))
        )
    subsets = list(combinations(range(4), 3))
    assert_uniform(draws, product(combinations(range(3), 2), subsets, subsets))


def test_bootstrap_draws_every_sequence_of_workers_alike() -> None:
    drawn = Answers.of(np.ones((3, 2))).bootstrap(2000, seed=7)

    draws = [tuple(members(drawn, b)[0].tolist()) for b in range(2000)]
    assert_uniform(draws, product(range(3), repeat=3))


def test_jackknife_leaves_out_every_group_alike() -> None:
    base = Answers.of(np.ones((4, 1)))

    draws = [tuple(members(base.jackknife(2, seed=seed), 0)[0].tolist()) for seed in range(300)]
    assert_uniform(draws, combinations(range(4), 2))


# -- no loop over panels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda answers, n: answers.sample(n, workers=3, questions=4),
        lambda answers, n: answers.sample_answers(n, answers_each=2, questions=3),
        lambda answers, n: answers.bootstrap(n),
    ],
    ids=["sample", "sample answers", "bootstrap"],
)
def test_a_hundred_times_the_panels_take_no_more_calls(
    make: Callable[[Answers, int], Answers],
) -> None:
    base = scattered()

    def calls(n_panels: int) -> int:
        count = 0

        def see(*_: object) -> None:
            nonlocal count
            count += 1

        before = sys.getprofile()
        sys.setprofile(see)
        try:
            make(base, n_panels)
        finally:
            sys.setprofile(before)
        return count

    calls(1)  # what is imported on first use
    assert calls(2000) < 2 * calls(20)


# -- where panels have names ------------------------------------------------------------------------


def test_a_named_panel_keeps_its_name_and_those_drawn_from_it_have_none() -> None:
    rows = {"question": [1, 1, 1, 2], "worker": [1, 2, 1, 2], "answer": [1.0, 2.0, 3.0, 4.0]}
    named = Answers.from_frame(rows | {"round": ["x", "y", "y", "x"]}, panel="round")

    one = named.panel(1)

    assert one.origin.panel_ids is not None
    assert one.origin.panel_ids.tolist() == ["y"]
    assert one.bootstrap(3).origin.panel_ids is None


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "argument"),
    [
        (lambda a: a.sample(0, workers=2, questions=2), "n_panels"),
        (lambda a: a.sample(1, workers=0, questions=2), "workers"),
        (lambda a: a.sample(1, workers=WORKERS + 1, questions=2), "workers"),
        (lambda a: a.sample(1, workers=2, questions=0), "questions"),
        (lambda a: a.sample(1, workers=2, questions=QUESTIONS + 1), "questions"),
        (lambda a: a.sample_answers(0, answers_each=2, questions=2), "n_panels"),
        (lambda a: a.sample_answers(1, answers_each=0, questions=2), "answers_each"),
        (lambda a: a.sample_answers(1, answers_each=99, questions=2), "answers_each"),
        (lambda a: a.sample_answers(1, answers_each=2, questions=QUESTIONS), "questions"),
        (lambda a: a.bootstrap(0), "n_panels"),
        (lambda a: a.jackknife(0), "groups"),
        (lambda a: a.jackknife(1), "groups"),
        (lambda a: a.jackknife(WORKERS + 1), "groups"),
        (lambda a: a.panel(1), "number"),
        (lambda a: a.panel(-1), "number"),
        (lambda a: a.bootstrap(2).bootstrap(2), "panels"),
        (lambda a: a.bootstrap(2).jackknife(2), "panels"),
        (lambda a: a.bootstrap(2).sample(2, workers=1, questions=1), "panels"),
        (lambda a: a.bootstrap(2).sample_answers(2, answers_each=1, questions=1), "panels"),
    ],
)
def test_an_impossible_draw_is_refused(draw: Callable[[Answers], Answers], argument: str) -> None:
    with pytest.raises(AnswersError, match=rf"^{argument}\b.*: "):
        draw(scattered())


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("bootstrap", {"n_panels": 10**400}, "n_panels: found 1000"),
        ("bootstrap", {"n_panels": True}, "n_panels: found True"),
        ("sample", {"n_panels": None, "workers": 2, "questions": 2}, "n_panels: found None"),
        ("sample", {"n_panels": 1, "workers": np.ones(2), "questions": 2}, "workers: found array"),
        (
            "sample_answers",
            {"n_panels": 1, "answers_each": np.ones(2), "questions": 2},
            "answers_each: found array",
        ),
        ("jackknife", {"groups": np.array("x")}, "groups: found array"),
        ("jackknife", {"groups": 2, "seed": -1}, "seed: found -1"),
        ("panel", {"number": 0.5}, "number: found 0.5"),
        ("panel", {"number": np.ones(2)}, "number: found array"),
        ("subset", {"questions": None}, "questions: found None"),
        ("subset", {"questions": [0.5]}, "questions: found [0.5]"),
        ("subset", {"questions": [-1]}, "questions: found [-1]"),
    ],
)
def test_what_is_no_whole_number_is_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TrueupError) as error:
        getattr(complete(), name)(**given)
    assert str(error.value).startswith(message)


def test_a_panel_that_nobody_answered_is_refused() -> None:
    both = Answers.of(np.array([[[np.nan]], [[1.0]]]))
    assert trueup.estimate(both.panel(1)).estimate.tolist() == [1.0]
    for function in (trueup.estimate, trueup.compare, trueup.diagnose, trueup.diagnose_all):
        with pytest.raises(AnswersError, match=r"^answers: found none\."):
            function(both.panel(0))

"""Answers: from any input to the question-sorted, centred matrix, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from trueup import Answers, AnswersError, estimate

if TYPE_CHECKING:
    from random import Random

    from trueup.core.arrays import Floats

NAN = np.nan
Key = tuple[object, object, object]


def frame(rows: list[tuple[Any, ...]], *names: str) -> dict[str, list[Any]]:
    """Make a table of rows: question, worker, answer, and further columns."""
    columns = ("question", "worker", "answer", *names)
    return {name: [row[at] for row in rows] for at, name in enumerate(columns)}


def by_id(answers: Answers) -> dict[Key, tuple[float, ...]]:
    """List answer, centre, precision and worker variance by the ids of panel, question, worker."""
    questions, workers = answers.question_ids.tolist(), answers.worker_ids.tolist()
    panels = answers.origin.panel_ids
    found: dict[Key, tuple[float, ...]] = {}
    for j in range(answers.n_questions):
        for at in range(answers.indptr[j], answers.indptr[j + 1]):
            i = int(answers.workers[at])
            b = int(answers.question_panel[j])
            assert answers.worker_panel[i] == b
            key = (None if panels is None else panels.tolist()[b], questions[j], workers[i])
            assert key not in found
            found[key] = (
                answers.values[at] + answers.centre[j],
                answers.centre[j],
                1.0 if answers.precision is None else answers.precision[at],
                NAN if answers.worker_variance is None else answers.worker_variance[i],
            )
    return found


def check_structure(answers: Answers) -> None:
    """What holds for any Answers: sorted, no duplicates, centred at the lower median."""
    assert answers.indptr[0] == 0
    assert answers.indptr[-1] == answers.n_answers == len(answers.workers)
    assert (answers.counts >= 1).all()
    for a, b in zip(answers.indptr[:-1], answers.indptr[1:], strict=True):
        assert (np.diff(answers.workers[a:b]) > 0).all()
        assert np.sort(answers.values[a:b])[(b - a - 1) // 2] == 0.0
    assert len(answers.question_ids) == answers.n_questions
    assert len(answers.worker_ids) == answers.n_workers


MATRICES = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(
            st.one_of(st.just(NAN), st.floats(-1e6, 1e6, width=32)), min_size=width, max_size=width
        ),
        min_size=1,
        max_size=6,
    )
).filter(lambda rows: not np.isnan(np.array(rows)).all())  # fmt: skip


@given(MATRICES)
def test_a_matrix_comes_back_without_its_empty_rows_and_columns(rows: list[list[float]]) -> None:
    matrix = np.array(rows)
    there = ~np.isnan(matrix)
    workers, questions = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))

    answers = Answers.from_matrix(matrix)

    check_structure(answers)
    assert answers.worker_ids.tolist() == workers.tolist()
    assert answers.question_ids.tolist() == questions.tolist()
    expected = matrix[np.ix_(workers, questions)]
    np.testing.assert_allclose(answers.to_matrix(), expected, rtol=1e-12, atol=1e-9)
    centre = [np.sort(column[~np.isnan(column)])[(n - 1) // 2]
              for column, n in zip(expected.T, answers.counts, strict=True)]  # fmt: skip
    assert answers.centre.tolist() == centre


@given(MATRICES, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[list[float]], random: Random) -> None:
    table = [
        (f"q{j}", f"w{i}", value, 1.0 + i + j)
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
    ]
    shuffled = random.sample(table, len(table))

    def read(rows: list[tuple[Any, ...]]) -> Answers:
        return Answers.of(frame(rows, "v"), answer_variance="v")

    one, other = read(table), read(shuffled)

    check_structure(other)
    assert by_id(one).keys() == by_id(other).keys()
    for key, numbers in by_id(one).items():
        assert by_id(other)[key] == pytest.approx(numbers, nan_ok=True)
    assert other.answer_variance == pytest.approx(one.answer_variance)
    present = [row for row in shuffled if not np.isnan(row[2])]
    assert other.question_ids.tolist() == list(dict.fromkeys(row[0] for row in present))
    assert other.worker_ids.tolist() == list(dict.fromkeys(row[1] for row in present))


def matrix_forms() -> dict[str, Any]:
    """Return the same answers in all forms of a matrix."""
    dense = np.array([[0.0, 2.0, NAN], [5.0, NAN, 7.0]])
    rows, columns = np.nonzero(~np.isnan(dense))
    coo = sparse.coo_array((dense[rows, columns], (rows, columns)), shape=dense.shape)
    hidden = np.ma.masked_invalid(dense)
    hidden.data[np.isnan(dense)] = 99.0
    return {
        "float64": dense,
        "float32": dense.astype(np.float32),
        "other order": np.asfortranarray(dense),
        "read-only": read_only(dense),
        "lists": [[0, 2, None], [5, None, 7]],
        "tuples": ((0, 2, NAN), (5, NAN, 7)),
        "text": [["0", "2", "nan"], ["5", "nan", "7"]],
        "masked": hidden,
        "coo": coo,
        "csr": coo.tocsr(),
        "csc": coo.tocsc(),
        "old csr": sparse.csr_matrix(coo),
        "csr of int": coo.tocsr().astype(np.int64),
        "dict": frame([(0, 0, 0), (1, 0, 2), (0, 1, 5), (2, 1, 7), (2, 0, NAN)]),
    }


def read_only(array: Floats) -> Floats:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("form", matrix_forms())
def test_every_form_of_a_matrix_gives_the_same_answers(form: str) -> None:
    answers = Answers.of(matrix_forms()[form])

    expected = {(0, 0): 0.0, (1, 0): 2.0, (0, 1): 5.0, (2, 1): 7.0}
    assert {key[1:]: found[0] for key, found in by_id(answers).items()} == expected
    assert answers.values.dtype == answers.centre.dtype == np.dtype(np.float64)
    check_structure(answers)


def test_whole_numbers_are_answers() -> None:
    answers = Answers.of(np.array([[1, 2], [3, 4]], dtype=np.int16))

    assert answers.to_matrix().tolist() == [[1, 2], [3, 4]]


def test_one_answer_is_enough() -> None:
    answers = Answers.of(frame([("q", "w", 3)]))

    assert repr(answers) == "Answers(1 questions, 1 workers, 1 answers)"
    assert answers.to_matrix().tolist() == [[3.0]]


def test_one_absurd_answer_does_not_eat_the_digits_of_the_others() -> None:
    answers = Answers.of([[1.1], [2.2], [3.3], [6.6e18]])

    assert answers.centre.tolist() == [2.2]
    assert answers.values.tolist() == [1.1 - 2.2, 0.0, 3.3 - 2.2, 6.6e18 - 2.2]
    np.testing.assert_allclose(answers.to_matrix().ravel(), [1.1, 2.2, 3.3, 6.6e18], rtol=1e-15)


def test_equal_answers_differ_by_exactly_nothing() -> None:
    assert Answers.of([[0.1], [0.1], [0.1]]).values.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("variances", [False, True])
@pytest.mark.parametrize("sort", [False, True])
def test_the_arrays_of_the_caller_stay_as_they_are(sort: bool, variances: bool) -> None:
    given = {
        "question": np.array([0, 0, 1] if sort else [1, 1, 0]),
        "worker": np.array([0, 1, 0]),
        "answer": np.array([1.0, 4.0, 2.0]),
        "v": np.array([1.0, 2.0, 1.0]),
    }
    matrix, before = np.array([[1.0, 2.0], [3.0, NAN]]), {k: v.copy() for k, v in given.items()}
    entries = sparse.csc_array(np.array([[1.0, 2.0], [3.0, 4.0]]))

    Answers.of(given, worker_variance="v" if variances else None)
    Answers.of(matrix)
    Answers.of(entries)

    for name, array in given.items():
        assert array.tolist() == before[name].tolist()
    assert np.array_equal(matrix, [[1.0, 2.0], [3.0, NAN]], equal_nan=True)
    assert entries.toarray().tolist() == [[1.0, 2.0], [3.0, 4.0]]


# -- duplicates ------------------------------------------------------------------------------------

TWICE = [("a", "u", 1.0), ("b", "u", 5.0), ("a", "v", 9.0), ("a", "u", 4.0), ("a", "u", 7.0)]


def test_duplicates_are_refused_by_name_with_a_remedy() -> None:
    with pytest.raises(AnswersError) as caught:
        Answers.of(frame(TWICE))

    text = str(caught.value)
    assert text.startswith("duplicates: 2 answers repeat")
    assert text.count('worker "u" on question "a"') == 1
    assert 'duplicates="mean"' in text
    assert 'duplicates="first"' in text


@pytest.mark.parametrize(("rule", "kept"), [("mean", 4.0), ("first", 1.0)])
def test_duplicates_are_merged_by_the_rule(rule: str, kept: float) -> None:
    answers = Answers.of(frame(TWICE), duplicates=rule)

    assert {key[1:]: found[0] for key, found in by_id(answers).items()} == {
        ("a", "u"): kept,
        ("a", "v"): 9.0,
        ("b", "u"): 5.0,
    }
    assert answers.origin.n_duplicates == 2
    check_structure(answers)


@pytest.mark.parametrize("form", ["tocoo", "tocsr", "tocsc"])
@pytest.mark.parametrize(("rule", "kept"), [("mean", 2.5), ("first", 4.0), ("error", None)])
def test_duplicates_stored_in_a_sparse_matrix_follow_the_rule(
    form: str, rule: str, kept: float | None
) -> None:
    # Compressed by hand, as scipy adds duplicates up when it compresses them.
    entries: Any = sparse.csr_array(([4.0, 1.0, 0.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    if form == "tocsc":
        entries = sparse.csc_array(([0.0, 4.0, 1.0], [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    elif form == "tocoo":
        entries = entries.tocoo()

    if kept is None:
        with pytest.raises(AnswersError, match="worker 0 on question 1"):
            Answers.of(entries, duplicates=rule)
    else:
        matrix = Answers.of(entries, duplicates=rule).to_matrix()
        assert np.array_equal(matrix, [[NAN, kept], [0.0, NAN]], equal_nan=True)


def test_the_mean_of_equal_duplicates_is_that_answer() -> None:
    rows = [("a", "u", 0.1)] * 3 + [("a", "v", 0.7)]

    assert by_id(Answers.of(frame(rows), duplicates="mean"))[None, "a", "u"][0] == 0.1


@pytest.mark.parametrize(
    ("rule", "kept", "variance"),
    [("mean", (1.0 / 1 + 5.0 / 3) / (1 / 1 + 1 / 3), 3 / 4), ("first", 1.0, 1.0)],
)
def test_duplicates_of_known_variance_are_merged_by_precision(
    rule: str, kept: float, variance: float
) -> None:
    rows = [("a", "u", 1.0, 1.0), ("a", "u", 5.0, 3.0), ("a", "v", 0.0, 0.5)]

    answers = Answers.of(frame(rows, "s2"), answer_variance="s2", duplicates=rule)

    found = by_id(answers)
    assert found[None, "a", "u"][0] == pytest.approx(kept)
    assert answers.answer_variance / found[None, "a", "u"][2] == pytest.approx(variance)
    assert answers.answer_variance / found[None, "a", "v"][2] == pytest.approx(0.5)
    assert answers.precision is not None
    assert answers.precision.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("data", [frame(TWICE[:3]), [[1.0]], sparse.eye_array(2)])
def test_an_unknown_rule_for_duplicates_is_refused(data: object) -> None:
    with pytest.raises(AnswersError, match=r'^duplicates: "last"'):
        Answers.of(data, duplicates="last")


# -- panels ----------------------------------------------------------------------------------------


def test_a_panel_column_keeps_problems_apart() -> None:
    rows = [("a", "u", 1.0, "y"), ("a", "u", 2.0, "x"), ("b", "v", 3.0, "y"), ("a", "v", 4.0, "x")]

    answers = Answers.from_frame(frame(rows, "round"), panel="round", worker_variance={"v": 2.0})

    check_structure(answers)
    assert repr(answers) == "Answers(3 questions, 4 workers, 4 answers, 2 panels)"
    assert {key: found[0] for key, found in by_id(answers).items()} == {
        ("y", "a", "u"): 1.0,
        ("y", "b", "v"): 3.0,
        ("x", "a", "u"): 2.0,
        ("x", "a", "v"): 4.0,
    }
    assert [found[3] for key, found in by_id(answers).items() if key[2] == "v"] == [2.0, 2.0]
    with pytest.raises(AnswersError, match=r"answers\.panel\(b\)"):
        answers.to_matrix()


def test_three_dimensions_are_panels_also_those_without_an_answer() -> None:
    cube = np.full((5, 2, 3), NAN)
    cube[1] = [[1.0, 2.0, 3.0], [4.0, NAN, 6.0]]
    cube[3] = [[NAN, 9.0, NAN], [NAN, 8.0, NAN]]

    answers = Answers.of(cube)

    check_structure(answers)
    assert answers.n_panels == 5
    assert np.diff(answers.panel_questions).tolist() == [0, 3, 0, 1, 0]
    assert np.diff(answers.panel_workers).tolist() == [0, 2, 0, 2, 0]
    there = {(b, j, i): cube[b, i, j] for b, i, j in zip(*np.nonzero(~np.isnan(cube)), strict=True)}
    assert {key: found[0] for key, found in by_id(answers).items()} == there
    assert answers.question_ids.tolist() == [0, 1, 2, 1]


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.empty((0, 3)), ["answers: there are none"]),
        ([[NAN, NAN]], ["answers: there are none"]),
        (sparse.csr_array((3, 3)), ["answers: there are none"]),
        (frame([]), ['"answer"', "0 rows"]),
        (frame([("a", "u", NAN)]), ['"answer"', "missing"]),
        ([1.0, 2.0], ["answers: ", "1 dimension", "workers x questions"]),
        (sparse.coo_array(np.array([1.0, 2.0])), ["answers: ", "1 dimension"]),
        (np.zeros((1, 1, 1, 1)), ["answers: ", "4 dimension"]),
        ([[1.0, 2.0], [np.inf, 3.0]], ["answers: found inf", "worker 1, question 0"]),
        ([[[1.0]], [[-np.inf]]], ["answers: found -inf", "panel 1, worker 0, question 0"]),
        ([[1.0, -1e200]], ["answers: found -1e+200", "worker 0, question 1", "rescale"]),
        (sparse.coo_array([[0, np.inf]]), ["answers: found inf", "worker 0, question 1"]),
        (frame([("a", "u", 1.0), ("a", "v", np.inf)]), ['"answer"', "infinite", "row 1"]),
        ([[1.0, "x"]], ["answers: ", "not numbers"]),
        ([[1.0], [1.0, 2.0]], ["answers: ", "different length"]),
        ([[1j]], ["answers: ", "not numbers"]),
        ([[10**400]], ["answers: ", "not numbers"]),
        (np.array([["2024-01-01"]], dtype="datetime64[D]"), ["answers: ", "not numbers"]),
    ],
)
def test_what_holds_no_usable_answers_is_refused(data: object, words: list[str]) -> None:
    with pytest.raises(AnswersError, match=".*".join(map(re.escape, words))):
        Answers.of(data)


def test_answers_that_exist_are_taken_as_they_are() -> None:
    answers = Answers.of([[1.0, 2.0]])

    assert Answers.of(answers, question="q", duplicates="mean", panel=None) is answers
    with pytest.raises(AnswersError, match=r"^worker_variance: .*Answers\.of"):
        Answers.of(answers, question="q", answer="a", worker_variance={0: 1.0})


# -- answers as given ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "apart"), [([3.0, 5.0, 40.0], False), ([1e-20, 1.0, 0.1], True)]
)
def test_answers_come_back_to_the_last_digit(column: list[float], apart: bool) -> None:
    """Values are relative to the centre; where that loses digits the answers are kept as well."""
    matrix = np.array([column, column[::-1]]).T
    answers = Answers.from_matrix(matrix)
    assert (answers.given is not None) == apart
    np.testing.assert_array_equal(answers.to_matrix(), matrix)
    for part in (answers.panel(0), answers.subset([1]), answers.bootstrap(1, seed=2)):
        assert set(part.answers.tolist()) <= set(column)
    (block,) = answers.blocks()
    assert block.answers.tolist() == answers.answers.tolist()
    assert block.part(np.array([False, True])).answers.tolist() == sorted(
        column, key=column[::-1].index
    )


# -- variances -------------------------------------------------------------------------------------

VARIANCE = np.array([[1.0, 4.0], [0.5, NAN]])
VALUES = np.array([[3.0, 7.0], [5.0, NAN]])


def with_answer_variance(form: str) -> Answers:
    rows, columns = np.nonzero(~np.isnan(VALUES))
    if form == "frame":
        triples = zip(columns, rows, VALUES[rows, columns], VARIANCE[rows, columns], strict=True)
        return Answers.of(frame(list(triples), "s2"), answer_variance="s2")
    if form == "sparse":
        values, variance = (
            sparse.coo_array((array[rows, columns], (rows, columns)))
            for array in (VALUES, VARIANCE)
        )
        return Answers.of(values, answer_variance=variance)
    if form == "cube":
        return Answers.of(VALUES[None], answer_variance=VARIANCE[None]).panel(0)
    return Answers.of(VALUES, answer_variance=VARIANCE)


@pytest.mark.parametrize("form", ["frame", "matrix", "sparse", "cube"])
def test_answer_variances_become_precisions_with_mean_1(form: str) -> None:
    answers = with_answer_variance(form)

    assert answers.precision is not None
    assert answers.precision.mean() == pytest.approx(1.0)
    variance = {
        key[1:]: answers.answer_variance / found[2] for key, found in by_id(answers).items()
    }
    assert variance == pytest.approx({(0, 0): 1.0, (1, 0): 4.0, (0, 1): 0.5})


@pytest.mark.parametrize("bad", [0.0, -1.0, NAN, np.inf])
def test_an_answer_variance_that_is_not_positive_is_named(bad: float) -> None:
    rows = [("a", "u", 1.0, 1.0), ("a", "v", NAN, 1.0), ("b", "u", 2.0, bad)]
    matrix = [[1.0, 2.0], [1.0, bad]]

    with pytest.raises(AnswersError, match=r'^(answer_variance|Column "s2"): .*row 2'):
        Answers.of(frame(rows, "s2"), answer_variance="s2")
    with pytest.raises(AnswersError, match=r"^answer_variance: .*worker 1 on question 1.*squared"):
        Answers.of([[1.0, 2.0], [3.0, 4.0]], answer_variance=matrix)


@pytest.mark.parametrize(
    ("data", "variance"),
    [
        (VALUES, VARIANCE.T[:1]),
        (VALUES, "s2"),
        (sparse.eye_array(2), np.eye(2)),
        (sparse.eye_array(2), sparse.eye_array(3)),
        (sparse.eye_array(2), sparse.coo_array([[0.0, 1.0], [1.0, 0.0]])),
    ],
)
def test_answer_variances_of_another_shape_are_refused(data: object, variance: object) -> None:
    with pytest.raises(AnswersError, match=r"^answer_variance: "):
        Answers.of(data, answer_variance=variance)


def test_variances_of_answers_and_of_workers_exclude_each_other() -> None:
    with pytest.raises(AnswersError, match="worker_variance, answer_variance: give one"):
        Answers.of([[1.0]], answer_variance=[[1.0]], worker_variance=[1.0])


KNOWN = [("a", "u", 1.0, 4.0), ("b", "v", 2.0, NAN), ("c", "u", 3.0, NAN), ("c", "w", 3.0, 9.0)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("s2", [4.0, NAN, 9.0]),
        ({"w": 9, "u": 4}, [4.0, NAN, 9.0]),
        ({"w": 9.0, "nobody": 1.0, "v": None}, [NAN, NAN, 9.0]),
        (None, None),
    ],
)
def test_known_worker_variances_find_their_workers(
    given: object, expected: list[float] | None
) -> None:
    answers = Answers.of(frame(KNOWN, "s2"), worker_variance=given)

    assert answers.worker_ids.tolist() == ["u", "v", "w"]
    if expected is None:
        assert answers.worker_variance is None
    else:
        assert answers.worker_variance is not None
        assert np.array_equal(answers.worker_variance, expected, equal_nan=True)


def test_a_pandas_series_is_a_mapping_of_worker_variances() -> None:
    pandas = pytest.importorskip("pandas")

    answers = Answers.of(frame(KNOWN), worker_variance=pandas.Series({"u": 4.0, "w": 9.0}))

    assert answers.worker_variance is not None
    assert answers.worker_variance[[0, 2]].tolist() == [4.0, 9.0]


@pytest.mark.parametrize("given", [[1.0, 2.0, 3.0], {0: 1.0, 2: 3.0}, np.array([1, 2, 3])])
@pytest.mark.parametrize("form", ["matrix", "sparse", "cube"])
def test_worker_variances_of_a_matrix_go_by_row_also_past_an_empty_row(
    form: str, given: object
) -> None:
    matrix = np.array([[1.0, 2.0], [NAN, NAN], [5.0, 6.0]])
    data: Any = matrix[None] if form == "cube" else matrix
    if form == "sparse":
        data = sparse.coo_array(np.nan_to_num(matrix))

    answers = Answers.of(data, worker_variance=given)

    assert answers.worker_ids.tolist() == [0, 2]
    assert answers.worker_variance is not None
    assert answers.worker_variance.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"u": 0.0}, ["worker_variance", "positive", '"u"']),
        ({"w": -1.0}, ["worker_variance", "positive", '"w"']),
        ({"w": np.inf}, ["worker_variance", "positive", '"w"']),
        ({"u": "much"}, ["worker_variance", "not numbers"]),
        ({"nobody": 1.0}, ["worker_variance", '"nobody"', "worker column"]),
        ({}, ["worker_variance", "none"]),
        ([1.0, 2.0, 3.0], ["worker_variance", "mapping"]),
        ("none such", ["none such", "not found"]),
    ],
)
def test_unusable_worker_variances_are_refused(given: object, words: list[str]) -> None:
    with pytest.raises(AnswersError, match=".*".join(map(re.escape, words))):
        Answers.of(frame(KNOWN, "s2"), worker_variance=given)


def test_a_worker_with_two_variances_is_named() -> None:
    rows = [("a", "u", 1.0, 4.0), ("a", "v", NAN, 8.0), ("b", "u", 1.0, 5.0)]

    with pytest.raises(AnswersError, match=r'"s2": a worker has two.*(row 0|row 2)'):
        Answers.of(frame(rows, "s2"), worker_variance="s2")


@pytest.mark.parametrize("given", [[1.0], [[1.0, 2.0]], "column", 3.0])
def test_worker_variances_of_a_matrix_have_one_number_per_row(given: object) -> None:
    with pytest.raises(AnswersError, match=r"^worker_variance: "):
        Answers.of([[1.0], [2.0]], worker_variance=given)


@pytest.mark.parametrize("form", matrix_forms())
def test_every_form_of_a_matrix_can_be_estimated_from(form: str) -> None:
    assert estimate(matrix_forms()[form], method="mean").estimate.tolist() == [2.5, 2.0, 7.0]


# -- blocks ----------------------------------------------------------------------------------------


@st.composite
def cubes(draw: st.DrawFn) -> Answers:
    """Draw panels of sparse answers, some panels without any."""
    panels, workers, questions = (draw(st.integers(1, top)) for top in (6, 4, 8))
    density = draw(st.sampled_from([0.1, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    cube = rng.normal(size=(panels, workers, questions))
    cube[rng.random(cube.shape) > density] = NAN
    cube[rng.random(panels) < draw(st.sampled_from([0.0, 0.5]))] = NAN
    cube[rng.integers(panels), 0, 0] = 1.0
    return Answers.of(cube, answer_variance=rng.exponential(size=cube.shape))


@given(cubes(), st.integers(0, 60))
def test_blocks_cover_every_question_once_and_keep_panels_whole(
    answers: Answers, size: int
) -> None:
    blocks = answers.blocks(size)
    size = max(size, answers.n_workers // answers.n_panels)
    assert answers.precision is not None

    at = 0
    for block in blocks:
        assert block.start == at
        assert block.n_questions >= 1
        here = slice(answers.indptr[block.start], answers.indptr[block.stop])
        assert block.values.tolist() == answers.values[here].tolist()
        assert block.precision is not None
        assert block.precision.tolist() == answers.precision[here].tolist()
        assert (block.indptr + answers.indptr[at]).tolist() == answers.indptr[
            block.start : block.stop + 1
        ].tolist()
        assert (block.workers + block.first_worker).tolist() == answers.workers[here].tolist()
        assert block.workers.dtype == block.indptr.dtype

        panels = answers.question_panel[block.start : block.stop]
        assert block.panel_questions[0] == 0
        assert block.panel_slice == slice(panels[0], panels[-1] + 1)
        assert (
            np.repeat(np.arange(panels[0], panels[-1] + 1), np.diff(block.panel_questions)).tolist()
            == panels.tolist()
        )
        assert block.worker_slice == slice(
            answers.panel_workers[panels[0]], answers.panel_workers[panels[-1] + 1]
        )

        if block.n_questions > 1:
            assert len(block.values) <= size
        if block.stop not in answers.panel_questions:  # cut inside a panel: it begins here
            assert panels[0] == panels[-1]
            rest = answers.indptr[answers.panel_questions[panels[0] + 1]] - here.start
            assert rest > size
        at = block.stop
    assert at == answers.n_questions


def test_blocks_are_as_large_as_they_may_be() -> None:
    answers = Answers.of(np.ones((2, 10)))

    assert [block.n_questions for block in answers.blocks(6)] == [3, 3, 3, 1]
    assert [block.n_questions for block in answers.blocks(7)] == [3, 3, 3, 1]
    assert [block.n_questions for block in answers.blocks()] == [10]
    assert [block.n_questions for block in answers.blocks(0)] == [1] * 10


def test_blocks_have_no_fewer_answers_than_workers() -> None:
    answers = Answers.of(np.where(np.eye(4) > 0, 1.0, NAN))

    assert [block.n_questions for block in answers.blocks(1)] == [4]


@pytest.mark.parametrize("wrong", [True, np.ones((2, 2)), {"a": 1.0}])
def test_variances_of_answers_in_a_frame_are_a_column(wrong: Any) -> None:
    columns = {"question": ["a"], "worker": ["u"], "answer": [1.0]}
    with pytest.raises(AnswersError, match=r"^answer_variance: found .* Give the name of a column"):
        Answers.of(columns, answer_variance=wrong)

"""Numbers as people write them: read by what the caller says, never guessed, and the advice that is given works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueup
from frames_by_library import FRAMES
from trueup.answers.answers import Answers
from trueup.errors import AnswersError

QUESTIONS = ("a", "a", "b", "b", "c", "c", "d", "d")


def table(answers: list[Any]) -> dict[str, list[Any]]:
    size = len(answers)
    return {
        "question": list(QUESTIONS[:size]),
        "worker": [i % 2 for i in range(size)],
        "answer": answers,
    }


def values(answers: list[Any], **options: Any) -> list[float]:
    return sorted(Answers.of(table(answers), **options).answers.tolist())


def error_of(answers: list[Any], **options: Any) -> AnswersError:
    with pytest.raises(AnswersError) as caught:
        Answers.of(table(answers), **options)
    assert "\n" not in str(caught.value)
    return caught.value


# Texts, the only options that read all of them, and the numbers.
READABLE: list[tuple[list[Any], dict[str, Any], list[float]]] = [
    (["3,5", "1,031"], {"decimal": ","}, [1.031, 3.5]),
    (["1,234.5", "2"], {"thousands": ","}, [2, 1234.5]),
    (["1,031", "950.5"], {"thousands": ","}, [950.5, 1031]),
    (["1,234,567", "12"], {"thousands": ","}, [12, 1234567]),
    (["0,500", "1,250"], {"decimal": ","}, [0.5, 1.25]),
    (["1.234,5", "3"], {"thousands": "."}, [3, 1234.5]),
    (["1.234.567", "1.234"], {"thousands": "."}, [1234, 1234567]),
    (["1 234", "7"], {"thousands": " "}, [7, 1234]),
    (["1\u202f234", "7"], {"thousands": " "}, [7, 1234]),
    (["1'234", "5"], {"thousands": "'"}, [5, 1234]),
    (["1 234,5", "5"], {"decimal": ",", "thousands": " "}, [5, 1234.5]),
    (["172 cm", "180"], {"strip_units": True}, [172, 180]),
    (["$3.50", "-$4"], {"strip_units": True}, [-4, 3.5]),
    (["€ 5", "6 €"], {"strip_units": True}, [5, 6]),
    (["USD 5", "USD 7.5"], {"strip_units": True}, [5, 7.5]),
    (["12 kg/m2", "1e3 kg/m2"], {"strip_units": True}, [12, 1000]),
    (["20 °C", "-3°C"], {"strip_units": True}, [-3, 20]),
    (["45 %", "12%"], {"strip_units": True}, [12, 45]),
    (["$1,234.50", "$7"], {"strip_units": True, "thousands": ","}, [7, 1234.5]),
    (["1,5 kg", "12 kg"], {"strip_units": True, "decimal": ","}, [1.5, 12]),
]


@pytest.mark.parametrize(("answers", "options", "numbers"), READABLE)
def test_the_error_names_the_options_that_read_the_column(
    answers: list[Any], options: dict[str, Any], numbers: list[float]
) -> None:
    error = error_of(answers)
    assert error.fixes == (options,)
    for name, value in options.items():
        assert f"{name}={value}" in str(error).replace('"', "")
    assert values(answers, **options) == numbers


@pytest.mark.parametrize("library", FRAMES)
def test_text_of_every_library_is_read_alike(library: str) -> None:
    constructor, _ = FRAMES[library]
    frame = constructor(table(["1,031 cm", "950 cm", None, "n/a"]))
    answers = Answers.of(frame, strip_units=True, thousands=",")
    assert sorted(answers.answers.tolist()) == [950, 1031]
    assert answers.n_missing == 2
    answers = Answers.of(constructor(table(["3,5", "-"])), decimal=",")
    assert answers.answers.tolist() == [3.5]
    with pytest.raises(
        AnswersError, match=r'2 have a unit \("1,031 cm"\).*Beside "950 cm" the former is likely'
    ):
        Answers.of(frame)


def test_a_comma_that_may_be_either_is_never_guessed() -> None:
    error = error_of(["1,234", "2,500"])
    assert error.fixes == ({"decimal": ","}, {"thousands": ","})
    assert 'for 1.234 pass decimal=","; for 1234 pass thousands=","' in str(error)
    assert "likely" not in str(error)
    beside = error_of(["1,031", "950"])
    assert beside.fixes == ({"thousands": ","}, {"decimal": ","})
    assert 'for 1031 pass thousands=","; for 1.031 pass decimal=",". Beside "950"' in str(beside)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (
            ["12,34", "1,031"],
            'It has a decimal comma. To read them leave out thousands and pass decimal=","',
        ),
        (["1,23,456", "2"], "is not a number"),
        (["1,0311", "2"], "is not a number"),
        (["0,123", "2"], "is not a number"),
    ],
)
def test_groups_have_three_digits(answers: list[Any], says: str) -> None:
    error = error_of(answers, thousands=",")
    assert "at row 0" in str(error)
    assert says in str(error)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (["5 km", "3 m", "2 m"], 'The units are "m" (2), "km" (1): convert all to one.'),
        (["$3", "€ 5"], 'The units are "$" (1), "€" (1): convert all to one.'),
        (
            ["45 %", "12"],
            "Besides 1 with a percent sign 1 has none: write all in per cent, or none.",
        ),
        (["3,5", "1,234.5"], "written in several ways, of which no option reads all"),
    ],
)
def test_what_no_option_reads_is_told(answers: list[Any], says: str) -> None:
    error = error_of(answers)
    assert says in str(error)
    assert error.fixes == ()


def test_units_that_differ_are_an_error_whatever_is_set_aside() -> None:
    error = error_of(["45 kg", "12 cm", "1 cm"], strip_units=True, skip_bad=True)
    assert 'holds several units, "cm" (2), "kg" (1).' in str(error)
    assert "mixed" in str(error_of(["45 %", "12"], strip_units=True))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("5'8\"", "feet and inches"),
        ("5 ft 8 in", "feet and inches"),
        ("10k", "multiple"),
        ("3 million", "multiple"),
        ("3 Tausend", "multiple"),
        ("3 kEUR", "multiple"),
        ("3 万", "multiple"),
        ("2024-05-01", "date"),
        ("1/2/2024", "date"),
        ("12:30", "time"),
        ("5 pm", "time"),
        ("3-5", "range"),
        ("<5", "bound"),
        ("4/5", "fraction"),
        ("#DIV/0!", "formula error"),
        ("none", "text"),
        ("about", "text"),
    ],
)
def test_what_is_never_taken_for_a_number_is_set_aside_by_kind(text: str, kind: str) -> None:
    answers = ["1", "2", "3", "4", text, "5"]
    for options in ({}, {"strip_units": True}, {"thousands": ","}, {"decimal": ","}):
        assert error_of(answers, **options).fixes == ({"skip_bad": True},)
    est = trueup.estimate(table(answers), skip_bad=True)
    assert dict(est.rejects.counts) == {kind: 1}
    (row,) = est.rejects.rows
    assert (row.row, row.question, row.worker, row.answer, row.why) == (4, "c", 0, text, kind)
    assert f"1 of 6 rows set aside: {kind} (1)" in str(est)
    assert est.problem.n_missing == 0


def test_kinds_are_counted() -> None:
    error = error_of(["172 cm", "180 cm", "tall", "5'8\"", "1", "2", "3"])
    assert "4 of 7 values are not numbers" in str(error)
    kinds = '2 have a unit ("172 cm"), 1 is text ("tall"), 1 is in feet and inches ("5\'8\\"")'
    assert kinds in str(error)
    assert error.fixes == ({"strip_units": True, "skip_bad": True},)
    assert values(["172 cm", "180 cm", "tall", "5'8\"", "1", "2", "3"], **error.fixes[0]) == [
        1,
        2,
        3,
        172,
        180,
    ]


def test_answers_that_are_not_valid() -> None:
    answers = [5, 6, 7, 999, -3, 4]
    error = error_of(answers, valid=(0, 100))
    assert (
        'Column "answer": 2 of 6 values are outside 0 to 100, first at rows 3 (999.0), 4 (-3.0).'
        in str(error)
    )
    assert error.fixes == ({"skip_bad": True},)
    kept = Answers.of(table(answers), valid=[0, 100], skip_bad=True)
    assert sorted(kept.answers.tolist()) == [4, 5, 6, 7]
    assert dict(kept.rejects.counts) == {"outside 0 to 100": 2}
    assert values(answers, valid=(-3, 999)) == sorted(answers)
    for wrong in (5, (1,), (2, 1), ("a", "b"), (np.nan, 1)):
        with pytest.raises(AnswersError, match="valid: found"):
            Answers.of(table(answers), valid=wrong)


def test_rows_without_ids_and_infinite_answers_are_set_aside() -> None:
    rows = {
        "question": ["a", None, "b", "b"],
        "worker": [1, 2, None, 4],
        "answer": [1.0, 2.0, 3.0, np.inf],
    }
    answers = Answers.of(rows, skip_bad=True)
    assert answers.n_answers == 1
    assert dict(answers.rejects.counts) == {"no question": 1, "no worker": 1, "infinite": 1}
    with pytest.raises(
        AnswersError, match="no answers, all 1 values are missing or cannot be used"
    ):
        Answers.of({"question": ["a"], "worker": [1], "answer": ["x"]}, skip_bad=True)


def test_marks_for_no_answer() -> None:
    marks = ["N/A", "NA", "n/a", "-", ".", "null", "#N/A", "—"]
    answers = Answers.of({**table([*marks]), "answer": [*marks[:7], "3"]})
    assert (answers.n_answers, answers.n_missing) == (1, 7)
    est = trueup.estimate(answers)
    assert 'taken for no answer: "-" (1), "." (1)' in str(est)
    assert "3 questions without any answer have no estimate" in str(est)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"thousands": ";"}, 'thousands: found ";"'),
        ({"thousands": ",", "decimal": ","}, "thousands: found"),
        ({"strip_units": "cm"}, "strip_units: found"),
        ({"skip_bad": 1}, "skip_bad: found 1"),
        ({"decimal": ";"}, "decimal: found"),
    ],
)
def test_options_are_checked(options: dict[str, Any], says: str) -> None:
    with pytest.raises(trueup.TrueupError) as caught:
        trueup.estimate(table([1, 2]), **options)
    assert str(caught.value).startswith(says)
    with pytest.raises(trueup.TrueupError, match=r"is for tables|found"):
        trueup.estimate(np.ones((2, 2)), **options)


def test_words_stand_for_separators() -> None:
    assert (
        values(["1'234", "2"], thousands="apostrophe")
        == values(["1 234", "2"], thousands="space")
        == [2, 1234]
    )


def test_covariates_and_gold_are_written_like_the_answers() -> None:
    rows = {**table(["1,5", "2,5", "3,5", "4,5", "5,5", "6,5", "7,5", "8,0"])}
    rows["size"] = [f"{i},5" for i in (1, 1, 2, 2, 3, 3, 4, 4)]
    est = trueup.estimate(rows, decimal=",", covariates="size")
    assert est.question_data.covariates is not None
    assert est.question_data.covariates.values.ravel().tolist() == [1.5, 2.5, 3.5, 4.5]


def test_numbers_beside_text_do_not_hide_how_the_text_is_written() -> None:
    error = error_of([3.5, 2.25, "1,5"])
    assert error.fixes == ({"decimal": ","},)
    assert values([3.5, 2.25, "1,5"], decimal=",") == [1.5, 2.25, 3.5]

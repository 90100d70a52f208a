"""examine(): what it finds, and that what it promises is kept."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trueup
from trueup.answers.answers import Answers
from trueup.answers.scale import Scale
from trueup.cli.wording import as_options
from trueup.errors import TrueupError
from trueup.findings.input_check import examine

NAN = float("nan")


def of(*rows: tuple[Any, Any, Any], **options: Any) -> Answers:
    names = ("question", "worker", "answer")
    columns = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return Answers.of(columns, **options)


def test_enough_answers_need_no_advice() -> None:
    found = examine(trueup.simulate(workers=6, questions=20, seed=1).answers)
    assert found.found == (
        "120 answers from 6 workers to 20 questions",
        "answers per question: 6 each; per worker: 20 each",
        *found.found[2:],
    )
    assert [line.partition(" ")[0] for line in found.found[2:]] == [
        "answers",
        "smallest:",
        "largest:",
    ]
    assert "estimates with intervals, by any aggregation method (first step)" in found.runs
    assert "judging 6 of 6 workers (those with 5 shared answers or more)" in found.runs
    assert "shrinkage (second step), with a search for clusters of questions" in found.runs
    assert found.cannot == found.advice == ()


def test_few_questions_and_workers() -> None:
    found = examine(of(("x", "u", 1), ("x", "v", 2), ("y", "u", 3)))
    assert "1 question with a single answer, which cannot be compared with others" in found.found
    assert found.cannot == (
        "choosing the aggregation method: needs 3 workers, found 2",
        "shrinkage (second step): needs 4 questions, found 2",
    )


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (1, ("1 of 4 rows has no answer and is left out", "1 repeated answer was merged")),
        (2, ("2 of 6 rows have no answer and are left out", "2 repeated answers were merged")),
    ],
)
def test_rows_that_are_left_out_and_merged(times: int, says: tuple[str, ...]) -> None:
    answers = [("x", "u", 1), ("x", "v", 2)]
    more = [("y", "u", NAN), ("x", "u", 1)] * times
    assert examine(of(*answers, *more, duplicates="mean")).found[2::2][:2] == says


def test_no_overlap() -> None:
    found = examine(of(*((f"q{j}", f"w{j}", j) for j in range(9))))
    assert any("no question has two answers" in text for text in found.cannot)
    assert found.runs == (
        "estimates without intervals: the only answer to a question is its estimate",
    )
    assert "(gold=...)" in found.advice[0]
    assert "(--gold)" in as_options(found.text)


def test_agreement_on_everything() -> None:
    found = examine(of(*((q, w, 1) for q in "abcd" for w in "uvw")))
    assert any("all workers agree" in text for text in found.runs)


def sizes(noise: float, *, relative: bool, lowest: float = 1.0, **options: Any) -> Answers:
    draw = np.random.default_rng(0)
    size = lowest * np.geomspace(1, 1000, 30)
    spread = noise * (size if relative else np.ones(30))
    matrix = size + draw.normal(size=(5, 30)) * spread
    return Answers.from_matrix(np.abs(matrix) + 1e-6 if lowest > 0 else matrix, **options)


def test_logarithms_are_announced_where_large_answers_scatter_more() -> None:
    def announced(answers: Answers, scale: Scale | None = None) -> bool:
        found = examine(answers, scale)
        words = any("answers will be combined as logarithms" in text for text in found.advice)
        assert words == ("--transform none combines them as they are" in as_options(found.text))
        return words

    assert announced(sizes(0.2, relative=True))
    assert not announced(sizes(0.2, relative=True), Scale("log"))
    assert not announced(sizes(0.2, relative=False))
    assert not announced(sizes(0.2, relative=True, lowest=-1.0))


def test_weak_signs_of_proportional_errors_are_mentioned() -> None:
    answers = Answers.from_matrix(sizes(0.3, relative=True).to_matrix()[:2, 8:17])
    (advice,) = examine(answers).advice
    assert "errors may grow in proportion to the value, but this is not clear" in advice
    assert trueup.estimate(answers).diagnosis.scale == advice


def test_the_text_leaves_out_what_is_empty() -> None:
    text = str(examine(trueup.simulate(workers=6, questions=20, seed=1).answers))
    assert text.startswith("Found\n  120 answers")
    assert "Can be run\n  " in text
    assert "Cannot" not in text
    assert "Advice" not in text


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    rows=st.dictionaries(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("uvwx")),
        st.one_of(st.integers(-5, 5), st.floats(-1e6, 1e6)),
        min_size=1,
    )
)
def test_what_it_promises_is_kept(rows: dict[tuple[str, str], float]) -> None:
    answers = of(*((question, worker, value) for (question, worker), value in rows.items()))
    found = examine(answers)
    if any("choosing the aggregation method" in text for text in found.runs):
        assert len(trueup.compare(answers, ["mean"], shrink="none")["method"]) > 0
    else:
        with pytest.raises(TrueupError):
            trueup.compare(answers, ["mean"], shrink="none")
    est = trueup.estimate(answers, "mean", "normal")
    assert np.isfinite(est.estimate).all()
    if any("with intervals" in text for text in found.runs):
        assert np.isfinite(est.lower).any()
    if any("second step" in text for text in found.cannot):
        assert est.estimate == pytest.approx(est.base)

"""Anything at all, over the whole public surface: a finite result or one line that says why not.

`make fuzz` tries the same properties for ten minutes, on new examples each time, and prints what it has covered.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import inspect
import io
import json
import math
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import trueup
from fuzz_strategies import (
    COVERED,
    FRAMES,
    METHODS,
    RULES,
    VARIANCES,
    WRONG,
    attempt,
    close,
    examples,
    finite,
    frame_of,
    keywords,
    matrices,
    sound,
    tables,
    write_covered,
)
from trueup import Answers, algorithms, shrinkage, theory
from trueup import variance as variances
from trueup.algorithms import registry
from trueup.algorithms.check import CheckFailed
from trueup.cli import main
from trueup.core.arrays import segment_sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.algorithms.contract import Algorithm

PAIRS = st.tuples(
    st.sampled_from(["q1", "q2", "=q3", "é", "5"]), st.sampled_from(["ann", "bob", "7"])
)
ALGORITHMS, SHRINK_RULES = registry._builtin, shrinkage.registry._RULES

for needed in ("pandas", "polars", "pyarrow", "duckdb", "cyclopts"):
    pytest.importorskip(needed, reason="needs the test dependencies")


@pytest.fixture(scope="module", autouse=True)
def count_what_was_covered() -> Iterator[None]:
    yield
    write_covered()


# -- any answers -----------------------------------------------------------------------------------


@examples(60)
@given(columns=tables(), kind=st.sampled_from(FRAMES), how=keywords(("method", "duplicates")))
def test_any_table_is_estimated_from_or_refused(
    columns: dict[str, list[Any]], kind: str, how: dict[str, Any]
) -> None:
    frame = frame_of(kind, columns)
    est = attempt(
        f"estimate a {kind} table", lambda: trueup.estimate(frame, **how), trueup.estimate
    )
    if est is not None:
        COVERED[f"method {est.diagnosis.method}"] += 1
        sound(est)


@examples(30)
@given(
    data=st.one_of(WRONG, st.lists(st.lists(st.floats(), max_size=3), max_size=3), st.text()),
    what=st.sampled_from(["estimate", "compare", "diagnose", "diagnose_all"]),
)
def test_what_is_no_answers_is_refused(data: Any, what: str) -> None:
    found = attempt(f"{what} anything", lambda: getattr(trueup, what)(data))
    if found is not None and what == "estimate":
        sound(found)


# -- any keywords ----------------------------------------------------------------------------------

OF_FILES = (
    "sep", "decimal", "thousands", "strip_units", "skip_bad", "valid", "encoding", "skip_lines", "sheet", "wide", "sql",
    "anonymous", "worker_from", "from_format", "where",
)  # fmt: skip
OF_ESTIMATE = (
    *OF_FILES, "target", "kind", "panel",
    "method", "shrink", "variance", "groups", "covariates", "transform", "bounds", "worker_variance",
    "answer_variance", "duplicates", "gold", "bias", "caution", "level", "max_iter", "tol", "seed", "progress",
    "threads",
)  # fmt: skip
OF_COMPARE = (
    *OF_FILES,
    "methods", "truth", "shrink", "max_iter", "tol", "seed", "threads", "transform", "bounds", "worker_variance",
    "answer_variance", "duplicates",
)  # fmt: skip
OF_DIAGNOSE = (
    *OF_FILES, "method", "panels", "max_iter", "tol", "seed", "transform", "bounds", "duplicates", "threads",
    "worker_variance", "answer_variance",
)  # fmt: skip
OF_UPDATE = (
    "duplicates", "groups", "covariates", "gold", "worker_variance", "answer_variance", "threads", "progress",
)  # fmt: skip
ON_DISK = (
    "method", "shrink", "variance", "transform", "bounds", "worker_variance", "answer_variance", "duplicates", "bias",
    "caution", "level", "max_iter", "tol", "seed", "progress", "threads", "question", "worker", "answer", "sep",
    "decimal", "thousands", "strip_units", "skip_bad", "valid", "encoding", "skip_lines", "strict", "keep",
    "memory_limit", "groups", "covariates", "gold",
)  # fmt: skip


def test_every_keyword_is_tried() -> None:
    columns = {"answers", "question", "worker", "answer", "reading", "options", "progress"}
    for function, tried in (
        (trueup.estimate, OF_ESTIMATE),
        (trueup.compare, OF_COMPARE),
        (trueup.diagnose, OF_DIAGNOSE),
    ):
        assert not set(inspect.signature(function).parameters) - {*tried, *columns}


@examples(70)
@given(x=matrices(), how=keywords(OF_ESTIMATE))
def test_any_keywords_of_estimate(x: Any, how: dict[str, Any]) -> None:
    est = attempt("estimate with keywords", lambda: trueup.estimate(x, **how), trueup.estimate)
    if est is not None:
        COVERED[f"shrink {est.diagnosis.shrink}"] += 1
        sound(est)


@examples(25)
@given(x=matrices(), how=keywords(OF_COMPARE))
def test_any_keywords_of_compare(x: Any, how: dict[str, Any]) -> None:
    how = {"methods": ["mean", "crh"], **how}
    board = attempt("compare", lambda: trueup.compare(x, **how), trueup.compare)
    if board is not None:
        numbers = board[
            [each for each in board if each not in ("method", "shrink", "auto", "risk_se")]
        ]
        assert np.isfinite(numbers.to_numpy()).all(), board
        assert (numbers["behind"].iloc[0], numbers["behind"].min()) == (0.0, 0.0)


@examples(25)
@given(x=matrices(), how=keywords(OF_DIAGNOSE))
def test_any_keywords_of_diagnose(x: Any, how: dict[str, Any]) -> None:
    how = {"panels": 8, **how}
    found = attempt("diagnose", lambda: trueup.diagnose(x, **how), trueup.diagnose)
    if found is not None:
        finite(found)
        assert 0 <= found.uniformity <= 1
        assert len(str(found)) > 0


@examples(12)
@given(x=matrices(), how=keywords((*OF_DIAGNOSE, "target_se")))
def test_any_keywords_of_diagnose_all(x: Any, how: dict[str, Any]) -> None:
    how = {"panels": 8, **how}
    found = attempt("diagnose_all", lambda: trueup.diagnose_all(x, **how), trueup.diagnose_all)
    if found is not None:
        assert len(found.workers.flags) > 0
        assert len(str(found)) > 0


@examples(25)
@given(
    x=matrices(),
    more=matrices(),
    before=keywords(("method", "shrink", "groups", "gold", "transform", "worker_variance"), most=2),
    how=keywords(OF_UPDATE),
)
def test_any_keywords_of_update(
    x: Any, more: Any, before: dict[str, Any], how: dict[str, Any]
) -> None:
    est = attempt("estimate with keywords", lambda: trueup.estimate(x, **before))
    if est is not None:
        new = attempt(
            "update with keywords",
            lambda: trueup.update(est, more, **{"duplicates": "replace", **how}),
            trueup.update,
        )
        if new is not None:
            sound(new)


DRAWS = ("sample", "sample_answers", "bootstrap", "jackknife", "panel", "subset")


@examples(25)
@given(x=matrices(), name=st.sampled_from(DRAWS), data=st.data())
def test_any_panels(x: Any, name: str, data: st.DataObject) -> None:
    draw = getattr(Answers.of(x), name)
    right = st.lists(st.integers(-1, 8), max_size=4) if name == "subset" else st.integers(-1, 8)
    how = {
        each: data.draw(st.one_of(right, right, WRONG), label=each)
        for each in inspect.signature(draw).parameters
    }
    found = attempt(f"draw by {name}", lambda: draw(**how), draw)
    if found is not None:
        assert np.isfinite(found.values).all()


SIMULATED: dict[str, st.SearchStrategy[Any]] = {
    "workers": st.integers(-1, 12),
    "questions": st.integers(-1, 12),
    "panels": st.integers(0, 3),
    "truth": st.sampled_from(
        ["normal", "constant", "uniform", "exponential", "heavy", "clustered", "two_points", "x"]
    )
    | st.lists(st.floats(), max_size=4),
    "truth_mean": st.floats(),
    "truth_scale": st.floats(),
    "variance": st.sampled_from(["normal", "fixed", "square", "inverse_gamma", 3])
    | st.lists(st.floats(0, 9), max_size=4),
    "variance_scale": st.floats(),
    "as_std": st.booleans(),
    "noise": st.sampled_from(["normal", "laplace", "student", "exponential", "x"]),
    "centred": st.booleans(),
    "bias": st.floats(-1, 9),
    "spammers": st.floats(-1, 2),
    "correlation": st.floats(-1, 2),
    "density": st.floats(-1, 2),
    "answers_per_question": st.integers(-1, 12),
    "seed": st.integers(-1, 2**70),
}


@examples(60)
@given(
    how=st.fixed_dictionaries({}, optional={name: each | WRONG for name, each in SIMULATED.items()})
)
def test_any_simulation(how: dict[str, Any]) -> None:
    # More would be drawn than this machine holds, which is not what is tried here.
    if any(isinstance(how.get(each), int) and how[each] > 99 for each in ("workers", "questions")):
        return
    if isinstance(how.get("panels"), int) and how["panels"] > 99:
        return
    found = attempt("simulate", lambda: trueup.simulate(**how), trueup.simulate)
    if found is not None:
        assert np.isfinite(found.truth).all()
        assert np.isfinite(found.answers.values).all()
        assert np.isfinite(found.worker_variance).all()


# -- any parameters --------------------------------------------------------------------------------


def parameters(owner: type) -> st.SearchStrategy[dict[str, Any]]:
    """Draw parameters of a frozen dataclass from their types, now and then of another type."""
    drawn: dict[str, st.SearchStrategy[Any]] = {}
    for field in dataclasses.fields(owner):
        kind = str(field.type)
        if kind.startswith("Literal"):
            right: st.SearchStrategy[Any] = st.sampled_from(
                ast.literal_eval(kind.removeprefix("Literal"))
            )
        elif kind == "bool":
            right = st.booleans()
        else:
            right = st.one_of(
                st.floats(0, 20), st.floats(), st.sampled_from([0.0, 1.0, 1e-300, 1e300, -1.0, 2])
            )
        drawn[field.name] = st.one_of(right, right, right, WRONG)
    return st.fixed_dictionaries({}, optional=drawn)


@examples(6)
@given(data=st.data())
def test_any_parameters_pass_the_checks_for_algorithms_and_rules(data: st.DataObject) -> None:
    owner = data.draw(st.sampled_from((*ALGORITHMS, *SHRINK_RULES)))
    chosen = data.draw(parameters(owner), label="parameters")
    made: Any = attempt("make an algorithm or a rule", lambda: owner(**chosen))
    if made is not None:
        check = algorithms.check_algorithm if owner in ALGORITHMS else shrinkage.check_shrink_rule
        with suppress(CheckFailed):  # such as that of a rule that pulls toward zero
            passed = attempt(f"{check.__name__} {owner.__name__}", lambda: check(made))
            assert passed is None or len(passed) >= 7


RULE = st.sampled_from([*variances.names(), "no such rule"]) | st.floats() | st.floats(0, 9) | WRONG


@examples(40)
@given(x=matrices(), rule=RULE, method=st.sampled_from(["mean", "median", "gtm", "crh", "native"]))
def test_any_variance_rule_on_any_answers(x: Any, rule: Any, method: str) -> None:
    est = attempt("estimate with keywords", lambda: trueup.estimate(x, method, "none"))
    if est is None:
        return
    found = attempt(
        "variance.variances", lambda: variances.variances(rule, est.answers, est.aggregate)
    )
    if found is not None:
        assert not np.isinf(found).any()
        assert not (found < 0).any()
    noise = attempt("variance.worker_noise", lambda: variances.worker_noise(est.answers))
    assert noise is not None
    assert (noise.variance >= 0).all()
    assert np.isfinite(noise.variance).all()


@examples(60)
@given(data=st.data(), x=matrices())
def test_any_parameters_of_algorithms(data: st.DataObject, x: Any) -> None:
    owner = data.draw(st.sampled_from(ALGORITHMS))
    given_parameters = data.draw(parameters(owner))
    made: Algorithm | None = attempt("make an algorithm", lambda: owner(**given_parameters))
    if made is not None:
        known: dict[str, Any] = {"worker_variance": {0: 1.0}} if made.needs_variance else {}
        est = attempt(f"estimate by {owner.__name__}", lambda: trueup.estimate(x, made, **known))
        if est is not None:
            sound(est)


AGGREGATES = st.one_of(
    st.floats(-10, 10), st.floats(-1e150, 1e150), st.sampled_from([0.0, 1.0, math.nan, math.inf])
)


@examples(80)
@given(
    data=st.data(),
    x=st.lists(AGGREGATES, max_size=9),
    v=st.one_of(
        st.floats(-1, 10),
        st.floats(),
        st.lists(st.floats(0, 1e150), max_size=9),
        WRONG,
    ),
    split=st.integers(-1, 10) | st.none(),
)
def test_any_parameters_of_shrink_rules(
    data: st.DataObject, x: list[float], v: Any, split: int | None
) -> None:
    owner = data.draw(st.sampled_from(SHRINK_RULES))
    made: shrinkage.ShrinkRule | None = attempt(
        "make a rule", lambda: owner(**data.draw(parameters(owner), label="parameters"))
    )
    if made is None:
        return
    panels = None if split is None else np.array([0, split, len(x)])

    def both() -> Any:
        return made.fit(x, v, panels=panels).posterior(x, v, panels=panels)  # type: ignore[arg-type]

    found = attempt(f"shrink by {owner.__name__}", both)
    if found is not None:
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.shrinkage).all()
        assert not np.isinf(found.variance).any()
        assert not (found.variance < 0).any()


NUMBER = st.one_of(
    st.floats(0.01, 100), st.floats(), st.sampled_from([0.0, 1.0, 1e-30, 1e30, 1e-200, -1.0])
)
NUMBERS = st.lists(NUMBER, min_size=1, max_size=9)
SAMPLES = st.integers(1, 9).flatmap(
    lambda m: st.lists(
        st.lists(st.floats(-10, 10) | NUMBER, min_size=m, max_size=m), min_size=1, max_size=5
    )
)
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("m",), st.integers(-1, 60) | st.sampled_from([10**12, 10**13, 4])),
    **dict.fromkeys(("x", "truth", "variances", "guesses", "weights", "probabilities"), NUMBERS),
    **dict.fromkeys(("samples", "aggregates"), SAMPLES),
    **dict.fromkeys(("slopes",), NUMBER | NUMBERS),
    "psi": NUMBER | NUMBERS,
    "version": st.sampled_from(["tight", "squared", "printed", "exact", "other"]),
}
WITH_A_FUNCTION = ("numerical_slope", "slope")
THEORY = tuple(
    name
    for name in theory.__all__
    if inspect.isfunction(getattr(theory, name)) and name not in WITH_A_FUNCTION
)


@examples(250)
@given(name=st.sampled_from(THEORY), data=st.data())
def test_any_numbers_in_the_theory(name: str, data: st.DataObject) -> None:
    function = getattr(theory, name)
    how = {}
    for each, about in inspect.signature(function).parameters.items():
        if about.default is inspect.Parameter.empty or data.draw(st.booleans()):
            right = ARGUMENTS.get(each, NUMBER)
            how[each] = data.draw(st.one_of(right, right, right, right, WRONG), label=each)
    found = attempt(f"theory.{name}", lambda: function(**how), function)
    if found is not None:
        finite(found)
        assert len(str(found)) > 0


@examples(20)
@given(samples=SAMPLES, scale=NUMBER, constant=st.booleans())
def test_any_numbers_in_slopes(samples: Any, scale: float, constant: bool) -> None:
    owner = theory.ConstantPsi if constant else theory.SpreadPsi
    for name in WITH_A_FUNCTION:
        found = attempt(f"theory.{name}", lambda n=name: getattr(theory, n)(owner(scale), samples))  # type: ignore[misc]
        if found is not None:
            finite(found)


# -- invariances -----------------------------------------------------------------------------------


def by_id(est: Any, name: str = "estimate") -> dict[Any, float]:
    """Return numbers by the id of their question."""
    ids = est.answers.question_ids.tolist()
    return dict(zip(ids, getattr(est, name).tolist(), strict=True))


def quietly(*arguments: Any, **how: Any) -> Any:
    """Estimate without warnings."""
    return attempt("estimate twice", lambda: trueup.estimate(*arguments, **how))


def amplified(*estimates: trueup.Estimate) -> float:
    """Return how much the second step enlarges rounding errors: plain rules of the paper may go far past the mean."""
    return max(1.0, *(float(np.nanmax(np.abs(est.shrinkage))) for est in estimates))


@examples(30)
@given(
    x=matrices(coarse=True),  # a shift would swallow what is tiny
    method=st.sampled_from([each for each in METHODS if each not in ("auto", "blue", "kdem")]),
    shrink=st.sampled_from([each for each in RULES if each != "stein"]),
    scale=st.sampled_from([-3.0, 0.25, 1024.0, 1e-30, 1e40]),
    shift=st.sampled_from([0.0, 8.0, -1000.0]),
)
@example(
    x=np.outer([0, 0, 1], [0, 0, 0, 0.25]), method="crh", shrink="paper", scale=-3.0, shift=8.0
)
def test_answers_in_other_units_give_estimates_in_other_units(
    x: Any, method: str, shrink: str, scale: float, shift: float
) -> None:
    shift = shift * abs(scale)
    first, other = (quietly(each, method, shrink) for each in (x, scale * x + shift))
    assert (first is None) == (other is None)
    if first is None:
        return
    size = abs(scale) * float(np.nanmax(np.abs(x))) + abs(shift)
    size *= amplified(first, other)
    close(other.estimate, scale * first.estimate + shift, size)
    close(other.std_error, abs(scale) * first.std_error, size, rel=1e-6)


@examples(25)
@given(
    columns=tables(tame=True),
    method=st.sampled_from(METHODS[:-1]),
    shrink=st.sampled_from(RULES),
    shuffle=st.randoms(use_true_random=False),
)
def test_order_of_rows_and_names_of_questions_change_nothing(
    columns: dict[str, list[Any]], method: str, shrink: str, shuffle: Any
) -> None:
    known = {"worker_variance": {columns["worker"][0]: 1.0}} if method == "blue" else {}
    order = list(range(len(columns["answer"])))
    shuffle.shuffle(order)
    mixed = {name: [column[i] for i in order] for name, column in columns.items()}
    new = {old: f"new {number}" for number, old in enumerate(dict.fromkeys(columns["question"]))}
    named = {**mixed, "question": [new[each] for each in mixed["question"]]}
    first, second, third = (
        quietly(each, method, shrink, **known) for each in (columns, mixed, named)
    )
    assert (first is None) == (second is None) == (third is None)
    if first is None:
        return
    size = max(abs(each) for each in columns["answer"]) * amplified(first, second, third)
    left, right, renamed = by_id(first), by_id(second), by_id(third)
    for name, value in left.items():
        assert right[name] == pytest.approx(value, rel=1e-7, abs=1e-7 * size + 1e-300)
        assert renamed[new[name]] == pytest.approx(value, rel=1e-7, abs=1e-7 * size + 1e-300)


# -- round trips -----------------------------------------------------------------------------------


@examples(25)
@given(columns=tables(tame=True), kind=st.sampled_from(["pandas", "polars", "pyarrow"]))
def test_every_kind_of_frame_gives_the_same(columns: dict[str, list[Any]], kind: str) -> None:
    frame = frame_of(kind, columns)
    plain, framed = quietly(columns, "mean"), quietly(frame, "mean")
    assert (plain is None) == (framed is None)
    if plain is None:
        return
    assert by_id(framed) == by_id(plain)
    assert type(framed.questions).__module__.startswith(kind)
    for part in ("questions", "workers"):
        columns_of = (
            [str(each) for each in getattr(framed, part).columns] if kind == "pandas" else None
        )
        assert columns_of is None or columns_of == list(getattr(plain, part))


@examples(40)
@given(x=matrices())
def test_a_matrix_comes_back_as_it_was(x: Any) -> None:
    answers = Answers.of(x)
    asked, answered = ~np.isnan(x).all(axis=0), ~np.isnan(x).all(axis=1)
    back = answers.to_matrix()
    np.testing.assert_allclose(
        back,
        x[answered][:, asked] if back.shape != x.shape else x,
        rtol=1e-12,
        atol=1e-15 * np.nanmax(np.abs(x)),
    )
    again = Answers.of(back)
    np.testing.assert_array_equal(again.values, answers.values)
    assert segment_sum(again.values**0, again.indptr).sum() == (~np.isnan(x)).sum()


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    COVERED[f"command {arguments[0] if arguments else ''}: code {code}"] += 1
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write_answers(path: Path, columns: dict[str, list[Any]]) -> None:
    """Write answers as CSV, Parquet or JSON lines."""
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([tuple(columns), *rows])


def read_estimates(path: Path) -> list[dict[str, Any]]:
    """Read estimates back, with ids as text."""
    rows: list[dict[str, Any]]
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".json":
        rows = json.loads(path.read_text("utf-8"))["questions"]
    else:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return rows


@examples(14)
@given(
    columns=tables(tame=True),
    source=st.sampled_from([".csv", ".parquet", ".jsonl"]),
    target=st.sampled_from([".csv", ".parquet", ".json"]),
)
def test_files_through_the_command_line_give_what_python_gives(
    folder: Path, columns: dict[str, list[Any]], source: str, target: str
) -> None:
    plain: dict[str, list[Any]] = {
        name: [f"i{ord(str(each)[0])}{each!r}" for each in columns[name]]
        for name in ("question", "worker")
    } | {"answer": [float(each) for each in columns["answer"]]}
    here, there = folder / f"answers{source}", folder / f"truths{target}"
    write_answers(here, plain)
    expected = quietly(plain, "mean", "normal")
    code, out, err = run(
        "estimate", str(here), "--method", "mean", "--shrink", "normal", "-o", str(there)
    )
    assert (code == 0) == (expected is not None), (out, err)
    if expected is None:
        return
    found = {row["question"]: float(row["estimate"]) for row in read_estimates(there)}
    size = max(abs(each) for each in plain["answer"])
    assert found.keys() == by_id(expected).keys()
    for name, value in by_id(expected).items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * size + 1e-300)


LINES = "question,worker,answer\n" + "".join(
    f"q{j},w{i},{(7 * i + 3 * j) % 11}\n" for i in range(4) for j in range(5)
)
READING = ("question", "worker", "answer", "sep", "decimal", "encoding", "wide")


@examples(20)
@given(how=keywords(READING))
def test_any_way_of_reading(folder: Path, how: dict[str, Any]) -> None:
    path = folder / "read.csv"
    path.write_text(LINES, "utf-8")
    est = attempt("estimate from a file", lambda: trueup.estimate(path, "mean", **how))
    if est is not None:
        sound(est)


# -- memory and disk -------------------------------------------------------------------------------


@examples(8)
@given(
    columns=tables(tame=True, rows=20),
    method=st.sampled_from(["auto", "mean", "median", "crh", "gtm", "native", "iptd", "kdem"]),
    shrink=st.sampled_from(RULES),
    variance=st.sampled_from(
        [None, *(each for each in VARIANCES if each not in ("jackknife", "bootstrap"))]
    ),
    bias=st.booleans(),
)
def test_disk_gives_what_memory_gives(
    folder: Path,
    columns: dict[str, list[Any]],
    method: str,
    shrink: str,
    variance: str | None,
    bias: bool,
) -> None:
    from trueup.disk import estimate as on_disk

    path, out = folder / "disk.parquet", folder / "out.parquet"
    write_answers(path, columns)
    how: dict[str, Any] = {"bias": bias, "duplicates": "mean"}
    memory = quietly(str(path), method, shrink, variance, **how)
    disk = attempt(
        "estimate on disk", lambda: on_disk(str(path), out, method, shrink, variance, **how)
    )
    assert (memory is None) == (disk is None)
    if memory is None:
        return
    size = max(abs(each) for each in columns["answer"]) * amplified(memory)
    rows = {row["question"]: row for row in read_estimates(out)}
    for name in ("estimate", "base", "std_error", "lower", "upper"):
        for question, value in by_id(memory, name).items():
            found = rows[question][name]
            assert math.isnan(value) == (found is None)
            if found is not None:
                assert found == pytest.approx(value, rel=1e-7, abs=1e-7 * size + 1e-300)


@examples(12)
@given(how=keywords(ON_DISK))
def test_any_keywords_on_disk(folder: Path, how: dict[str, Any]) -> None:
    from trueup.disk import estimate as on_disk

    path, out = folder / "plain.csv", folder / "out.parquet"
    path.write_text(LINES, "utf-8")
    est = attempt("estimate on disk with keywords", lambda: on_disk(path, out, **how), on_disk)
    if est is not None:
        finite([row["estimate"] for row in read_estimates(out)])
        assert len(str(est)) > 0


# -- save, load, update ----------------------------------------------------------------------------


class Updates(RuleBasedStateMachine):
    """Answers come in one after another, are saved and loaded: it is as if all had come at once."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "state.trueup")
        self.rows: dict[tuple[str, str], float] = {}
        self.est: Any = None

    @staticmethod
    def frame(rows: dict[tuple[str, str], float]) -> dict[str, list[Any]]:
        return {
            "question": [q for q, _ in rows],
            "worker": [w for _, w in rows],
            "answer": list(rows.values()),
        }

    @initialize(
        rows=st.dictionaries(PAIRS, st.integers(-9, 9).map(float), min_size=1, max_size=8),
        method=st.sampled_from(["mean", "median", "gtm", "dtd"]),
    )
    def begin(self, rows: dict[tuple[str, str], float], method: str) -> None:
        self.rows = dict(rows)
        self.method = method
        # All iterations: where truths stand still from the first on, weights may not be where they end.
        self.how: dict[str, Any] = {"max_iter": 200, "tol": 0.0}
        self.est = quietly(self.frame(rows), method, "normal", **self.how)

    @rule(
        rows=st.dictionaries(PAIRS, st.integers(-9, 9).map(float), min_size=1, max_size=5),
        saved=st.booleans(),
    )
    def more(self, rows: dict[tuple[str, str], float], saved: bool) -> None:
        state = self.est.save(self.path) if saved else self.est
        new = attempt(
            "update", lambda: trueup.update(state, self.frame(rows), duplicates="replace")
        )
        assert new is not None
        self.est, self.rows = new, {**self.rows, **rows}
        if saved:
            assert by_id(trueup.load(self.path)) == by_id(new)

    @rule(data=st.data())
    def the_same_again(self, data: st.DataObject) -> None:
        pair = data.draw(st.sampled_from(sorted(self.rows)))
        again = self.frame({pair: self.rows[pair]})
        assert attempt("update", lambda: trueup.update(self.est, again)) is None  # refused
        kept = trueup.update(self.est, again, duplicates="first")
        close(kept.estimate, self.est.estimate, 10.0)

    @rule()
    def save_and_load(self) -> None:
        before = by_id(self.est)
        self.est = trueup.load(self.est.save(self.path))
        assert by_id(self.est) == before

    @invariant()
    def it_is_as_if_all_had_come_at_once(self) -> None:
        if self.est is None:
            return
        sound(self.est)
        whole = by_id(quietly(self.frame(self.rows), self.method, "normal", **self.how))
        found = by_id(self.est)
        assert found.keys() == whole.keys()
        for name, value in whole.items():
            assert found[name] == pytest.approx(value, rel=1e-6, abs=1e-5)

    def teardown(self) -> None:
        self.folder.cleanup()


TestUpdates = Updates.TestCase
TestUpdates.settings = settings(examples(2), stateful_step_count=5)

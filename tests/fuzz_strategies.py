"""What the fuzz tests draw from, what they check, and the count of what they have covered.

With HYPOTHESIS_PROFILE=long (`make fuzz`) every property is tried on many more examples, and on other ones each time.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import json
import math
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from trueup.errors import TrueupError, TrueupWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.result.estimate import Estimate

T = TypeVar("T")

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
TIMES = 3
LONGEST_MESSAGE = 2_000
COVERED: Counter[str] = Counter()


def examples(few: int) -> settings:
    """Say how many examples a property is tried on; more of them in the long profile."""
    return settings(
        max_examples=TIMES * few if LONG else few,
        suppress_health_check=list(HealthCheck),
    )


def write_covered() -> None:
    """Add what was covered to the file that TRUEUP_FUZZ_REPORT names."""
    if path := os.environ.get("TRUEUP_FUZZ_REPORT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(COVERED) + "\n")
    COVERED.clear()  # another file of tests may follow in this process


# -- what must hold --------------------------------------------------------------------------------


def attempt(what: str, call: Callable[[], T], of: Callable[..., Any] | None = None) -> T | None:
    """Call; return what came out, or None where it was refused in one line. Anything else is an error.

    Warnings of ours are welcome; those of numpy, such as a division by zero, are errors. An error names an argument of
    `of`, the function that is called, if it names any.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TrueupWarning)
        try:
            found = call()
        except (TrueupError, TypeError) as error:
            message = str(error)
            argument = getattr(error, "argument", None)
            if of is not None and str(argument).isidentifier() and argument is not None:
                assert argument in inspect.signature(of).parameters, message
        else:
            COVERED[f"{what}: done"] += 1
            return found
    assert message
    assert "\n" not in message, message
    assert len(message) < LONGEST_MESSAGE, message
    COVERED[f"{what}: refused"] += 1
    return None


def sound(est: Estimate) -> None:
    """Check an estimate: finite where it must be, unknown as a whole or not at all, in order, and printable."""
    m = est.answers.n_questions
    for name in ("estimate", "base", "shrinkage"):
        values = getattr(est, name)
        assert values.shape == (m,), name
        assert np.isfinite(values).all(), (name, values)
    unknown = np.isnan(est.std_error)
    np.testing.assert_array_equal(np.isnan(est.lower), unknown)
    np.testing.assert_array_equal(np.isnan(est.upper), unknown)
    for values in (est.std_error, est.base_std_error):
        assert not np.isinf(values).any()
        assert (np.isnan(values) | (values >= 0)).all()
    slack = 1e-9 * (np.abs(est.estimate) + np.abs(np.where(unknown, 0.0, est.std_error)))
    assert (unknown | (est.lower <= est.estimate + slack)).all()
    assert (unknown | (est.upper >= est.estimate - slack)).all()
    if unknown.any():
        assert est.diagnosis.assumptions or est.diagnosis.gold
    low, high = est.truth_lower, est.truth_upper
    np.testing.assert_array_equal(np.isnan(low), np.isnan(high))
    assert not np.isinf(low).any()
    assert not np.isinf(high).any()
    assert (np.isnan(low) | (low <= high)).all(), (low, high)
    assert (np.isnan(low) | ((low <= est.estimate + slack) & (est.estimate - slack <= high))).all()
    for values in (est.lower, est.upper):
        assert not np.isinf(values).any()
    if est.plan.bounds is not None:
        least, most = map(float, est.plan.bounds)
        for values in (est.estimate, est.lower, est.upper, low, high):
            assert (np.isnan(values) | ((values >= least) & (values <= most))).all(), values
    columns = est.worker_columns
    assert np.isfinite(columns["weight"]).all()
    assert (columns["weight"] >= 0).all()
    variance = columns["variance"]
    assert (np.isnan(variance) | (np.isfinite(variance) & (variance >= 0))).all()
    assert not np.isinf(columns["bias"]).any()
    assert len(str(est)) > 0
    assert len(est.questions) > 0
    assert len(est.workers) > 0


def close(left: Any, right: Any, size: float, rel: float = 1e-7) -> None:
    """Check that two arrays agree, relative to a size."""
    np.testing.assert_allclose(left, right, rtol=rel, atol=rel * size)


def finite(value: Any) -> None:
    """Check that all numbers in a result are numbers."""
    if isinstance(value, float | int | np.number):
        assert math.isfinite(value), value
    elif isinstance(value, np.ndarray):
        assert np.isfinite(value).all(), value
    elif isinstance(value, tuple | list):
        for each in value:
            finite(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            finite(getattr(value, name))


# -- ids, answers, frames --------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["=1+1", "007", "7", "7.0", " ", "NaN", "null", "é😀", "\u202ex", "a\nb", "'"]),
)
IDS: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "whole": st.integers(-5, 5) | st.sampled_from([2**31, 2**53 + 1, -(2**63), 2**63 - 1]),
    "number": st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e300, math.nan, math.inf]),
    "truth value": st.booleans(),
    "date": st.dates(dt.date(1, 1, 1)),
    "bytes": st.binary(max_size=3),
    "pair": st.tuples(st.integers(0, 2), TEXTS),
    "anything": st.one_of(
        st.none(), st.integers(), TEXTS, st.floats(), st.booleans(), st.lists(st.integers())
    ),
}
EXTREMES = (0.0, -0.0, 1.0, -1.0, 3.5, 1e-308, 5e-324, 1e308, -1e308, 1e154, 1e-160, 1e16, 7.0)
NOTHING = (math.nan, math.inf, -math.inf, None)
ANSWERS: dict[str, st.SearchStrategy[Any]] = {
    "plain": st.integers(-40, 40).map(lambda n: n / 4),
    "tied": st.sampled_from([1.0, 2.0]),
    "ordinary": st.floats(-1e6, 1e6),
    "any": st.floats(allow_nan=True, allow_infinity=True),
    "extreme": st.sampled_from([*EXTREMES, *NOTHING]),
    "whole": st.integers(-(2**70), 2**70),
    "odd": st.one_of(
        st.sampled_from(["1", "1,5", "x", "", " 2 ", "1e400", "0x1", "١", "nan", True, 1j, b"1"]),
        st.decimals(allow_nan=True),
        st.none(),
        st.lists(st.floats(), max_size=1),
        st.just(decimal.Decimal("sNaN")),
    ),
}


@st.composite
def tables(draw: st.DrawFn, *, tame: bool = False, rows: int = 14) -> dict[str, list[Any]]:
    """Columns of answers: of any type, or of a tame one of which estimates can be made."""
    size = draw(st.integers(1 if tame else 0, rows))
    kinds = ("text", "whole") if tame else tuple(IDS)
    some = ("plain", "tied", "ordinary") if tame else tuple(ANSWERS)
    columns = {}
    for name in ("question", "worker"):
        pool = draw(st.lists(IDS[draw(st.sampled_from(kinds))], min_size=1, max_size=6))
        columns[name] = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    answer = ANSWERS[draw(st.sampled_from(some))]
    columns["answer"] = draw(st.lists(answer, min_size=size, max_size=size))
    if tame:
        pairs = list(zip(*columns.values(), strict=True))
        pairs = list({(q, w): (q, w, a) for q, w, a in pairs if q != "" and w != ""}.values())
        pairs = pairs or [("q", "w", 1.0)]
        columns = {name: [row[at] for row in pairs] for at, name in enumerate(columns)}
    return columns


@st.composite
def matrices(draw: st.DrawFn, *, workers: int = 5, questions: int = 8, coarse: bool = False) -> Any:
    """Arrays workers x questions with holes, ties, and constant rows."""
    n, m = draw(st.integers(1, workers)), draw(st.integers(1, questions))
    kinds = ["plain", "tied"] if coarse else ["plain", "tied", "ordinary"]
    cells = ANSWERS[draw(st.sampled_from(kinds))]
    x = np.array(draw(st.lists(cells, min_size=n * m, max_size=n * m))).reshape(n, m)
    holes = draw(st.lists(st.integers(0, n * m - 1), max_size=n * m // 2))
    x.reshape(-1)[holes] = math.nan
    if np.isnan(x).all():
        x[0, 0] = 1.0
    return x


FRAMES = ("dict", "pandas", "polars", "pyarrow", "records")


def frame_of(kind: str, columns: dict[str, list[Any]]) -> Any:
    """Return the columns as a frame; those that the library itself refuses stay a dict."""
    if kind == "records":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "dict":
        return columns
    module = __import__(kind)
    make = module.table if kind == "pyarrow" else module.DataFrame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(columns)
        except BaseException as error:
            # What the library refuses, or polars panics at, is not our affair.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return columns


# -- keywords --------------------------------------------------------------------------------------

#: Values that hardly any keyword takes.
WRONG = st.sampled_from(
    [
        None, True, -1, 0, 1.5, math.nan, math.inf, 10**400, "", "no such thing", "x" * 5_000, "two\nlines", (), (1,),
        [1, "a"], {}, {"q": 1}, {1: None}, b"x", 1j, object, np.arange(3.0), np.zeros((2, 2)), np.array("x"),
        np.float32(0.5), np.int64(3), decimal.Decimal(1), lambda: 1, range(3), frozenset({1}), Path("nowhere.csv"),
        np.datetime64("2020-01-01"), [[1.0, math.nan]],
    ]
)  # fmt: skip
METHODS = (
    "auto", "native", "mean", "median", "weighted_median", "blue", "dtd", "catd", "gtm", "crh", "pm", "ptd", "iptd",
    "kdem", "subject_bias", "student_t",
)  # fmt: skip
RULES = ("adaptive", "normal", "mixture", "paper", "stein", "mebe", "morris", "sure", "none")
VARIANCES = (
    "moderated", "paper", "psi_H", "psi_H/n", "plugin", "sandwich", "blue", "jackknife", "bootstrap",
)  # fmt: skip
POSITIVE = st.floats(1e-6, 1e6)
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "method": st.sampled_from(METHODS),
    "shrink": st.sampled_from(RULES),
    "variance": st.sampled_from(VARIANCES) | st.floats(0, 10),
    "transform": st.sampled_from(["auto", "none", "proportional", "log", "log1p", "logit"]),
    "bounds": st.tuples(st.floats(-1e3, 0), st.floats(0.5, 1e3)),
    "duplicates": st.sampled_from(["error", "mean", "first"]),
    "target": st.sampled_from(["auto", "truth", "consensus"]),
    "kind": st.sampled_from(["perception", "judgment", "forecast"]),
    "panel": st.just("panel"),
    "sql": st.just("select 1"),
    "bias": st.sampled_from([True, False, "auto"]),
    "caution": st.floats(0.01, 1.0),
    "level": st.floats(0.01, 0.999),
    "max_iter": st.integers(0, 20),
    "tol": st.floats(0, 1),
    "seed": st.integers(0, 2**32),
    "threads": st.integers(1, 2),
    "progress": st.booleans(),
    "gold": st.dictionaries(st.integers(0, 9), st.floats(-50, 50), min_size=1, max_size=9),
    "groups": st.dictionaries(st.integers(0, 9), st.sampled_from("abc"), min_size=1),
    "covariates": st.lists(st.floats(-5, 5), min_size=1, max_size=8).map(
        lambda column: np.array(column)[:, None]
    ),
    "worker_variance": st.dictionaries(st.integers(0, 5), POSITIVE, min_size=1),
    "answer_variance": st.floats(0.1, 9).map(lambda v: np.full((3, 4), v)),
    "truth": st.lists(st.floats(-50, 50), min_size=1, max_size=8).map(np.array),
    "methods": st.lists(st.sampled_from(METHODS), max_size=3),
    "panels": st.integers(0, 12),
    "target_se": POSITIVE,
    "question": st.just("question"),
    "worker": st.just("worker"),
    "answer": st.just("answer"),
    "sep": st.sampled_from([",", ";", "tab"]),
    "decimal": st.sampled_from([".", ","]),
    "thousands": st.sampled_from([",", ".", " ", "'"]),
    "strip_units": st.booleans(),
    "skip_bad": st.booleans(),
    "valid": st.sampled_from([(0, 10), (-1e9, 1e9)]),
    "skip_lines": st.integers(0, 3),
    "sheet": st.sampled_from(["Sheet1", "none"]),
    "worker_from": st.sampled_from(["file", "folder"]),
    "from_format": st.sampled_from(["inspect", "hubverse", "table"]),
    "where": st.dictionaries(
        st.sampled_from(["question", "worker"]), st.integers(0, 3), min_size=1
    ),
    "anonymous": st.booleans(),
    "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16"]),
    "strict": st.booleans(),
    "keep": st.just(False),  # a temporary folder would stay
    "wide": st.booleans() | st.sampled_from(["questions", "workers"]),
    "memory_limit": st.sampled_from(["1GB", "100MB", "1B", "2 bytes"]),
}


def keywords(names: tuple[str, ...], most: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Draw some keywords, most of them with values that they take."""

    def with_values(chosen: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        often = {name: st.one_of(RIGHT[name], RIGHT[name], WRONG) for name in chosen}
        return st.fixed_dictionaries(often)

    return st.lists(st.sampled_from(names), unique=True, max_size=most).flatmap(with_values)

"""A request prints itself as a call and as a command that give the same numbers; signatures show every keyword."""

from __future__ import annotations

import inspect
import shlex
from typing import TYPE_CHECKING, Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trueup
from trueup import TrueupError, disk, request, spark
from trueup.algorithms import CRH, DTD
from trueup.request import KEYWORDS, ORDER, Plan, Request
from trueup.shrinkage import EBE, Normal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS = ("estimate", "lower", "upper", "std_error", "base", "base_std_error", "shrinkage")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "estimate": trueup.estimate,
    "compare": trueup.compare,
    "update": trueup.update,
    "diagnose": trueup.diagnose,
    "diagnose_all": trueup.diagnose_all,
    "disk.estimate": disk.estimate,
    "disk.compare": disk.compare,
    "spark.estimate": spark.estimate,
    "spark.compare": spark.compare,
}
TYPED = {
    "estimate": request.EstimateKeywords,
    "compare": request.CompareKeywords,
    "update": request.UpdateKeywords,
    "diagnose": request.CompareKeywords,
    "diagnose_all": request.CompareKeywords,
    "disk.estimate": request.DiskKeywords,
    "disk.compare": request.CompareOnDiskKeywords,
    "spark.estimate": request.SparkKeywords,
    "spark.compare": request.CompareOnSparkKeywords,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers as files: plain, and with other names, marks and columns known about questions."""
    here = tmp_path_factory.mktemp("answers")
    rng = np.random.default_rng(5)
    truth = rng.uniform(20, 60, 24)
    plain, other = ["question,worker,answer,kind,size,gold,se2"], ["frage;wer;wert"]
    for j, value in enumerate(truth):
        for i in range(7):
            if rng.random() < 0.85:
                answer = round(float(value + rng.normal(0, 1 + i)), 3)
                gold = f"{value:.3f}" if j < 10 else ""
                plain.append(f"q{j},w{i},{answer},{'ab'[j % 2]},{value:.1f},{gold},{1 + i}")
                other.append(f"q{j};w{i};{str(answer).replace('.', ',')}")
    (here / "answers.csv").write_text("\n".join(plain) + "\n")
    (here / "other.csv").write_text("\n".join(other) + "\n")
    return here


REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["auto", "mean", "crh", "native", "student_t", CRH(loss="absolute"), DTD()]),
        "shrink": st.sampled_from(["adaptive", "normal", "paper", "none", EBE(positive=True), Normal(caution=0.5)]),
        "variance": st.sampled_from([None, "plugin", "moderated", 0.25, 1]),
        "groups": st.just("kind"),
        "covariates": st.sampled_from(["size", ["size"]]),
        "gold": st.just("gold"),
        "transform": st.sampled_from([None, "log", "log1p"]),
        "bounds": st.sampled_from([None, (-1.5, 80.25), (0, 100), (5, float("inf"))]),
        "kind": st.sampled_from([None, "judgment"]),
        "bias": st.booleans(),
        "caution": st.floats(0.1, 1.0),
        "duplicates": st.sampled_from(["error", "mean", "first"]),
        "level": st.floats(0.5, 0.99),
        "max_iter": st.integers(1, 20),
        "tol": st.sampled_from([1e-6, 1e-3, 0.0]),
        "seed": st.integers(0, 2**40),
        "threads": st.sampled_from([None, 1]),
        "wide": st.sampled_from([None, False]),
    },
)  # fmt: skip


def numbers(est: trueup.Estimate) -> dict[str, Any]:
    return {name: getattr(est, name).tolist() for name in COLUMNS}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def run_command(line: str, out: Path) -> dict[str, Any]:
    """Run a command of the command line, and return the columns it wrote."""
    import pyarrow.parquet as pq

    from trueup.cli import main

    words = shlex.split(line)
    assert words[0] == "trueup"
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], "-o", str(out), "--quiet"])
    assert ended.value.code == 0
    table = pq.read_table(out).to_pydict()
    return {name: [np.nan if each is None else each for each in table[name]] for name in COLUMNS}


@pytest.mark.filterwarnings("ignore::trueup.TrueupWarning")
@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], max_examples=15
)
@hypothesis.given(given=REQUESTS)
def test_calls_and_commands_give_the_same_numbers(
    folder: Path, tmp_path: Path, given: dict[str, Any]
) -> None:
    source = str(folder / "answers.csv")
    try:
        est = trueup.estimate(source, **given)
    except TrueupError:
        hypothesis.assume(False)
    call = est.request.as_call()
    assert call.placeholders == ()
    again = eval(call.text, {"trueup": trueup})  # noqa: S307  our own text, which is what is tested
    same(numbers(again), numbers(est))
    assert again.request.given == est.request.given
    command = est.request.as_command()
    objects = [
        name.upper()
        for name in ("method", "shrink")
        if not isinstance(given.get(name, ""), str) and given[name] != DTD()
    ]
    assert list(command.placeholders) == objects
    if not objects:
        same(run_command(command.text, tmp_path / "out.parquet"), numbers(est))


@pytest.mark.parametrize("variance", ["oops", -1.0, np.nan, np.float64(1e200)])
def test_a_variance_that_cannot_be_is_told_before_answers_are_read(variance: Any) -> None:
    with pytest.raises(TrueupError, match=r"^variance: "):
        trueup.estimate("nothing.csv", variance=variance)


def test_options_of_files_are_carried(folder: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "question": "frage", "worker": "wer", "answer": "wert", "sep": ";", "decimal": ",", "encoding": "utf-8",
    }  # fmt: skip
    est = trueup.estimate(folder / "other.csv", "crh", **options)
    again = eval(est.request.as_call().text, {"trueup": trueup})  # noqa: S307
    same(numbers(again), numbers(est))
    out = tmp_path / "out.parquet"
    same(run_command(est.request.as_command().text, out), numbers(est))


def test_what_text_cannot_carry_is_a_placeholder_and_that_is_said() -> None:
    x = [[1.0, 2.0, 3.0], [2.0, 2.5, 3.5], [0.0, 2.0, 4.0]]
    groups = np.array(["a", "b", "a"])
    est = trueup.estimate(x, "crh", groups=groups, gold={1: 2.0}, variance=lambda *_: np.ones(3))
    call = est.request.as_call()
    assert (
        call.text
        == "trueup.estimate(answers, method='crh', variance=variance, groups=groups, gold={1: 2.0})"
    )
    assert call.placeholders == ("answers", "variance", "groups")
    assert (
        call.note == "answers, variance, groups stand for what was passed, which text cannot carry"
    )
    command = est.request.as_command()
    assert (
        command.text
        == "trueup estimate answers.csv --method crh --variance VARIANCE --groups GROUPS --gold GOLD"
    )
    assert command.placeholders == ("answers.csv", "VARIANCE", "GROUPS", "GOLD")
    assert str(command).endswith("# " + command.note)


def test_the_report_shows_the_call(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(5, 12))
    est = trueup.estimate(x, "crh", caution=0.5, max_iter=7, tol=1e-3, seed=4, variance="plugin")
    page = est.report(tmp_path / "report.html").read_text("utf-8")
    for option in (
        "caution=0.5",
        "max_iter=7",
        "tol=0.001",
        "seed=4",
        "variance=&#x27;plugin&#x27;",
    ):
        assert option in page or option.replace("&#x27;", "'") in page
    assert "answers stands for what was passed" in page


def test_a_loaded_estimate_knows_its_request(tmp_path: Path, folder: Path) -> None:
    options: dict[str, Any] = {"bounds": (-1.5, 80.25), "caution": 0.3, "groups": "kind", "seed": 9}
    est = trueup.estimate(folder / "answers.csv", OWN_METHOD, **options)
    again = trueup.load(est.save(tmp_path / "state.trueup"))
    for name in ORDER:
        if name not in (
            "groups",
            "threads",
        ):  # what was read of questions is kept, not where it was
            assert again.request.keywords[name] == est.request.keywords[name], name
    same(numbers(again), numbers(est))


OWN_METHOD = CRH(loss="absolute", scale="var")


# -- signatures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_show_every_keyword_with_type_and_default(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    shared = [each for each in parameters if each in KEYWORDS]
    assert len(shared) >= 14
    own = set(inspect.getfullargspec(inspect.unwrap(function)).args)
    for each in shared:
        assert parameters[each].annotation not in (inspect.Parameter.empty, "")
        if each not in ("method", "duplicates") and each not in own:
            assert parameters[each].default == KEYWORDS[each].default
    assert "seed" in parameters or name == "update"
    doc = inspect.getdoc(function)
    assert doc is not None
    assert "Parameters\n----------" in doc


@pytest.mark.parametrize("name", FUNCTIONS)
def test_type_checkers_see_the_same_keywords(name: str) -> None:
    shown = {
        each
        for each, parameter in inspect.signature(FUNCTIONS[name]).parameters.items()
        if each in KEYWORDS and parameter.kind is parameter.KEYWORD_ONLY
    }
    assert shown - {"method", "shrink", "duplicates"} == set(TYPED[name].__annotations__) - {
        "duplicates"
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_keywords_are_refused_like_python_does(name: str) -> None:
    function = FUNCTIONS[name]
    bare = name.partition(".")[2] or name
    with pytest.raises(
        TypeError, match=rf"^{bare}\(\) got an unexpected keyword argument 'nothing'$"
    ):
        function("a.parquet", "b.parquet", nothing=1)


def test_every_keyword_is_documented() -> None:
    doc = inspect.getdoc(trueup.estimate)
    assert doc is not None
    section = doc.partition("Parameters\n")[2].partition("Examples\n")[0]
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line[:1].strip()]
    documented = {name.strip() for head in heads for name in head.split(",")}
    assert set(ORDER) <= documented
    assert set(ORDER) == set(KEYWORDS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"level": 1.5}, "level: found 1.5"),
        ({"caution": 0}, "caution: found 0"),
        ({"bias": 1}, "bias: found 1"),
        ({"bias": np.zeros(3)}, "bias: found"),
        ({"target": "best"}, "target: "),
        ({"kind": "guess"}, "kind: "),
        ({"method": "nothing"}, "method: "),
        ({"shrink": "nothing"}, "shrink: "),
        ({"transform": "nothing"}, "transform: "),
        ({"bounds": (2, 1)}, "bounds: "),
        ({"max_iter": -1}, "max_iter: "),
        ({"seed": -1}, "seed: "),
        ({"threads": 0}, "threads: "),
    ],
)
def test_a_plan_is_checked_when_it_is_made(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TrueupError) as caught:
        Plan(**given)
    assert str(caught.value).startswith(said)
    with pytest.raises(TrueupError):
        Request.of(**given)

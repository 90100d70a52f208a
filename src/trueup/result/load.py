"""Reading the state of an estimate from a file that `trueup.result.save` wrote; everything in it is checked."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup import variance as variances
from trueup.algorithms.contract import State
from trueup.algorithms.driver import Aggregate
from trueup.algorithms.facts import gather_facts
from trueup.algorithms.registry import find as find_method
from trueup.answers.scale import PanelScales, Scale
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.errors import TrueupError
from trueup.io.archive import (
    BROKEN,
    Damage,
    check,
    damaged,
    printable,
    read_archive,
    shown,
    texts,
    vector,
    whole,
)
from trueup.io.question_data import QuestionDataRequest
from trueup.io.read_options import ReadOptions
from trueup.pipeline.calibration import Calibration
from trueup.pipeline.diagnosis import Diagnosis
from trueup.pipeline.outlook import Outlook
from trueup.pipeline.pooling import Pooling
from trueup.pipeline.scaling import on_scale
from trueup.pipeline.shrink import second_step
from trueup.pipeline.shrunk import TOWARD
from trueup.pipeline.solution import COLUMNS, UNKNOWN, Solution
from trueup.request import PLAN, READING, Plan, Request
from trueup.result.estimate import Estimate
from trueup.result.load_answers import read_answers, read_question_data
from trueup.result.own_method import OWN, MethodNeeded, PassedMethod
from trueup.result.state import (
    BIASES,
    FORMAT,
    OF_QUESTIONS,
    OF_WORKERS,
    OLDEST,
    SHOWN,
    VERSION,
    SavedState,
    made,
    read_value,
)
from trueup.shrinkage.adaptive_prior import PriorChoice
from trueup.shrinkage.mixture_search import MOST_COMPONENTS
from trueup.variance.bias import Biases

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.registry import Method
    from trueup.core.arrays import Floats
    from trueup.io.question_data import QuestionData

    Arrays = Mapping[str, NDArray[Any]]

#: How far the sum of all weights may be from 1, as they were rounded.
SHARES = 1e-6


def load(path: str | os.PathLike[str], *, method: Method | None = None) -> Estimate:
    """Load an estimate that was saved with `est.save(path)`.

    Parameters
    ----------
    path : path
        The file.
    method : Algorithm or function, optional
        The method, where that is a class or function of your own: a state holds no code.

    Raises
    ------
    TrueupError
        When there is no such file, or it is damaged, or another version of trueup wrote it.

    Examples
    --------
    >>> import os, tempfile
    >>> import trueup
    >>> est = trueup.estimate([[10.0, 4.0], [11.0, 5.0], [16.0, 1.0]], method="crh")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = est.save(os.path.join(folder, "state.trueup"))
    ...     trueup.load(path).estimate.tolist() == est.estimate.tolist()
    True
    """
    with _understood(path) as (meta, arrays):
        return _estimate(meta, arrays, _state(meta, arrays, PassedMethod(method)))


def read_state(path: str | os.PathLike[str], method: Method | None = None) -> SavedState:
    """Read what an update continues from."""
    with _understood(path, SHOWN) as (meta, arrays):
        return _state(meta, arrays, PassedMethod(method))


@contextmanager
def _understood(
    path: str | os.PathLike[str], without: Collection[str] = ()
) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Read a file; whatever is wrong with it is said in one way."""
    read = read_archive(path, FORMAT, VERSION, oldest=OLDEST, without=without)
    try:
        yield read
    except MethodNeeded as error:
        raise error.labelled(f"File {shown(path)}") from None
    except (Damage, TrueupError) as error:
        raise damaged(path, str(error)) from error
    except BROKEN as error:
        raise damaged(path, "it cannot be understood") from error


def _state(meta: dict[str, Any], arrays: Arrays, passed: PassedMethod) -> SavedState:
    passed.check_wanted(meta["found"]["algorithm"])
    request = _request(meta, arrays, passed)
    scale = _scale(meta["found"], request)
    answers = read_answers(meta["answers"], arrays, scale)
    data = read_question_data(meta["covariates"], arrays, answers)
    found = meta["found"]
    names = texts(found["state"])
    check("weight" in names and len(set(names)) == len(names), "the state of the workers")
    values = {
        name: vector(arrays, f"state.{number}", answers.n_workers)
        for number, name in enumerate(names)
    }
    check((values["weight"] >= 0).all(), "the state of the workers")
    return SavedState(
        answers,
        request,
        data,
        _method(found["algorithm"], passed),
        values,
        whole(found["step"]),
        scale,
        printable(meta["diagnosis"]["why"]),
        printable(meta["diagnosis"]["scale"]),
        _prior_choice(found["prior_choice"]),
    )


def _method(about: dict[str, Any], passed: PassedMethod) -> Algorithm:
    return passed.find(about) if OWN in about else made(about, find_method)


def _scale(about: dict[str, Any], request: Request) -> Scale:
    """Return the scale on which the answers were combined: the one asked for, or one that was chosen."""
    shift = float(about["shift"])
    scale = Scale(about["transform"], request.plan.bounds, shift)
    asked = request.plan.scale
    fits = (
        scale.transform in (None, "proportional")
        if asked is None
        else asked == replace(scale, shift=0.0)
    )
    check(fits and 0 <= shift < np.inf, "its scale")
    return scale


def _request(meta: dict[str, Any], arrays: Arrays, passed: PassedMethod) -> Request:
    """Make the request again; what is wrong with it is said by its own checks."""
    about = dict(meta["plan"])
    method = about.pop("method")
    method = _method(method, passed) if isinstance(method, dict) else read_value("method", method)
    variance = about.pop("variance")
    if isinstance(variance, str):
        variances.find(variance)
    elif variance is not None:
        given = "number" not in variance
        variance = arrays["given_variance"] if given else float(variance["number"])
        check(np.min(variance) >= 0 and np.isfinite(variance).all(), "its variances")
    check(set(about) == set(PLAN) - {"method", "variance", "threads"}, "its request")
    check(set(meta["read"]) == set(READING) - {"anonymous"}, "its request")
    values = {name: read_value(name, text) for name, text in about.items()}
    plan = Plan(**values, method=method, variance=variance)
    read = ReadOptions(**{name: read_value(name, text) for name, text in meta["read"].items()})
    check(plan.seed < 2**63 and plan.max_iter < 2**63, "its request")
    source = meta["source"]
    return Request(read=read, plan=plan, source=None if source is None else printable(source))


def _prior_choice(about: dict[str, Any] | None) -> PriorChoice | None:
    if about is None:
        return None
    components = whole(about["components"])
    check(about["model"] in ("none", *TOWARD) and components <= MOST_COMPONENTS, "its prior")
    check((components >= 2) == (about["model"] == "mixture"), "its prior")
    log_tau2 = None if about["log_tau2"] is None else float(about["log_tau2"])
    check((components == 0) == (log_tau2 is None) and abs(log_tau2 or 0.0) < np.inf, "its prior")
    gain, z = float(about["gain"]), float(about["z"])
    counts = whole(about["answers"]), whole(about["changed"])
    return PriorChoice(about["model"], components, log_tau2, gain, z, *counts)


def _estimate(meta: dict[str, Any], arrays: Arrays, state: SavedState) -> Estimate:
    """Put an estimate together; its second step is run again when somebody asks for more than its numbers."""
    answers, plan, data, about = state.answers, state.request.plan, state.data, meta["found"]
    m, n = answers.n_questions, answers.n_workers
    if isinstance(plan.variance, np.ndarray):
        check(len(plan.variance) == m, "its variances")
    biases = None
    if "bias.value" in arrays:
        size = {"value": n, "std_error": n}
        biases = Biases(
            **{
                name: vector(arrays, f"bias.{name}", size.get(name, 1), open_end=name != "value")
                for name in BIASES
            }
        )
    engine = MemoryEngine(answers)
    scales = PanelScales((state.scale,))
    scaled = on_scale(engine, scales)
    before = (
        None if state.algorithm.concludes else biases
    )  # else the first step removed them itself
    unbiased = scaled if before is None else before.remove(scaled)
    first = {
        name: vector(arrays, f"question.{name}", m, unknown=unknown)
        for name, unknown in OF_QUESTIONS.items()
    }
    check(not (first["variance"] < 0).any(), "its variances")
    columns = {
        name: vector(arrays, f"column.{name}", m, unknown=name in UNKNOWN) for name in COLUMNS
    }
    check_columns(columns)
    kept = {
        vectors.OFFSET: first["truth"],
        vectors.ITERATE: first["truth"],
        vectors.AGGREGATE: first["base"],
        vectors.MODEL_VARIANCE: first["variance"],
    }
    for column, name in COLUMNS.items():
        kept[name] = columns[column]
    if data.gold is not None:
        check(not state.scale.unfit_truths(data.gold).any(), "its known truths")
        kept[vectors.GOLD], kept[vectors.SCALED_GOLD] = (
            data.gold,
            state.scale.forward_truths(data.gold),
        )
    for name, values in kept.items():
        unbiased.keep(name, values)
    workers = {
        name: vector(arrays, f"worker.{name}", n, unknown=unknown)
        for name, unknown in OF_WORKERS.items()
    }
    weight, noise = workers["weight"], workers["noise"]
    check_workers(workers, biases)
    (iterations,), (settled,), (moved,) = about["iterations"], about["settled"], about["moved"]
    aggregate = Aggregate(
        algorithm=state.algorithm,
        engine=unbiased,
        x=first["base"],
        offset=first["truth"],
        variance=first["variance"],
        weight=weight,
        noise=noise,
        bias=state.values.get("bias"),
        state=State(gather_facts(unbiased), state.values, state.step),
        iterations=np.array([whole(iterations)]),
        settled=np.array([settled is True]),
        moved=np.array([float(moved)]),
        has_variance=not np.isnan(first["variance"]).any(),
    )
    pooling = _pooling(arrays, n)
    combined = unbiased if pooling is None else pooling.pool(unbiased)
    again = partial(
        second_step,
        combined.gather(),
        aggregate if pooling is None else pooling.unshare(aggregate, combined),
        plan.rule,
        plan.variance,
        groups=None if data.groups is None else data.groups.codes,
        covariates=None if data.covariates is None else data.covariates.values,
        biases=before,
        prior_choice=state.prior_choice,
        seed=plan.seed,
    )
    solution = Solution(
        plan=plan,
        root=engine,
        scaled=scaled,
        engine=combined,
        scales=scales,
        aggregate=aggregate,
        shrunk=again,
        target=_target(meta["target"]),
        look_ahead=partial(_same, _outlook(meta["outlook"])),
        prior_choice=state.prior_choice,
        biases=biases,
        calibration=_calibration(meta["calibration"]),
        pooling=pooling,
        diagnosis=_diagnosis(meta["diagnosis"]),
        is_plain=combined is scaled and data.gold is None,
    )
    request = replace(state.request, question_data=_as_given(data))
    return Estimate(request, data, solution, answers.origin.kind, worker_values=workers)


def _as_given(data: QuestionData) -> QuestionDataRequest:
    """Ask for what is known of the questions by values in their order, so that the call shows that it was given."""
    groups = None
    if data.groups is not None:
        groups = np.full(len(data.groups.codes), None)
        names = data.groups.ids.tolist()
        for place, code in enumerate(data.groups.codes.tolist()):
            groups[place] = names[code] if code >= 0 else None
    covariates = None if data.covariates is None else data.covariates.values
    return QuestionDataRequest(groups=groups, covariates=covariates, gold=data.gold)


def check_columns(columns: Mapping[str, Floats]) -> None:
    """Check that intervals do not end before they begin, and that errors are not negative."""
    for low, high in (("lower", "upper"), ("truth_lower", "truth_upper")):
        check(not (columns[low] > columns[high]).any(), "its intervals")
        check((np.isnan(columns[low]) == np.isnan(columns[high])).all(), "its intervals")
    for name in ("std_error", "base_std_error"):
        check(not (columns[name] < 0).any(), "its standard errors")


def check_workers(workers: Mapping[str, Floats], biases: Biases | None) -> None:
    """Check that the weights of the workers are shares, and that no variance is negative."""
    weight = workers["weight"]
    check((weight >= 0).all() and abs(weight.sum() - 1) < SHARES, "its weights")
    check(not (workers["noise"] < 0).any() and not (workers["variance"] < 0).any(), "its variances")
    if biases is not None:
        for name in ("std_error", "variance", "shift", "shift_nu"):
            check((getattr(biases, name) >= 0).all(), "its biases")
        check(np.isfinite(biases.value).all(), "its biases")


def _pooling(arrays: Arrays, n_workers: int) -> Pooling | None:
    if "worker.leader" not in arrays:
        return None
    leader = vector(arrays, "worker.leader", n_workers).astype(np.int64)
    check(((leader >= 0) & (leader < n_workers)).all(), "its pooled workers")
    check((leader[leader] == leader).all(), "its pooled workers")
    return Pooling(leader)


def _diagnosis(about: dict[str, Any]) -> Diagnosis:
    words = (
        "method", "shrink", "why", "models", "transform", "scale", "pooling", "target", "second_step", "gold",
        "rough",
    )  # fmt: skip
    return Diagnosis(
        **{name: printable(about.get(name, "")) for name in words},
        iterations=whole(about["iterations"]),
        settled=about["settled"] is True,
        assumptions=tuple(map(printable, about["assumptions"])),
        warnings=tuple(map(printable, about["warnings"])),
    )


def _same(found: Outlook) -> Outlook:
    return found


def _target(about: Any) -> str:
    check(about in ("", "truth", "consensus", "both"), "its target")
    return str(about)


def _outlook(about: dict[str, Any]) -> Outlook:
    """Return how far the truth may be; distances may be unknown."""
    distances = ("scatter", "distance", "half_width", "next_half_width", "change")
    numbers = {name: float(about[name]) for name in distances}
    check(not any(value < 0 for value in numbers.values()), "how far the truth may be")
    return Outlook(**numbers, n_gold=whole(about["n_gold"]), relative=about["relative"] is True)


def _calibration(about: dict[str, str] | None) -> Calibration | None:
    if about is None:
        return None
    numbers = {each.name: float(about[each.name]) for each in fields(Calibration)}
    check(np.isfinite(list(numbers.values())).all(), "what gold questions showed")
    return Calibration(**{**numbers, "n_gold": int(numbers["n_gold"])})  # type: ignore[arg-type]

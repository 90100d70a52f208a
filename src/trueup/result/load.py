"""The state of an estimate, and reading it from a file: all that an update needs, and all that was found.

Answers, what was asked for, what is believed of the workers and the numbers of every question are kept. What follows
from them, such as the prior of the second step, is found again when the file is loaded.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup import variance as variances
from trueup.algorithms.contract import State
from trueup.algorithms.driver import Aggregate
from trueup.algorithms.facts import gather_facts
from trueup.algorithms.registry import find as find_method
from trueup.answers.answers import Answers, Origin
from trueup.answers.merge import FRAMES
from trueup.answers.scale import Scale, unfit_truths
from trueup.core.arrays import narrow, offsets
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.errors import TrueupError, quoted
from trueup.io.archive import BROKEN, Damage, check, damaged, read_archive
from trueup.io.plain_ids import unpack
from trueup.io.question_data import Covariates, Labels, QuestionData
from trueup.io.readers.assemble import LARGEST_ANSWER
from trueup.pipeline.calibration import Calibration
from trueup.pipeline.pooling import Voices
from trueup.pipeline.shrink import TOWARD, second_step
from trueup.pipeline.solve import COLUMNS, UNKNOWN, Plan
from trueup.result.estimate import Diagnosis, Estimate
from trueup.shrinkage import find as find_rule
from trueup.shrinkage.adaptive_prior import PriorChoice
from trueup.shrinkage.mixture_search import MOST_COMPONENTS
from trueup.variance.bias import Biases

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from trueup.algorithms.contract import Algorithm
    from trueup.core.arrays import Floats
    from trueup.pipeline.shrink import SecondStepResult

    Arrays = Mapping[str, NDArray[Any]]

#: Version 2 has the prior that was chosen; files of version 1 are read, and the choice is made again.
FORMAT, VERSION, OLDEST = "trueup state", 2, 1
#: What else answers may have come from.
OTHERS = ("array", "matrix", "file", "other")
# Vectors of a first step, and whether they may be unknown.
OF_QUESTIONS = {"truth": False, "base": False, "variance": True}
OF_WORKERS = {"weight": False, "noise": True, "variance": True, "bias": True}
BIASES = ("value", "std_error", "variance", "shift", "shift_nu")
# What was found, of which an update reads nothing.
SHOWN = frozenset(
    f"{what}.{name}"
    for what, names in (
        ("question", OF_QUESTIONS),
        ("worker", OF_WORKERS),
        ("column", COLUMNS),
        ("bias", BIASES),
    )
    for name in names
)


@dataclass(frozen=True, eq=False)
class Saved:
    """What an update goes on from.

    Attributes
    ----------
    answers : Answers
        All answers so far.
    plan : Plan
        What was asked for.
    question_data : QuestionData
        What the caller knows of the questions.
    algorithm : Algorithm
        The first step; the one that was chosen, where that was asked for.
    values, step : dict of arrays, int
        What is believed of the workers, and the updates that led there.
    why : str
        Why the first step was chosen.
    prior_choice : PriorChoice or None
        The prior that held-out workers have chosen.
    """

    answers: Answers
    plan: Plan
    question_data: QuestionData
    algorithm: Algorithm
    values: Mapping[str, Floats]
    step: int
    why: str
    prior_choice: PriorChoice | None

    @classmethod
    def of(cls, est: Estimate) -> Saved:
        """Take it from an estimate."""
        if est.plan is None or est.question_data is None:
            raise TrueupError(
                "estimate: it does not say how it was made. Use one of trueup.estimate."
            )
        if est.answers.n_panels > 1:
            raise TrueupError(
                f"answers: these are {est.answers.n_panels:,} panels, and a state is that of one problem; take one, "
                "`answers.panel(b)`."
            )
        found = est.aggregate
        state = found.state
        prior_choice = est.prior_choice if isinstance(est, Loaded) else est.second_step.prior_choice
        return cls(
            est.answers,
            est.plan,
            est.question_data,
            found.algorithm,
            state.values,
            state.step,
            est.diagnosis.why,
            prior_choice,
        )


def load(path: str | os.PathLike[str]) -> Estimate:
    """Load an estimate that was saved with `est.save(path)`.

    Raises
    ------
    TrueupError
        When there is no such file, or it is damaged, or a newer trueup wrote it.

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
        return _estimate(meta, arrays, _saved(meta, arrays))


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """Read what an update goes on from."""
    with _understood(path, SHOWN) as (meta, arrays):
        return _saved(meta, arrays)


@contextmanager
def _understood(
    path: str | os.PathLike[str], without: Collection[str] = ()
) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Read a file; whatever is wrong with it is said in one way."""
    read = read_archive(path, FORMAT, VERSION, oldest=OLDEST, without=without)
    try:
        yield read
    except (Damage, TrueupError) as error:
        raise damaged(path, str(error)) from error
    except BROKEN as error:
        raise damaged(path, "it cannot be understood") from error


def _saved(meta: dict[str, Any], arrays: Arrays) -> Saved:
    answers = _answers(meta["answers"], arrays)
    question_data = _question_data(meta["plan"], arrays, answers)
    algorithm, plan = _plan(meta["plan"], arrays, answers)
    found = meta["found"]
    names = _strings(found["state"])
    check("weight" in names and len(set(names)) == len(names), "the state of the workers")
    values = {
        name: _vector(arrays, f"state.{number}", answers.n_workers)
        for number, name in enumerate(names)
    }
    check((values["weight"] >= 0).all(), "the state of the workers")
    step, why = _count(found["step"]), _line(meta["diagnosis"]["why"])
    prior_choice = None if meta["version"] == 1 else _prior_choice(found["prior_choice"])
    return Saved(answers, plan, question_data, algorithm, values, step, why, prior_choice)


def _prior_choice(about: dict[str, Any] | None) -> PriorChoice | None:
    if about is None:
        return None
    components = _count(about["components"])
    check(about["model"] in ("none", *TOWARD) and components <= MOST_COMPONENTS, "its prior")
    check((components >= 2) == (about["model"] == "mixture"), "its prior")
    log_tau2 = None if about["log_tau2"] is None else float(about["log_tau2"])
    check((components == 0) == (log_tau2 is None) and abs(log_tau2 or 0.0) < np.inf, "its prior")
    gain, z = float(about["gain"]), float(about["z"])
    counts = _count(about["answers"]), _count(about["changed"])
    return PriorChoice(about["model"], components, log_tau2, gain, z, *counts)


def _answers(about: dict[str, Any], arrays: Arrays) -> Answers:
    questions, workers = unpack("question", arrays), unpack("worker", arrays)
    m, n = len(questions), len(workers)
    check(m > 0 and n > 0, "there are no answers")
    counts, worker = arrays["counts"], arrays["workers"]
    check(counts.dtype == np.int64 and len(counts) == m and (counts > 0).all(), "its answers")
    check(worker.dtype.kind in "iu" and counts.max() <= n, "its answers")
    indptr = offsets(counts)
    check(indptr[-1] == len(worker) and worker.min() >= 0 and worker.max() < n, "its answers")
    rising = worker[1:] > worker[:-1]
    rising[indptr[1:-1] - 1] = True
    check(rising.all(), "its answers")
    check((np.bincount(worker, minlength=n) > 0).all(), "its answers")
    values, centre = _vector(arrays, "values", len(worker)), _vector(arrays, "centre", m)
    largest = max(max(each.max(), -each.min()) for each in (values, centre))
    check(largest <= 2 * LARGEST_ANSWER, "its answers")
    precision, mean = None, float(about["answer_variance"])
    if "precision" in arrays:
        precision = _vector(arrays, "precision", len(worker))
        check((precision > 0).all() and 0 < mean < np.inf, "its variances")
    variance = None
    if "worker_variance" in arrays:
        variance = _vector(arrays, "worker_variance", n, unknown=True)
        check(((variance > 0) | np.isnan(variance)).all(), "its variances")
    transform, bounds = about["transform"], about["bounds"]
    kind = about["kind"]
    check(kind in (*FRAMES, *OTHERS), "what the answers were")
    return Answers(
        indptr=indptr,
        workers=narrow(worker, n),
        values=values,
        centre=centre,
        panel_questions=np.array([0, m]),
        panel_workers=np.array([0, n]),
        precision=precision,
        answer_variance=mean if precision is not None else np.nan,
        worker_variance=variance,
        scale=Scale(transform, None if bounds is None else (float(bounds[0]), float(bounds[1]))),
        origin=Origin(
            questions,
            workers,
            kind=kind if _installed(kind) else "array",
            n_rows=_count(about["rows"]),
            n_missing=_count(about["missing"]),
            n_duplicates=_count(about["duplicates"]),
        ),
    )


def _installed(kind: str) -> bool:
    needed = {"duckdb": ("duckdb", "pyarrow")}.get(kind, (kind,))
    return kind not in FRAMES or all(find_spec(each) is not None for each in needed)


def _question_data(about: dict[str, Any], arrays: Arrays, answers: Answers) -> QuestionData:
    m = answers.n_questions
    gold = _vector(arrays, "gold", m, unknown=True) if "gold" in arrays else None
    check(gold is None or not unfit_truths(gold, answers.scale)[0].any(), "its truths")
    groups = covariates = None
    if "group_of" in arrays:
        ids, codes = unpack("group", arrays), arrays["group_of"]
        check(codes.dtype == np.int64 and len(codes) == m, "its groups")
        check((codes >= -1).all() and (codes < len(ids)).all(), "its groups")
        groups = Labels(codes, ids)
    if about["covariates"] is not None:
        names = tuple(_strings(about["covariates"]))
        columns = [_vector(arrays, f"covariate.{number}", m) for number in range(len(names))]
        covariates = Covariates(np.column_stack(columns), names)
    return QuestionData(groups, covariates, gold)


def _plan(about: dict[str, Any], arrays: Arrays, answers: Answers) -> tuple[Algorithm, Plan]:
    algorithm = made(about["method"], find_method)
    variance = about["variance"]
    if isinstance(variance, str):
        variances.find(variance)
    elif variance is not None:
        variance = (
            float(variance["number"])
            if "number" in variance
            else _vector(arrays, "given_variance", answers.n_questions)
        )
        check(np.min(variance) >= 0 and np.isfinite(variance).all(), "its variances")
    level, tol = float(about["level"]), float(about["tol"])
    check(0 < level < 1 and tol >= 0 and isinstance(about["bias"], bool), "its plan")
    plan = Plan(
        method="auto" if about["chosen"] is True else algorithm,
        rule=made(about["rule"], find_rule),
        variance=variance,
        bias=about["bias"],
        level=level,
        max_iter=_count(about["max_iter"]),
        tol=tol,
        seed=_count(about["seed"]),
        threads=None,
        voices=about["chosen"] is True,
    )
    return algorithm, plan


def made(about: dict[str, Any], find: Callable[[str], Any]) -> Any:
    """Make a method or rule again; its name is one that is known here, its parameters are of the types they must be."""
    check(isinstance(about["name"], str), "its plan")
    plain = find(about["name"])
    parameters = about["parameters"]
    for name, value in parameters.items():
        check(_like(value, getattr(plain, name)), f"the parameter {quoted(name)}")
    return type(plain)(**parameters)


def _like(value: Any, usual: Any) -> bool:
    if isinstance(usual, bool | str):
        return type(value) is type(usual)
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < np.inf
    return number or (value is None and usual is None)


def _estimate(meta: dict[str, Any], arrays: Arrays, saved: Saved) -> Estimate:
    """Put an estimate together from what was saved, and find again what follows from it."""
    answers, plan, data, about = saved.answers, saved.plan, saved.question_data, meta["found"]
    m, n = answers.n_questions, answers.n_workers
    columns = {
        name: _vector(arrays, f"column.{name}", m, unknown=name in UNKNOWN) for name in COLUMNS
    }
    biases = None
    if plan.bias:
        size = {"value": n, "std_error": n}
        biases = Biases(
            **{
                name: _vector(arrays, f"bias.{name}", size.get(name, 1), open_end=True)
                for name in BIASES
            }
        )
    engine = MemoryEngine(answers)
    clean = engine if biases is None else biases.remove(engine)
    first = {
        name: _vector(arrays, f"question.{name}", m, unknown=unknown)
        for name, unknown in OF_QUESTIONS.items()
    }
    check(not (first["variance"] < 0).any(), "its variances")
    kept = {
        vectors.OFFSET: first["truth"],
        vectors.ITERATE: first["truth"],
        vectors.AGGREGATE: first["base"],
        vectors.MODEL_VARIANCE: first["variance"],
    }
    if data.gold is not None:
        kept[vectors.GOLD] = answers.scale.forward(data.gold)
    for name, values in kept.items():
        clean.keep(name, values)
    workers = {
        name: _vector(arrays, f"worker.{name}", n, unknown=unknown)
        for name, unknown in OF_WORKERS.items()
    }
    weight, noise = workers["weight"], workers["noise"]
    check((weight >= 0).all() and not (noise < 0).any(), "its weights")
    (iterations,), (settled,), (moved,) = about["iterations"], about["settled"], about["moved"]
    state = State(gather_facts(clean), saved.values, saved.step)
    aggregate = Aggregate(
        algorithm=saved.algorithm,
        engine=clean,
        x=first["base"],
        offset=first["truth"],
        variance=first["variance"],
        weight=weight,
        noise=noise,
        bias=saved.values.get("bias"),
        state=state,
        iterations=np.array([_count(iterations)]),
        settled=np.array([settled is True]),
        moved=np.array([float(moved)]),
        has_variance=not np.isnan(first["variance"]).any(),
    )
    voices, heard = _voices(arrays, n), clean
    if voices is not None:
        heard = voices.hear(clean)
    return Loaded.of(
        partial(
            second_step,
            heard.gather(),
            aggregate if voices is None else voices.ask(aggregate, heard),
            plan.rule,
            plan.variance,
            groups=None if data.groups is None else data.groups.codes,
            covariates=None if data.covariates is None else data.covariates.values,
            biases=biases,
            prior_choice=saved.prior_choice,
            seed=plan.seed,
        ),
        workers,
        saved.prior_choice,
        answers=answers,
        aggregate=aggregate,
        diagnosis=_diagnosis(meta["diagnosis"]),
        level=plan.level,
        **columns,
        biases=biases,
        groups=data.groups,
        calibration=_calibration(meta["calibration"]),
        voices=voices,
        plan=plan,
        question_data=data,
    )


def _voices(arrays: Arrays, n_workers: int) -> Voices | None:
    if "worker.speaker" not in arrays:
        return None
    speaker = _vector(arrays, "worker.speaker", n_workers).astype(np.int64)
    check(((speaker >= 0) & (speaker < n_workers)).all(), "who speaks for whom")
    check((speaker[speaker] == speaker).all(), "who speaks for whom")
    return Voices(speaker)


class Loaded(Estimate):
    """An estimate from a file. Its second step, of which all numbers are there, is run again when it is asked for."""

    _again: Callable[[], SecondStepResult]
    _workers: Mapping[str, Floats]
    _prior_choice: PriorChoice | None

    @classmethod
    def of(
        cls,
        again: Callable[[], SecondStepResult],
        workers: Mapping[str, Floats],
        prior_choice: PriorChoice | None,
        **parts: Any,
    ) -> Loaded:
        """Put one together from its parts and what runs its second step again."""
        est = cls(second_step=None, **parts)  # type: ignore[arg-type]
        own = vars(est)
        del own["second_step"]
        own["_again"], own["_workers"], own["_prior_choice"] = again, workers, prior_choice
        return est

    def __getattr__(self, name: str) -> Any:
        if name != "second_step" or "_again" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = vars(self)["second_step"] = self._again()
        return found

    @property
    def prior_choice(self) -> PriorChoice | None:
        """The prior that was chosen, known without running the second step again."""
        if "_prior_choice" in vars(self):
            return self._prior_choice
        return self.second_step.prior_choice

    @cached_property
    def worker_columns(self) -> dict[str, Any]:
        """The columns of `workers`."""
        if "_workers" not in vars(self):
            return super().worker_columns
        columns = {
            "worker": self.answers.worker_ids,
            **{name: self._workers[name] for name in ("weight", "variance", "bias")},
            "n_answers": self.aggregate.facts.n_answers.astype(np.int64),
            "flag": self.flag,
        }
        return (
            columns if self.biases is None else {**columns, "bias_std_error": self.biases.std_error}
        )


def _diagnosis(about: dict[str, Any]) -> Diagnosis:
    words = ("method", "shrink", "why", "voices", "second_step", "gold")
    return Diagnosis(
        **{name: _line(about.get(name, "")) for name in words},
        iterations=_count(about["iterations"]),
        settled=about["settled"] is True,
        assumptions=tuple(map(_line, about["assumptions"])),
        warnings=tuple(map(_line, about["warnings"])),
    )


def _calibration(about: dict[str, str] | None) -> Calibration | None:
    if about is None:
        return None
    numbers = {each.name: float(about[each.name]) for each in fields(Calibration)}
    check(np.isfinite(list(numbers.values())).all(), "what gold questions showed")
    return Calibration(**{**numbers, "n_gold": int(numbers["n_gold"])})  # type: ignore[arg-type]


def _vector(
    arrays: Arrays, name: str, size: int, *, unknown: bool = False, open_end: bool = False
) -> Floats:
    """Return numbers, one for each of so many things; all finite, unless they may be unknown."""
    array = arrays[name]
    check(array.dtype == np.float64 and len(array) == size, f"{quoted(name)} has the wrong size")
    fine = np.isfinite(array)
    if unknown or open_end:
        fine |= (np.isnan(array) & unknown) | ((array == np.inf) & open_end)
    check(fine.all(), f"{quoted(name)} holds no numbers")
    return array


def _count(value: Any) -> int:
    check(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63, "a count")
    return int(value)


def _line(value: Any) -> str:
    check(isinstance(value, str) and value.replace("\n", "").isprintable(), "a text")
    return str(value)


def _strings(values: Any) -> list[str]:
    check(isinstance(values, list) and all(isinstance(each, str) for each in values), "names")
    return list(values)

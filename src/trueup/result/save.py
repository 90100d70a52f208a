"""Writing the state of an estimate to a file; `trueup.result.load` reads it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup import __version__
from trueup.core.parameters import yes_or_no
from trueup.errors import TrueupError, option
from trueup.io.archive import write_archive
from trueup.io.outputs import check_state
from trueup.io.plain_ids import pack, pack_types
from trueup.io.table import Pseudonyms
from trueup.pipeline.solution import COLUMNS
from trueup.request import PLAN, READING
from trueup.result.state import BIASES, FORMAT, VERSION, SavedState, described_method, written

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from trueup.answers.answers import Answers
    from trueup.io.question_data import QuestionData
    from trueup.pipeline.calibration import Calibration
    from trueup.pipeline.outlook import Outlook
    from trueup.result.estimate import Estimate
    from trueup.shrinkage.adaptive_prior import PriorChoice


def save(est: Estimate, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write an estimate to a file, which `trueup.load` reads and `trueup.update` continues from."""
    yes_or_no("force", force)
    if not force:
        check_state(Path(path))
    state = SavedState.of(est)
    if isinstance(state.answers.worker_ids, Pseudonyms):
        raise anonymous_state()
    aggregate, answers, plan = est.aggregate, state.answers, state.request.plan
    variance, variance_array = _variance(plan.variance)
    covariates = state.data.covariates
    types: dict[str, Any] = {}
    categories: dict[str, NDArray[Any]] = {}
    for part, ids in (("question", answers.question_ids), ("worker", answers.worker_ids)):
        types[part], members = pack_types(part, ids)
        categories |= members
    meta = {
        "trueup": __version__,
        "answers": {
            "answer_variance": _text(answers.answer_variance),
            "kind": est.kind,
            "rows": answers.n_rows,
            "missing": answers.n_missing,
            "duplicates": answers.n_duplicates,
            "account": answers.origin.account,
            "unit": answers.unit,
            "names": {"question": list(answers.names.question), "worker": answers.names.worker},
            "types": types,
            "sql_types": dict(answers.names.sql_types),
        },
        "plan": {
            **{name: written(name, getattr(plan, name)) for name in PLAN if name != "threads"},
            "variance": variance,
        },
        "read": {
            name: written(name, getattr(state.request.read, name))
            for name in READING
            if name != "anonymous"  # never of what is saved
        },
        "source": _source(state.request.source),
        "covariates": None if covariates is None else list(covariates.names),
        "found": {
            "algorithm": described_method(state.algorithm),
            "step": state.step,
            "transform": state.scale.transform,
            "shift": _text(state.scale.shift),
            "state": list(state.values),
            "iterations": aggregate.iterations.tolist(),
            "settled": aggregate.settled.tolist(),
            "moved": _texts(aggregate.moved),
            "has_variance": bool(aggregate.has_variance),
            "prior_choice": None
            if state.prior_choice is None
            else _prior_choice(state.prior_choice),
        },
        "diagnosis": asdict(est.diagnosis),
        "target": est.solution.target,
        "outlook": _outlook(est.solution.outlook),
        "calibration": None if est.calibration is None else _calibration(est.calibration),
    }
    arrays = {
        **_answer_arrays(answers),
        **_data_arrays(state.data),
        **_result_arrays(est),
        **variance_array,
        **categories,
    }
    return write_archive(path, FORMAT, VERSION, meta, arrays)


def anonymous_state() -> TrueupError:
    """Return the error for a state of workers with pseudonyms."""
    return TrueupError(
        "save: the workers are anonymous, and new answers of a worker could not be told to be by the same one.",
        remedy="Leave out "
        + option("anonymous", None)
        + ", and pass it where the state is updated: what is shown then has pseudonyms.",
    )


def _text(number: Any) -> str:
    """Write a number so that it comes back as it is, also one that JSON does not know."""
    return repr(float(number))


def _texts(numbers: Any) -> list[str]:
    return [_text(number) for number in numbers]


def _source(source: Any) -> str | None:
    """Return the file of the answers, if it has a name that can be shown."""
    return source if isinstance(source, str) and source.isprintable() else None


def _outlook(found: Outlook) -> dict[str, Any]:
    numbers = {
        name: _text(value) for name, value in asdict(found).items() if isinstance(value, float)
    }
    return {**numbers, "n_gold": found.n_gold, "relative": found.relative}


def _calibration(calibration: Calibration) -> dict[str, str]:
    return {name: _text(value) for name, value in asdict(calibration).items()}


def _prior_choice(choice: PriorChoice) -> dict[str, Any]:
    log_tau2 = None if choice.log_tau2 is None else _text(choice.log_tau2)
    gain, z = _text(choice.gain), _text(choice.z)
    return {**asdict(choice), "log_tau2": log_tau2, "gain": gain, "z": z}


def _variance(variance: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the variance that was asked for, and an array if it was one."""
    if variance is None or isinstance(variance, str):
        return variance, {}
    if callable(variance):
        raise TrueupError(
            "save: "
            + option("variance", None)
            + " is a function of your own, and a file holds no code.",
            remedy="Name a rule or give numbers.",
        )
    numbers = np.asarray(variance, dtype=np.float64)
    if numbers.ndim == 0:
        return {"number": _text(numbers)}, {}
    return {"each": True}, {"given_variance": numbers}


def _answer_arrays(answers: Answers) -> dict[str, NDArray[Any]]:
    missing = answers.origin.unanswered
    optional = {"precision": answers.precision, "worker_variance": answers.worker_variance}
    return {
        "counts": answers.counts.astype(np.int64),
        "workers": answers.workers,
        "answers": answers.answers,
        **pack("question", answers.question_ids),
        **pack("worker", answers.worker_ids),
        **({} if missing is None else pack("unanswered", missing)),
        **{name: array for name, array in optional.items() if array is not None},
    }


def _data_arrays(data: QuestionData) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    if data.gold is not None:
        arrays["gold"] = data.gold
    if data.groups is not None:
        arrays |= {
            "group_of": data.groups.codes.astype(np.int64),
            **pack("group", data.groups.ids),
        }
    if data.covariates is not None:
        columns = data.covariates.values.T
        arrays |= {f"covariate.{number}": column for number, column in enumerate(columns)}
    return arrays


def _result_arrays(est: Estimate) -> dict[str, NDArray[Any]]:
    aggregate = est.aggregate
    first = {"truth": aggregate.offset, "base": aggregate.x, "variance": aggregate.variance}
    arrays = {f"question.{name}": array for name, array in first.items()}
    shown = {name: est.worker_columns[name] for name in ("variance", "bias")}
    of_workers = {"weight": aggregate.weight, "noise": aggregate.noise, **shown}
    arrays |= {f"worker.{name}": array for name, array in of_workers.items()}
    values = aggregate.state.values.values()
    arrays |= {f"state.{number}": array for number, array in enumerate(values)}
    arrays |= {f"column.{name}": est.solution.column(name) for name in COLUMNS}
    if est.pooling is not None:
        arrays["worker.leader"] = est.pooling.leader.astype(np.float64)
    if est.biases is not None:
        arrays |= {f"bias.{name}": getattr(est.biases, name) for name in BIASES}
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}

"""Writing the state of an estimate to a file; `trueup.result.load` reads it."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup import __version__
from trueup.algorithms.registry import find as find_method
from trueup.errors import TrueupError, quoted
from trueup.io.archive import BROKEN, Damage, write_archive
from trueup.io.plain_ids import pack
from trueup.pipeline.solve import COLUMNS
from trueup.result.load import BIASES, FORMAT, VERSION, Saved, made
from trueup.shrinkage import find as find_rule

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from trueup.answers.answers import Answers
    from trueup.io.question_data import QuestionData
    from trueup.pipeline.calibration import Calibration
    from trueup.result.estimate import Estimate
    from trueup.shrinkage.adaptive_prior import PriorChoice


def save(est: Estimate, path: str | os.PathLike[str]) -> Path:
    """Write an estimate to a file, from which `trueup.load` and `trueup.update` go on."""
    saved = Saved.of(est)
    found, origin = est.aggregate, est.answers.origin
    variance, given = _variance_given(saved.plan.variance)
    covariates = saved.question_data.covariates
    meta = {
        "trueup": __version__,
        "answers": {
            "transform": est.answers.scale.transform,
            "bounds": None
            if est.answers.scale.bounds is None
            else _texts(est.answers.scale.bounds),
            "answer_variance": _text(est.answers.answer_variance),
            "kind": origin.kind,
            "rows": origin.n_rows,
            "missing": origin.n_missing,
            "duplicates": origin.n_duplicates,
        },
        "plan": {
            "chosen": saved.plan.chooses,
            "method": _described(saved.algorithm, find_method, "method"),
            "rule": _described(saved.plan.rule, find_rule, "shrink"),
            "variance": variance,
            "bias": saved.plan.bias,
            "level": _text(saved.plan.level),
            "max_iter": int(saved.plan.max_iter),
            "tol": _text(saved.plan.tol),
            "seed": int(saved.plan.seed),
            "covariates": None if covariates is None else list(covariates.names),
        },
        "found": {
            "step": saved.step,
            "state": list(saved.values),
            "iterations": found.iterations.tolist(),
            "settled": found.settled.tolist(),
            "moved": _texts(found.moved),
            "has_variance": bool(found.has_variance),
            "prior_choice": None
            if saved.prior_choice is None
            else _prior_choice_texts(saved.prior_choice),
        },
        "diagnosis": asdict(est.diagnosis),
        "calibration": None if est.calibration is None else _calibration_texts(est.calibration),
    }
    arrays = {
        **_answer_arrays(est.answers),
        **_question_arrays(saved.question_data),
        **_found_arrays(est),
        **given,
    }
    return write_archive(path, FORMAT, VERSION, meta, arrays)


def _text(number: Any) -> str:
    """Write a number so that it comes back as it is, also one that JSON does not know."""
    return repr(float(number))


def _texts(numbers: Any) -> list[str]:
    return [_text(each) for each in numbers]


def _calibration_texts(calibration: Calibration) -> dict[str, str]:
    return {name: _text(value) for name, value in asdict(calibration).items()}


def _prior_choice_texts(choice: PriorChoice) -> dict[str, Any]:
    log_tau2 = None if choice.log_tau2 is None else _text(choice.log_tau2)
    return {
        **asdict(choice),
        "log_tau2": log_tau2,
        "gain": _text(choice.gain),
        "z": _text(choice.z),
    }


def _described(thing: Any, find: Callable[[str], Any], argument: str) -> dict[str, Any]:
    """Name a method or rule and its parameters, so that it can be made again from them."""
    try:
        parameters = (
            {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
            if is_dataclass(thing)
            else {}
        )
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in parameters.items()
        }
        again = made({"name": thing.name, "parameters": parameters}, find)
        same = again == thing if is_dataclass(thing) else not vars(thing)
    except (Damage, *BROKEN):
        same = False
    if not same or type(again) is not type(thing):
        raise TrueupError(
            f"save: {argument}={quoted(thing)} is an object of your own, and a file holds no code. Register it by name "
            "and estimate with parameters that are numbers or texts, or keep the answers and estimate again."
        )
    return {"name": thing.name, "parameters": parameters}


def _variance_given(variance: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return how sure the first step is, as the caller said it, and an array if it was one."""
    if variance is None or isinstance(variance, str):
        return variance, {}
    if callable(variance):
        raise TrueupError(
            "save: variance= is a function of your own, and a file holds no code. Name a rule or give numbers."
        )
    numbers = np.asarray(variance, dtype=np.float64)
    if numbers.ndim == 0:
        return {"number": _text(numbers)}, {}
    return {"each": True}, {"given_variance": numbers}


def _answer_arrays(answers: Answers) -> dict[str, NDArray[Any]]:
    optional = {"precision": answers.precision, "worker_variance": answers.worker_variance}
    return {
        "counts": answers.counts.astype(np.int64),
        "workers": answers.workers,
        "values": answers.values,
        "centre": answers.centre,
        **pack("question", answers.question_ids),
        **pack("worker", answers.worker_ids),
        **{name: array for name, array in optional.items() if array is not None},
    }


def _question_arrays(data: QuestionData) -> dict[str, NDArray[Any]]:
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


def _found_arrays(est: Estimate) -> dict[str, NDArray[Any]]:
    found = est.aggregate
    first = {"truth": found.offset, "base": found.x, "variance": found.variance}
    arrays = {f"question.{name}": array for name, array in first.items()}
    shown = {name: est.worker_columns[name] for name in ("variance", "bias")}
    of_workers = {"weight": found.weight, "noise": found.noise, **shown}
    arrays |= {f"worker.{name}": array for name, array in of_workers.items()}
    arrays |= {f"state.{number}": each for number, each in enumerate(found.state.values.values())}
    arrays |= {f"column.{name}": getattr(est, name) for name in COLUMNS}
    if est.voices is not None:
        arrays["worker.speaker"] = est.voices.speaker.astype(np.float64)
    if est.biases is not None:
        arrays |= {f"bias.{name}": getattr(est.biases, name) for name in BIASES}
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}

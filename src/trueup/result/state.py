"""The state of an estimate: what a file keeps of it, and what an update continues from.

Answers, request, what was found out about the workers, and the numbers of every question are kept. What follows from
them, such as the prior of the second step, is computed again when the file is loaded and somebody asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.algorithms.registry import find as find_method
from trueup.errors import TrueupError, quoted
from trueup.io.archive import BROKEN, Damage, check, texts
from trueup.io.outputs import STATE
from trueup.pipeline.solution import COLUMNS
from trueup.result.own_method import named_method
from trueup.shrinkage.contract import ShrinkRule
from trueup.shrinkage.registry import find as find_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.algorithms.contract import Algorithm
    from trueup.answers.answers import Answers
    from trueup.answers.scale import Scale
    from trueup.core.arrays import Floats
    from trueup.io.question_data import QuestionData
    from trueup.request import Request
    from trueup.result.estimate import Estimate
    from trueup.shrinkage.adaptive_prior import PriorChoice

FORMAT, VERSION, OLDEST = STATE, 7, 6
# Vectors of a first step, and whether they may be unknown.
OF_QUESTIONS = {"truth": False, "base": False, "variance": True}
OF_WORKERS = {"weight": False, "noise": True, "variance": True, "bias": True}
BIASES = ("value", "std_error", "variance", "shift", "shift_nu")
#: Vectors that an update does not need.
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
class SavedState:
    """What an update continues from.

    Attributes
    ----------
    answers : Answers
        All answers so far.
    request : Request
        What was asked for.
    data : QuestionData
        What the caller knows about the questions.
    algorithm : Algorithm
        The first step; the one that was chosen, where that was asked for.
    values, step : dict of arrays, int
        What was found out about the workers, and the number of updates that led there.
    scale : Scale
        The scale on which the answers were combined.
    why, scale_why : str
        Why the first step and the scale were chosen.
    prior_choice : PriorChoice or None
        The prior that held-out workers have chosen.
    """

    answers: Answers
    request: Request
    data: QuestionData
    algorithm: Algorithm
    values: Mapping[str, Floats]
    step: int
    scale: Scale
    why: str
    scale_why: str
    prior_choice: PriorChoice | None

    @classmethod
    def of(cls, est: Estimate) -> SavedState:
        """Take the state of an estimate."""
        if est.problem.n_panels > 1:
            raise TrueupError(
                f"these are {est.problem.n_panels:,} panels, and a state is that of one problem; take one, "
                "`answers.panel(b)`.",
                argument="answers",
            )
        aggregate = est.aggregate
        return cls(
            est.answers,
            est.request,
            est.question_data,
            aggregate.algorithm,
            aggregate.state.values,
            aggregate.state.step,
            est.solution.scale,
            est.diagnosis.why,
            est.diagnosis.scale,
            est.solution.prior_choice,
        )


# -- values of keywords, as JSON has them ------------------------------------------------------------


class NotSaved:
    """Stands for an object that was passed and that a file cannot hold."""

    def __repr__(self) -> str:
        return "an object that was not saved"


def written(name: str, value: Any) -> Any:
    """Return the value of a keyword as JSON that `read_value` reads again."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"number": repr(value)}
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return {"texts": list(value)}
    if isinstance(value, tuple) and all(isinstance(each, int | float) for each in value):
        return {"numbers": [repr(float(each)) for each in value]}
    if name == "method":
        return described_method(find_method(value))
    if isinstance(value, ShrinkRule):
        return described(value, find_rule, name)
    return {"object": True}


def read_value(name: str, text: Any) -> Any:
    """Return the value of a keyword that `written` wrote."""
    if not isinstance(text, dict):
        check(text is None or isinstance(text, bool | int | str), "its request")
        return text
    if "texts" in text:
        return texts(text["texts"])
    if "number" in text:
        return float(text["number"])
    if "numbers" in text:
        return tuple(map(float, text["numbers"]))
    if "name" in text:
        return made(text, find_method if name == "method" else find_rule)
    return NotSaved()


def described_method(algorithm: Algorithm) -> dict[str, Any]:
    """Name a method and its parameters; of one that a file cannot hold, who it is."""
    try:
        return described(algorithm, find_method, "method")
    except TrueupError:
        return named_method(algorithm)


def described(thing: Any, find: Callable[[str], Any], argument: str) -> dict[str, Any]:
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


def made(about: dict[str, Any], find: Callable[[str], Any]) -> Any:
    """Make a method or rule again; its name must be known here, and its parameters have the types they must have."""
    check(isinstance(about["name"], str), "its request")
    usual = find(about["name"])
    parameters = about["parameters"]
    for name, value in parameters.items():
        check(_is_like(value, getattr(usual, name)), f"the parameter {quoted(name)}")
    return type(usual)(**parameters)


def _is_like(value: Any, usual: Any) -> bool:
    if isinstance(usual, bool | str):
        return type(value) is type(usual)
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < np.inf
    return number or (value is None and usual is None)

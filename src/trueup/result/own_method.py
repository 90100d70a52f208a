"""Methods that a state cannot hold, classes and functions of the user's own: it names them, and they are passed again.

A state holds data and never leads to code: what it says of such a method is compared with what is passed, and shown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from trueup.algorithms.question_rule import QuestionRule
from trueup.algorithms.registry import find
from trueup.errors import TrueupError, option, quoted
from trueup.io.archive import check, printable

if TYPE_CHECKING:
    from trueup.algorithms.contract import Algorithm
    from trueup.algorithms.registry import Method

#: Key of a method in a state that it does not hold.
OWN = "own"
LONGEST = 200


class MethodNeeded(TrueupError):  # noqa: N818  says what is wrong without a suffix
    """A state was made with a method that it does not hold; or it holds one, and another was passed."""


def named_method(algorithm: Algorithm) -> dict[str, str]:
    """Say which method it was, for a state: what to compare with, and how it was passed."""
    if isinstance(algorithm, QuestionRule):
        function: Any = algorithm.function
        what = str(getattr(function, "__qualname__", type(function).__qualname__))
        return {OWN: what, "passed": what}
    what = repr(algorithm) if is_dataclass(algorithm) else type(algorithm).__qualname__
    module = type(algorithm).__module__
    if not module.endswith(".py"):
        return {OWN: what, "passed": what}
    # It came from the command line.
    values = [f"{each.name}={getattr(algorithm, each.name)}" for each in _fields(algorithm)]
    passed = ":".join(filter(None, (module, type(algorithm).__qualname__, ",".join(values))))
    return {OWN: what, "passed": passed}


@dataclass(frozen=True)
class PassedMethod:
    """The method that is passed with a state, and whether the state asked for it."""

    method: Method | None

    def find(self, about: dict[str, Any]) -> Algorithm:
        """Return the method that was passed, if it is the one that the state was made with."""
        what, passed = printable(about[OWN]), printable(about["passed"])
        check(isinstance(what, str) and isinstance(passed, str), "its request")
        if self.method is None:
            raise MethodNeeded(
                f"the state was made with the method {quoted(what, LONGEST)}, which is code of your own, and a state "
                "holds none.",
                remedy="Pass it again, " + option("method") + f" {passed[:LONGEST]}",
            )
        algorithm = find(self.method)
        found = named_method(algorithm)[OWN]
        if found != what:
            raise MethodNeeded(
                f"the state was made with {quoted(what, LONGEST)}, found {quoted(found, LONGEST)}.",
                argument="method",
                remedy="Pass the same one.",
            )
        return algorithm

    def check_wanted(self, about: Any) -> None:
        """Refuse a method where the state has one of its own."""
        if self.method is not None and not (isinstance(about, dict) and OWN in about):
            raise MethodNeeded(
                "the state knows its method, and continues with it.",
                argument="method",
                remedy="Leave it out, or estimate again from all answers.",
            )


def _fields(algorithm: Any) -> list[Any]:
    return [each for each in fields(algorithm) if each.init] if is_dataclass(algorithm) else []

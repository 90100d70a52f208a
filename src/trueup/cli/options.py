"""Options of commands, made from the keywords of the library: a new keyword is an option without further work."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import Parameter

from trueup.cli.integers import Whole
from trueup.cli.own_method import load_method
from trueup.core.keywords import flag_of
from trueup.request import KEYWORDS, ORDER, QUESTION_DATA, READING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Words of the command line that Python writes otherwise.
WRITTEN = {("wide", "long"): False, ("bias", "on"): True, ("bias", "off"): False}


class Options:
    """Options that were given on the command line, as keywords of the library."""

    @property
    def given(self) -> dict[str, Any]:
        """The keywords whose values are not their defaults."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        given = {name: value for name, value in values.items() if value != KEYWORDS[name].default}
        for name, word in WRITTEN:
            if given.get(name) == word:
                given[name] = WRITTEN[name, word]
        if "method" in given:
            given["method"] = load_method(given["method"])
        if "variance" in given:
            given["variance"] = _number_or_name(given["variance"])
        return given


def options_of(name: str, keywords: Iterable[str]) -> Any:
    """Return a dataclass of options, one for each keyword, for the signature of a command."""
    columns = [
        (
            each,
            Annotated[_option_type(KEYWORDS[each].option), _parameter(each)],
            KEYWORDS[each].default,
        )
        for each in keywords
        if KEYWORDS[each].option is not None
    ]
    kind = make_dataclass(name, columns, bases=(Options,), frozen=True)
    kind.__module__ = __name__  # not that of a library, whose classes cyclopts does not look into
    return Parameter(name="*")(kind)


def _option_type(option: Any) -> Any:
    """Return the type of an option; a whole number is not rounded to one."""
    if option is int:
        return Whole
    return Whole | None if get_args(option) == (int, type(None)) else option


def _parameter(name: str) -> Parameter:
    keyword = KEYWORDS[name]
    several = list[str] in (keyword.option, *get_args(keyword.option))
    return Parameter(
        name=flag_of(name),
        help=keyword.help,
        negative=(),
        show_default=keyword.default is not None and keyword.default is not False,
        consume_multiple=not several,
    )


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


SCALE = ("transform", "bounds")
# An update says itself what becomes of repeated answers.
UPDATED = [name for name in (*QUESTION_DATA, *READING) if name != "duplicates"]

EstimateOptions = options_of("EstimateOptions", ORDER)
CompareOptions = options_of(
    "CompareOptions", ("shrink", "max_iter", "tol", "seed", *SCALE, *READING)
)
RANKED = [name for name in READING if not name.endswith("_variance")]
RankOptions = options_of(
    "RankOptions", ("method", "level", "max_iter", "tol", "seed", "threads", *RANKED)
)
UpdateOptions = options_of("UpdateOptions", UPDATED)
ReadingOptions = options_of("ReadingOptions", (*SCALE, *READING))

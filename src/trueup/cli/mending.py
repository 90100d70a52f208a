"""Read a file that has faults: take the options that its errors name, one after another, until it can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.cli.run import read
from trueup.cli.wording import as_options
from trueup.errors import AnswersError, TrueupError
from trueup.request import Request

if TYPE_CHECKING:
    from trueup.answers.answers import Answers

#: Readings that are tried, and ways to read a file that are shown.
MOST_TRIES, MOST_WAYS = 40, 6


class Attempt(NamedTuple):
    """A way in which a file can be read.

    Attributes
    ----------
    request
        What to ask for.
    answers
        What was read.
    found
        What is wrong with the file otherwise, a line each.
    """

    request: Request
    answers: Answers
    found: tuple[str, ...]


class NothingReadsIt(Exception):  # noqa: N818  says what is wrong without a suffix
    """No option that is known reads a file; `found` is what was wrong before the error `last`."""

    def __init__(self, found: tuple[str, ...], last: TrueupError) -> None:
        super().__init__(found, last)
        self.found, self.last = found, last


def read_mending(file: str, given: dict[str, Any]) -> list[Attempt]:
    """Return all ways in which a file can be read; where several are possible, none is preferred.

    Raises
    ------
    NothingReadsIt
        When there is none.
    """
    waiting: list[tuple[dict[str, Any], tuple[str, ...]]] = [(given, ())]
    tried: list[dict[str, Any]] = []
    ways: list[Attempt] = []
    failed: NothingReadsIt | None = None
    while waiting and len(tried) < MOST_TRIES and len(ways) < MOST_WAYS:
        keywords, found = waiting.pop(0)
        if keywords in tried:
            continue
        tried.append(keywords)
        try:
            request = Request.of("doctor", file, **keywords)
            ways.append(Attempt(request, read(file, request), found))
        except AnswersError as error:
            # The one that got furthest says most.
            if failed is None or len(found) > len(failed.found):
                failed = NothingReadsIt(found, error)
            for fix in error.fixes:
                mended = {**keywords, **fix}
                mended = {name: value for name, value in mended.items() if value is not None}
                waiting.append((mended, (*found, _said(error))))
    if not ways and failed is not None:
        raise failed
    return ways


def _said(error: AnswersError) -> str:
    """Return what is wrong; also what to do about it where there is a choice."""
    parts = [*error.args, error.remedy if len(error.fixes) > 1 else error.place]
    return " ".join(as_options(part) for part in parts if part)

"""trueup doctor: only checks a file, and says what is wrong with it and what to run on it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from trueup.cli.options import ReadingOptions

if TYPE_CHECKING:
    from trueup.cli.mending import Attempt
    from trueup.findings.collection import Findings

NO_AGREEMENT = (
    "Workers agree no better than chance: the estimates will say little about single questions."
)
#: Where the suggested command writes to, and where if that is the file itself.
OUT, OTHER_OUT = "truths.csv", "estimates.csv"


def doctor(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    options: ReadingOptions | None = None,
) -> None:
    """Check a file of answers, say what is wrong with it and what to run on it, without estimating anything.

    Example: trueup doctor answers.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    """
    from trueup.cli.mending import NothingReadsIt, read_mending
    from trueup.cli.summary import suspicious_answers
    from trueup.cli.wording import as_options
    from trueup.findings.input_check import examine

    given: dict[str, Any] = {} if options is None else options.given
    try:
        ways = read_mending(file, given)
    except NothingReadsIt as error:
        _show("To settle first", error.found)
        sys.stdout.flush()
        raise error.last from error.last.__cause__
    first = ways[0]
    _show("To settle first", first.found)
    if len(ways) > 1:
        print(f"Read with {_options(first)}")
    print(as_options(examine(first.answers, first.request.plan.scale).text))
    findings = _findings(first)
    _show("Suspicious answers", suspicious_answers(findings) if findings.answers else [])
    if findings.agreement is not None and findings.agreement.is_chance:
        _show("Agreement", [findings.agreement.summary, NO_AGREEMENT])
    if len(ways) == 1:
        _show("Run", [_command(first, file)])
        return
    lines = []
    for way in ways:
        lines += [_command(way, file), f"  {_sizes(way)}"]
    _show("Run the one you mean", lines)


def _show(title: str, lines: "tuple[str, ...] | list[str]") -> None:
    if lines:
        print("\n".join([title, *(f"  {line}" for line in lines)]))


def _command(way: "Attempt", file: str) -> str:
    out = OTHER_OUT if file == OUT else OUT
    return f"{way.request.as_command('estimate').text} -o {out}"


def _options(way: "Attempt") -> str:
    """Return the options of a way alone."""
    from trueup.request import Request

    plain = Request(source=way.request.source).as_command("").text
    return way.request.as_command("").text.removeprefix(plain).strip()


def _sizes(way: "Attempt") -> str:
    """Say what a way makes of the file."""
    from trueup.pipeline.diagnosis import size_in_words

    values = way.answers.answers
    return f"{size_in_words(way.answers)}, from {values.min():.6g} to {values.max():.6g}"


def _findings(way: "Attempt") -> "Findings":
    """Return what stands out about the answers."""
    from trueup._diagnose import diagnose_all

    plan = way.request.plan
    return diagnose_all(way.answers, "native", transform=plan.transform, bounds=plan.bounds)

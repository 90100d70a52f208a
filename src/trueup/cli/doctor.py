"""trueup doctor: only checks a file, and says what could be run on it."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from trueup.cli.options import ReadingOptions

if TYPE_CHECKING:
    from trueup.answers.answers import Answers
    from trueup.request import Request


def doctor(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    options: ReadingOptions | None = None,
) -> None:
    """Check a file of answers and say what could be run on it, without estimating anything.

    Example: trueup doctor answers.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    """
    from trueup.cli.run import read
    from trueup.cli.wording import as_options
    from trueup.findings.input_check import examine
    from trueup.request import Request

    given: dict[str, Any] = {} if options is None else options.given
    request = Request.of("doctor", file, **given)
    answers = read(file, request)
    print(as_options(examine(answers, request.plan.scale).text))
    print(*suspicious_lines(answers, request), sep="\n", end="")


def suspicious_lines(answers: "Answers", request: "Request") -> list[str]:
    """Return the first suspicious answers, a line each; nothing where there are none, or none can be known."""
    from trueup._diagnose import diagnose_all
    from trueup.cli.summary import suspicious_answers

    plan = request.plan
    findings = diagnose_all(answers, "native", transform=plan.transform, bounds=plan.bounds)
    return ["Suspicious answers", *suspicious_answers(findings), ""] if findings.answers else []

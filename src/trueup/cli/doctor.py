"""trueup doctor: only checks a file, and says what could be run on it."""

from typing import Annotated, Any

from cyclopts import Parameter

from trueup.cli.options import ReadingOptions


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
    print(as_options(examine(read(file, request), request.plan.scale).text))

"""trueup doctor: only checks a file, and says what could be run on it."""

from typing import Annotated

from cyclopts import Parameter

from trueup.cli.read_options import Reading


def doctor(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    reading: Reading | None = None,
) -> None:
    """Check a file of answers and say what could be run on it, without estimating anything.

    Example: trueup doctor answers.csv

    Parameters
    ----------
    file
        Answers, as for trueup estimate.
    """
    from trueup.findings.input_check import examine

    print(examine((reading or Reading()).answers(file)))

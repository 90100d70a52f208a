"""The command line: parse, call, print.

Exit codes: 0 done, 1 could not run (one line on stderr says what and how to mend it), 2 usage, 4 a statement
that a study checks does not hold, 130 interrupted (Ctrl-C), 143 ended on request (SIGTERM).
"""

from __future__ import annotations

import os
import sys

from trueup.cli.exit_codes import UsageError, exit_code
from trueup.core.libraries import need
from trueup.errors import MissingExtra, quoted

#: Libraries below numpy, which take one thread unless told otherwise: products are small here, and threads wait for
#: each other longer than they work. Not OMP, from which Arrow learns how many threads may read files.
LINEAR_ALGEBRA = ("OPENBLAS", "MKL")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    for library in LINEAR_ALGEBRA:
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    tokens = sys.argv[1:] if arguments is None else arguments
    sys.exit(exit_code(lambda: _run(tokens), last=arguments is None))


def _run(tokens: list[str]) -> None:
    for token in tokens:
        if "\0" in token:  # a shell cannot pass one, a program in the place of the shell can
            raise UsageError(f"{quoted(token)}: an argument holds a NUL byte. Leave it out.")
    try:
        need("cyclopts", "cli")
    except MissingExtra:
        from trueup.cli.without_extras import run
    else:
        from trueup.cli.app import run
    run(tokens)

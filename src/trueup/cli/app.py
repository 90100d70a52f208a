"""All commands, and what they have in common."""

# Annotations are read while the program runs: no `from __future__ import annotations` in files of commands.
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from trueup import __version__
from trueup.cli.compare import compare
from trueup.cli.datasets import datasets
from trueup.cli.diagnose import diagnose
from trueup.cli.doctor import doctor
from trueup.cli.estimate import estimate
from trueup.cli.exit_codes import UsageError
from trueup.cli.simulate import simulate
from trueup.cli.study import study
from trueup.cli.update import update
from trueup.cli.without_extras import DESCRIPTION
from trueup.errors import TrueupWarning

HELP = f"{DESCRIPTION}\n\nExample: trueup estimate answers.csv -o truths.csv"

app = App(name="trueup", help=HELP, version=f"trueup {__version__}", help_format="plaintext")


@app.command
def demo() -> None:
    """Estimate on built-in data and show how close it comes.

    Example: trueup demo
    """
    from trueup.cli.demo import demo

    demo()


for command in (estimate, update, compare, diagnose, doctor, simulate, datasets, study):
    app.command(command)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Run a command.

    Parameters
    ----------
    quiet
        Print nothing but errors; with any command.
    """
    command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    with warnings.catch_warnings(), _silence() if quiet else nullcontext():
        # An estimate says its warnings itself, where it is printed.
        warnings.simplefilter("ignore", TrueupWarning)
        command(*bound.args, **bound.kwargs)


def run(tokens: list[str]) -> None:
    """Run a command."""
    try:
        command, bound, _ = app.meta.parse_args(tokens, exit_on_error=False, print_error=False)
        command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        raise UsageError(f"{error} (trueup --help shows how)") from error
    except SystemExit as end:
        # So what prints help texts ends the program where their reader, such as `head`, has seen enough.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise


@contextmanager
def _silence() -> Iterator[None]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield

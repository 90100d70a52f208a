"""All commands, and what they have in common."""

# Annotations are read while the program runs: no `from __future__ import annotations` in files of commands.
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from trueup import __version__
from trueup.cli.exit_codes import UsageError
from trueup.cli.without_extras import DESCRIPTION
from trueup.errors import TrueupWarning

HELP = f"{DESCRIPTION}\n\nExample: trueup estimate answers.csv -o truths.csv"

#: Commands, what they do, and an example: each is imported when it is run, or asked for its own help.
COMMANDS = {
    "estimate": (
        "Estimate the true value of every question in a file of answers.",
        "trueup estimate answers.csv -o truths.csv --workers workers.csv --report report.html",
    ),
    "rank": (
        "Compare systems by the scores that a panel of judges gave them on the same items.",
        "trueup rank scores.csv --by model --item sample_id --baseline old --fail-if worse",
    ),
    "update": (
        "Fold new answers into the state that trueup estimate --save wrote.",
        "trueup update state.trueup new.csv -o truths.csv",
    ),
    "compare": (
        "Rank the first steps, with and without the second, by how well they predict workers they have not seen.",
        "trueup compare answers.csv --truth truth.csv",
    ),
    "diagnose": (
        "Show what stands out about workers and questions, how well workers agree, and whether a second step helps.",
        "trueup diagnose answers.csv --target-se 0.5 --workers workers.csv",
    ),
    "doctor": (
        "Check a file of answers and say what could be run on it, without estimating anything.",
        "trueup doctor answers.csv",
    ),
    "simulate": (
        "Draw workers, questions with a known truth, and answers.",
        "trueup simulate -o answers.csv --truth-out truth.csv --workers 20 --density 0.5",
    ),
    "datasets": (
        "List the public data sets, describe one, or write its answers to a file.",
        "trueup datasets emotions -o answers.csv --truth-out truth.csv",
    ),
    "study": ("Run a study again and write what came out.", "trueup study paper --quick"),
}

app = App(name="trueup", help=HELP, version=f"trueup {__version__}", help_format="plaintext")


@app.command
def demo() -> None:
    """Estimate on built-in data and show how close it comes.

    Example: trueup demo
    """
    from trueup.cli.demo import demo

    demo()


for command, (text, example) in COMMANDS.items():
    path, about = f"trueup.cli.{command}:{command}", f"{text}\n\nExample: {example}"
    app.command(path, name=command, help=about)


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
        raise UsageError(f"{_in_words(error)} (see trueup --help)") from error
    except SystemExit as end:
        # So what prints help texts ends the program where their reader, such as `head`, has seen enough.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise


def _in_words(error: CycloptsError) -> str:
    """Say what is wrong with a command, and how it is written."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        tokens = list(map(str, error.unused_tokens))
        return (
            f"There is one argument too many: {tokens[0]}. Put a pattern in quotes, as in 'answers/*.csv', and join "
            "several columns by a comma, as in --question sample,model."
        )
    text = str(error)
    if re.match(r"Unknown option: --engine\b", text) and error.command_chain:
        command = " ".join(error.command_chain)
        return f"--engine: {command} works in memory only; trueup estimate and trueup compare have other engines."
    too_few = re.search(r"parameter (\S+) requires 2 positional arguments", text)
    if too_few:
        return f"{too_few[1]} takes two numbers, as in {too_few[1]} 0 100."
    if re.search(r"parameter FILE requires an argument", text):
        return "FILE is missing: name a file, as in trueup doctor answers.csv."
    return text


@contextmanager
def _silence() -> Iterator[None]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield

"""trueup study: the evaluations of this library, run again."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from trueup.cli.integers import Whole

study = App(
    name="study",
    help="Run a study again and write what came out.\n\nExample: trueup study paper --quick",
)


@study.command
def paper(
    *,
    out: Path = Path("trueup-paper"),
    quick: Annotated[bool, Parameter(negative=())] = False,
    data: Path | None = None,
    without_data: Annotated[bool, Parameter(negative=())] = False,
    samples: Whole | None = None,
    seed: Whole = 0,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Check every claim of the paper, and write a page that shows which of them hold.

    Ends with exit code 4 if a statement that was checked does not hold, and 1 if a part could not run.

    Example: trueup study paper --quick --out paper

    Parameters
    ----------
    out
        Folder for the page and its tables.
    quick
        Few samples: a first look, in about a minute.
    data
        Folder that holds the real data sets, one folder each.
    without_data
        Leave out the parts that need the real data sets.
    samples
        Number of samples of each cell.
    seed
        Another number draws other samples.
    force
        Let the page replace one that trueup did not write.
    """
    from trueup.cli.exit_codes import StatementFailed
    from trueup.errors import TrueupError, counted

    run = import_module("trueup.study.paper").run
    result = run(
        out=out,
        quick=quick,
        data=data,
        without_data=without_data,
        samples=samples,
        seed=seed,
        force=force,
    )
    print(f"Written: {result.page}")
    print(result)
    quickly = "in a quick run " if quick else ""
    if result.failed:
        raise StatementFailed(f"{quickly}not all statements hold: {', '.join(result.failed)}.")
    if result.missing:
        parts = counted(len(result.missing), "part")
        raise TrueupError(
            f"{quickly}{parts} could not run: {', '.join(result.missing)}. {next(iter(result.missing.values()))} "
            "Give --data, or leave these parts out with --without-data."
        )

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
    samples: Whole | None = None,
    seed: Whole = 0,
) -> None:
    """Check every claim of the paper, and write a page that shows which of them hold.

    Example: trueup study paper --quick --out paper

    Parameters
    ----------
    out
        Folder for the page and its tables.
    quick
        Few samples: a first look, in about a minute.
    data
        Folder that holds the real data sets, one folder each.
    samples
        Number of samples of each cell.
    seed
        Another number draws other samples.
    """
    run = import_module("trueup.study.paper").run
    print(f"Written: {run(out=out, quick=quick, data=data, samples=samples, seed=seed)}")

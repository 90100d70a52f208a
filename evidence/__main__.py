"""Run the studies of both steps, of intervals and of ranking: `make evidence`, or `python -m evidence --help`.

A short run prints every figure beside its target and writes its pages to a folder. A full run has the size of the
documentation, and writes its pages of figures anew. The exit code is 1 if a figure is outside of its range; in a short
run, if it is so by more than three standard errors.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.crowds import Crowds, table_lines
from evidence.everything import STUDIES, measure_all, say_all, write_all
from evidence.second_step.context import SETS
from evidence.study import Settings
from evidence.sub_panels import load_source
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options, run the studies, print where their pages are and every figure beside its target."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--step",
        action="append",
        choices=STUDIES,
        help="what to study; may be repeated; default: all",
    )
    parser.add_argument(
        "--part",
        action="append",
        help="run only this part; may be repeated. "
        + ". ".join(
            f"{name.capitalize()}: {', '.join(study.chosen(None))}"
            for name, study in STUDIES.items()
        ),
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full",
        action="store_true",
        help="as many panels as in the documentation, whose pages of figures are written (hours)",
    )
    size.add_argument("--quick", action="store_true", help="use small grids too, for a preview")
    size.add_argument("--samples", type=int, help="largest number of panels per cell")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("trueup-evidence"),
        help="folder with one subfolder for each study; default: trueup-evidence",
    )
    parser.add_argument("--data", type=Path, help="folder with one subfolder per real data set")
    parser.add_argument("--seed", type=int, default=0, help="seed of the samples")
    options = parser.parse_args(arguments)
    if options.samples is not None and options.samples < 2:
        parser.error(f"--samples: found {options.samples}, must be at least 2.")
    parts = {}
    for step in options.step or STUDIES:
        known = STUDIES[step].chosen(None)
        parts[step] = [name for name in known if not options.part or name in options.part]
    known = [name for step in parts for name in STUDIES[step].chosen(None)]
    for name in options.part or ():
        if name not in known:
            parser.error(f"--part: {name} is not known. Parts: {', '.join(known)}.")
    parts = {step: names for step, names in parts.items() if names}
    data = None if options.data is None else str(options.data)
    if options.full:
        _need_all(data)
    settings = {}
    for step in parts:
        study = STUDIES[step]
        samples = options.samples or (
            study.samples
            if options.full
            else study.quick_samples
            if options.quick
            else study.short_samples
        )
        settings[step] = Settings(
            samples, options.quick, data, options.seed, progress=False, processes=1
        )
        print(f"{step}: {', '.join(parts[step])}; {settings[step]}", flush=True)
    # Parts run side by side; threads inside of them would only wait for each other.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    found = measure_all(parts, settings, options.out)
    write_all(found, settings, options.out, docs=options.full)
    if not options.step and not options.part:
        print(
            "\nHow public crowds err, and the prior for it:", *table_lines(Crowds.read()), sep="\n"
        )
    return 0 if say_all(found, settings, strict=options.full) else 1


def _need_all(data: str | None) -> None:
    """Raise an error where a page would be printed without some of its data."""
    for name in SETS:
        try:
            load_source(name, data)
        except TrueupError as error:
            raise SystemExit(
                f"python -m evidence --full: the pages of the documentation need all real data sets. {name}: {error}"
            ) from error


if __name__ == "__main__":
    raise SystemExit(main())

"""Run the studies of the two steps, of intervals and of ranking: `make evidence`, or `python -m evidence --help`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evidence import first_step, intervals, ranking, second_step

if TYPE_CHECKING:
    from collections.abc import Sequence

STUDIES = {
    "first": first_step.STUDY,
    "second": second_step.STUDY,
    "intervals": intervals.STUDY,
    "ranking": ranking.STUDY,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and print where its page is."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument(
        "--step", choices=STUDIES, default="second", help="what to study; default: second"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for the page; default: trueup-evidence/ and the name of the study",
    )
    parser.add_argument("--quick", action="store_true", help="use few samples, for a preview")
    parser.add_argument(
        "--part",
        action="append",
        help="run only this part; may be repeated. "
        + ". ".join(
            f"{name.capitalize()}: {', '.join(part.__name__ for part in study.parts)}"
            for name, study in STUDIES.items()
        ),
    )
    parser.add_argument("--data", type=Path, help="folder with one subfolder per real data set")
    parser.add_argument("--samples", type=int, help="largest number of panels per cell")
    parser.add_argument("--seed", type=int, default=0, help="seed of the samples")
    options = parser.parse_args(arguments)
    study = STUDIES[options.step]
    known = [part.__name__ for part in study.parts]
    for part in options.part or ():
        if part not in known:
            parser.error(f"--part: {part} is not known. Parts: {', '.join(known)}.")
    page = study.run(
        out=options.out or Path("trueup-evidence", options.step),
        quick=options.quick,
        data=options.data,
        samples=options.samples,
        seed=options.seed,
        parts=options.part,
    )
    print(f"Written: {page}")


if __name__ == "__main__":
    main()

"""Run the study of the second step: `make evidence`, or `python -m evidence --help`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.second_step import PARTS, run

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and print where its page is."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("trueup-evidence"), help="folder for the page"
    )
    parser.add_argument("--quick", action="store_true", help="use few samples, for a preview")
    parser.add_argument(
        "--part",
        action="append",
        choices=[part.__name__ for part in PARTS],
        help="run only this part; may be repeated",
    )
    parser.add_argument("--data", type=Path, help="folder with one subfolder per real data set")
    parser.add_argument("--samples", type=int, help="number of panels per cell")
    parser.add_argument("--seed", type=int, default=0, help="seed of the samples")
    options = parser.parse_args(arguments)
    page = run(
        out=options.out,
        quick=options.quick,
        data=options.data,
        samples=options.samples,
        seed=options.seed,
        parts=options.part,
    )
    print(f"Written: {page}")


if __name__ == "__main__":
    main()

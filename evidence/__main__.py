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
    parser.add_argument("--quick", action="store_true", help="few samples: a first look")
    parser.add_argument(
        "--part",
        action="append",
        choices=[part.__name__ for part in PARTS],
        help="run this part alone; may be given several times",
    )
    parser.add_argument("--data", type=Path, help="folder with the real data sets, one folder each")
    parser.add_argument("--samples", type=int, help="number of samples of each cell")
    parser.add_argument("--seed", type=int, default=0, help="seed of the samples")
    given = parser.parse_args(arguments)
    page = run(
        out=given.out,
        quick=given.quick,
        data=given.data,
        samples=given.samples,
        seed=given.seed,
        parts=given.part,
    )
    print(f"Written: {page}")


if __name__ == "__main__":
    main()

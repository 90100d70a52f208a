"""Draw the picture of the README: the estimates of examples/01_crowd_estimates.py, as docs/result.svg.

    python tools/picture.py

Needs the packages of `pip install ".[report]"` and pandas.
"""  # noqa: INP001  a script

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "01_crowd_estimates.py"
PICTURE = ROOT / "docs" / "result.svg"


def draw(path: Path = PICTURE) -> Path:
    """Run the example and write the chart of its estimates."""
    with contextlib.redirect_stdout(io.StringIO()):
        est = runpy.run_path(str(EXAMPLE))["est"]
    size = est.answers
    title = (
        f"The heights of {size.n_questions} people, from {size.n_answers} guesses of {size.n_workers} others, "
        f"with {est.level:.0%} intervals"
    )
    chart = est.plot(unit="cm").properties(title=title)
    part = path.with_name(f"{path.stem}.part{path.suffix}")
    chart.save(part)
    part.replace(path)
    return path


if __name__ == "__main__":
    print(draw())  # noqa: T201

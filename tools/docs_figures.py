"""Print every number and draw every picture of the documentation, and put them into its pages.

    python tools/docs_figures.py            # all pages, numbers and pictures
    python tools/docs_figures.py tutorials  # pages whose path begins so, without pictures
    python tools/docs_figures.py --check    # change nothing; say what is no longer true

What code blocks print comes from running them (`docs_blocks`), what stands between `<!-- numbers: NAME -->` and
`<!-- end -->` from `docs_numbers`, and the pictures in docs/pictures from here. A picture carries the numbers it was
drawn from as a comment, so that a test can tell whether it is still right. Nothing is written unless all of it worked.
"""  # noqa: INP001  a script

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))
# Python processes of Spark are like this one.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import docs_evidence  # noqa: F401  its numbers become known
import docs_numbers
import docs_typing_error
from docs_blocks import DOCS, blocks, in_empty_folder, run_page, same

from trueup.report import theme
from trueup.report.single_chart import _coloured
from trueup.report.vega_specs import plain_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PICTURES = DOCS / "pictures"
PLACE = re.compile(r"<!-- numbers: ([\w-]+) -->\n(.*?)<!-- end -->", re.S)
DRAWN_FROM = re.compile(r"<!-- drawn from\n(.*?)-->", re.S)
# Pages that `make evidence FULL=1` writes.
NOT_OURS = (
    "first-step-figures.md",
    "second-step-figures.md",
    "interval-figures.md",
    "ranking-figures.md",
)


def pages() -> list[Path]:
    """Return the pages of the documentation."""
    return [page for page in sorted(DOCS.rglob("*.md")) if page.name not in NOT_OURS]


def fill(text: str, *, slow: bool = True) -> str:
    """Put the numbers into their places; those that hardly differ stay as they are."""

    def place(match: re.Match[str]) -> str:
        name = match[1]
        if name in docs_numbers.SLOW and not slow:
            return match[0]
        found = docs_numbers.NUMBERS[name]()
        kept = match[2].strip("\n")
        return f"<!-- numbers: {name} -->\n\n{kept if same(found, kept) else found}\n\n<!-- end -->"

    return PLACE.sub(place, text)


# Pictures: name -> the numbers as text, and the chart


def lines(
    rows: list[dict[str, Any]],
    x: str,
    y: str,
    by: str,
    *,
    order: list[str],
    log: str = "",
    level: float = 1.0,
) -> dict[str, Any]:
    """Return a chart of lines with points; `level` is marked, and the axes named in `log` are logarithmic."""
    scales = {axis: {"zero": False, **({"type": "log"} if axis in log else {})} for axis in "xy"}
    axis = {"titlePadding": 10, "labelOverlap": True}
    ticks = {**axis, "values": sorted({row[x] for row in rows}), "format": "~g"}
    colour = {
        "field": by,
        "type": "nominal",
        "sort": order,
        "scale": {"domain": order},
        "legend": {"title": None},
    }
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": kind, **how},
            "encoding": {
                "x": {
                    "field": x,
                    "type": "quantitative",
                    "scale": scales["x"],
                    "title": x,
                    "axis": ticks,
                },
                "y": {
                    "field": y,
                    "type": "quantitative",
                    "scale": scales["y"],
                    "title": y,
                    "axis": axis,
                },
                "color": colour,
            },
        }
        for kind, how in (("line", {"strokeWidth": 2}), ("point", {"filled": True, "size": 50}))
    ]
    layers.append(
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": level}}}
    )
    return {"data": {"values": rows}, "layer": layers, "height": 260}


def _long(
    names: list[str], found: Sequence[tuple[float, ...]], x: str, y: str
) -> list[dict[str, Any]]:
    return [
        {x: at, y: value, "which": name}
        for at, *values in found
        for name, value in zip(names, values, strict=True)
    ]


def spread() -> tuple[str, dict[str, Any]]:
    """Draw what the second step gains by the spread of the true values."""
    names = ["3 workers", "10 workers"]
    found = [(row[0], row[1], row[3]) for row in docs_numbers.by_spread()]
    x, y = "spread of the true values (noise of an answer: 1; log scale)", "error after / before"
    chart = lines(_long(names, found, x, y), x, y, "which", order=names, log="x")
    return docs_numbers.NUMBERS["spread"](), chart


def psi() -> tuple[str, dict[str, Any]]:
    """Draw what the printed variance of the paper does."""
    names = ["paper, as printed", "trueup"]
    found = [(float(n), paper, ours) for n, _, paper, ours in docs_numbers.psi_by_workers()]
    x, y = "workers", "error after / before (log scale)"
    chart = lines(_long(names, found, x, y), x, y, "which", order=names, log="y")
    return docs_numbers.NUMBERS["psi"](), chart


def compression() -> tuple[str, dict[str, Any]]:
    """Draw the harm of the second step where the whole crowd sees smaller differences than there are."""
    names = ["target truth (default)", "target consensus"]
    x, y = "share of the differences that the crowd sees", "error after / before"
    chart = lines(_long(names, docs_numbers.by_compression(), x, y), x, y, "which", order=names)
    return docs_numbers.NUMBERS["compression"](), chart


def coverage() -> tuple[str, dict[str, Any]]:
    """Draw how many intervals contain the truth where workers err together."""
    names = ["consensus", "truth", "truth, 3 gold questions", "truth, 20 gold questions"]
    x, y = (
        "share of the error that all workers have in common",
        "share of 95% intervals with the truth inside",
    )
    rows = _long(names, docs_numbers.coverage(), x, y)
    return docs_numbers.NUMBERS["coverage"](), lines(rows, x, y, "which", order=names, level=0.95)


def shrunk() -> tuple[str, dict[str, Any]]:
    """Draw the batting averages before and after the second step, and what they were about."""
    import trueup
    from trueup.shrinkage import Normal

    data = trueup.datasets.batting()
    rule = Normal(caution=1.0)
    moved = rule.fit(data.x, data.variance).posterior(data.x, data.variance).mean
    names = ["first 45 at-bats", "after the second step", "rest of the season"]
    columns = (data.x, moved, data.truth)
    rows = [
        {"average": round(float(value), 4), "which": name, "player": player}
        for name, column in zip(names, columns, strict=True)
        for player, value in zip(data.players, column.tolist(), strict=True)
    ]
    where = {
        "field": "which",
        "type": "nominal",
        "sort": names,
        "title": None,
        "axis": {"labelAngle": 0},
    }
    how = {
        "field": "average",
        "type": "quantitative",
        "scale": {"zero": False},
        "title": "batting average",
    }
    colour = {"value": "var(--faint)"}
    chart = {
        "data": {"values": rows},
        "height": 300,
        "layer": [
            {
                "mark": {"type": "line", "opacity": 0.6, "strokeWidth": 1},
                "encoding": {"x": where, "y": how, "detail": {"field": "player"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45},
                "encoding": {"x": where, "y": how},
            },
        ],
    }
    text = docs_numbers.table(
        ["player", *names],
        [
            [player, *(f"{column[at]:.3f}" for column in columns)]
            for at, player in enumerate(data.players)
        ],
    )
    return text, chart


@functools.cache
def _estimate_of(page: str) -> Any:
    """Return the first estimate that a page makes."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()), in_empty_folder():
        for block in blocks((DOCS / page).read_text("utf-8")):
            if block.kind == "python" and "est" not in names:
                exec(compile(block.body, page, "exec"), names)  # noqa: S102
    return names["est"]


def _of_page(page: str, kind: str) -> Callable[[], tuple[str, dict[str, Any]]]:
    def draw() -> tuple[str, dict[str, Any]]:
        """Draw a chart of the estimate that a page makes."""
        est = _estimate_of(page)
        return str(est), est.plot(kind).to_dict()

    return draw


DRAW: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "spread": spread,
    "psi": psi,
    "compression": compression,
    "coverage": coverage,
    "batting": shrunk,
    "typing-error": docs_typing_error.picture,
    "estimates": _of_page("tutorials/reading-the-report.md", "estimates"),
    "workers": _of_page("tutorials/reading-the-report.md", "workers"),
    "prior": _of_page("tutorials/reading-the-report.md", "prior"),
}
SLOW_PICTURES = {"coverage"}


def _commented(text: str) -> str:
    """Return a text that may stand in a comment."""
    return re.sub("-(?=-)", "- ", text)


def is_current(name: str) -> bool:
    """Whether a picture was drawn from the numbers of today."""
    path = PICTURES / f"{name}.svg"
    kept = DRAWN_FROM.search(path.read_text("utf-8")) if path.exists() else None
    return kept is not None and same(_commented(DRAW[name]()[0]), kept[1])


def draw(name: str, folder: Path = PICTURES) -> Path:
    """Draw a picture."""
    import altair as alt

    text, spec = DRAW[name]()
    colours = {**theme.LIGHT, **{f"hue{at}": hue for at, hue in enumerate(theme.PALETTE, 1)}}
    if "config" not in spec:
        spec = {**spec, "width": 520, "config": theme.chart_config()}
        spec["config"]["background"] = theme.LIGHT["paper"]
        spec = plain_spec(_coloured(spec, colours), name)
    path = folder / f"{name}.svg"
    part = path.with_name(f"{name}.part.svg")
    alt.Chart.from_dict(spec).save(part)
    svg = part.read_text("utf-8").rstrip()
    part.write_text(f"{svg}\n<!-- drawn from\n{_commented(text)}\n-->\n", "utf-8")
    part.replace(path)
    return path


def main() -> int:
    """Fill pages and draw pictures; with --check say what would change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "pages", nargs="*", help="pages whose path begins so; default: all, and the pictures"
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    wrong = []
    for page in pages():
        name = page.relative_to(DOCS).as_posix()
        if given.pages and not name.startswith(tuple(given.pages)):
            continue
        text = page.read_text("utf-8")
        new = fill(run_page(text, name)[1])
        if new != text:
            wrong.append(name)
            if not given.check:
                page.write_text(new, "utf-8")
    for name in () if given.pages else DRAW:
        if not is_current(name):
            wrong.append(f"pictures/{name}.svg")
            if not given.check:
                draw(name)
    for name in wrong:
        print(f"{'no longer true' if given.check else 'written'}: {name}")  # noqa: T201
    return int(given.check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Run the code of a page of the documentation, and put what it prints back into the page.

A page is Markdown. Its blocks run from top to bottom in one namespace and one empty folder:

- ``python``: run as it stands. A ``text`` block right after it holds what it prints.
- ``console``: lines that begin with ``$ `` are commands (`trueup`, `head`, `cat`), the others what they print.
- ``sh``: what to type to install or build; not run, see `SHOWN_ONLY`.

A line ``...`` in what is printed stands for lines that the page leaves out.

A comment right before a block changes how it is checked: ``<!-- varies -->``, numbers in its output are not compared
(times); ``<!-- later: NAME -->``, the block waits for something listed in `LATER` and does not run.
"""  # noqa: INP001  a script

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

# Blocks marked `<!-- later: NAME -->` wait for this. Take a line out and its blocks run from then on.
LATER: dict[str, str] = {}
# How the lines of a block may begin that is shown and not run.
SHOWN_ONLY = ("pip install ", "make ", "git clone ", "cd ")
WIDTH = "88"
LEFT_OUT = "..."
FENCE = re.compile(
    r"(?P<mark><!-- (?:varies|later: \w+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|\bnan\b")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its kind, what is in it, where it stands, and the mark before it."""

    kind: str
    body: str
    start: int
    end: int
    mark: str

    @property
    def waits_for(self) -> str | None:
        """What the block waits for, if that is still on the list."""
        name = self.mark.removeprefix("later: ") if self.mark.startswith("later: ") else None
        return name if name in LATER else None


@dataclass(frozen=True)
class Printed:
    """What a piece of code printed, and what the page says it prints."""

    code: str
    wanted: str
    found: str
    varies: bool

    @property
    def is_true(self) -> bool:
        """Whether the page says what is printed."""
        return same(self.found, self.wanted, digits=not self.varies)


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = []
    for match in FENCE.finditer(text):
        mark = (match["mark"] or "").removeprefix("<!-- ").removesuffix(" -->\n")
        found.append(Block(match["kind"], match["body"], match.start(), match.end(), mark))
    return found


def same(found: str, wanted: str, *, digits: bool = True) -> bool:
    """Whether two texts are the same but for spaces and the last digit of a number.

    >>> same("error 0.123  x", "error 0.124 x"), same("error 0.12", "error 0.14")
    (True, False)
    """
    left, right = (
        [NUMBER.sub("#", line).split() for line in lines(each)] for each in (found, wanted)
    )
    if left != right:
        return False
    if not digits:
        return True
    pairs = zip(NUMBER.findall(found), NUMBER.findall(wanted), strict=True)
    return all(_close(one, other) for one, other in pairs)


def excerpt(found: str, wanted: str) -> str:
    """Cut what was printed to the passages that the page shows, if it leaves lines out (`...`).

    A passage is found by its first line, whatever its numbers. If it is not there, nothing is cut.
    """
    if LEFT_OUT not in wanted.splitlines():
        return found
    rest, kept = found.splitlines(), []
    for number, passage in enumerate(re.split(r"^\.\.\.$\n?", wanted, flags=re.M)):
        shown = passage.strip("\n").splitlines()
        if number:
            kept.append(LEFT_OUT)
        if shown:
            begins = (at for at, line in enumerate(rest) if same(line, shown[0], digits=False))
            at = next(begins, None)
            if at is None or (at > 0 and number == 0):
                return found
            kept += rest[at : at + len(shown)]
            rest = rest[at + len(shown) :]
    if kept[-1] != LEFT_OUT:
        kept += rest
    return "\n".join(kept) + "\n"


def lines(text: str) -> list[str]:
    """Return the lines of a text that have something in them."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    if "nan" in (one, other) or ("." not in one + other and "e" not in one + other):
        return False  # counts are exact
    places = min((len(each.partition(".")[2]) for each in (one, other)), default=0)
    first, second = (float(each.replace(",", "")) for each in (one, other))
    unit = 10.0**-places if "e" not in one + other else 0.0
    return abs(first - second) <= 1.01 * unit + 2e-3 * abs(second)


def run_page(text: str, name: str = "page") -> tuple[list[Printed], str]:
    """Run the blocks of a page in an empty folder; return what they print, and the page with it."""
    printed: list[Printed] = []
    pieces: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    at = 0
    here = blocks(text)
    with in_empty_folder():
        for number, block in enumerate(here):
            if (
                block.start < at
                or block.waits_for is not None
                or block.kind not in ("python", "console")
            ):
                continue
            pieces.append(text[at : block.start])
            varies = block.mark == "varies"
            if block.kind == "console":
                done = _console(block.body, varies=varies)
                printed += done
                body = "".join(
                    f"$ {each.code}\n{each.found if not each.is_true else each.wanted}"
                    for each in done
                )
                pieces.append(text[block.start : block.end].replace(block.body, body))
                at = block.end
                continue
            pieces.append(text[block.start : block.end])
            at = block.end
            line = text.count("\n", 0, text.index(block.body, block.start)) + 1
            found = _python(block.body, names, name, line)
            follows = here[number + 1] if number + 1 < len(here) else None
            wanted = ""
            if (
                follows is not None
                and follows.kind == "text"
                and not text[block.end : follows.start].strip()
            ):
                wanted, at = follows.body, follows.end
            if found or wanted:
                found = excerpt(found, wanted)
                each = Printed(block.body, wanted, found, varies)
                printed.append(each)
                if found:
                    pieces.append(f"\n\n```text\n{wanted if each.is_true else found}```")
    pieces.append(text[at:])
    return printed, "".join(pieces)


def _python(code: str, names: dict[str, Any], page: str, line: int) -> str:
    """Run a block; a traceback names the line of the page."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (line - 1) + code, page, "exec"), names)  # noqa: S102
    return _tidy(out.getvalue())


def _console(body: str, *, varies: bool) -> list[Printed]:
    """Run the commands of a block."""
    done = []
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, wanted = part.partition("\n")
        while command.endswith("\\"):  # a command on several lines
            more, _, wanted = wanted.partition("\n")
            command = f"{command}\n{more}"
        words = shlex.split(command.replace("\\\n", " "))
        found = excerpt(_tidy(_command(words)), wanted)
        done.append(Printed(command, wanted, found, varies))
    return done


def _command(words: list[str]) -> str:
    """Run one command, as a user would type it, and return all it prints."""
    if words[0] in ("head", "cat"):
        count = int(words[1][1:]) if words[0] == "head" else None
        text = Path(words[-1]).read_text("utf-8")
        return "".join(text.splitlines(keepends=True)[:count])
    if words[0] != "trueup":
        raise ValueError(f"{words[0]}: a console block runs trueup, head and cat")
    from rich.console import Console

    from trueup.cli import main
    from trueup.cli.app import app

    out = io.StringIO()
    # One that was made before has the width of that time.
    app.console = app.meta.console = Console(width=int(WIDTH))
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            contextlib.suppress(SystemExit),
        ):
            main(words[1:])
    finally:
        app.console = app.meta.console = None
    return out.getvalue()


def _tidy(text: str) -> str:
    """Return a text without spaces at the ends of lines, ending in a line break if it is not empty."""
    kept = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"{kept}\n" if kept else ""


@contextlib.contextmanager
def in_empty_folder() -> Iterator[None]:
    """Run in an empty folder, with a terminal of a fixed width; forget the algorithms that a page registers."""
    from trueup.algorithms import registry

    before = {name: os.environ.get(name) for name in ("COLUMNS", "TRUEUP_DATA")}
    known = dict(registry._registered)  # noqa: SLF001
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["COLUMNS"] = WIDTH
        os.environ.pop("TRUEUP_DATA", None)
        try:
            yield
        finally:
            registry._registered.clear()  # noqa: SLF001
            registry._registered.update(known)  # noqa: SLF001
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

"""Commands in processes of their own that need not import everything anew, which takes a second each time.

A server of multiprocessing has imported the program and forks itself for every command. What comes of that is a process
like any other: it can be killed, it has its own streams, environment and session, and shares no thread with anybody.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from commands import SOURCE, Done
from trueup.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    ["pandas", "pyarrow.csv", "pyarrow.parquet", "pytest", "scipy.sparse", "scipy.special",
     "trueup.cli.app", "trueup.cli.on_disk", "trueup.cli.summary", "trueup.disk"]
)  # fmt: skip
#: What Python tells of before a file is opened, made, renamed or removed.
EVENTS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
LONGEST = 300


class Running(NamedTuple):
    """A process that was started, and the folder with what it prints."""

    process: Any
    folder: tempfile.TemporaryDirectory[str]

    def is_over(self) -> bool:
        """Whether it has ended."""
        return not self.process.is_alive()

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> Done:
        """Wait for its end; a signal that ended it is a negative code."""
        self.process.join(LONGEST)
        code = self.process.exitcode
        assert code is not None, "it does not end"
        self.process.close()
        out, err = (Path(self.folder.name, name).read_text("utf-8") for name in ("out", "err"))
        self.folder.cleanup()
        return Done(code, out, err)


def begin(
    function: Callable[..., object], *arguments: Any, killed_at: int = 0, **changes: str | None
) -> Running:
    """Call a function in a process of its own, in this folder.

    Parameters
    ----------
    function, arguments
        What to do; the function is one of a module that can be imported.
    killed_at
        Kill the process just before it opens, makes or removes a file of this folder for the so-manieth time.
    changes
        Variables of the environment to change, or to take away.
    """
    folder = tempfile.TemporaryDirectory()
    process = FORKING.Process(
        target=_go, args=(function, arguments, folder.name, killed_at, changes)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", SOURCE)  # for the server, which the first process starts
        process.start()
    return Running(process, folder)


def begin_command(*arguments: str | Path, **options: Any) -> Running:
    """Start a command, see `begin`."""
    return begin(_command, *map(str, arguments), **options)


def _command(*arguments: str) -> None:
    sys.argv[1:] = arguments
    main()


def started(*arguments: str | Path, **options: Any) -> Done:
    """Run a command in a process of its own, see `begin`."""
    return begin_command(*arguments, **options).end()


def _go(
    function: Callable[..., object],
    arguments: tuple[Any, ...],
    said: str,
    killed_at: int,
    changes: dict[str, str | None],
) -> None:
    os.setsid()  # no terminal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server heeds none
    for number, name in ((1, "out"), (2, "err")):
        with Path(said, name).open("wb") as file:
            os.dup2(file.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(encoding="utf-8")
    for name, value in changes.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    if killed_at:
        _kill_at(killed_at)
    function(*arguments)


def _kill_at(moment: int) -> None:
    here, left = Path.cwd(), moment

    def count(event: str, about: tuple[Any, ...]) -> None:
        nonlocal left
        if event in EVENTS and isinstance(about[0], str | Path):
            left -= Path(about[0]).absolute().is_relative_to(here)
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)

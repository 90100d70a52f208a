"""How a command ends: exit codes, and errors in one line."""

from __future__ import annotations

import errno
import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.cli.interrupts import Interrupts
from trueup.errors import TrueupError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

DONE, FAILED, USAGE = 0, 1, 2
#: What is added to the number of a signal that ended a command: 130 for Ctrl-C, 143 for a request to end.
BY_SIGNAL = 128
#: The gate of `trueup rank` says no.
GATE_SAYS_NO = 3
#: A study ran, and a statement that it checks does not hold.
STATEMENT_FAILED = 4
LONGEST_PATH = 200
#: Number of standard error, the last of the three streams a program begins with.
LAST_STREAM = 2
# Set to see where an unexpected error comes from.
TRACEBACK = "TRUEUP_TRACEBACK"
REMEDIES = {
    errno.ENOENT: "Check the name and the folder.",
    errno.EACCES: "Check who may read and write it, or choose another place.",
    errno.EPERM: "Check who may read and write it, or choose another place.",
    errno.EROFS: "Choose another place.",
    errno.EISDIR: "Name a file.",
    errno.ENOTDIR: "Check the name and the folder.",
    errno.ENOSPC: "Make room, or choose another place.",
    errno.EDQUOT: "Make room, or choose another place.",
    errno.EFBIG: "Choose a place that takes larger files.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


class UsageError(Exception):
    """The command line itself is not understood."""


class StatementFailed(Exception):  # noqa: N818  nothing went wrong: this is what a study found
    """A study ran, and a statement that it checks does not hold."""


class GateSaysNo(Exception):  # noqa: N818  nothing went wrong: this is what was asked for
    """The gate of `trueup rank` says no; the output says why."""


def exit_code(call: Callable[[], object], *, last: bool = False) -> int:
    """Call, say on stderr in one line what went wrong, and return the exit code.

    Parameters
    ----------
    call
        What the command does.
    last
        Whether the process ends with it: from then on interrupts have nothing to stop, and are ignored.
    """
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An id may hold what this terminal cannot show, and stdout must not fail for that.
            stream.reconfigure(errors="backslashreplace")
    with Interrupts(last=last) as interrupts:
        try:
            call()
            sys.stdout.flush()
            interrupts.end()
        except (KeyboardInterrupt, Exception) as error:
            interrupts.over = True
            if interrupts.noted or isinstance(error, KeyboardInterrupt):
                return _interrupted(interrupts.noted or signal.SIGINT)
            return _failed(error)
    return DONE


def _open_closed() -> None:
    """Let streams that whoever started us has closed lead nowhere; else a file opened later would take their place."""
    if sys.stdin is not None and sys.stdout is not None and sys.stderr is not None:
        return
    while (handle := os.open(os.devnull, os.O_RDWR)) <= LAST_STREAM:
        pass
    os.close(handle)
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  to the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _interrupted(number: int) -> int:
    # Where the interrupt came while Python ran a text, as for every dataclass, it plans to die of the signal, handled
    # or not; running another text makes it forget that.
    exec("")  # noqa: S102
    return _end(
        BY_SIGNAL + number, "interrupted" if number == signal.SIGINT else "ended on request"
    )


def _failed(error: BaseException) -> int:
    match error:
        case UsageError():
            return _end(USAGE, str(error))
        case GateSaysNo():
            sys.stdout.flush()
            return GATE_SAYS_NO
        case StatementFailed():
            return _end(STATEMENT_FAILED, str(error))
        case BrokenPipeError():
            # Whoever read the output, such as `head`, has seen enough; there is nobody left to tell.
            _drop_output()
            return DONE
        case TrueupError():
            return _end(FAILED, error.message)
        case OSError():
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()  # or the end of the program would try again, and say so
            return _end(FAILED, _about_file(error))
        case MemoryError():
            return _end(FAILED, "not enough memory. Give fewer answers, or a larger machine.")
    if os.environ.get(TRACEBACK):
        raise error
    return _end(
        FAILED,
        f"unexpected {type(error).__name__}: {error} (an error in trueup: please report it; "
        f"{TRACEBACK}=1 shows where it happened)",
    )


def _drop_output() -> None:
    """Let what is still to be printed go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(code: int, message: str) -> int:
    # Not before: until interrupts are taken care of, which is soon, nothing may take time.
    from trueup.cli.wording import as_options

    print("trueup:", " ".join(as_options(message).split()), file=sys.stderr)
    return code


def _about_file(error: OSError) -> str:
    reason = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "")
    if error.filename is None:
        return f"{reason}. {remedy}"
    name = quoted(os.fsdecode(error.filename), LONGEST_PATH)
    return f"File {name}: {reason[:1].lower()}{reason[1:]}. {remedy}"

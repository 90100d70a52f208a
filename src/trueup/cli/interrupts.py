"""Interrupts (Ctrl-C) that get through, whatever library is at work when they come."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

#: Seconds after which an interrupt is raised again, and how often one waits for an import.
AGAIN, PATIENCE = 0.1, 100


class Interrupts:
    """Raises KeyboardInterrupt while a command runs, again and again until one gets through.

    Libraries in C++ drop the exception (pyarrow while it imports pandas), turn it into another (DuckDB in a query) or
    crash (DuckDB while it is imported); therefore an interrupt is raised more than once, and not within an import.

    Parameters
    ----------
    last
        Whether to ignore interrupts afterwards, rather than put back what was there.

    Attributes
    ----------
    noted : bool
        Whether there was an interrupt.
    over : bool
        Whether there is nothing left to interrupt.
    """

    def __init__(self, *, last: bool = False) -> None:
        self.noted = self.over = False
        self._patience = PATIENCE
        self._last = last
        # Otherwise who started us wants interrupts handled in another way.
        self._ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def __enter__(self) -> Self:
        if self._ours:
            try:
                signal.signal(signal.SIGINT, self._note)
            except ValueError:  # not in the main thread, the only one that is interrupted
                self._ours = False
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ours:
            return
        if self.noted:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._alarm)
            sys.unraisablehook = self._hook
        signal.signal(signal.SIGINT, signal.SIG_IGN if self._last else signal.default_int_handler)

    def end(self) -> None:
        """Take no more interrupts, and raise one that did not get through."""
        self.over = True
        if self.noted:
            raise KeyboardInterrupt

    def _note(self, _number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if not self.noted:
            self.noted = True
            # A file that is being opened at this moment is closed by the end of the program.
            warnings.simplefilter("ignore", ResourceWarning)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
            self._alarm: Any = signal.signal(signal.SIGALRM, self._note)
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        if self._patience and _importing(frame):
            self._patience -= 1
        elif not _unwinding():
            raise KeyboardInterrupt

    def _unraisable(self, error: sys.UnraisableHookArgs) -> None:
        if not isinstance(error.exc_value, KeyboardInterrupt):
            self._hook(error)


def _unwinding() -> bool:
    """Tell whether an interrupt is on its way out, so that files are being closed and removed."""
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False

"""Interrupts (Ctrl-C, and SIGTERM) that get through, whatever library is at work when they come."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

#: Seconds after which an interrupt is raised again, and how often one waits for an import.
AGAIN, PATIENCE = 0.1, 100
#: The signal of the timer that raises it again; Windows has none, and there an interrupt is raised once.
AGAIN_BY: Any = getattr(signal, "SIGALRM", None) if hasattr(signal, "setitimer") else None
#: What is done with a signal unless somebody wants it otherwise.
USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


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
    noted : int
        The signal that came first: SIGINT or SIGTERM; 0 as long as there was none.
    over : bool
        Whether there is nothing left to interrupt.
    """

    def __init__(self, *, last: bool = False) -> None:
        self.noted, self.over = 0, False
        self._patience = PATIENCE
        self._last = last
        # Otherwise who started us wants signals handled in another way.
        self._before = {
            number: usual for number, usual in USUAL.items() if signal.getsignal(number) is usual
        }

    def __enter__(self) -> Self:
        try:
            for number in self._before:
                signal.signal(number, self._note)
        except ValueError:  # not in the main thread, the only one that is interrupted
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        if self.noted:
            if AGAIN_BY is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(AGAIN_BY, self._alarm)
            sys.unraisablehook = self._hook
        for number, usual in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._last else usual)

    def end(self) -> None:
        """Take no more interrupts, and raise one that did not get through."""
        self.over = True
        if self.noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if not self.noted:
            self.noted = number
            # A file that is being opened at this moment is closed by the end of the program.
            warnings.simplefilter("ignore", ResourceWarning)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
            if AGAIN_BY is not None:
                self._alarm: Any = signal.signal(AGAIN_BY, self._note)
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

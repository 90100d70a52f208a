"""A progress bar with the remaining time, on standard error if that is a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from trueup.core.parameters import yes_or_no

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

WIDTH = 24
PAUSE = 0.1  # seconds between two updates of the bar


class Progress:
    """Counts steps, and draws a bar if `shown` and standard error is a terminal."""

    def __init__(self, name: str, total: int, *, shown: bool) -> None:
        self.name, self.total, self.done = name, total, 0
        yes_or_no("progress", shown)
        self.shown = bool(shown) and sys.stderr.isatty()
        self.start = self.drawn = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def step(self, what: str) -> None:
        """Count a step."""
        self.done += 1
        self._draw(what, at_once=self.done == self.total)

    def note(self, what: str) -> None:
        """Show what is being done within a step."""
        self._draw(what, at_once=False)

    def _draw(self, what: str, *, at_once: bool) -> None:
        now = time.monotonic()
        if self.shown and (now - self.drawn > PAUSE or at_once):
            self.drawn = now
            sys.stderr.write(f"\r\x1b[K{self.line(what, now - self.start)}")
            sys.stderr.flush()

    def line(self, what: str, elapsed: float) -> str:
        """Return the bar as text."""
        share = self.done / max(self.total, 1)
        full = round(WIDTH * share)
        bar = "█" * full + "░" * (WIDTH - full)
        left = ""
        if self.done:
            left = f", {_duration(elapsed / self.done * (self.total - self.done))} left"
        return f"{self.name} {bar} {self.done}/{self.total}{left}  {what}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

"""How the memory of arrays is kept, where the process is ours."""

from __future__ import annotations

import ctypes
import sys

#: Settings of glibc's malloc by their numbers in malloc.h: the largest array that is taken from the heap (32 MB is the
#: most there is), the free memory at the end of the heap that is kept, and the number of heaps.
SETTINGS = {-3: 32 << 20, -1: 512 << 20, -8: 1}


def keep_memory() -> None:
    """Keep what arrays give back for the next ones: asking the system each time takes up to a tenth of a run.

    For a command, not for a library; C libraries other than glibc are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for number, value in SETTINGS.items():
            mallopt(number, value)

"""Children that end with the process that started them, however that ends."""

from __future__ import annotations

import ctypes
import signal
import sys

SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2)


def end_with_parent() -> None:
    """In a child, before its program starts: the kernel sends it SIGTERM once its parent is gone (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)

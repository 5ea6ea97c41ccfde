"""Children that end with the process that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2)


def ending_with_parent() -> Callable[[], None]:
    """Gives a function for `preexec_fn` of subprocess. It asks the kernel to send the child SIGTERM when this
    process has ended; on Linux.
    """
    parent = os.getpid()

    def end_with_parent() -> None:
        if sys.platform != "linux":
            return
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it went before the kernel was told
            os.kill(os.getpid(), signal.SIGTERM)

    return end_with_parent

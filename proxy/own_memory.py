"""The memory of the process. It has passwords, private keys and the traffic in it, so others cannot read it.
What one read has used serves the next.

On Linux a process that cannot be dumped leaves no core, and other processes of its user can neither trace it
nor read its memory and environment in /proc; root can (prctl(2), PR_SET_DUMPABLE).
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping

from klamm.settings.heap import keep_freed

ALLOWED = "KLAMM_ALLOW_DUMPS"  # the variable of the environment that leaves all as it is
SET_DUMPABLE = 4  # of prctl
NEITHER = 0, 0  # soft and hard limit
READS, LARGEST_READ = 8 << 20, 4 << 20  # bytes; large frames are given back


def prepare() -> None:
    """At the start of a process."""
    hide()
    keep_freed(READS, LARGEST_READ)


def hide(environment: Mapping[str, str] = os.environ) -> None:
    """From now on. Programs that the process starts can be dumped again, as the kernel has it; their limit is
    that of this process.
    """
    if environment.get(ALLOWED) == "1":
        return
    resource.setrlimit(resource.RLIMIT_CORE, NEITHER)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)

"""Memory that the queue of a capture goes through again and again."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # of mallopt(3)
MIB = 1 << 20


def keep_freed(size_bytes: int) -> None:
    """So much stays with the process. As it comes, the C library gives back what is free at the end of the
    heap beyond 128 KiB, and the kernel has to map and clear the same pages again for the next chunks. For
    glibc; nothing happens elsewhere.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, size_bytes)
        mallopt(TOP_PAD, MIB)
        mallopt(MMAP_THRESHOLD, 32 * MIB)  # as far as it goes by itself, which it does not any more

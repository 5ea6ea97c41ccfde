"""Memory that is freed and taken again and again: that of reads, and of the queue of a capture."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # of mallopt(3)
MIB = 1 << 20


def keep_freed(size_bytes: int, chunk_bytes: int = 32 * MIB) -> None:
    """Keeps so many freed bytes in the process; chunks larger than `chunk_bytes` are given back.

    By default the C library gives back free memory at the end of the heap beyond 128 KiB. Then the kernel has
    to map and clear the same pages again for the next chunks. For glibc; nothing happens elsewhere.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, size_bytes)
        mallopt(TOP_PAD, MIB)
        mallopt(MMAP_THRESHOLD, chunk_bytes)  # it grows by itself, to 32 MiB, until the first call

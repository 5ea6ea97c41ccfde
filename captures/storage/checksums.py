"""CRC-32C: by its package, which all of klamm has; on a Spark executor, which may lack it, in Python.

That is good for the few hundred bytes of what a segment says of itself, and too slow for its columns: without
the package these are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

REVERSED_POLYNOMIAL = 0x82F63B78
ALL = 0xFFFFFFFF


def slow_crc32c(data: Any, value: int = 0) -> int:
    """Some MB in a second."""
    table, value = _table(), value ^ ALL
    for byte in memoryview(data).cast("B"):
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ ALL


@cache
def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (REVERSED_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


crc32c: Callable[..., int]
try:
    from crc32c import crc32c as crc32c

    CHECKS_COLUMNS = True
except ModuleNotFoundError:
    crc32c = slow_crc32c
    CHECKS_COLUMNS = False

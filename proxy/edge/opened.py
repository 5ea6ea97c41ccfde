"""Connections of this process, numbered as they come."""

from __future__ import annotations

import time
from itertools import count
from typing import NamedTuple

_numbers = count(1)


class Opened(NamedTuple):
    """Which connection it is, and since when (seconds since 1970)."""

    number: int
    since: float


def opened_now() -> Opened:
    """The next one."""
    return Opened(next(_numbers), time.time())

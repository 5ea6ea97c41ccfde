"""Connections of this process, numbered as they come."""

from __future__ import annotations

import time
from itertools import count
from typing import NamedTuple

_numbers = count(1)


class Opened(NamedTuple):
    """The number of a connection, and when it was opened (seconds since 1970)."""

    number: int
    since: float


def opened_now(number: int = 0) -> Opened:
    """A connection that is opened now, with this number, or the next one."""
    return Opened(number or next(_numbers), time.time())

"""Lists of names as they are shown: the first of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 3  # names


def some(names: Sequence[str], most: int = MOST) -> str:
    """At most so many of them, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""Lists of names: as people write them, and as they are shown."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 3  # names


def some(names: Sequence[str], most: int = MOST) -> str:
    """At most so many of them, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def named(text: str) -> list[str]:
    """The names in `a, b`: without the spaces around them, and without empty ones."""
    return [name for part in text.split(",") if (name := part.strip())]

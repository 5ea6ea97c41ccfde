"""Output for people and for programs: columns, and JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Columns as wide as their widest cell, without those that are empty."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_json(value: dict[str, Any]) -> None:
    """One object, in a line of ASCII."""
    import json  # not needed by most

    print(json.dumps(value, allow_nan=False, separators=(", ", ": ")))

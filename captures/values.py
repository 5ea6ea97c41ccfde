"""Compares decoded values, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A leaf that differs; None: it is null, or not there."""

    path: str  # topics[0].name
    before: Any
    after: Any


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that holds no others, with its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def changes(before: Any, after: Any) -> Iterator[Change]:
    """The leaves that differ, in the order of `before`."""
    old, new = dict(leaves(before)), dict(leaves(after))
    for path in dict.fromkeys([*old, *new]):
        if old.get(path) != new.get(path):
            yield Change(path, old.get(path), new.get(path))

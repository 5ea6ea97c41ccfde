"""The differences between two versions of a layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Field, members, present

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}


class Change(NamedTuple):
    """One field that is not as it was; `before` and `after` say how it was and is, empty where it is not."""

    what: str
    path: str
    before: str
    after: str


def changes(before: Layout, after: Layout) -> list[Change]:
    """In wire order; what is gone comes last."""
    old, new = (
        dict(_all_fields(before.fields, before.version)),
        dict(_all_fields(after.fields, after.version)),
    )
    found = []
    for path, described in new.items():
        if path not in old:
            found.append(Change(ADDED, path, "", described))
        elif old[path] != described:
            found.append(Change(CHANGED, path, old[path], described))
    return found + [
        Change(REMOVED, path, described, "") for path, described in old.items() if path not in new
    ]


def _all_fields(fields: tuple[Field, ...], version: int, path: str = "") -> Iterator[tuple[str, str]]:
    in_place, tagged = present(fields, version)
    for f in [*in_place, *tagged]:
        name = f"{path}{f.name}{'[]' if f.kind == 'array' else ''}"
        yield name, described(f, version)
        yield from _all_fields(members(f), version, f"{name}.")


def described(f: Field, version: int) -> str:
    """A field in a few words: its type, and what else matters on the wire."""
    of = f" of {f.of}" if f.kind == "array" and isinstance(f.of, str) else ""
    tag = "" if f.tag is None else f", tag {f.tag}"
    return f"{f.kind}{of}{', or null' if version in f.null else ''}{tag}"

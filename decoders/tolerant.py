"""Finds fields in a body that does not decode, as far as its bytes go."""

from __future__ import annotations

from typing import Any

from klamm.decoders import interpret
from klamm.decoders.emit.pick import TAG_PATH, Path
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import HOST, PORT, Field
from klamm.decoders.tags import MOST_COUNT

Found = list[tuple[int, int, int, Any]]


def find(layout: Layout, paths: tuple[Path, ...], data: bytes, pos: int, end: int) -> Found:
    """The wanted fields of a body, as `locate` gives them, where `locate` raises.

    A null is taken for nothing, also where none is allowed, and a body may end anywhere. Raises DecodeError
    where clients may read on in more than one way, or where the body ends within an address.
    """
    finder = _Finder(layout, paths, data, pos, end)
    try:
        finder.struct(layout.fields)
    except _Over:
        pass
    except interpret._Stop as stop:
        raise interpret._failure(layout, finder, pos, stop.reason) from None
    return finder.found


class _Over(Exception):
    """Nothing that is wanted can follow."""


class _Finder(interpret._Reader):
    def __init__(self, layout: Layout, paths: tuple[Path, ...], data: bytes, pos: int, end: int) -> None:
        super().__init__(layout, data, pos, end)
        self.wanted = {path: index for index, path in enumerate(paths)}
        self.last = paths[-1][0]
        self.found: Found = []
        self.host: str | None = None  # of an address whose port has not been read yet
        self.within: str | None = None  # the mark of the field that was begun last

    def take(self, size: int) -> bytes:
        if size <= self.end - self.pos:
            return super().take(size)
        if self.host or (self.within == HOST and self.pos < self.end):
            raise interpret._Stop(f"ends within an address: needs {size} bytes, {self.end - self.pos} left")
        raise _Over

    def length(self, classic: str, null: bool) -> int | None:
        mark, self.within = self.within, None  # a length tells nothing of a host
        size = super().length(classic, True)
        self.within = mark
        return size

    def room(self, count: int, least: int) -> None:
        """The elements end where the bytes do."""

    def value(self, f: Field) -> Any:
        start, self.within = self.pos, f.mark
        value = super().value(f)
        names = tuple(name for name in self.path if name[0] != "[")
        if names in self.wanted:
            self.found.append((self.wanted[names], start, self.pos, value))
        if f.mark in (HOST, PORT):
            self.host = value if f.mark == HOST else None
        if names == (self.last,) and f.tag is None:
            raise _Over
        return value

    def tags(self, values: dict[str, Any], tagged: list[Field]) -> None:
        """Some clients read a known field by its size, others by its layout: the two must agree."""
        known = {f.tag: f for f in tagged}
        for _ in range(self.uvarint(MOST_COUNT)):
            tag, before = self.uvarint(), self.pos
            size = self.uvarint()
            start = self.pos
            if tag not in known:
                self.take(size)
                continue
            self.found.append((TAG_PATH, before, start, start + size))
            self.path.append(known[tag].name)
            self.value(known[tag])
            if self.pos != start + size:
                raise interpret._Stop(f"tag {tag} announces {size} bytes, its value takes {self.pos - start}")
            self.path.pop()

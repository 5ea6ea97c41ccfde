"""Long varints, tagged sections, values split over chunks: the rare cases, which made functions call for
instead of holding.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders.schema import UNKNOWN_TAGS

# Varints are int32 to Kafka. It loops up to a count, from 0 on (before 4.4), and subtracts 1 from a length: a
# negative one is none, or null.
MOST_COUNT = 0x7FFFFFFF
MOST_LENGTH = 0x80000000
ANY = 0xFFFFFFFF


class Malformed(Exception):
    """A length, a count or the end is wrong; the interpreter says which."""


def uvarint_at(data: bytes, pos: int, most: int = ANY) -> tuple[int, int]:
    """A varint and the position after it. `most`: 0 for a greater one."""
    value = data[pos]
    return (value, pos + 1) if value < 0x80 else long_uvarint(data, pos + 1, value, 7, most)


def long_uvarint(data: bytes, pos: int, value: int, shift: int = 7, most: int = ANY) -> tuple[int, int]:
    """The rest of a varint whose first byte, or two where `shift` is 14, is not the last."""
    value -= 1 << shift
    while True:
        byte = data[pos]
        pos += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            value &= ANY
            return (value if value <= most else 0), pos
        shift += 7
        if shift >= 35:
            raise Malformed


def long_uvarint_walk(
    data: bytes, pos: int, end: int, first: int, most: int = ANY
) -> Generator[None, bytes, tuple[bytes, int, int, int]]:
    """The same over chunks: returns (data, pos, end, value)."""
    value, shift = first & 0x7F, 7
    while True:
        while pos >= end:
            data = yield
            pos, end = 0, len(data)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= ANY
            return data, pos, end, value if value <= most else 0
        shift += 7
        if shift >= 35:
            raise Malformed


def gather(data: bytes, pos: int, size: int) -> Generator[None, bytes, bytes]:
    """At least `size` bytes from `pos` on, joined once however small the chunks are."""
    parts, there = [data[pos:]], len(data) - pos
    while there < size:
        part = yield
        parts.append(part)
        there += len(part)
    return b"".join(parts)


def unknown_tags(data: bytes, pos: int, end: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
    """A tagged section of which no tag is known."""
    found = []
    for _ in range(count):
        tag, size = data[pos], 0
        pos += 1
        if tag > 0x7F:
            tag, pos = long_uvarint(data, pos, tag)
        size = data[pos]
        pos += 1
        if size > 0x7F:
            size, pos = long_uvarint(data, pos, size)
        if size > end - pos:
            raise Malformed
        found.append((tag, data[pos : pos + size]))
        pos += size
    return found, pos


def keep_tags(data: bytes, pos: int, end: int, count: int, values: dict[str, Any]) -> int:
    """The same into a struct's values, after the first byte of the count was read; the position after it."""
    if count > 0x7F:
        count, pos = long_uvarint(data, pos, count, 7, MOST_COUNT)
    found, pos = unknown_tags(data, pos, end, count)
    if found:
        values[UNKNOWN_TAGS] = found
    return pos


def tags_end(data: bytes, pos: int, end: int) -> int:
    """The position after a tagged section; `end` where it ends early. Raises Malformed."""
    section = data[pos:end]
    try:
        count, at = uvarint_at(section, 0, MOST_COUNT)
        for _ in range(count):
            _, at = uvarint_at(section, at)
            size, at = uvarint_at(section, at)
            at += size
    except IndexError:
        return end
    return min(pos + at, end)


def skip_tags(data: bytes, pos: int, end: int, count: int) -> int:
    """The position after a tagged section whose count was read."""
    if count > 0x7F:
        count, pos = long_uvarint(data, pos, count, 7, MOST_COUNT)
    return unknown_tags(data, pos, end, count)[1]

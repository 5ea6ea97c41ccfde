"""Reads values in DER, the encoding of certificates (X.690): tag, length, content."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCE, SET, OBJECT_IDENTIFIER = 0x30, 0x31, 0x06


def content_of(value: bytes, tag: int) -> bytes:
    """Raises ValueError where it is not one value of this tag."""
    found, start, end = _read(value, 0)
    if found != tag or end != len(value):
        raise ValueError(f"not the value that was expected: tag {found}")
    return value[start:end]


def values_in(value: bytes, tag: int) -> Iterator[bytes]:
    """The values in a value of this tag, each with its own tag and length. Raises ValueError."""
    content, at = content_of(value, tag), 0
    while at < len(content):
        _, _, end = _read(content, at)
        yield content[at:end]
        at = end


def _read(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the value that begins there, and the start and end of its content. Raises ValueError."""
    if len(data) < at + 2:
        raise ValueError("a value that is cut short")
    tag, size, start = data[at], data[at + 1], at + 2
    if size > 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[at + 2 : start], "big")
    elif size == 0x80:
        raise ValueError("a value without a length, which DER does not have")
    if start + size > len(data):
        raise ValueError("a value that is cut short")
    return tag, start, start + size

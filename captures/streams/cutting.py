"""Removes blanked bytes from frames, and fills them in again (see `captured.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.captures.captured import Blanks

Edit = tuple[
    int, int, bytes | None
]  # start, stop, and the bytes in their place; None: zeros, listed as a blank


def edited(data: bytes, start: int, end: int, edits: Sequence[Edit]) -> tuple[bytes, Blanks]:
    """The frame that is data[start:end], cut, with its blanks; edits in order of their places."""
    if not edits:
        return data[start:end], ()
    if len(edits) == 1:
        first, stop, new = edits[0]
        if new is None:
            return data[start:first] + data[stop:end], ((first - start, stop - first),)
    parts: list[bytes] = []
    blanks: list[tuple[int, int]] = []
    pos = start
    for first, stop, new in edits:
        parts.append(data[pos:first])
        if new is None:
            blanks.append((first - start, stop - first))
        else:
            parts.append(new)
        pos = stop
    parts.append(data[pos:end])
    return b"".join(parts), tuple(blanks)


def cut(frame: bytes, blanks: Blanks) -> bytes:
    """A frame without its blanked bytes."""
    return edited(frame, 0, len(frame), [(at, at + size, None) for at, size in blanks])[0]


def filled(frame: bytes, blanks: Blanks) -> bytes:
    """A frame that was cut, with zeros where its blanks are. Raises ValueError where these do not fit."""
    parts: list[bytes] = []
    pos = total = 0  # positions in the cut frame, and in the filled one
    for at, size in blanks:
        stop = pos + at - total
        if not pos <= stop <= len(frame) or size < 0:
            raise ValueError(
                f"a blank of {size} bytes at {at} does not fit into a frame of {len(frame)} bytes"
            )
        parts += (frame[pos:stop], bytes(size))
        pos, total = stop, at + size
    return b"".join([*parts, frame[pos:]]) if parts else frame

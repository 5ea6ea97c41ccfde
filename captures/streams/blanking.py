"""What a capture keeps of a frame: never its secrets, and of its records what was asked for.

Blanked is, at the same length and with zeros: each field that the tables mark SECRET; a raw SASL token,
whole; the records of Kafka's own metadata, which hold SCRAM credentials and configured values
(`__cluster_metadata`, and snapshots of it); the content of other records, unless they are kept or hashed (see
record_content.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from klamm.captures.captured import Blanks
from klamm.captures.streams.record_content import Edit, blanked, hashed

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\1"


@dataclass(slots=True)
class Keeping:
    """What is kept of records: nothing but batch headers ("blank"), all ("keep"), or hashes under `key`, of
    up to 64 bytes. One for all conversations of a capture, since `held` counts what they hold together: the
    bytes of frames that are not whole, or of which is not known yet what went on.
    """

    records: Literal["blank", "keep", "hash"] = "blank"
    key: bytes = b""
    held: int = 0

    def edits(self, data: bytes, pos: int, end: int, metadata: bool = False) -> list[Edit]:
        """Of a records field. `metadata`: it is of Kafka's own metadata."""
        if self.records == "blank" or metadata:
            return blanked(data, pos, end)
        return hashed(data, pos, end, self.key) if self.records == "hash" else []


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

"""A frame from its parts, and where they begin."""

from __future__ import annotations

from klamm.decoders.compile import UNREADABLE, skip_tags
from klamm.decoders.framing import SIZE


def sized(head: bytes, body: bytes) -> bytes:
    """The frame of a header and a body. `head` begins with a size field, which is set anew."""
    return SIZE.pack(len(head) - 4 + len(body)) + head[4:] + body


def body_offset(data: bytes, tagged: bool) -> int:
    """The offset of a response's body; a header that does not decode counts as one without tags."""
    try:
        return skip_tags(data, 9, len(data), data[8]) if tagged else 8
    except UNREADABLE:
        return 8

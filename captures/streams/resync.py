"""Finds where frames begin in bytes whose beginning was not seen.

A request begins where a header is plausible (a size, a known key and version, a client id that can be
printed) and all that the size announces decodes. A response begins where a request that waits has its
correlation id, behind a size, and all of it decodes as the answer to that. Of several, the one that ends
first is taken: so it does not matter how many of the bytes are there.

Both take a Search over bytes, which remembers what was looked at, and give where a frame begins, or -1 where
the search has to go on when there are more bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from struct import Struct

from klamm.captures.streams.bodies import body_of, values_of
from klamm.decoders import DecodeError
from klamm.decoders.headers import REQUEST, answered_version, read_request_header, read_response_header

CLIENT_ID, CLIENT_ID_AT = Struct(">h"), REQUEST.size
INT32, KEY_AND_VERSION = Struct(">i"), Struct(">hh")
# A size of 8 to below 8 MiB, a key, a version: that many bytes, as the start of an answer has.
REQUEST_START = re.compile(rb"(?!\0{3}[\0-\7])\0[\0-\x7f][\0-\xff]{2}\0[\0-\x7f]\0[\0-\x7f]")
START_BYTES = 8

PendingRequest = tuple[int, int, int, str | None]  # correlation id, number, key and version, client id


@dataclass(slots=True)
class Search:
    """The search through `data`. Frames may begin at the places in `waiting`, where more bytes are needed,
    and from `pos` on; none begins in the bytes that were `dropped`.
    """

    data: bytearray = field(default_factory=bytearray)
    pos: int = 0
    waiting: list[int] = field(default_factory=list)
    dropped: int = 0
    tls: bool = False  # do the bytes begin as TLS does?

    def copy(self) -> Search:
        return Search(self.data[:], self.pos, [*self.waiting], self.dropped, self.tls)

    def drop(self) -> None:
        """Drops bytes that are not needed any more."""
        size = min(self.waiting, default=self.pos)
        del self.data[:size]
        self.pos, self.waiting = self.pos - size, [start - size for start in self.waiting]
        self.dropped += size


def request_in(search: Search) -> int:
    return _first(search, REQUEST_START, _request_size, _is_request)


def response_in(pending: Iterable[PendingRequest], search: Search) -> int:
    asked = {one[0]: one[2] for one in reversed(list(pending))}
    if not asked:
        search.pos = len(search.data)
        return -1
    ids = b"|".join(re.escape(INT32.pack(correlation_id)) for correlation_id in asked)
    starts = re.compile(rb"(?s)(?!\0{3}[\0-\3])\0[\0-\x7f]..(?:" + ids + rb")")
    return _first(search, starts, _size, lambda frame: _is_response(frame, asked.get(_size(frame, 0))))


def _first(
    search: Search,
    starts: re.Pattern[bytes],
    size_at: Callable[[bytearray, int], int | None],
    is_one: Callable[[bytes], bool],
) -> int:
    """`size_at`: the size of the frame that may begin there; None if more bytes are needed, -1 for none."""
    data, waiting, first, end = search.data, list[int](), -1, len(search.data) + 1
    for start in chain(search.waiting, _matches(starts, data, search.pos)):
        if start >= end:
            break
        size = size_at(data, start)
        if size is None or start + 4 + size > len(data):
            waiting.append(start)
        elif size >= 4 and start + 4 + size < end and is_one(bytes(data[start + 4 : start + 4 + size])):
            first, end = start, start + 4 + size
    search.waiting, search.pos = waiting, max(search.pos, len(data) - START_BYTES + 1)
    return first


def _matches(pattern: re.Pattern[bytes], data: bytearray, pos: int) -> Iterator[int]:
    """All places where the pattern matches, also within another match."""
    while match := pattern.search(data, pos):
        yield match.start()
        pos = match.start() + 1


def _size(data: bytes | bytearray, pos: int) -> int:
    return int(INT32.unpack_from(data, pos)[0])


def _request_size(data: bytearray, pos: int) -> int | None:
    if len(data) - pos < CLIENT_ID_AT + CLIENT_ID.size:
        return None
    size, key, version, correlation_id = REQUEST.unpack_from(data, pos)
    body = body_of(key, version, "request")
    if size < 8 or body is None or correlation_id < 0:
        return -1
    if body.header_version and not -1 <= CLIENT_ID.unpack_from(data, pos + CLIENT_ID_AT)[0] <= size - 10:
        return -1
    return int(size)


def _is_request(frame: bytes) -> bool:
    key, version = KEY_AND_VERSION.unpack_from(frame)
    body = body_of(key, version, "request")
    assert body is not None
    try:
        header = read_request_header(frame, body.header_version)
    except DecodeError:
        return False
    plausible = header.client_id is None or header.client_id.isprintable()
    return plausible and values_of(body, frame, header.size, len(frame)) is not None


def _is_response(frame: bytes, code: int | None) -> bool:
    if code is None:
        return False
    key, version = code >> 16, code & 0xFFFF
    body = body_of(key, version, "response")
    if body is None:
        return False
    try:
        start = read_response_header(frame, body.header_version).size
    except DecodeError:
        return False
    body = body_of(key, answered_version(key, version, frame, start), "response") or body
    return values_of(body, frame, start, len(frame)) is not None

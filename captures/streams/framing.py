"""Splits the bytes of one direction of a connection into frames.

A frame is (data, start, end, size, time in ns): data[start:end] are its bytes without the size field, of
which there are `size`; fewer where not all were kept. Bytes in which no frame is found are (None, 1 if they
begin as TLS does, 0, how many, time).

What is held is bounded. Of a frame of more than 8 MiB only the first 2 KiB are kept, which hold its header;
so too when all the readers of a capture together hold 32 MiB of frames that are not whole. Where frames
begin is looked for in up to 8 MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.resync import Search
from klamm.decoders.framing import TLS_RECORD

Framed = tuple[bytes | None, int, int, int, int]
Find = Callable[[Search], int]

MIB = 1 << 20
MOST_KEPT = 8 * MIB
MOST_BUFFERED = 32 * MIB
PREFIX = 4 + 2048
LONGEST = 256 * MIB  # brokers take 100 MiB, and the beginning of a TLS record reads as a size of 352 MB
MOST_LOOSE = 1 * MIB  # bytes kept before the first frame that is found, to count the frames in them
SIZE = Struct(">i").unpack_from


class Stream:
    """`find` searches the start of a frame (see resync.py) while it is not known."""

    def __init__(self, keeping: Keeping, find: Find, synced: bool = True) -> None:
        self.keeping, self.find = keeping, find
        self.chunks: list[bytes] = []  # of a frame that is not whole,
        self.have = 0  # as many bytes,
        self.need = 0  # which are looked at again when there are that many
        self.since = 0  # when the first of them came
        self.spoilt: tuple[bytes, int] | None = None  # of a frame whose rest is not kept: prefix and size,
        self.left = 0  # and how many bytes are still to come
        self.search: Search | None = None if synced else Search()  # while it is not known where frames begin

    def copy(self, find: Find) -> Stream:
        other = Stream(self.keeping, find)
        other.chunks, other.have, other.need, other.since = [*self.chunks], self.have, self.need, self.since
        other.spoilt, other.left = self.spoilt, self.left
        other.search = None if self.search is None else self.search.copy()
        self.keeping.buffered_bytes += self.have
        return other

    def same(self, other: Stream) -> bool:
        """Whether both are at the same place of the same frame."""
        return (
            self.have == other.have
            and self.left == other.left
            and self.chunks == other.chunks
            and self.spoilt == other.spoilt
            and self.search is None
            and other.search is None
        )

    def feed(self, data: bytes, time_ns: int) -> list[Framed]:
        if self.have:
            if self.have + len(data) < self.need:
                self._hold(data)
                return []
            self.chunks.append(data)
            data = self.take()
            return self._split(data, 0, self.since, time_ns, [])
        if self.spoilt is not None:
            if len(data) < self.left:
                self.left -= len(data)
                return []
            pos = self.left
            return self._split(data, pos, time_ns, time_ns, [self._end_spoilt()])
        if self.search is not None:
            self.search.data += data
            return self._search(self.search, time_ns)
        end = len(data)
        if end >= 4 and SIZE(data)[0] == end - 4 <= MOST_KEPT:  # as most are
            return [(data, 4, end, end - 4, time_ns)]
        return self._split(data, 0, time_ns, time_ns, [])

    def _split(self, data: bytes, pos: int, first: int, time_ns: int, found: list[Framed]) -> list[Framed]:
        """Splits from the start of a frame on, whose first byte came at `first`."""
        size = len(data)
        need = 4
        while size - pos >= 4:
            (length,) = SIZE(data, pos)
            if not 0 <= length <= MOST_KEPT:
                if not 0 <= length <= LONGEST:
                    tls = TLS_RECORD.match(data, pos) is not None
                    self.search = Search(bytearray(data[pos:]), tls=tls)
                    return found + self._search(self.search, time_ns)
                need = PREFIX
                if size - pos < need:
                    break
                self._spoil(data[pos : pos + PREFIX], length, first, pos + 4 + length - size)
                if self.left > 0:
                    return found
                pos = size + self.left
                found.append(self._end_spoilt())
                first, need = time_ns, 4
                continue
            need = 4 + length
            if size - pos < need:
                break
            found.append((data, pos + 4, pos + need, length, first))
            pos += need
            first, need = time_ns, 4
        if pos < size:
            self.since, self.need = first, need
            self._hold(data[pos:])
        return found

    def _hold(self, data: bytes) -> None:
        self.chunks.append(data)
        self.have += len(data)
        self.keeping.buffered_bytes += len(data)
        if self.keeping.buffered_bytes > MOST_BUFFERED and self.have >= PREFIX and self.need > PREFIX:
            have, need, since = self.have, self.need, self.since
            self._spoil(self.take()[:PREFIX], need - 4, since, need - have)

    def take(self) -> bytes:
        """Gives the buffered bytes and empties the buffer."""
        chunks = self.chunks
        self.keeping.buffered_bytes -= self.have
        self.chunks, self.have = [], 0
        return b"".join(chunks)

    def _spoil(self, prefix: bytes, size: int, since: int, left: int) -> None:
        self.spoilt, self.since, self.left = (prefix, size), since, left

    def _end_spoilt(self) -> Framed:
        assert self.spoilt is not None
        (prefix, size), self.spoilt, self.left = self.spoilt, None, 0
        return prefix, 4, len(prefix), size, self.since

    def _search(self, search: Search, time_ns: int) -> list[Framed]:
        first = self.find(search)
        if first < 0:
            if search.pos > MOST_LOOSE:
                search.drop()
            return []
        before = _before(search, first, time_ns)
        self.search = None
        return self._split(bytes(search.data[first:]), 0, time_ns, time_ns, before)

    def gap(self, missing_bytes: int | None, time_ns: int) -> tuple[bool, list[Framed]]:
        """Whether the start of the next frame is known. If all missing bytes belong to one frame, only its
        size is known.
        """
        if self.search is None and missing_bytes is not None and (self.spoilt or self.have >= 4):
            if self.spoilt is None:
                have, since, data = self.have, self.since, self.take()
                (length,) = SIZE(data)
                self._spoil(data[:PREFIX], length, since, 4 + length - have)
            if missing_bytes < self.left:
                self.left -= missing_bytes
                return True, []
            if missing_bytes == self.left:
                return True, [self._end_spoilt()]
        found = self.end(time_ns)
        self.search = Search()
        return False, found

    def end(self, time_ns: int) -> list[Framed]:
        """The direction has ended: the frames found in bytes that were searched. A frame cut short is
        dropped.
        """
        if self.search is None:
            self.take()
            self.spoilt, self.left = None, 0
            return []
        found = list[Framed]()
        while (search := self.search) is not None:
            more = self._search(search, time_ns)
            if self.search is search:
                return found + _before(search, len(search.data), time_ns)
            found += more
        rest = len(self.take())
        return [*found, (None, 0, 0, rest, time_ns)] if rest else found

    def unfinished(self) -> tuple[int, int] | None:
        """The bytes that came of an unfinished frame, and those that are missing (0: not known)."""
        if self.spoilt is not None:
            return self.spoilt[1] + 4 - self.left, self.left
        if not self.have:
            return None
        if self.have < 4:
            return self.have, 0
        (length,) = SIZE(b"".join(self.chunks))
        return self.have, 4 + length - self.have


def _before(search: Search, first: int, time_ns: int) -> list[Framed]:
    """The frames before the first one that was found, if their sizes lead to it; else none."""
    data = bytes(search.data[:first])
    if not search.dropped:
        found, pos = list[Framed](), 0
        while len(data) - pos >= 8:
            (length,) = SIZE(data, pos)
            if not 4 <= length <= len(data) - pos - 4:
                break
            found.append((data, pos + 4, pos + 4 + length, length, time_ns))
            pos += 4 + length
        if pos == len(data):
            return found
    return [(None, int(search.tls), 0, search.dropped + len(data), time_ns)]

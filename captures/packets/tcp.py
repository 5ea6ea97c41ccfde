"""Puts TCP together again: the captured segments of a connection, to the bytes that both ends received.

A segment waits while bytes before it are missing, and while its sender has acknowledged bytes of the other
end that are missing here: so no answer comes before its question. What is missing is given up when the other
end has acknowledged it (it was sent, and the capture missed it) and it does not turn up soon.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from klamm.captures.packets.tcp_segments import ACK, FIN, RST, SYN, Segment

PATIENCE = 32  # segments to wait for acknowledged bytes: captures of many queues mix them up
PATIENCE_NS = 1_000_000_000
HELD_BYTES = 16 << 20  # kept of a connection at most, and more than its windows usually are
SYN_BYTES = 1 << 16  # the most data of a SYN (TCP Fast Open, RFC 7413)
FAR_BYTES = 64 << 20  # a larger step is no hole, but other numbers
UNKNOWN = -1
HALF = 1 << 31


class Piece(NamedTuple):
    """The next bytes of one end, or a gap of `missing` bytes (UNKNOWN many) in them. Direction 0 is that of
    the first segment seen.
    """

    way: int
    data: bytes
    time_ns: int  # never before the piece before it
    missing: int = 0
    cut: bool = False  # a hole that the capture made: it kept only the beginning of a packet


class _Way:
    """One direction. Positions are sequence numbers, counted on beyond 32 bits."""

    __slots__ = ("acknowledged", "begin", "early", "ending", "finished", "next", "seen")

    def __init__(self) -> None:
        self.next: int | None = None  # None: nothing is known
        self.seen = False  # a segment
        self.begin: int | None = None  # after the SYN
        self.acknowledged = 0  # by the other end
        self.ending = False  # its FIN was seen
        self.finished = False  # all bytes up to its FIN were given
        self.early: list[tuple[int, int, Segment]] = []  # a heap by position, then arrival

    def position(self, number: int) -> int:
        """The position of a sequence number, nearest to the one that is expected."""
        near = self.next or 0
        return near + ((number - near + HALF) & 0xFFFFFFFF) - HALF

    def begins(self, position: int) -> bool:
        """Whether its first data is there. Where only the SYN of the other end was seen, that may have
        acknowledged data too.
        """
        if self.begin is None:
            return False
        return position == self.begin or (not self.seen and 0 < self.begin - position <= SYN_BYTES)


class Assembly:
    """One connection. `client` is the direction of the end that opened it, where that was seen."""

    __slots__ = (
        "arrivals", "client", "closer", "ended", "held_bytes", "late", "late_at", "late_ns", "repeated",
        "time_ns", "ways",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ways = _Way(), _Way()
        self.client: int | None = None
        self.closer = 0  # the way whose FIN was first
        self.ended: tuple[str, int] | None = None  # "closed" or "reset", and by which way
        self.repeated = 0  # bytes that came again
        self.held_bytes = self.arrivals = self.time_ns = 0
        self.late = self.late_ns = 0  # segments, and since when, that a hole is known to be no mere delay
        self.late_at = (0, 0)  # which hole: its way and position

    @property
    def began(self) -> bool:
        """Whether the beginning of both ways was seen, as far as they were seen at all."""
        return self.client is not None and all(way.next is None or way.begin is not None for way in self.ways)

    def is_another(self, way: int, segment: Segment) -> bool:
        """Whether the segment is of a later connection with the same ends."""
        mine = self.ways[way]
        if segment.flags & SYN:
            if mine.next is None:
                return self.ended is not None
            return not mine.begins(mine.position(segment.sequence) + 1)  # a late copy is no other connection
        if self.ended is None or not segment.size or mine.next is None:
            return False
        return mine.position(segment.sequence) > mine.next

    def take(self, way: int, segment: Segment) -> list[Piece]:
        """The pieces that are complete now, with this segment."""
        pieces: list[Piece] = []
        mine, other = self.ways[way], self.ways[1 - way]
        flags = segment.flags
        syn = flags >> 1 & 1  # takes a number, before the data
        if mine.next is None or (syn and not mine.seen):
            mine.next = mine.acknowledged = segment.sequence + syn
            if syn:
                mine.begin = mine.next
                self.client = 1 - way if flags & ACK else way
                if flags & ACK and other.next is None:
                    other.next = other.begin = other.acknowledged = segment.acknowledged
        mine.seen = True
        if flags & RST:
            self.ended = self.ended or ("reset", way)
            return self.rest()
        if flags & ACK and other.seen and other.next is not None:
            acknowledged = other.position(segment.acknowledged)
            if acknowledged > other.next + FAR_BYTES and segment.size:
                pieces += self._begin_again(way, segment)
            elif acknowledged > other.acknowledged:
                other.acknowledged = acknowledged
        if flags & FIN and not mine.ending:
            mine.ending = True
            self.closer = self.closer if other.ending else way
        if segment.size or flags & FIN:
            at = mine.position(segment.sequence) + syn
            if abs(at - mine.next) > FAR_BYTES:
                pieces += self._begin_again(way, segment)
                at = mine.next
            if self._ready(way, at, segment):
                self._say(way, at, segment, pieces)
            else:
                self.arrivals += 1
                heappush(mine.early, (at, self.arrivals, segment))
                self.held_bytes += segment.size or 1
            if self.held_bytes:
                self._go_on(pieces)
        while self.held_bytes and self._is_lost(segment.time_ns):
            self._give_up(pieces)
        if mine.finished and (other.finished or not other.seen):
            self.ended = self.ended or ("closed", self.closer)
        return pieces

    def rest(self) -> list[Piece]:
        """The connection has no more segments: the pieces that waited, and the gaps before them."""
        pieces: list[Piece] = []
        while self.held_bytes:
            self._give_up(pieces)
        for number, way in enumerate(self.ways):
            if way.seen and way.next is not None and way.acknowledged > way.next + 1:  # 1 is a FIN
                pieces.append(Piece(number, b"", self.time_ns, way.acknowledged - way.next))
                way.next = way.acknowledged
        return pieces

    def _ready(self, way: int, at: int, segment: Segment) -> bool:
        other, expected = self.ways[1 - way], self.ways[way].next
        assert expected is not None
        if at > expected:
            return False
        if not segment.flags & ACK or other.next is None or not other.seen:
            return True
        return other.position(segment.acknowledged) <= other.next or at + segment.size <= expected

    def _say(self, way: int, at: int, segment: Segment, pieces: list[Piece]) -> None:
        mine = self.ways[way]
        assert mine.next is not None
        known = mine.next - at
        self.time_ns = max(self.time_ns, segment.time_ns)
        self.repeated += min(known, segment.size)
        if known < segment.size:
            mine.next = at + segment.size
            data = segment.data[known:] if known else segment.data
            if data:
                pieces.append(Piece(way, data, self.time_ns))
            if len(data) < segment.size - known:
                pieces.append(Piece(way, b"", self.time_ns, segment.size - known - len(data), cut=True))
        if segment.flags & FIN and mine.next == at + segment.size and not mine.finished:
            mine.next += 1
            mine.finished = True

    def _go_on(self, pieces: list[Piece]) -> None:
        """Say what waited for what was said now."""
        number: int | None = 0
        while number is not None:
            number = self._next()
            if number is not None:
                at, _, segment = heappop(self.ways[number].early)
                self.held_bytes -= segment.size or 1
                self._say(number, at, segment, pieces)

    def _next(self) -> int | None:
        """The way whose first early segment is read next."""
        in_place = []
        for number, way in enumerate(self.ways):
            if way.early:
                at, arrival, segment = way.early[0]
                if self._ready(number, at, segment):
                    return number
                assert way.next is not None
                if at <= way.next:
                    in_place.append((arrival, number))
        # Two that wait for each other: segments sent again acknowledge more than those that they stand for.
        return min(in_place)[1] if len(in_place) == 2 else None

    def _hole(self) -> tuple[int, int, int]:
        """The gap before the segment that came first: its direction, its end, and its time."""
        number = min(
            (number for number, way in enumerate(self.ways) if way.early),
            key=lambda number: self.ways[number].early[0][2].time_ns,
        )
        mine, other = self.ways[number], self.ways[1 - number]
        at, _, segment = mine.early[0]
        assert mine.next is not None
        if at > mine.next:
            return number, at, segment.time_ns
        end = other.position(segment.acknowledged)
        return 1 - number, min(end, other.early[0][0]) if other.early else end, segment.time_ns

    def _is_lost(self, time_ns: int) -> bool:
        if self.held_bytes > HELD_BYTES:
            return True
        number, _, _ = self._hole()
        way = self.ways[number]
        assert way.next is not None
        if way.acknowledged <= way.next:
            return False
        if not self.late or self.late_at != (number, way.next):
            self.late, self.late_ns, self.late_at = 0, time_ns, (number, way.next)
        self.late += 1
        nothing_comes = all(way.ending for way in self.ways)
        return nothing_comes or self.late > PATIENCE or time_ns - self.late_ns > PATIENCE_NS

    def _give_up(self, pieces: list[Piece]) -> None:
        number, end, time_ns = self._hole()
        way = self.ways[number]
        assert way.next is not None
        self.time_ns = max(self.time_ns, time_ns)
        pieces.append(Piece(number, b"", self.time_ns, end - way.next))
        way.next = end
        self._go_on(pieces)

    def _begin_again(self, way: int, segment: Segment) -> list[Piece]:
        """Other numbers: nobody knows what is missing, here and on the other way."""
        pieces = self.rest()
        self.time_ns = max(self.time_ns, segment.time_ns)
        for number, each in enumerate(self.ways):
            if each.next is not None:
                pieces.append(Piece(number, b"", self.time_ns, UNKNOWN))
            each.next, each.ending, each.finished = None, False, False
        self.ways[way].next = self.ways[way].acknowledged = segment.sequence
        return pieces

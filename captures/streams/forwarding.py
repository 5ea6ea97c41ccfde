"""Pairs the frames that came with the frames that klamm sent in their place.

Each frame that came waits until it is known how klamm forwarded it. Frames keep their order, so a frame that
was not forwarded before a later one was, is withheld. A frame that was sent belongs to the frame that came
with the same bytes; else it is a rewritten one: the request with its correlation id, or the response to the
same request; else klamm made it.

An answer that klamm made has the number of its request. A request that klamm made has a number of its own,
and so has the answer to it.

At most 4096 frames of a side wait, and 100 where 65,536 of all connections do: beyond that the oldest is
taken as passed, and its row says so. The bytes kept for comparing count as buffered (framing.py); where these
are too many, frames are compared by id and size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from klamm.captures.captured import Captured, Fate
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.framing import MOST_BUFFERED, Framed, Stream
from klamm.captures.streams.resync import PendingRequest, request_in, response_in
from klamm.decoders.schema import Side

MOST_UNMATCHED = 4096  # frames of one side of a connection
ALL_UNMATCHED = 65_536  # of all readers together, some 700 bytes of memory each; beyond it each side has
LEAST_UNMATCHED = 100  # only so many
CORRELATION_AT = {"request": 4, "response": 0}  # in a frame
UNSEEN = "it was not seen in time how it was forwarded"


class Rows(Protocol):
    """The parts of a reader that are used here: its streams, and rows for frames."""

    pending: deque[PendingRequest]
    streams: dict[Side, Stream]
    keeping: Keeping

    def row(self, side: Side, frame: Framed, pending: deque[PendingRequest]) -> Captured: ...
    def request(self, frame: Framed, pending: deque[PendingRequest], number: int = ...) -> Captured: ...
    def response(self, frame: Framed, pending: deque[PendingRequest]) -> Captured: ...


@dataclass(slots=True)
class Unmatched:
    """A frame that came. `data` None: not kept for comparing."""

    row: Captured
    data: bytes | None
    settled: bool = False


class Forwarding:
    """Both directions of one connection while klamm changes what passes."""

    def __init__(self, reader: Rows) -> None:
        self.reader = reader
        self.pending: deque[PendingRequest] = deque(reader.pending)  # the client waits for their answers
        came = reader.streams
        self.streams: dict[Side, Stream] = {
            "request": came["request"].copy(request_in),
            "response": came["response"].copy(partial(response_in, self.pending)),
        }
        self.unmatched: dict[Side, deque[Unmatched]] = {"request": deque(), "response": deque()}

    def over(self) -> bool:
        """Do both sides forward their bytes unchanged again?"""
        came = self.reader.streams
        return (
            not (self.unmatched["request"] or self.unmatched["response"])
            and self.pending == self.reader.pending
            and self.streams["request"].same(came["request"])
            and self.streams["response"].same(came["response"])
        )

    def close(self) -> None:
        for stream in self.streams.values():
            stream.take()

    def came(self, side: Side, frames: Iterable[Framed]) -> list[Captured]:
        reader, unmatched = self.reader, self.unmatched[side]
        pending = self.pending if side == "request" else reader.pending
        keeping, before = reader.keeping, len(unmatched)
        for frame in frames:
            row = reader.row(side, frame, pending)
            data, start, end, *_ = frame
            if data is None:
                unmatched.append(Unmatched(row, None, settled=True))
            elif side == "response" and row.exchange >= 0 and not self._awaited(row.exchange):
                unmatched.append(Unmatched(row._replace(fate="withheld"), None, settled=True))
            elif keeping.buffered_bytes > MOST_BUFFERED:
                unmatched.append(Unmatched(row, None))
            else:
                unmatched.append(Unmatched(row, data[start:end]))
                keeping.buffered_bytes += end - start
        keeping.unmatched += len(unmatched) - before
        most = MOST_UNMATCHED if keeping.unmatched <= ALL_UNMATCHED else LEAST_UNMATCHED
        return self._settle(side, max(0, len(unmatched) - most), "passed", UNSEEN)

    def sent(self, side: Side, data: bytes, time_ns: int) -> list[Captured]:
        rows: list[Captured] = []
        for frame in self.streams[side].feed(data, time_ns):
            if frame[0] is not None:
                rows += self._went(side, frame)
        return rows

    def gap(
        self, side: Side, missing_bytes: int | None, frames: Iterable[Framed], row: Captured, known: bool
    ) -> list[Captured]:
        """How the frames before the gap were forwarded is unknown. `row` is of the gap."""
        rows = self._settle(side, len(self.unmatched[side]), "passed", UNSEEN)
        behind = self.came(side, frames)
        _, went = self.streams[side].gap(missing_bytes, row.time_ns)
        for frame in went:
            if frame[0] is not None:
                behind += self._went(side, frame)
        return [*rows, row, *behind] if known else [*rows, *behind, row]

    def end(self, side: Side, frames: Iterable[Framed], time_ns: int) -> list[Captured]:
        rows = self.came(side, frames)
        stream, unmatched = self.streams[side], self.unmatched[side]
        cut = stream.unfinished()
        for frame in stream.end(time_ns):
            if frame[0] is not None:
                rows += self._went(side, frame)
        if cut is not None and unmatched:
            text = f"of it, {cut[0]:,} bytes went on"
            rows += self._known(side, 0, unmatched[0].row._replace(fate="rewritten", text=text))
        return rows + self._settle(side, len(unmatched))

    def _went(self, side: Side, frame: Framed) -> list[Captured]:
        unmatched, reader = self.unmatched[side], self.reader
        for index, one in enumerate(unmatched):
            if _same(one, side, frame):
                row = one.row
                if side == "response":
                    self._answered(row.exchange)
                elif row.kind == "frame" and row.awaits:
                    code = row.api_key << 16 | row.api_version & 0xFFFF
                    reader.pending.append((row.correlation_id, row.exchange, code, row.client_id))
                return self._known(side, index, row)
        if side == "request":
            return self._new_request(frame)
        went = reader.response(frame, self.pending)
        for index, one in enumerate(unmatched):
            same = one.row.exchange == went.exchange and one.row.correlation_id == went.correlation_id
            if same and not one.settled:
                return self._known(side, index, _with(one.row, went))
        return [*self._withheld(went.exchange), went._replace(fate="made")]

    def _new_request(self, frame: Framed) -> list[Captured]:
        data, start, *_ = frame
        unmatched, reader = self.unmatched["request"], self.reader
        assert data is not None
        correlation_id = int.from_bytes(data[start + 4 : start + 8], "big", signed=True)
        for index, one in enumerate(unmatched):
            if one.row.kind == "frame" and one.row.correlation_id == correlation_id and not one.settled:
                went = reader.request(frame, reader.pending, one.row.exchange)
                return self._known("request", index, _with(one.row, went))
        return [reader.request(frame, reader.pending)._replace(fate="made")]

    def _awaited(self, number: int) -> bool:
        """Whether the client waits for the answer to this request."""
        return any(asked[1] == number for asked in self.pending)

    def _answered(self, number: int) -> None:
        """The client has the answer to this request. To earlier ones it gets none any more, but where the
        broker answers out of order.
        """
        if not self._awaited(number):
            return
        earlier: list[PendingRequest] = []
        while (asked := self.pending.popleft())[1] != number:
            earlier.append(asked)
        if earlier:
            due = {asked[1] for asked in self.reader.pending}
            self.pending.extendleft(asked for asked in reversed(earlier) if asked[1] in due)

    def _withheld(self, number: int) -> list[Captured]:
        """klamm has answered a request itself: if it was not forwarded yet, it never is."""
        for one in self.unmatched["request"]:
            if one.row.exchange == number and not one.settled:
                one.row, one.settled = one.row._replace(fate="withheld"), True
        return self._settle("request", 0)

    def _known(self, side: Side, index: int, row: Captured) -> list[Captured]:
        """One frame is settled, and so are those before it: they were withheld."""
        rows = self._settle(side, index) if index else []
        self._take_oldest(side)
        rows.append(row)
        return rows + self._settle(side, 0) if self.unmatched[side] else rows

    def _settle(self, side: Side, count: int, fate: Fate = "withheld", text: str = "") -> list[Captured]:
        """The rows of the oldest `count` frames, of this fate where none is known yet; and of the settled
        frames behind them.
        """
        unmatched, rows = self.unmatched[side], list[Captured]()
        while unmatched and (len(rows) < count or unmatched[0].settled):
            one = self._take_oldest(side)
            rows.append(one.row if one.settled else one.row._replace(fate=fate, text=text))
        return rows

    def _take_oldest(self, side: Side) -> Unmatched:
        """Remove the frame that has waited for longest, and give it."""
        one, keeping = self.unmatched[side].popleft(), self.reader.keeping
        keeping.unmatched -= 1
        keeping.buffered_bytes -= len(one.data or b"")
        return one


def _same(one: Unmatched, side: Side, frame: Framed) -> bool:
    data, start, end, size, _ = frame
    if data is None or one.settled or one.row.size != size:
        return False
    if one.data is not None:
        return len(one.data) == end - start and data.startswith(one.data, start)
    at = start + CORRELATION_AT[side]
    return one.row.correlation_id == int.from_bytes(data[at : at + 4], "big", signed=True)


def _with(came: Captured, went: Captured) -> Captured:
    return came._replace(fate="rewritten", forwarded=went.frame, forwarded_blanks=went.blanks)

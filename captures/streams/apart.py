"""Where what klamm sent on is not what came: both are followed, and matched frame by frame.

Each frame that came waits until it is known what went on of it. Frames keep their order, so what came before
a frame that went on, and did not itself, was withheld. A frame that went on is the one that came with the
same bytes; else it was rewritten: the request that has its correlation id, or the response to the same
request; else klamm made it.

An answer that klamm made has the number of its request. A request that klamm made has a number of its own,
and so has the answer to it.

What waits is bounded: of more than 4096 frames the oldest is taken for passed, and says so; the bytes that
are kept to be compared count as held (framing.py), and where that is too much, frames are compared by id and
size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from klamm.captures.captured import Captured, Fate
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.framing import MOST_HELD, Framed, Stream
from klamm.captures.streams.resync import Asked, request_in, response_in
from klamm.decoders.schema import Side

MOST_PENDING = 4096
CORRELATION_AT = {"request": 4, "response": 0}  # in a frame
UNSEEN = "it was not seen in time what went on"


class Rows(Protocol):
    """The parts of a conversation that are used here: its streams, and rows for frames."""

    due: deque[Asked]
    streams: dict[Side, Stream]
    keeping: Keeping

    def said(self, side: Side, frame: Framed, due: deque[Asked]) -> Captured: ...
    def request(self, frame: Framed, due: deque[Asked], number: int = ...) -> Captured: ...
    def response(self, frame: Framed, due: deque[Asked]) -> Captured: ...


@dataclass(slots=True)
class Pending:
    """A frame that came. `data` None: not kept for comparing."""

    row: Captured
    data: bytes | None
    settled: bool = False


class Apart:
    def __init__(self, conversation: Rows) -> None:
        self.conversation = conversation
        self.due: deque[Asked] = deque(conversation.due)  # what waits for an answer that the client gets
        came = conversation.streams
        self.streams: dict[Side, Stream] = {
            "request": came["request"].copy(request_in),
            "response": came["response"].copy(partial(response_in, self.due)),
        }
        self.pending: dict[Side, deque[Pending]] = {"request": deque(), "response": deque()}

    def over(self) -> bool:
        """Is all that came also what went on, again?"""
        came = self.conversation.streams
        return (
            not (self.pending["request"] or self.pending["response"])
            and self.due == self.conversation.due
            and self.streams["request"].same(came["request"])
            and self.streams["response"].same(came["response"])
        )

    def let_go(self) -> None:
        for stream in self.streams.values():
            stream.take()

    def came(self, side: Side, frames: Iterable[Framed]) -> list[Captured]:
        conversation, pending = self.conversation, self.pending[side]
        due = self.due if side == "request" else conversation.due
        for frame in frames:
            row = conversation.said(side, frame, due)
            data, start, end, *_ = frame
            if data is None:
                pending.append(Pending(row, None, settled=True))
            elif side == "response" and row.exchange >= 0 and not self._awaited(row.exchange):
                pending.append(Pending(row._replace(fate="withheld"), None, settled=True))
            elif conversation.keeping.held > MOST_HELD:
                pending.append(Pending(row, None))
            else:
                pending.append(Pending(row, data[start:end]))
                conversation.keeping.held += end - start
        return self._settle(side, max(0, len(pending) - MOST_PENDING), "passed", UNSEEN)

    def sent(self, side: Side, data: bytes, time_ns: int) -> list[Captured]:
        rows: list[Captured] = []
        for frame in self.streams[side].feed(data, time_ns):
            if frame[0] is not None:
                rows += self._went(side, frame)
        return rows

    def gap(
        self, side: Side, missing_bytes: int | None, frames: Iterable[Framed], row: Captured, known: bool
    ) -> list[Captured]:
        """Of what came before it, is not known what went on. `row` is of the gap."""
        rows = self._settle(side, len(self.pending[side]), "passed", UNSEEN)
        told = self.came(side, frames)
        _, went = self.streams[side].gap(missing_bytes, row.time_ns)
        for frame in went:
            if frame[0] is not None:
                told += self._went(side, frame)
        return [*rows, row, *told] if known else [*rows, *told, row]

    def end(self, side: Side, frames: Iterable[Framed], time_ns: int) -> list[Captured]:
        rows = self.came(side, frames)
        stream, pending = self.streams[side], self.pending[side]
        cut = stream.unfinished()
        for frame in stream.end(time_ns):
            if frame[0] is not None:
                rows += self._went(side, frame)
        if cut is not None and pending:
            text = f"of it, {cut[0]:,} bytes went on"
            rows += self._known(side, 0, pending[0].row._replace(fate="rewritten", text=text))
        return rows + self._settle(side, len(pending))

    def _went(self, side: Side, frame: Framed) -> list[Captured]:
        pending, conversation = self.pending[side], self.conversation
        for index, one in enumerate(pending):
            if _same(one, side, frame):
                row = one.row
                if side == "response":
                    self._answered(row.exchange)
                elif row.kind == "frame" and row.awaits:
                    code = row.api_key << 16 | row.api_version & 0xFFFF
                    conversation.due.append((row.correlation_id, row.exchange, code, row.client_id))
                return self._known(side, index, row)
        if side == "request":
            return self._new_request(frame)
        went = conversation.response(frame, self.due)
        for index, one in enumerate(pending):
            same = one.row.exchange == went.exchange and one.row.correlation_id == went.correlation_id
            if same and not one.settled:
                return self._known(side, index, _with(one.row, went))
        return [*self._withheld(went.exchange), went._replace(fate="made")]

    def _new_request(self, frame: Framed) -> list[Captured]:
        data, start, *_ = frame
        pending, conversation = self.pending["request"], self.conversation
        assert data is not None
        correlation_id = int.from_bytes(data[start + 4 : start + 8], "big", signed=True)
        for index, one in enumerate(pending):
            if one.row.kind == "frame" and one.row.correlation_id == correlation_id and not one.settled:
                went = conversation.request(frame, conversation.due, one.row.exchange)
                return self._known("request", index, _with(one.row, went))
        return [conversation.request(frame, conversation.due)._replace(fate="made")]

    def _awaited(self, number: int) -> bool:
        """Does the client wait for the answer to this request?"""
        return any(asked[1] == number for asked in self.due)

    def _answered(self, number: int) -> None:
        if self._awaited(number):
            while self.due.popleft()[1] != number:
                pass

    def _withheld(self, number: int) -> list[Captured]:
        """klamm has answered a request itself, so if it has not gone on, it will not."""
        for one in self.pending["request"]:
            if one.row.exchange == number and not one.settled:
                one.row, one.settled = one.row._replace(fate="withheld"), True
        return self._settle("request", 0)

    def _known(self, side: Side, index: int, row: Captured) -> list[Captured]:
        """It is known what went on of one frame, and so of those before it."""
        rows = self._settle(side, index) if index else []
        self.conversation.keeping.held -= len(self.pending[side].popleft().data or b"")
        rows.append(row)
        return rows + self._settle(side, 0) if self.pending[side] else rows

    def _settle(self, side: Side, count: int, fate: Fate = "withheld", text: str = "") -> list[Captured]:
        """The rows of the oldest `count`, of this fate if nothing else is known; and of what is settled
        behind them.
        """
        pending, rows = self.pending[side], list[Captured]()
        while pending and (len(rows) < count or pending[0].settled):
            one = pending.popleft()
            self.conversation.keeping.held -= len(one.data or b"")
            rows.append(one.row if one.settled else one.row._replace(fate=fate, text=text))
        return rows


def _same(one: Pending, side: Side, frame: Framed) -> bool:
    data, start, end, size, _ = frame
    if data is None or one.settled or one.row.size != size:
        return False
    if one.data is not None:
        return len(one.data) == end - start and data.startswith(one.data, start)
    at = start + CORRELATION_AT[side]
    return one.row.correlation_id == int.from_bytes(data[at : at + 4], "big", signed=True)


def _with(came: Captured, went: Captured) -> Captured:
    return came._replace(fate="rewritten", forwarded=went.frame, forwarded_blanks=went.blanks)

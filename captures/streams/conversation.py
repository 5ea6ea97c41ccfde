"""One connection's bytes, both ways, as rows. Pure: used by the live capture and for captures taken
elsewhere.

    conversation = Conversation(connection, keeping)
    conversation.feed("request", data, time_ns) -> rows      the client's bytes, which went on as they came
    conversation.feed("response", data, time_ns, forwarded=False) -> rows   the broker's, which did not;
    conversation.sent("response", other, time_ns) -> rows                   what went on instead
    conversation.end(time_ns, "closed by client") -> rows

A response belongs to the oldest request that waits and has its correlation id; where none has, its row has
exchange -1, no API and no bytes. The answer to an ApiVersions in a version that the broker refuses has the
version that was asked, and layout v0 (KIP-511). A row comes when its frame is whole and it is known what went
on of it (see apart.py). However the bytes are cut, the rows are the same but for their times; and but for the
numbers of exchanges, if klamm makes requests.

What is held is bounded (framing.py, apart.py), and counted in `keeping.held`: `end` each conversation.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from struct import Struct

from klamm.captures.captured import Captured, Connection
from klamm.captures.streams.apart import Apart
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.framing import Framed, Stream
from klamm.captures.streams.kept import Kept
from klamm.captures.streams.resync import Asked, request_in, response_in
from klamm.decoders import DecodeError, decode
from klamm.decoders.headers import read_request_header
from klamm.decoders.sasl_tokens import GSSAPI_FIRST, Tokens
from klamm.decoders.schema import Side

MOST_DUE = 10_000  # requests that wait for their answers; beyond, the oldest is given up
SASL_HANDSHAKE_0 = 17 << 16
REQUEST = Struct(">ii").unpack_from  # key and version, correlation id
CORRELATION = Struct(">i").unpack_from
make = tuple.__new__  # a named tuple in a third of the time


class Conversation:
    """`mid_stream`: the connection began before the capture, so that frames have to be found first."""

    def __init__(self, connection: Connection, keeping: Keeping, mid_stream: bool = False) -> None:
        self.connection, self.keeping = connection, keeping
        self.kept = Kept(keeping)
        self.number = 0  # of the next request
        self.due: deque[Asked] = deque()  # what waits for the broker's answer
        self.tokens: Tokens | None = None
        self.begun = mid_stream  # else a token may come first
        self.streams: dict[Side, Stream] = {
            "request": Stream(keeping, request_in, not mid_stream),
            "response": Stream(keeping, partial(response_in, self.due), not mid_stream),
        }
        self.apart: Apart | None = None  # while what went on is not what came

    def feed(self, side: Side, data: bytes, time_ns: int, forwarded: bool = True) -> list[Captured]:
        """What the client ("request") or the broker ("response") said. `forwarded`: the same bytes went on;
        else `sent` is told what did, if anything.
        """
        if self.apart is None and forwarded:
            frames, due = self.streams[side].feed(data, time_ns), self.due
            if side == "request":
                return [self.request(frame, due) for frame in frames]
            return [self.response(frame, due) for frame in frames]
        apart = self.apart = self.apart or Apart(self)
        rows = apart.came(side, self.streams[side].feed(data, time_ns))
        if forwarded:
            rows += apart.sent(side, data, time_ns)
        self._join(apart)
        return rows

    def sent(self, side: Side, data: bytes, time_ns: int) -> list[Captured]:
        """What klamm sent to the broker ("request") or to the client ("response"), in the order in which it
        goes.
        """
        apart = self.apart = self.apart or Apart(self)
        rows = apart.sent(side, data, time_ns)
        self._join(apart)
        return rows

    def gap(self, side: Side, missing_bytes: int | None, time_ns: int) -> list[Captured]:
        """Bytes that were not seen; None: nobody knows how many. The frame that they are of is known by its
        size; or else the next frames are looked for.
        """
        known, frames = self.streams[side].gap(missing_bytes, time_ns)
        told = "bytes" if missing_bytes is None else f"{missing_bytes:,} bytes"
        row = self._lost(
            side, missing_bytes or 0, time_ns, f"{told} of {side}s were not seen", 0 if known else 1
        )
        apart = self.apart
        if apart is None:
            rows = [self.said(side, frame, self.due) for frame in frames]
            return [row, *rows] if known else [*rows, row]
        rows = apart.gap(side, missing_bytes, frames, row, known)
        self._join(apart)
        return rows

    def end(self, time_ns: int, why: str) -> list[Captured]:
        """The rows that were held back, and that of the end."""
        rows: list[Captured] = []
        for side, stream in self.streams.items():
            cut = stream.unfinished()
            frames = stream.end(time_ns)
            if self.apart is not None:
                rows += self.apart.end(side, frames, time_ns)
            else:
                rows += [self.said(side, frame, self.due) for frame in frames]
            if cut is not None:
                missing = f"{cut[1]:,} bytes missing" if cut[1] else "its size not whole"
                text = f"the connection ended in the middle of a {side}: {cut[0]:,} bytes, {missing}"
                rows.append(self._lost(side, cut[0], time_ns, text, 1))
        self.apart = None
        return [*rows, Captured(time_ns, "closed", self.connection, text=why)]

    def said(self, side: Side, frame: Framed, due: deque[Asked], number: int | None = None) -> Captured:
        """The row of a frame."""
        return self.request(frame, due, number) if side == "request" else self.response(frame, due)

    def request(self, frame: Framed, due: deque[Asked], number: int | None = None) -> Captured:
        """It is added to what is `due`. `number`: of the request that it stands for."""
        data, start, end, size, time_ns = frame
        if data is None:
            return self._lost(
                "request", size, time_ns, f"{size:,} bytes of requests in which no frame begins", 0
            )
        if (self.tokens is not None or not self.begun) and self._is_token(data, start, size):
            return self._token("request", size, time_ns)
        self.begun = True
        if end - start < 8:
            return self._stray("request", -1, size, time_ns)
        code, correlation_id = REQUEST(data, start)
        client_id, awaits, kept, blanks = self.kept.request(data, start, end, size, code)
        if number is None:
            number, self.number = self.number, self.number + 1
        if awaits:
            due.append((correlation_id, number, code, client_id))
            if len(due) > MOST_DUE:
                due.popleft()
        if code == SASL_HANDSHAKE_0 and kept is not None:
            self._handshake(kept)
        return make(
            Captured,
            (
                time_ns, "frame", self.connection, "request", code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000,
                correlation_id, client_id, number, size, kept, blanks, "passed", None, (), awaits, 0, "",
            ),
        )  # fmt: skip

    def response(self, frame: Framed, due: deque[Asked]) -> Captured:
        """Its request is due no more."""
        data, start, end, size, time_ns = frame
        if data is None:
            return self._lost(
                "response", size, time_ns, f"{size:,} bytes of responses in which no frame begins", 0
            )
        correlation_id = CORRELATION(data, start)[0] if end - start >= 4 else -1
        if due and due[0][0] == correlation_id:
            _, number, code, client_id = due.popleft()
        else:
            if self.tokens is not None and self.tokens.awaited > 0:
                self.tokens.from_broker()
                return self._token("response", size, time_ns)
            asked = _answered(due, correlation_id)
            if asked is None:
                return self._stray("response", correlation_id, size, time_ns)
            _, number, code, client_id = asked
        kept, blanks = self.kept.response(data, start, end, size, code)
        return make(
            Captured,
            (
                time_ns, "frame", self.connection, "response", code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000,
                correlation_id, client_id, number, size, kept, blanks, "passed", None, (), True, 0, "",
            ),
        )  # fmt: skip

    def _join(self, apart: Apart) -> None:
        if apart.over():
            apart.let_go()
            self.apart = None

    def _is_token(self, data: bytes, start: int, size: int) -> bool:
        if self.tokens is None:
            if data[start : start + 1] != bytes([GSSAPI_FIRST]):
                return False
            self.tokens = Tokens("GSSAPI")
        first_two = int.from_bytes(data[start : start + 2], "big")
        if not self.tokens.is_token(size, first_two):
            return False
        self.tokens.from_client()
        self.begun = True
        return True

    def _handshake(self, frame: bytes) -> None:
        """What comes next are tokens."""
        try:
            body = frame[read_request_header(frame, 1).size :]
            self.tokens = Tokens(decode(body, SASL_HANDSHAKE_0 >> 16, 0, "request")["mechanism"])
        except DecodeError:
            pass

    def _token(self, side: Side, size: int, time_ns: int) -> Captured:
        blanks = ((0, size),) if size else ()
        return Captured(time_ns, "token", self.connection, side, size=size, frame=b"", blanks=blanks)

    def _stray(self, side: Side, correlation_id: int, size: int, time_ns: int) -> Captured:
        """A frame too short for a request, or that answers none."""
        return Captured(
            time_ns, "frame", self.connection, side, correlation_id=correlation_id, size=size,
            awaits=side == "response",
        )  # fmt: skip

    def _lost(self, side: Side, size: int, time_ns: int, text: str, frames: int) -> Captured:
        return Captured(time_ns, "lost", self.connection, side, size=size, lost=frames, text=text)


def _answered(due: deque[Asked], correlation_id: int) -> Asked | None:
    """The request with this id; those before it will not be answered any more."""
    for index, asked in enumerate(due):
        if asked[0] == correlation_id:
            for _ in range(index + 1):
                due.popleft()
            return asked
    return None

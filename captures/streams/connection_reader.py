"""Reads the bytes of one connection, both ways, and gives rows. Pure: live captures and imports use it.

    reader = ConnectionReader(connection, keeping)
    reader.feed("request", data, time_ns) -> rows      the client's bytes, forwarded unchanged
    reader.feed("response", data, time_ns, forwarded=False) -> rows   the broker's bytes, not forwarded;
    reader.sent("response", other, time_ns) -> rows                   the bytes sent in their place
    reader.end(time_ns, "closed by client") -> rows

A response belongs to the oldest pending request with its correlation id. Without such a request its row has
exchange -1, no API and no bytes. The answer to an ApiVersions in a version that the broker refuses has the
version that was asked, and layout v0 (KIP-511). The row of a frame comes when the frame is whole and it is
known how klamm forwarded it (forwarding.py). However the bytes are cut, the rows differ in their times only,
and in the numbers of exchanges where klamm makes requests.

Memory is bounded (framing.py, forwarding.py) and counted in `keeping.buffered_bytes`: call `end` of each
reader.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache, partial
from struct import Struct

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.forwarding import Forwarding
from klamm.captures.streams.framing import Framed, Stream
from klamm.captures.streams.kept import Kept
from klamm.captures.streams.resync import PendingRequest, request_in, response_in
from klamm.decoders import DecodeError
from klamm.decoders.body import decode_prefix
from klamm.decoders.headers import answered_with_0, is_plausible, read_request_header
from klamm.decoders.sasl_tokens import GSSAPI_FIRST, Tokens
from klamm.decoders.schema import Side

MOST_PENDING = 10_000  # requests that wait for their answers; beyond, the oldest is given up
ALL_PENDING = 30_000  # the same of all readers together: where they are many, each has fewer,
LEAST_PENDING = 100  # but so many
SASL_HANDSHAKE_0 = 17 << 16
REQUEST = Struct(">ii").unpack_from  # key and version, correlation id
CORRELATION = Struct(">i").unpack_from
make = tuple.__new__  # a named tuple in a third of the time


class ConnectionReader:
    """`mid_stream`: the connection began before the capture, so the start of a frame is searched first."""

    def __init__(self, connection: CapturedConnection, keeping: Keeping, mid_stream: bool = False) -> None:
        self.connection, self.keeping = connection, keeping
        keeping.readers += 1
        self.kept = Kept(keeping)
        self.number = 0  # of the next request
        self.pending: deque[PendingRequest] = deque()  # the broker has not answered them yet
        self.tokens: Tokens | None = None
        self.begun = mid_stream  # else a token may come first
        self.streams: dict[Side, Stream] = {
            "request": Stream(keeping, request_in, not mid_stream),
            "response": Stream(keeping, partial(response_in, self.pending), not mid_stream),
        }
        self.forwarding: Forwarding | None = None  # while the bytes sent differ from those that came

    def feed(self, side: Side, data: bytes, time_ns: int, forwarded: bool = True) -> list[Captured]:
        """Takes bytes of the client ("request") or the broker ("response"). `forwarded`: klamm sent the same
        bytes on; else `sent` gets the bytes that it sent, if any.
        """
        if self.forwarding is None and forwarded:
            frames, pending = self.streams[side].feed(data, time_ns), self.pending
            if side == "request":
                return [self.request(frame, pending) for frame in frames]
            return [self.response(frame, pending) for frame in frames]
        forwarding = self.forwarding = self.forwarding or Forwarding(self)
        rows = forwarding.came(side, self.streams[side].feed(data, time_ns))
        if forwarded:
            rows += forwarding.sent(side, data, time_ns)
        self._join(forwarding)
        return rows

    def sent(self, side: Side, data: bytes, time_ns: int) -> list[Captured]:
        """Takes the bytes that klamm sent to the broker ("request") or the client ("response"), in order."""
        forwarding = self.forwarding = self.forwarding or Forwarding(self)
        rows = forwarding.sent(side, data, time_ns)
        self._join(forwarding)
        return rows

    def gap(self, side: Side, missing_bytes: int | None, time_ns: int) -> list[Captured]:
        """Bytes were missed; None: unknown how many. Reading goes on behind the frame that they belong to
        where its size is known; else the start of the next frame is searched.
        """
        known, frames = self.streams[side].gap(missing_bytes, time_ns)
        amount = "bytes" if missing_bytes is None else f"{missing_bytes:,} bytes"
        row = self._lost(
            side, missing_bytes or 0, time_ns, f"{amount} of {side}s were not seen", 0 if known else 1
        )
        forwarding = self.forwarding
        if forwarding is None:
            rows = [self.row(side, frame, self.pending) for frame in frames]
            return [row, *rows] if known else [*rows, row]
        rows = forwarding.gap(side, missing_bytes, frames, row, known)
        self._join(forwarding)
        return rows

    def end(self, time_ns: int, why: str) -> list[Captured]:
        """The connection has ended: gives the rows of unfinished frames, and the row of the end."""
        rows: list[Captured] = []
        for side, stream in self.streams.items():
            cut = stream.unfinished()
            frames = stream.end(time_ns)
            if self.forwarding is not None:
                rows += self.forwarding.end(side, frames, time_ns)
            else:
                rows += [self.row(side, frame, self.pending) for frame in frames]
            if cut is not None:
                missing = f"{cut[1]:,} bytes missing" if cut[1] else "its size not whole"
                text = f"the connection ended in the middle of a {side}: {cut[0]:,} bytes, {missing}"
                rows.append(self._lost(side, cut[0], time_ns, text, 1))
        self.forwarding = None
        self.keeping.readers -= 1
        return [*rows, Captured(time_ns, "closed", self.connection, text=why)]

    def _most_pending(self) -> int:
        return min(MOST_PENDING, max(LEAST_PENDING, ALL_PENDING // max(1, self.keeping.readers)))

    def row(
        self, side: Side, frame: Framed, pending: deque[PendingRequest], number: int | None = None
    ) -> Captured:
        """The row of a frame."""
        return self.request(frame, pending, number) if side == "request" else self.response(frame, pending)

    def request(self, frame: Framed, pending: deque[PendingRequest], number: int | None = None) -> Captured:
        """Adds it to `pending`. `number`: the exchange of the request that it was sent in place of."""
        data, start, end, size, time_ns = frame
        if data is None:
            return self._unread("request", size, time_ns, start)
        if (self.tokens is not None or not self.begun) and self._is_token(data, start, size):
            return self._token("request", size, time_ns)
        self.begun = True
        if end - start < 8:
            return self._stray("request", -1, size, time_ns)
        code, correlation_id = REQUEST(data, start)
        if not _is_request(code):
            return self._stray("request", -1, size, time_ns)
        client_id, awaits, kept, blanks = self.kept.request(data, start, end, size, code)
        if number is None:
            number, self.number = self.number, self.number + 1
        if awaits:
            pending.append((correlation_id, number, code, client_id))
            if len(pending) > self._most_pending():
                pending.popleft()
        if code == SASL_HANDSHAKE_0:
            self._handshake(data[start:end])
        return make(
            Captured,
            (
                time_ns, "frame", self.connection, "request", code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000,
                correlation_id, client_id, number, size, kept, blanks, "passed", None, (), awaits, 0, "",
            ),
        )  # fmt: skip

    def response(self, frame: Framed, pending: deque[PendingRequest]) -> Captured:
        """Removes its request from `pending`."""
        data, start, end, size, time_ns = frame
        if data is None:
            return self._unread("response", size, time_ns, start)
        correlation_id = CORRELATION(data, start)[0] if end - start >= 4 else -1
        if pending and pending[0][0] == correlation_id:
            _, number, code, client_id = pending.popleft()
        else:
            if self.tokens is not None and self.tokens.awaited > 0:
                self.tokens.from_broker()
                return self._token("response", size, time_ns)
            asked = _answered(pending, correlation_id)
            if asked is None:
                return self._stray("response", correlation_id, size, time_ns)
            _, number, code, client_id = asked
        if code == SASL_HANDSHAKE_0 and data[start + 4 : start + 6] != b"\0\0":
            self._refused()
        kept, blanks = self.kept.response(data, start, end, size, code)
        return make(
            Captured,
            (
                time_ns, "frame", self.connection, "response", code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000,
                correlation_id, client_id, number, size, kept, blanks, "passed", None, (), True, 0, "",
            ),
        )  # fmt: skip

    def _join(self, forwarding: Forwarding) -> None:
        if forwarding.over():
            forwarding.close()
            self.forwarding = None

    def _is_token(self, data: bytes, start: int, size: int) -> bool:
        if self.tokens is None:
            if data[start : start + 1] != bytes([GSSAPI_FIRST]):
                return False
            self.tokens = Tokens("GSSAPI")
        first_two = int.from_bytes(data[start : start + 2], "big")
        if not self.tokens.is_token(size, first_two):
            self.tokens.over()
            return False
        self.tokens.from_client()
        self.begun = True
        return True

    def _handshake(self, frame: bytes) -> None:
        """SASL tokens without headers follow. Brokers ignore bytes behind the body."""
        try:
            body = frame[read_request_header(frame, 1).size :]
            values, _ = decode_prefix(body, SASL_HANDSHAKE_0 >> 16, 0, "request")
            self.tokens = Tokens(values["mechanism"])
        except DecodeError:
            self.tokens = Tokens("")

    def _refused(self) -> None:
        """The broker does not take the mechanism: requests follow."""
        if self.tokens is not None and self.tokens.sent == 0:
            self.tokens = None

    def _token(self, side: Side, size: int, time_ns: int) -> Captured:
        blanks = ((0, size),) if size else ()
        return Captured(time_ns, "token", self.connection, side, size=size, frame=b"", blanks=blanks)

    def _stray(self, side: Side, correlation_id: int, size: int, time_ns: int) -> Captured:
        """A frame too short for a request, or with a header of none; or a response that answers none."""
        return Captured(
            time_ns, "frame", self.connection, side, correlation_id=correlation_id, size=size,
            awaits=side == "response",
        )  # fmt: skip

    def _unread(self, side: Side, size: int, time_ns: int, tls: int) -> Captured:
        what = "that are TLS, which klamm cannot read here" if tls else "in which no frame begins"
        return self._lost(side, size, time_ns, f"{size:,} bytes of {side}s {what}", 0)

    def _lost(self, side: Side, size: int, time_ns: int, text: str, frames: int) -> Captured:
        return Captured(time_ns, "lost", self.connection, side, size=size, lost=frames, text=text)


@lru_cache(1024)
def _is_request(code: int) -> bool:
    """Whether a request may begin with this key and version; else its bytes may be anything, a token even."""
    return is_plausible(code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000)


def _answered(pending: deque[PendingRequest], correlation_id: int) -> PendingRequest | None:
    """Removes the oldest request with this id, or the oldest of all where Kafka answers it with id 0."""
    for index, asked in enumerate(pending):
        if asked[0] == correlation_id:
            del pending[index]
            return asked
    if correlation_id == 0 and pending and answered_with_0(pending[0][2] >> 16, pending[0][2] & 0xFFFF):
        return pending.popleft()
    return None

"""Reads large responses while they pass. Only the end of one, which may have addresses, is held back, and
they are blanked.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders.compile import UNREADABLE, Path
from klamm.proxy.session.connection import MIB, Connection
from klamm.proxy.session.effects import Effect, Piece, part, span
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.summaries import NO_ERRORS, ResponseSummary
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.rewriting.addresses import neutralise
from klamm.proxy.session.undecodable import EARLY, WRONG

TAIL_LIMIT = MIB
UNFOUND = f"{WRONG}, so that its addresses cannot be found"


class LargeResponses:
    """`walk` reads the frame that passes; `body` is the offset of its body in the first piece. `tail` is the
    end of the frame, which is held back.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.walk: Generator[None, bytes, tuple[Any, ...]] | None = None
        self.memory: ApiMemory
        self.paths: tuple[Path, ...] = ()
        self.body = 0
        self.tail: list[bytes] | None = None
        self.logged: tuple[PendingRequests, int, int, int] | None = (
            None  # the exchange to log once the frame has been read
        )

    def busy(self) -> bool:
        return self.walk is not None or self.tail is not None

    def start(self, memory: ApiMemory, body: int) -> None:
        """Begin to read a frame, up to its tail if it has one. `body`: offset of its body in the data."""
        plan = memory.plan
        assert plan.response is not None
        if plan.tail is None:
            made, self.paths = plan.response_walk(), plan.response.paths
        else:
            made, self.paths = plan.tail_walk()
        self.walk, self.memory, self.body = made(), memory, body
        next(self.walk)

    def feed(
        self, data: bytes, begin: int, stop: int, last: bool, start: int, pieces: list[Piece | Effect]
    ) -> int:
        """Read data[begin:stop]; `last`: the frame ends there. Returns a position: the bytes before it are in
        `pieces`, or held back.
        """
        if self.walk is not None:
            try:
                self.walk.send(span(data, begin, stop))
            except StopIteration as done:
                self._read(done.value[:-1])
                if self.memory.plan.tail is not None:
                    begin = stop - done.value[-1]
                    pieces.append(part(data, start, begin))
                    start, self.tail = begin, []
            except UNREADABLE:
                if self.memory.plan.tail is not None:
                    self.walk = None
                    self.connection.refuse(self.memory.plan, UNFOUND)
                else:
                    self._unread(WRONG)
            else:
                if last:
                    self._unread(EARLY)
        if self.tail is not None:
            self.tail.append(span(data, begin, stop))
            start = stop
            if sum(map(len, self.tail)) > TAIL_LIMIT:
                self.connection.refuse(self.memory.plan, f"its addresses take more than {TAIL_LIMIT} bytes")
            elif last:
                pieces.append(self._blank(b"".join(self.tail)))
                self.tail = None
        return start

    def whole(self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int) -> list[bytes] | None:
        """The pieces that replace a large frame that came whole: the same as if it had come in parts. None
        where it goes on as it is, or ends the connection.
        """
        self.start(memory, body)
        assert self.walk is not None
        try:
            self.walk.send(data[body:end])
        except StopIteration as done:
            start = end - done.value[-1]
            return [data[pos:start], self._blank(data[start:end])]
        except UNREADABLE:
            self.connection.refuse(memory.plan, UNFOUND)
        finally:
            self.walk = None
        return None

    def _read(self, columns: tuple[Any, ...]) -> None:
        self.walk = None
        memory, connection = self.memory, self.connection
        assert memory.plan.response is not None
        summary = connection.summary_of_response(
            memory, columns + (None,) * (len(memory.plan.response.paths) - len(self.paths))
        )
        connection.count_errors(memory, summary, 1)
        self._tell(summary)

    def _unread(self, reason: str) -> None:
        """Stop reading a frame that does not decode; it goes on."""
        self.walk = None
        self.connection.undecodable(self.memory.plan, "response", reason)
        self._tell(NO_ERRORS)

    def cut(self) -> None:
        """The connection has ended: the rest of the frame does not come."""
        self._tell(NO_ERRORS)

    def _tell(self, summary: ResponseSummary) -> None:
        """Give the exchange to those who wait until its answer has been read."""
        if self.logged is not None:
            run, correlation_id, length, elapsed = self.logged
            self.connection.exchange(self.memory, run, correlation_id, summary, length, elapsed)
            self.logged = None

    def _blank(self, tail: bytes) -> bytes:
        """The end of a large response, with its addresses blanked at unchanged length."""
        plan, connection = self.memory.plan, self.connection
        try:
            new = neutralise(tail, plan.tail_tagged)
        except (*UNREADABLE, ValueError):
            connection.refuse(plan, "its addresses cannot be blanked")
            return b""
        if new != tail:
            which = f"a large {plan.name} v{plan.version} response"
            message = f"the node_endpoints of {which} were blanked: the client will refresh"
            connection.problem("endpoints_blanked", plan.name, message)
        return new

"""Reads the wanted fields of responses, and replaces what klamm must change: addresses, and ApiVersions."""

from __future__ import annotations

from typing import Any

from klamm.decoders.compile import UNREADABLE, skip_tags
from klamm.decoders.failures import DecodeError, EncodeError
from klamm.proxy.session.addresses import Unbound, rewrite
from klamm.proxy.session.api_versions import clamped
from klamm.proxy.session.connection import Connection, resized
from klamm.proxy.session.effects import Bind
from klamm.proxy.session.large_responses import LargeResponses
from klamm.proxy.session.memory import NO_PATTERN, ApiMemory, ResponsePattern
from klamm.proxy.session.summaries import NO_ERRORS, ResponseSummary
from klamm.proxy.session.topology import Unbindable
from klamm.rules.plan import API_VERSIONS

MEMORY_LIMIT = 4096
HELD_MEMORY_LIMIT = 256 * 1024
TAIL_HELD = 256 * 1024  # a response that ends in addresses is held whole up to this size; a larger one flows
SHAPE_LIMIT = 64 * 1024  # of a response whose shape is remembered
FIRST_LOOK = 256 * 1024  # a held response is looked at when this much is there: addresses mostly come early

# The summary of a response, and the pieces that go on instead of it (None: it goes on itself). Where there is
# no Met at all, more bytes are needed, or the response ends the connection.
Met = tuple[ResponseSummary, list[Any] | None]


class ResponseBodies:
    """`need`: so many bytes of the frame must be there before it is looked at again. `blocked`: a
    listener is being bound.
    """

    def __init__(self, connection: Connection, passing: LargeResponses) -> None:
        self.connection, self.passing = connection, passing
        self.need = 8
        self.blocked = False

    def meet(self, data: bytes, pos: int, length: int, memory: ApiMemory) -> Met | None:
        """Read a frame that does not match the memory."""
        plan, end = memory.plan, pos + 4 + length
        whole = end <= len(data)
        if plan.hold:
            return self._held(data, pos, length, memory)
        if plan.response is None:
            if not plan.logged:
                memory.answer = ResponsePattern(
                    4, self.connection.context.frame_limit, b"", b"", 0, b"", 0, NO_ERRORS
                )
            return NO_ERRORS, None
        if not whole and plan.tail is not None and length <= TAIL_HELD:
            self._wait(length + 4)
            return None
        try:
            body = self._body(memory, data, pos)
            if plan.tail is not None and not whole:
                raise IndexError
            *columns, stop = plan.response.pick(data, body, min(end, len(data)))
        except UNREADABLE:
            if not whole:
                return self._start_walk(memory, data, pos)
            if plan.tail is not None:
                self._refuse(memory, "its addresses cannot be looked for")
                return None
            self.connection.undecodable(memory.plan, "response")
            return NO_ERRORS, None
        if memory.answer_columns != columns:
            memory.answer_columns, memory.response_summary = (
                columns,
                self.connection.said(memory, tuple(columns)),
            )
            if not memory.response_summary.named:
                memory.answer_columns = None
        if plan.tail is not None and plan.response.column(tuple(columns), (plan.tail, "node_id")):
            return (
                self._rewritten(data, pos, body, end, memory)
                if length <= TAIL_HELD
                else (memory.response_summary, self.passing.whole(memory, data, pos, body, end))
            )
        known, memory.answer = memory.answer, NO_PATTERN
        if memory.answer_columns is not None and not plan.logged:
            if plan.tail is None and stop - pos <= MEMORY_LIMIT:
                memory.answer = ResponsePattern(
                    stop - pos - 4,
                    self.connection.context.frame_limit,
                    data[pos + 8 : stop],
                    b"",
                    0,
                    b"",
                    0,
                    memory.response_summary,
                )
            elif plan.shape is not None and length == memory.answer_length and length <= SHAPE_LIMIT:
                memory.answer = _shape(
                    plan.shape(data, body, end), data[pos:end], pos, memory.response_summary
                )
            memory.answer_length = length
            if memory.answer == known:  # what was made for it holds on
                memory.answer = known
        return memory.response_summary, None

    def _held(self, data: bytes, pos: int, length: int, memory: ApiMemory) -> Met | None:
        """Hold a response until its addresses can be rewritten."""
        end, size = pos + 4 + length, len(data)
        topology = self.connection.context.topology
        same = (
            memory.held is not None
            and memory.revision == topology.revision
            and len(memory.held) == length - 4
        )
        if same and end <= size and data.startswith(memory.held or b"", pos + 8):
            return memory.response_summary, resized(data, pos, pos + 8, memory.replaced)
        if end > size and (memory.plan.key == API_VERSIONS or size - pos < FIRST_LOOK):
            self._wait(min(length + 4, FIRST_LOOK) if memory.plan.key != API_VERSIONS else length + 4)
            return None
        try:
            body = self._body(memory, data, pos)
            if memory.plan.key == API_VERSIONS:
                return self._clamped(data, pos, body, end, memory)
        except (*UNREADABLE, DecodeError, EncodeError) as error:
            self._refuse(memory, str(error) or "cut short")
            return None
        return self._rewritten(data, pos, body, end, memory)

    def _clamped(self, data: bytes, pos: int, body: int, end: int, memory: ApiMemory) -> Met:
        original = data[body:end]
        new = clamped(original, memory.plan.version, self.connection.context.allow_unknown_apis)
        code = int.from_bytes(original[:2], "big", signed=True)
        summary = ResponseSummary([(None, code)] if code else [])
        return summary, None if new is original else resized(data, pos, body, [new])

    def _rewritten(self, data: bytes, pos: int, body: int, end: int, memory: ApiMemory) -> Met | None:
        """Splice klamm's addresses in; the part of a frame that has not come yet follows them."""
        connection, plan, size = self.connection, memory.plan, len(data)
        topology = connection.context.topology
        assert plan.endpoints is not None
        there = min(end, size)
        try:
            new = rewrite(plan.endpoints, data, body, there, connection.standing)
        except Unbound:
            self.blocked = True
            connection.effects.append(Bind())
            self._wait(end - pos)
            return None
        except Unbindable as error:
            connection.close("unbindable", plan.name, str(error))
            return None
        except UNREADABLE:
            if end <= size:
                self._refuse(memory, "its addresses cannot be found")
                return None
            most = connection.context.held_limit
            if size - pos >= most:
                self._refuse(memory, f"no end of its addresses in the first {size - pos} bytes")
                return None
            self._wait(min(end - pos, 2 * (size - pos), most))
            return None
        summary = (
            self._summary_of_held(memory, data, pos, body, end) if plan.hold else memory.response_summary
        )
        if new is None:
            if end > size:
                return summary, None
            new = [data[body:end]]
        late = end - there
        if late == 0 and end - pos <= HELD_MEMORY_LIMIT and plan.hold and summary.named:
            head = data[pos + 8 : body]
            memory.held, memory.replaced, memory.revision = (
                data[pos + 8 : end],
                [head, *new],
                topology.revision,
            )
            memory.response_summary = summary
        return summary, resized(data, pos, body, new, late)

    def _summary_of_held(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int
    ) -> ResponseSummary:
        """The summary of a held response; of one that is not whole, the rest is read while it passes."""
        if memory.plan.response is None:
            return NO_ERRORS
        if end > len(data):
            met = self._start_walk(memory, data, pos)
            return met[0] if met else NO_ERRORS
        try:
            return self.connection.said(memory, memory.plan.response.pick(data, body, end)[:-1])
        except UNREADABLE:
            self.connection.undecodable(memory.plan, "response")
            return NO_ERRORS

    def _start_walk(self, memory: ApiMemory, data: bytes, pos: int) -> Met | None:
        """Read the rest of a frame as it passes; the part of it that is here goes on at once."""
        try:
            self.passing.start(memory, self._body(memory, data, pos))
        except UNREADABLE:
            self._wait(len(data) - pos + 1)
            return None
        return NO_ERRORS, None

    def _wait(self, need: int) -> None:
        """Hold the frame until `need` bytes of it are there."""
        self.need = need

    def _refuse(self, memory: ApiMemory, reason: str) -> None:
        self.connection.refuse(memory.plan, reason)

    def _body(self, memory: ApiMemory, data: bytes, pos: int) -> int:
        return skip_tags(data, pos + 9, len(data), data[pos + 8]) if memory.plan.response_tags else pos + 8


def _shape(
    volatile: list[tuple[int, int, int, Any]], frame: bytes, start: int, summary: ResponseSummary
) -> ResponsePattern:
    """The frame's bytes around its volatile values: sizes, counts and everything that says something.
    `start`: of the frame.
    """
    steady, pos = [], 8
    for _, first, last, value in volatile:
        first = (
            last - len(value) if isinstance(value, bytes) else first
        )  # records: their length is of the shape
        if first - start > pos:
            steady.append((pos, frame[pos : first - start]))
        pos = last - start
    steady.append((pos, frame[pos:]))
    if len(steady) > 3 or steady[0][0] != 8 or not steady[-1][1]:
        return NO_PATTERN
    (_, one), (two_at, two), (three_at, three) = (steady + [(0, b"")] * 2)[:3]
    return ResponsePattern(len(frame) - 4, len(frame) - 4, one, two, two_at, three, three_at, summary)

"""Reads the wanted fields of responses, and replaces what klamm must change: addresses, and ApiVersions."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from klamm.decoders.body import is_whole
from klamm.decoders.compile import UNREADABLE, skip_tags, tags_end
from klamm.decoders.failures import DecodeError
from klamm.decoders.headers import refuses_version
from klamm.proxy.session.connection import Connection, resized
from klamm.proxy.session.effects import Bind
from klamm.proxy.session.large_responses import LargeResponses
from klamm.proxy.session.memory import NO_PATTERN, ApiMemory, ResponsePattern
from klamm.proxy.session.observing.summaries import NO_ERRORS, ResponseSummary
from klamm.proxy.session.rewriting.addresses import Unbound, rewrite
from klamm.proxy.session.rewriting.api_versions import clamped
from klamm.proxy.session.rewriting.topology import Unbindable
from klamm.rules.plan import API_VERSIONS, METADATA, flat

MEMORY_LIMIT = 4096
HELD_MEMORY_LIMIT = 64 * 1024  # a connection keeps one such response
TAIL_HELD = 256 * 1024  # a response that ends in addresses is held up to this size; larger ones flow
SHAPE_LIMIT = 64 * 1024  # of a response whose pattern has gaps: see _shape
COLUMNS_LIMIT = 2048  # values of the wanted fields of a response, to be kept for the next one
HEADER = "the tagged fields of its header cannot be read"
FIRST_LOOK = 256 * 1024  # bytes of a held response before it is read: addresses mostly come early
HEADER_LIMIT = 64 * 1024  # the end of a response's header is looked for in so many bytes

# The summary of a response, and the pieces that go on instead of it (None: it goes on itself). None in
# place of a Met: more bytes are needed, or the response ends the connection.
Met = tuple[ResponseSummary, list[Any] | None]


class ResponseBodies:
    """`need`: so many bytes of the frame must be there before it is read again. `blocked`: a listening
    port is being bound.
    """

    def __init__(self, connection: Connection, passing: LargeResponses) -> None:
        self.connection, self.passing = connection, passing
        self.need = 8
        self.blocked = False
        self.keeper: ApiMemory | None = None  # has the last response that was held

    def meet(self, data: bytes, pos: int, length: int, memory: ApiMemory) -> Met | None:
        """Read a frame that does not match the memory."""
        plan, end = memory.plan, pos + 4 + length
        whole = end <= len(data)
        if plan.hold:
            return self._held(data, pos, length, memory)
        if plan.response is None:
            if whole and not memory.whole_answer:
                self._look_at_end(memory, data, pos, end)
            if not plan.logged and (memory.whole_answer or not whole):
                memory.answer = ResponsePattern(4, self.connection.context.frame_limit, NO_ERRORS)
            return NO_ERRORS, None
        if not whole and plan.tail is not None and length <= TAIL_HELD:
            self._wait(length + 4)
            return None
        body = -1
        try:
            body = self._body(memory, data, pos, end)
            if plan.tail is not None and not whole:
                raise IndexError
            *columns, stop = plan.response.pick(data, body, min(end, len(data)))
        except UNREADABLE:
            return (
                self._odd(data, pos, body, end, memory) if whole else self._start_walk(memory, data, pos, end)
            )
        if memory.answer_columns != columns:
            memory.answer_columns, memory.response_summary = (
                columns,
                self.connection.summary_of_response(memory, tuple(columns)),
            )
            if not memory.response_summary.named or elements(columns) > COLUMNS_LIMIT:
                memory.answer_columns = None
        if whole and not memory.whole_answer:
            self._look_at_end(memory, data, pos, end)
        if plan.tail is not None and plan.response.column(tuple(columns), (plan.tail, "node_id")):
            return (
                self._rewritten(data, pos, body, end, memory)
                if length <= TAIL_HELD
                else (memory.response_summary, self.passing.whole(memory, data, pos, body, end))
            )
        known, memory.answer = memory.answer, NO_PATTERN
        if memory.answer_columns is not None and not plan.logged and (memory.whole_answer or not whole):
            if plan.shape is None and stop - pos <= MEMORY_LIMIT:
                most = self.connection.context.frame_limit
                memory.answer = ResponsePattern(
                    stop - pos - 4, most, memory.response_summary, data[pos + 8 : stop]
                )
            elif plan.shape is not None and length == memory.answer_length and length <= SHAPE_LIMIT:
                memory.answer = _shape(
                    plan.shape(data, body, end), data[pos:end], pos, memory.response_summary
                )
            memory.answer_length = length
            if memory.answer.equals(known):  # the same object: its EqualFrames stay valid
                memory.answer = known
        return memory.response_summary, None

    def _odd(self, data: bytes, pos: int, body: int, end: int, memory: ApiMemory) -> Met | None:
        """A whole response of which the wanted fields cannot be read; `body` is -1 if its header cannot. It
        goes on, but for its addresses.
        """
        connection, plan = self.connection, memory.plan
        connection.undecodable(plan, "response", HEADER if body < 0 else data[body:end])
        if plan.tail is None:
            return NO_ERRORS, None
        if body < 0:
            body = self._body_behind_odd_header(memory, data, pos, end)
            if connection.closing:
                return None
        memory.answer_columns, memory.response_summary, memory.answer = None, NO_ERRORS, NO_PATTERN
        if end - pos - 4 <= TAIL_HELD:
            return self._rewritten(data, pos, body, end, memory)
        pieces = self.passing.whole(memory, data, pos, body, end)
        return None if connection.closing else (NO_ERRORS, pieces)

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
        if memory.plan.key == API_VERSIONS:
            return self._clamped(data, pos, pos + 8, end, memory)
        if end > size and size - pos < FIRST_LOOK:
            self._wait(min(length + 4, FIRST_LOOK))
            return None
        try:
            body = self._body(memory, data, pos, end)
        except UNREADABLE:
            body = self._body_behind_odd_header(memory, data, pos, end)
            if self.connection.closing:
                return None
        return self._rewritten(data, pos, body, end, memory)

    def _clamped(self, data: bytes, pos: int, body: int, end: int, memory: ApiMemory) -> Met | None:
        if end - pos - 4 > self.connection.context.held_limit:
            self._refuse(memory, f"{end - pos - 4} bytes are more than klamm holds of one")
            return None
        if end > len(data):
            self._wait(end - pos)
            return None
        original, version = data[body:end], memory.plan.version
        new = clamped(original, version, self.connection.context.allow_unknown_apis)
        refuses = refuses_version(original)  # librdkafka's mock cluster has a byte behind the end of these
        if not refuses and not is_whole(API_VERSIONS, version, "response", original):
            self.connection.undecodable(memory.plan, "response", original)
        if not refuses:
            self.connection.context.offered(self.connection.broker, version, original)
        code = int.from_bytes(original[:2], "big", signed=True)
        summary = ResponseSummary([(None, code)] if code else [])
        return summary, None if new is original else resized(data, pos, body, [new])

    def _rewritten(self, data: bytes, pos: int, body: int, end: int, memory: ApiMemory) -> Met | None:
        """Put klamm's addresses into a response; the part of it that has not come yet follows unchanged."""
        connection, plan, size = self.connection, memory.plan, len(data)
        topology = connection.context.topology
        assert plan.endpoints is not None
        there, odd, unbound = min(end, size), False, False
        new: list[bytes] | None = None
        try:
            try:
                new = rewrite(plan.endpoints, data, body, there, connection.standing)
            except UNREADABLE:
                if end > size:
                    self._wait_for_addresses(memory, size - pos, end - pos)
                    return None
                new = rewrite(plan.endpoints, data, body, end, connection.standing, tolerant=True)
                odd = True
        except Unbound:
            unbound = True
        except Unbindable as error:
            connection.close("response", "unbindable", plan.name, str(error))
            return None
        except DecodeError as failure:
            self._refuse(memory, f"its addresses cannot be found: {failure}")
            return None
        if plan.key == METADATA:
            topology.lists += 1
        if unbound:
            self.blocked = True
            connection.effects.append(Bind())
            self._wait(end - pos)
            return None
        summary = (
            self._summary_of_held(memory, data, pos, body, end, odd) if plan.hold else memory.response_summary
        )
        if new is None:
            if end > size:
                return summary, None
            new = [data[body:end]]
        late = end - there
        if (
            late == 0
            and end - pos <= HELD_MEMORY_LIMIT
            and plan.hold
            and summary.named
            and memory.whole_answer
        ):
            if self.keeper is not None and self.keeper is not memory:
                self.keeper.held, self.keeper.replaced = None, []
            self.keeper = memory
            head = data[pos + 8 : body]
            memory.held, memory.replaced, memory.revision = (
                data[pos + 8 : end],
                [head, *new],
                topology.revision,
            )
            memory.response_summary = summary
        return summary, resized(data, pos, body, new, late)

    def _wait_for_addresses(self, memory: ApiMemory, there: int, size: int) -> None:
        """Hold more of a response; the addresses do not end in the bytes that are there."""
        most = self.connection.context.held_limit
        if there >= most:
            self._refuse(memory, f"no end of its addresses in the first {there} bytes")
        else:
            self._wait(min(size, 2 * there, most))

    def _summary_of_held(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, odd: bool
    ) -> ResponseSummary:
        """The summary of a held response. If it is not whole, a walk reads it while the rest passes. `odd`:
        its addresses had to be looked for by the slow way.
        """
        memory.whole_answer = False
        if odd:
            self.connection.undecodable(memory.plan, "response", data[body:end])
        elif end <= len(data):
            self._look_at_end(memory, data, pos, end)
        if memory.plan.response is None:
            return NO_ERRORS
        if end > len(data):
            met = self._start_walk(memory, data, pos, end)
            return met[0] if met else NO_ERRORS
        try:
            return self.connection.summary_of_response(
                memory, memory.plan.response.pick(data, body, end)[:-1]
            )
        except UNREADABLE:
            return NO_ERRORS

    def _look_at_end(self, memory: ApiMemory, data: bytes, pos: int, end: int) -> None:
        """Does the body of a whole response end where its layout does? If not, that is counted and logged."""
        plan = memory.plan
        try:
            body = self._body(memory, data, pos, end)
        except UNREADABLE:
            self.connection.undecodable(plan, "response", HEADER)
            return
        memory.whole_answer = is_whole(plan.key, plan.version, "response", data, body, end)
        if not memory.whole_answer:
            self.connection.undecodable(plan, "response", data[body:end])

    def _start_walk(self, memory: ApiMemory, data: bytes, pos: int, end: int) -> Met | None:
        """Read a frame while it passes; the part of it that is here goes on at once."""
        there = len(data) - pos
        try:
            self.passing.start(memory, self._body(memory, data, pos, end))
        except UNREADABLE:
            if there < HEADER_LIMIT:
                self._wait(min(end - pos, 2 * there))
                return None
            if memory.plan.tail is not None:
                self._refuse(memory, HEADER)
                return None
            self.connection.undecodable(memory.plan, "response", HEADER)
        return NO_ERRORS, None

    def _body_behind_odd_header(self, memory: ApiMemory, data: bytes, pos: int, end: int) -> int:
        """The end of the response, if that comes within its header. Else refuses it."""
        try:
            if end <= len(data):
                return tags_end(data, pos + 8, end)
        except UNREADABLE:
            pass
        self._refuse(memory, HEADER)
        return end

    def _wait(self, need: int) -> None:
        """Hold the frame until `need` bytes of it are there."""
        self.need = need

    def _refuse(self, memory: ApiMemory, reason: str) -> None:
        self.connection.refuse(memory.plan, reason)

    def _body(self, memory: ApiMemory, data: bytes, pos: int, end: int) -> int:
        """The offset of the body, behind the tagged section of the header."""
        if not memory.plan.response_tags or end == pos + 8:
            return pos + 8
        return skip_tags(data, pos + 9, min(end, len(data)), data[pos + 8])


def elements(columns: Any) -> int:
    """The number of values in the columns, as far as COLUMNS_LIMIT + 1."""
    return sum(1 for _ in islice(chain.from_iterable(map(flat, columns)), COLUMNS_LIMIT + 1))


def _shape(
    volatile: list[tuple[int, int, int, Any]], frame: bytes, start: int, summary: ResponseSummary
) -> ResponsePattern:
    """The pattern of a frame: its bytes around the volatile values. `start`: the offset of the frame, to
    which the volatile values are given.
    """
    steady, pos = [], 8
    for _, first, last, value in volatile:
        first = (
            last - len(value) if isinstance(value, bytes) else first
        )  # records: their length stays in the pattern
        if first - start > pos:
            steady.append((pos, frame[pos : first - start]))
        pos = last - start
    steady.append((pos, frame[pos:]))
    if len(steady) > 3 or steady[0][0] != 8 or not steady[-1][1]:
        return NO_PATTERN
    (_, one), (two_at, two), (three_at, three) = (steady + [(0, b"")] * 2)[:3]
    return ResponsePattern(len(frame) - 4, len(frame) - 4, summary, one, two, two_at, three, three_at)

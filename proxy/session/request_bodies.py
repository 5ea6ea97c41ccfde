"""Reads the wanted fields of requests, and keeps them in the memory with the bytes that they came from."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders import API
from klamm.decoders.compile import UNREADABLE
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.memory import NO_LENGTH, ApiMemory
from klamm.proxy.session.observing.listeners import have_room, listeners_of, missed
from klamm.proxy.session.observing.summaries import EMPTY, NO_ERRORS, RequestSummary
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.steps import COUNT, MORE, PASSED, Step
from klamm.proxy.session.undecodable import EARLY, WRONG
from klamm.rules.frame import Frame, Peer
from klamm.rules.plan import SASL_HANDSHAKE

MEMORY_LIMIT = 4096
Walking = tuple[Generator[None, bytes, tuple[Any, ...]], ApiMemory, int, int, int]


class RequestBodies:
    """`walk` reads a request that passes while it is read; None if there is none. `need`: the bytes of a
    frame that must be there before it can be read.
    """

    def __init__(self, connection: Connection, peer: Peer | None) -> None:
        self.connection, self.peer = connection, peer
        self.walk: Walking | None = None
        self.need = 0

    def read(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        """Read the wanted fields of the request at `pos`. PASSED: the rest of it must be given to `feed`."""
        picked, size, stop = memory.plan.request, len(data), body
        memory.before = (
            (memory.prefix, memory.least, memory.summary, memory.equal) if memory.least != NO_LENGTH else None
        )
        memory.summary, memory.prefix, memory.least = EMPTY, b"", NO_LENGTH
        memory.noted = NO_LENGTH
        if picked is not None:
            whole = end <= size
            try:  # the rest of a long request is walked: a pick of it would be for nothing
                *columns, stop = picked.pick(data, body, end if whole else min(size, body + MEMORY_LIMIT))
            except UNREADABLE:
                if whole:
                    self.connection.undecodable(memory.plan, "request", data[body:end])
                    if memory.plan.listeners:
                        self._pick_listeners(memory, data[body:end], now)
                    return COUNT
                small = end - pos <= self.connection.context.held_limit
                if memory.plan.listeners and small and self.connection.may_hold(size - pos):
                    self.need = end - pos  # the fields that pick its listeners are not all there
                    return MORE
                if memory.plan.listeners:
                    self._pick_listeners(memory, data[body:], now, end - pos)
                walk = memory.plan.request_walk()()
                next(walk)
                self.walk = (walk, memory, correlation, now, end - pos - 4)
                self.feed(data[body:], False)
                return PASSED
            memory.summary = self._summarise(memory, tuple(columns))
        if memory.plan.listeners:
            self._pick_listeners(memory, data[body:stop], now)
        if not memory.plan.logged and stop - pos <= MEMORY_LIMIT:
            memory.prefix, memory.least = data[pos + 12 : stop], stop - pos - 4
        return COUNT

    def feed(self, data: bytes, last: bool) -> bool:
        """Read more of a request that passes while it is read. True: nothing more of it is read. Its first
        bytes have picked its listeners, which get no body.
        """
        assert self.walk is not None
        walk, memory, correlation, arrived, length = self.walk
        try:
            walk.send(data)
        except StopIteration as done:
            summary = self._summarise(memory, done.value[:-1])
        except UNREADABLE:
            self.connection.undecodable(memory.plan, "request", WRONG)
            summary = RequestSummary()
        else:
            if not last:
                return False
            self.connection.undecodable(memory.plan, "request", EARLY)
            summary = RequestSummary()
        self.walk = None
        summary.listeners = memory.summary.listeners
        memory.summary = summary
        count(memory, 1, length + 4)
        goes_on(self.connection, memory, PendingRequests(memory, summary, arrived, correlation, length))
        return True

    def _summarise(self, memory: ApiMemory, columns: tuple[Any, ...]) -> RequestSummary:
        plan, summary = memory.plan, self.connection.summary_of_request(memory.plan, columns)
        if not summary.answered:
            self.connection.acks_0 = memory
        if plan.key == SASL_HANDSHAKE and plan.request is not None:
            self.connection.mechanism = plan.request.column(columns, ("mechanism",))
        return summary

    def _pick_listeners(self, memory: ApiMemory, body: bytes, now: int, begun: int = 0) -> None:
        """Add the listeners of the exchange to the summary. `begun`: this is the beginning of a request of so
        many bytes, which klamm does not hold; a listener that needs more of it misses the exchange.
        """
        if self.peer is None:
            return
        plan = memory.plan
        frame = Frame(API.any(plan.key), plan.version, "request", body, memory.client_id, self.peer, now)
        frame.names = self.connection.context.topology.topic_names.get
        found, unread = listeners_of(plan, frame)
        if begun and unread:
            kind, why = self.connection.unheld(begun)
            text = f"a {plan.name} request of {begun} bytes {why}: a filter that reads all of it misses it"
            self.connection.problem(kind, plan.name, text)
        self.connection.work += frame.work
        if not found:
            return
        if memory.summary is EMPTY:
            memory.summary = RequestSummary()
        memory.summary.listeners = found
        memory.summary.bodies = any(listener.bodies for listener in found)


def goes_on(connection: Connection, memory: ApiMemory, request: PendingRequests) -> None:
    """Its answer is awaited. Where it gets none its exchange is over, and the log and listeners get it."""
    summary = request.summary
    if summary.answered:
        connection.pending.append(request)
    elif memory.plan.logged or have_room(summary.listeners):
        connection.exchange(memory, request, request.first, NO_ERRORS, None, None)
    else:
        missed(summary.listeners, 1)


def count(memory: ApiMemory, times: int, size: int) -> None:
    """Count equal requests that came in one read."""
    counters, summary = memory.counters, memory.summary
    counters.requests += times
    counters.request_bytes += size
    for topic in summary.topics:
        topic.requests += times
    if not summary.answered:
        counters.one_way += times

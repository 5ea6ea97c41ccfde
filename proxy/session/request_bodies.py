"""Reads the wanted fields of requests, and keeps them in the memory with the bytes that they came from."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders.compile import UNREADABLE
from klamm.decoders.sasl_tokens import Tokens
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.listeners import listeners_of
from klamm.proxy.session.memory import NO_LENGTH, ApiMemory
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.steps import COUNT, MORE, PASSED, Step
from klamm.proxy.session.summaries import EMPTY, RequestSummary
from klamm.rules.frame import Peer
from klamm.rules.plan import SASL_HANDSHAKE, Plan

MEMORY_LIMIT = 4096
Walking = tuple[Generator[None, bytes, tuple[Any, ...]], ApiMemory, int, int, int]


class RequestBodies:
    """`walk` is under way in a request that passes while it is read. `need`: bytes of a frame, before it can
    be read.
    """

    def __init__(self, connection: Connection, peer: Peer | None) -> None:
        self.connection, self.peer = connection, peer
        self.walk: Walking | None = None
        self.need = 0

    def read(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        """Read what is wanted of a frame that begins at `pos`. PASSED: the rest of it is to be fed."""
        picked, size, stop = memory.plan.request, len(data), body
        memory.before = (
            (memory.prefix, memory.least, memory.summary, memory.equal) if memory.least != NO_LENGTH else None
        )
        memory.summary, memory.prefix, memory.least = EMPTY, b"", NO_LENGTH
        if picked is not None:
            try:
                *columns, stop = picked.pick(data, body, min(end, size))
            except UNREADABLE:
                if end <= size:
                    self.connection.undecodable(memory.plan, "request")
                    return COUNT
                if memory.plan.listeners and end - pos <= self.connection.context.held_limit:
                    self.need = end - pos  # what decides who is told of it is not all there
                    return MORE
                walk = memory.plan.request_walk()()
                next(walk)
                self.walk = (walk, memory, correlation, now, end - pos - 4)
                self.feed(data[body:], False)
                return PASSED
            memory.summary = self._said(memory.plan, tuple(columns))
        if memory.plan.listeners:
            self._pick_listeners(memory, data[body:stop], now)
        if not memory.plan.logged and stop - pos <= MEMORY_LIMIT:
            memory.prefix, memory.least = data[pos + 12 : stop], stop - pos - 4
        return COUNT

    def feed(self, data: bytes, last: bool) -> None:
        """Read more of a request that passes while it is read."""
        assert self.walk is not None
        walk, memory, correlation, arrived, length = self.walk
        try:
            walk.send(data)
        except StopIteration as done:
            summary = self._said(memory.plan, done.value[:-1])
        except UNREADABLE:
            self.connection.undecodable(memory.plan, "request")
            summary = EMPTY
        else:
            if not last:
                return
            self.connection.undecodable(memory.plan, "request")
            summary = EMPTY
        self.walk = None
        memory.summary = summary
        count(memory, 1, length + 4)
        if summary.answered:
            self.connection.pending.append(PendingRequests(memory, summary, arrived, [correlation], length))

    def _said(self, plan: Plan, columns: tuple[Any, ...]) -> RequestSummary:
        summary = self.connection.asked(plan, columns)
        if plan.key == SASL_HANDSHAKE and plan.version == 0 and plan.request is not None:
            self.connection.tokens = Tokens(plan.request.column(columns, ("mechanism",)))
        return summary

    def _pick_listeners(self, memory: ApiMemory, body: bytes, now: int) -> None:
        """Add the listeners of its exchange to the summary."""
        if self.peer is None:
            return
        names = self.connection.context.topology.topic_names.get
        found = listeners_of(memory.plan, memory.counters.client_id, body, self.peer, now, names)
        if not found:
            return
        if memory.summary is EMPTY:
            memory.summary = RequestSummary()
        memory.summary.listeners = found


def count(memory: ApiMemory, times: int, size: int) -> None:
    """Count equal requests that came in one read."""
    counters, summary = memory.counters, memory.summary
    counters.requests += times
    counters.request_bytes += size
    for topic in summary.topics:
        topic.requests += times
    if not summary.answered:
        counters.one_way += times
        for listener in summary.listeners:
            if listener.full:
                listener.missed(times)

"""What is read of requests: once, and remembered with the bytes that said it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders.compile import UNREADABLE
from klamm.decoders.sasl_tokens import Tokens
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.counters import Lane
from klamm.proxy.session.listeners import listeners_of
from klamm.proxy.session.memory import NO_LENGTH, Flow
from klamm.proxy.session.pending import Run
from klamm.proxy.session.summaries import EMPTY, Note
from klamm.rules.frame import Peer
from klamm.rules.plan import SASL_HANDSHAKE, Plan

MEMO_LIMIT = 4096
NO_LANE = Lane("", "", "", "", 0)
WALKING = Flow(Plan(-1, "walking", 0), NO_LANE)
Walking = tuple[Generator[None, bytes, tuple[Any, ...]], Flow, int, int, int]


class Noting:
    """`walk` is under way in a request that passes while it is read. `need`: bytes of a frame, before it can
    be read.
    """

    def __init__(self, connection: Connection, peer: Peer | None) -> None:
        self.connection, self.peer = connection, peer
        self.walk: Walking | None = None
        self.need = 0

    def note(
        self, flow: Flow, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Flow | None:
        """Read what is wanted of a frame that begins at `pos`. None: all of it is needed; WALKING: the rest
        is to be fed.
        """
        picked, size, stop = flow.plan.request, len(data), body
        flow.before = (flow.prefix, flow.least, flow.note, flow.alike) if flow.least != NO_LENGTH else None
        flow.note, flow.prefix, flow.least = EMPTY, b"", NO_LENGTH
        if picked is not None:
            try:
                *columns, stop = picked.pick(data, body, min(end, size))
            except UNREADABLE:
                if end <= size:
                    self.connection.undecodable(flow.plan, "request")
                    return flow
                if flow.plan.listeners and end - pos <= self.connection.context.held_limit:
                    self.need = end - pos  # what decides who is told of it is not all there
                    return None
                walk = flow.plan.request_walk()()
                next(walk)
                self.walk = (walk, flow, correlation, now, end - pos - 4)
                self.feed(data[body:], False)
                return WALKING
            flow.note = self._said(flow.plan, tuple(columns))
        if flow.plan.listeners:
            self._pick_listeners(flow, data[body:stop], now)
        if not flow.plan.logged and stop - pos <= MEMO_LIMIT:
            flow.prefix, flow.least = data[pos + 12 : stop], stop - pos - 4
        return flow

    def feed(self, data: bytes, last: bool) -> None:
        """More of a request that is being read while it passes."""
        assert self.walk is not None
        walk, flow, correlation, arrived, length = self.walk
        try:
            walk.send(data)
        except StopIteration as done:
            note = self._said(flow.plan, done.value[:-1])
        except UNREADABLE:
            self.connection.undecodable(flow.plan, "request")
            note = EMPTY
        else:
            if not last:
                return
            self.connection.undecodable(flow.plan, "request")
            note = EMPTY
        self.walk = None
        flow.note = note
        count(flow, 1, length + 4)
        if note.answered:
            self.connection.in_flight.append(Run(flow, note, arrived, [correlation], length))

    def _said(self, plan: Plan, columns: tuple[Any, ...]) -> Note:
        note = self.connection.asked(plan, columns)
        if plan.key == SASL_HANDSHAKE and plan.version == 0 and plan.request is not None:
            self.connection.tokens = Tokens(plan.request.column(columns, ("mechanism",)))
        return note

    def _pick_listeners(self, flow: Flow, body: bytes, now: int) -> None:
        """Note the listeners of its exchange."""
        if self.peer is None:
            return
        names = self.connection.context.topology.topic_names.get
        found = listeners_of(flow.plan, flow.lane.client_id, body, self.peer, now, names)
        if not found:
            return
        if flow.note is EMPTY:
            flow.note = Note()
        flow.note.listeners = found


def count(flow: Flow, times: int, size: int) -> None:
    """Like requests that came in one read."""
    lane, note = flow.lane, flow.note
    lane.requests += times
    lane.request_bytes += size
    for topic in note.topics:
        topic.requests += times
    if not note.answered:
        lane.one_way += times
        for listener in note.listeners:
            if listener.full:
                listener.missed(times)

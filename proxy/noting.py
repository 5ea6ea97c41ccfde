"""What is read of requests: once, and remembered with the bytes that said it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from klamm.decoders.compile import UNREADABLE
from klamm.decoders.sasl_tokens import Tokens
from klamm.proxy.connection import NO_LENGTH, Connection, Flow, Run
from klamm.proxy.notes import EMPTY, Note
from klamm.proxy.stats import Lane
from klamm.proxy.watching import watchers
from klamm.rules.plan import SASL_HANDSHAKE, Plan

MEMO_LIMIT = 4096
NO_LANE = Lane("", "", "", "", 0)
WALKING = Flow(Plan(-1, "walking", 0), NO_LANE)
Walking = tuple[Generator[None, bytes, tuple[Any, ...]], Flow, int, int, int]


class Noting:
    """`walk` is under way in a request that passes while it is read. `need`: bytes of a frame, before it can
    be read.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
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
                if flow.plan.watched and end - pos <= self.connection.ground.held_limit:
                    self.need = end - pos  # what decides who is told of it is not all there
                    return None
                walk = flow.plan.request_walk()()
                next(walk)
                self.walk = (walk, flow, correlation, now, end - pos - 4)
                self.feed(data[body:], False)
                return WALKING
            flow.note = self._said(flow.plan, tuple(columns))
        if flow.plan.watched:
            self._watch(flow, data[body:stop], now)
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

    def _watch(self, flow: Flow, body: bytes, now: int) -> None:
        """Who is told of it."""
        connection = self.connection
        if connection.ruling is None:
            return
        names = connection.ground.topology.topic_names.get
        found = watchers(flow, body, connection.ruling.peer, now, names)
        if not found:
            return
        if flow.note is EMPTY:
            flow.note = Note()
        flow.note.watchers = found


def count(flow: Flow, times: int, size: int) -> None:
    """Like requests that came in one read."""
    lane, note = flow.lane, flow.note
    lane.requests += times
    lane.request_bytes += size
    for topic in note.topics:
        topic.requests += times
    if not note.answered:
        lane.one_way += times
        for sink in note.watchers:
            if sink.full:
                sink.missed(times)

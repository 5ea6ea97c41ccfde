"""Ends a link between two exchanges: klamm reads no more requests, and waits for the answers that are due."""

from __future__ import annotations

import asyncio
from typing import Protocol

from klamm.proxy.edge.ends import DEAF, LEAVING, OPEN, End
from klamm.proxy.edge.lines import Lines
from klamm.proxy.session.session import Session

CUT = "drain timed out"
LINGER_S = 2.0  # for the client to end its side too
POLLS_S = 1.0  # answers that may take long, or never come, have so much time
LONG_POLLS = {"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"}  # brokers answer them when something happens


class Linked(Protocol):
    """The parts of a link that it needs."""

    session: Session
    reason: str | None
    timers: dict[str, asyncio.TimerHandle]
    lines: Lines

    @property
    def client(self) -> End: ...
    def finish(self, reason: str, reset: bool = False, now: bool = False) -> None: ...


class Draining:
    """The end of a link, for a reason, within so many seconds. Requests that only wait until something
    happens are given up earlier: clients send them again on another connection.
    """

    def __init__(self, link: Linked, broker: End, reason: str, within_s: float) -> None:
        self.link, self.broker, self.reason = link, broker, reason
        self.polls_are_over = self.lingers = False
        link.session.drain()
        for end in (link.client, broker):
            if end.state == OPEN:
                end.become(LEAVING)
        later = asyncio.get_running_loop().call_later
        link.timers["drain"] = later(within_s, self._cut)
        link.timers["polls"] = later(min(POLLS_S, within_s), self._end_polls)
        self.look()

    def look(self) -> None:
        """Bytes have come: end the link if nothing is due any more."""
        link = self.link
        if self.lingers:
            return
        if link.client.state == DEAF:
            link.finish(self.reason, now=True)
            return
        if link.session.requests.left:
            return
        link.client.pause("drain")
        waiting = link.session.unanswered()
        polls = self.polls_are_over and all(memory.plan.name in LONG_POLLS for memory, _ in waiting)
        token = link.session.awaits_token and not self.polls_are_over
        if not (link.session.responses.left or token) and (polls or not link.session.pending()):
            self.lingers = True
            self._leave()
            self._linger()

    def _leave(self) -> None:
        """End both sides. Bytes that still come from the client are dropped: a close without reading them
        would be a reset, which may cost the client its last answers.
        """
        link, client = self.link, self.link.client
        link.reason = link.reason or self.reason
        self.broker.close()
        if client.transport.can_write_eof():
            client.become(DEAF)
            client.resume("drain")
            link.lines.put("client", "eof")
        else:
            link.lines.put("client", "close")

    def _linger(self) -> None:
        """Wait for the end of the client's side, once it has been told the end of the broker's."""
        linger = self._linger if "client" in self.link.lines else self._end
        self.link.timers["linger"] = asyncio.get_running_loop().call_later(LINGER_S, linger)

    def _end(self) -> None:
        self.link.finish(self.reason, now=True)

    def _end_polls(self) -> None:
        self.polls_are_over = True
        self.look()

    def _cut(self) -> None:
        link, line = self.link, self.link.lines.get("client")
        if not self.lingers:
            link.finish(CUT, now=True)
        elif line is not None:
            if line.size and link.reason == self.reason:  # an answer waits in the line
                link.reason = CUT
            link.finish(self.reason, now=True)

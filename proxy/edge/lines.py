"""The two lines of a link: what waits for a side, and its way out when it is due."""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import Protocol

from klamm.proxy.edge.ends import End
from klamm.proxy.edge.tap import Tap
from klamm.proxy.session.effects import To
from klamm.proxy.session.line import FULL, Item, Line, Out
from klamm.proxy.session.session import Session

SOON_FULL = FULL // 16  # the same while all connections together hold too much
OWN_FULL = 4 * FULL  # only klamm's own answers can make a line so long: the broker was paused long before


class Linked(Protocol):
    """The parts of a link that they need."""

    session: Session
    timers: dict[str, asyncio.TimerHandle]
    tap: Tap | None

    def side(self, to: To) -> End | None: ...
    def cut_now(self, reset: bool) -> None: ...


class Lines(dict[To, Line]):
    """A line for each side whose bytes may not all go at once; all go through it while it has some."""

    __slots__ = ("link", "size")

    def __init__(self, link: Linked) -> None:
        super().__init__()
        self.link = link
        self.size = 0  # bytes, as they are counted with the held ones

    def open(self, to: To) -> Line:
        """The line to a side."""
        if to not in self:
            self[to] = Line()
            self._source_is_direct(to, False)
        return self[to]

    def put(self, to: To, item: Item) -> None:
        """Behind all that waits for this side; at once if nothing does."""
        if to not in self:
            self._out(to, [item])  # type: ignore[list-item]
            return
        self[to].put(item, monotonic_ns())
        self.advance(to)

    def advance(self, to: To) -> None:
        """Write the items that the line lets go now, and set a timer for the rest."""
        line = self.get(to)
        if line is None or (side := self.link.side(to)) is None or side.gone:
            return
        now, timers = monotonic_ns(), self.link.timers
        out, wake = line.take(now)
        self._out(to, out)
        if (timer := timers.pop(to, None)) is not None:
            timer.cancel()
        if wake is not None and not side.gone:
            timers[to] = asyncio.get_running_loop().call_later((wake - now) / 1e9, self.advance, to)
        full = SOON_FULL if self._holds() else FULL
        for end, most in ((self._source(to), full), (side if to == "client" else None, OWN_FULL)):
            if end is not None and line.size > most:
                end.pause("line")
            elif end is not None and line.size <= most // 2:
                end.resume("line")
        if line.idle() and not side.gone:
            del self[to]
            self._source_is_direct(to, True)

    def stuck(self) -> bool:
        """Does something wait that never goes?"""
        return any(line.stuck() for line in self.values())

    def free(self) -> None:
        """The link is over: what waits goes nowhere, and no cycle waits for the garbage collector."""
        if self.size:
            self.clear()
            self._holds()
        if hasattr(self, "link"):
            del self.link

    def _source(self, to: To) -> End | None:
        return self.link.side("broker" if to == "client" else "client")

    def _source_is_direct(self, to: To, direct: bool) -> None:
        source = self._source(to)
        if source is not None:
            source.direct = direct

    def _holds(self) -> bool:
        """Count the bytes in lines with those that all connections hold. Is that too much?"""
        connection, before = self.link.session.connection, self.size
        self.size = sum(line.size for line in self.values())
        connection.holds(self.size - before)
        return 8 * connection.context.held.now >= 7 * connection.context.held.most

    def _out(self, to: To, out: list[Out]) -> None:
        side, link = self.link.side(to), self.link
        if side is None or side.gone:
            return
        for item in out:
            if item in ("fin", "rst"):
                link.cut_now(item == "rst")
                return
            elif item == "close":
                side.close()
            elif item == "eof":
                side.tell_end()
            elif not side.eof_sent:
                side.transport.write(item)  # type: ignore[arg-type]
                side.crowded()
                if link.tap is not None:
                    link.tap.sent(to, item)  # type: ignore[arg-type]

"""The paused frames of all connections, the time until which each waits, and decisions about them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from klamm.proxy.edge.link import Link
from klamm.proxy.session.effects import To
from klamm.proxy.session.paused import Decision, Paused, Resume

MOST, MOST_BYTES = 100, 64 << 20  # of all connections; a frame beyond them is not paused


@dataclass(frozen=True, slots=True, eq=False)
class Intercepted:
    """A paused frame with its number. Times are seconds since 1970."""

    number: int
    link: Link
    to: To
    paused: Paused
    since: float
    until: float
    timer: asyncio.TimerHandle


class Intercept:
    """`in_force`: does the rule of this name still act?"""

    def __init__(self, in_force: Callable[[str], bool]) -> None:
        self.in_force = in_force
        self.waiting: dict[int, Intercepted] = {}
        self.bytes = 0
        self.numbers = count(1)

    def pause(self, link: Link, to: To, frame: Paused) -> None:
        """Let a frame wait from now on. If there is no room for it, log that and let it go on."""
        own = [one.paused.size for one in self.waiting.values() if one.link is link]
        room, room_bytes = MOST - len(self.waiting), MOST_BYTES - self.bytes
        if len(own) >= room or sum(own) + frame.size > room_bytes:  # a connection leaves others as much
            message = (
                f"{len(self.waiting)} frames of {self.bytes:,} bytes are paused, {len(own)} of this "
                "connection: this one goes on"
            )
            link.host.say(link, "too_many_paused", frame.frame.api.name, message, {"rule": frame.pause.rule})
            link.resolve(to, frame, Resume())
            return
        number, wait_s, now = next(self.numbers), frame.pause.timeout_ns / 1e9, time.time()
        timer = asyncio.get_running_loop().call_later(wait_s, self._expire, number)
        self.waiting[number] = Intercepted(number, link, to, frame, now, now + wait_s, timer)
        self.bytes += frame.size

    def resolve(self, number: int, decision: Decision) -> None:
        """Carry out the decision about a frame. Raises KeyError, and the errors of Session.resolve."""
        one = self.waiting[number]
        one.link.resolve(one.to, one.paused, decision)
        self._forget(one)

    def forget(self, link: Link) -> None:
        """Forget the frames of a connection that has ended."""
        for one in [one for one in self.waiting.values() if one.link is link]:
            self._forget(one)

    def review(self) -> None:
        """Resume the frames whose rule no longer acts."""
        for one in list(self._without_rule()):
            self.resolve(one.number, Resume())

    def _without_rule(self) -> Iterator[Intercepted]:
        return (one for one in self.waiting.values() if not self.in_force(one.paused.pause.rule))

    def _expire(self, number: int) -> None:
        one = self.waiting[number]
        frame = one.paused.frame
        message = f"nobody resolved {number} in {one.paused.pause.timeout_ns / 1e9:g} s: it goes on as it is"
        one.link.host.say(one.link, "unresolved", frame.api.name, message, {"rule": one.paused.pause.rule})
        self.resolve(number, Resume())

    def _forget(self, one: Intercepted) -> None:
        one.timer.cancel()
        del self.waiting[one.number]
        self.bytes -= one.paused.size

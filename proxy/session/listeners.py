"""Picks the listeners of an exchange from its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from klamm.decoders import API, DecodeError
from klamm.rules.frame import Frame, Peer
from klamm.rules.plan import Plan


class Listener(Protocol):
    """Is shown exchanges. `take` must return at once. One that is `full` is told how many it `missed`: then
    nothing else is done for it.
    """

    full: bool

    def take(self, one: Any) -> None: ...
    def missed(self, count: int) -> None: ...


Listeners = tuple[Listener, ...]


def have_room(listeners: Listeners) -> bool:
    """Has any of them room for one more exchange?"""
    return any(not listener.full for listener in listeners)


def listeners_of(
    plan: Plan, client_id: str | None, body: bytes, peer: Peer, now: int, names: Any
) -> Listeners:
    """Those who want exchanges whose request begins with these bytes of a body."""
    frame = Frame(API[plan.key], plan.version, "request", body, client_id, peer, now)
    frame.names = names
    return tuple(listener for test, listener in plan.listeners if test is None or holds(test, frame))


def holds(test: Callable[[Frame], bool | None], frame: Frame) -> bool:
    """Does the condition hold for a frame that can be read?"""
    try:
        return bool(test(frame))
    except DecodeError:
        return False

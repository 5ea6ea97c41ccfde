"""Picks the listeners of an exchange from its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from klamm.decoders import API, DecodeError
from klamm.rules.frame import Frame, Peer
from klamm.rules.plan import Plan


class Listener(Protocol):
    """A receiver of exchanges, with `bodies` or without. `take` must return at once. While it is `full`, it
    gets no exchanges: `missed` gets their number.
    """

    full: bool
    bodies: bool

    def take(self, one: Any) -> None: ...
    def missed(self, count: int) -> None: ...


Listeners = tuple[Listener, ...]


def have_room(listeners: Listeners) -> bool:
    """Has any of them room for one more exchange?"""
    return any(not listener.full for listener in listeners)


def want_bodies(listeners: Listeners) -> bool:
    """Has any of them that takes bodies room for one more exchange?"""
    return any(listener.bodies and not listener.full for listener in listeners)


def listeners_of(
    plan: Plan, client_id: str | None, body: bytes, peer: Peer, now: int, names: Any
) -> Listeners:
    """The listeners of an exchange, picked by its request. `body`: its first bytes, or all."""
    frame = Frame(API[plan.key], plan.version, "request", body, client_id, peer, now)
    frame.names = names
    return tuple(listener for test, listener in plan.listeners if test is None or holds(test, frame))


def holds(test: Callable[[Frame], bool | None], frame: Frame) -> bool:
    """Does the condition hold? Not for a frame that does not decode."""
    try:
        return bool(test(frame))
    except DecodeError:
        return False

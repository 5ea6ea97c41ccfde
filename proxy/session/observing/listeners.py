"""Picks the listeners of an exchange from its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from klamm.decoders import DecodeError
from klamm.rules.frame import Frame
from klamm.rules.plan import Plan


class Listener(Protocol):
    """A receiver of exchanges, with `bodies` or without. `take` must return at once. While it is `full`, it
    gets no exchanges: `missed` gets their number, of the session where it makes none for anybody.
    """

    full: bool
    bodies: bool

    def take(self, one: Any) -> None: ...
    def missed(self, count: int) -> None: ...


Listeners = tuple[Listener, ...]


def have_room(listeners: Listeners) -> bool:
    """Has any of them room for one more exchange?"""
    return any(not listener.full for listener in listeners)


def missed(listeners: Listeners, count: int) -> None:
    """Nobody gets these exchanges."""
    if count:
        for listener in listeners:
            listener.missed(count)


def want_bodies(listeners: Listeners) -> bool:
    """Has any of them that takes bodies room for one more exchange?"""
    return any(listener.bodies and not listener.full for listener in listeners)


def listeners_of(plan: Plan, request: Frame) -> tuple[Listeners, bool]:
    """The listeners of an exchange, picked by its request, of which the body has begun; and whether the
    condition of another one reads more than that, or what does not decode.
    """
    found: list[Listener] = []
    unread = False
    for test, listener in plan.listeners:
        try:
            if test is None or test(request):
                found.append(listener)
        except DecodeError:
            unread = True
    return tuple(found), unread


def holds(test: Callable[[Frame], bool | None], frame: Frame) -> bool:
    """Does the condition hold? Not for a frame that does not decode."""
    try:
        return bool(test(frame))
    except DecodeError:
        return False

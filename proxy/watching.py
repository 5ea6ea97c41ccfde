"""Who is told of an exchange, decided as its request is read, and remembered with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from klamm.decoders import API, DecodeError
from klamm.rules.frame import Frame, Peer

if TYPE_CHECKING:
    from klamm.proxy.connection import Flow


class Sink(Protocol):
    """Where exchanges go. `take` must return at once. One that is `full` is told how many it `missed`: then
    nothing else is done for them.
    """

    full: bool

    def take(self, one: Any) -> None: ...
    def missed(self, count: int) -> None: ...


Sinks = tuple[Sink, ...]


def wanting(sinks: Sinks) -> bool:
    """Is there room in any of them?"""
    return any(not sink.full for sink in sinks)


def watchers(flow: Flow, body: bytes, peer: Peer, now: int, names: Any) -> Sinks:
    """Those who want to hear of a request that begins so."""
    plan = flow.plan
    frame = Frame(API[plan.key], plan.version, "request", body, flow.lane.client_id, peer, now)
    frame.names = names
    return tuple(sink for test, sink in plan.watched if test is None or holds(test, frame))


def holds(test: Callable[[Frame], bool | None], frame: Frame) -> bool:
    """Of a frame that can be read."""
    try:
        return bool(test(frame))
    except DecodeError:
        return False

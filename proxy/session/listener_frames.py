"""The frames of exchanges, for listeners that take bodies."""

from __future__ import annotations

from typing import Any

from klamm.proxy.session.connection import Connection
from klamm.proxy.session.framed import body_offset
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.listeners import Listeners, want_bodies
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.rules.frame import Frame


def must_wait(connection: Connection, listeners: Listeners, size: int, there: int) -> bool:
    """Must a frame of `size` bytes be whole before it goes on, since a listener takes its body? Not if it may
    not be held. `there`: bytes of it that have come.
    """
    if there >= size or size > connection.context.held_limit or not want_bodies(listeners):
        return False
    return connection.may_hold(there)


def request_frame(
    rules: RuleOrders | None, memory: ApiMemory, data: bytes, pos: int, length: int, now: int
) -> Frame | None:
    """The request at `pos`; None where it has not come whole."""
    header = memory.header
    if rules is None or header is None or pos + 4 + length > len(data):
        return None
    head = 12 + len(header)
    return rules.frame(memory, "request", head, data[pos + head : pos + 4 + length], now)


def response_frame(
    rules: RuleOrders, memory: ApiMemory, came: bytes, replaced: list[Any] | None, now: int, request: Frame
) -> Frame:
    """A response as it came, or with its addresses replaced: in these pieces."""
    start = body_offset(came, memory.plan.response_tags)
    if replaced is None:
        return rules.frame(memory, "response", start, came[start:], now, request)
    whole = b"".join([piece for piece in replaced if isinstance(piece, bytes | memoryview)])
    frame = rules.frame(memory, "response", start, whole[start:], now, request)
    frame.came = came[start:]
    return frame

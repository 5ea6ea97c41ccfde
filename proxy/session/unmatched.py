"""Responses that do not have the correlation id of the oldest request."""

from __future__ import annotations

from klamm.decoders.headers import answered_with_0
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.pending import PendingRequests


def take_later(connection: Connection, oldest: PendingRequests, correlation: int) -> bool:
    """If the response answers a later request, make that the oldest. False if it answers none; True also
    where Kafka answers the oldest with the correlation id 0.
    """
    memory = oldest.memory
    if memory is None or (connection.tokens is not None and connection.tokens.awaited > 0):
        return False
    wanted = connection.pending.wanting(correlation, connection.turn)
    if wanted == 0:
        return correlation == 0 and answered_with_0(memory.plan.key, memory.plan.version)
    if wanted > 1:
        return False
    run = connection.pending.bring_forward(correlation, connection.turn)
    connection.turn = 0
    name = run.memory.plan.name if run.memory is not None else ""
    message = f"an answer to {name} came before that to {memory.plan.name}, which was asked before"
    connection.problem("out_of_order", name, message)
    return True


def close_unasked(connection: Connection, correlation: int) -> None:
    """End the connection: the response answers no request."""
    text = f"a response with correlation id {correlation}"
    oldest = connection.pending.oldest
    if oldest is None:
        connection.close("response", "unexpected_response", "", f"{text} that nobody asked for")
        return
    name, expected = oldest.memory.plan.name if oldest.memory else "", oldest.ids[connection.turn]
    several = connection.pending.wanting(correlation, connection.turn) > 1
    whose = "which several requests have" if several else "which no request has"
    message = f"{text}, {whose}; the oldest is {name} with {expected}"
    connection.close("response", "correlation_mismatch", name, message)

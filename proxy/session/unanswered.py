"""Requests without an answer: those that rules keep from it, and those of a connection that ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from klamm.proxy.session.connection import Connection
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.listeners import have_room, missed
from klamm.proxy.session.observing.summaries import NO_ERRORS
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.rewriting.api_versions import range_of
from klamm.rules.orders import OnAnswer, Order
from klamm.rules.plan import Plan

NEVER_ANSWERED = (
    "it has answered no such request of this client; brokers close the connection on a version that they do "
    "not take, on what comes before TLS or SASL where they require it, and on a request that is larger than "
    "socket.request.max.bytes; they close connections too when they stop, and where an answer takes longer "
    "than connections.max.idle.ms"
)
ANSWERED_BEFORE = (
    "it has answered such requests before; brokers close their connections when they stop, and one on which "
    "an answer takes longer than connections.max.idle.ms"
)
BEFORE_SASL = (
    "the cluster wants SASL, and the client has not sent SaslHandshake: set its security.protocol to "
    "SASL_PLAINTEXT or SASL_SSL, and its sasl.mechanism"
)
TOO_OLD = "it takes {name} v{first} to v{last}: the client is too old for it"
TOO_NEW = (
    "it takes {name} v{first} to v{last}: the client goes by a setting (broker.version.fallback, "
    "api_version), or by the versions of another broker"
)
REFUSED = "Kafka does so where it refuses the credentials of a client that begins with SaslHandshake 0"


MOST_TOLD = 1000  # of a connection: the others have to wait meanwhile


def awaiting(connection: Connection) -> Iterator[tuple[ApiMemory, PendingRequests, Sequence[int]]]:
    """The pending requests, oldest first, and the correlation ids of each that have no answer yet, without
    those whose answer klamm makes or drops.
    """
    answered = connection.turn
    for run in connection.pending:
        dropped = run.answer_orders is not None and run.answer_orders.swallow
        if run.memory is not None and not dropped and len(run.ids) > answered:
            yield run.memory, run, run.ids[answered:]
        answered = 0


def tell(connection: Connection, how: str, waiting: list[tuple[ApiMemory, int]], token: bool) -> None:
    """Count and log that the broker ended the connection. `how`: "closed" or "reset"; `waiting`: as of
    Session.unanswered; `token`: does a SASL token wait for its answer?
    """
    fields: dict[str, Any] | None = None
    if waiting:
        memory, _ = waiting[0]
        plan, more = memory.plan, sum([count for _, count in waiting]) - 1
        api, what = plan.name, f"{plan.name} v{plan.version}" + (f" and {more} more" if more else "")
        if connection.context.asks_sasl and not connection.begins_sasl and connection.tokens is None:
            why = BEFORE_SASL
        elif wrong := _outside(connection, plan):
            why = wrong
        else:
            why = ANSWERED_BEFORE if memory.counters.responses else NEVER_ANSWERED
        fields = {"version": plan.version, "client_id": memory.client_id}
    elif token:
        api, what, why = "SaslHandshake", "a SASL token", REFUSED
    else:
        return
    line = f"the broker {how} the connection instead of answering {what}: {why}"
    connection.problem("closed_unanswered", api, line, fields)


def tell_at_once(connection: Connection, run: PendingRequests, orders: Sequence[Order]) -> None:
    """Give a request to which the client gets no answer to the log and to listeners."""
    for order in orders:
        if isinstance(order, OnAnswer) and order.never is not None:
            order.never("", 0)
    memory = run.memory
    if memory is not None and (memory.plan.logged or run.summary.listeners):
        connection.exchange(memory, run, run.first, NO_ERRORS, None, None)


def tell_over(connection: Connection, reason: str, now: int) -> None:
    """The connection has ended for this reason: give the requests that await their answers to the log and to
    listeners, the oldest MOST_TOLD of them.
    """
    left, connection.treatment = MOST_TOLD, None
    for memory, run, ids in awaiting(connection):
        orders, listeners, waited = run.answer_orders, run.summary.listeners, now - run.arrived
        told = ids[:left]
        left -= len(told)
        for act in () if orders is None else orders.acts:
            if act.never is not None:
                act.never(reason if told else None, waited)
        if (memory.plan.logged and not run.told_at_once) or have_room(listeners):
            more = {"unanswered": reason, "waited_ns": waited}
            for correlation_id in told:
                connection.exchange(memory, run, correlation_id, NO_ERRORS, None, None, more=more)
            missed(listeners, len(ids) - len(told))
        else:
            missed(listeners, len(ids))


def _outside(connection: Connection, plan: Plan) -> str:
    """What a broker says that has told its versions, and was asked for another one; else nothing."""
    version, body = connection.context.offers.get(connection.broker, (0, b""))
    found = range_of(plan.key, body, version)
    if found is None or found[0] <= plan.version <= found[1]:
        return ""
    text = TOO_OLD if plan.version < found[0] else TOO_NEW
    return text.format(name=plan.name, first=found[0], last=found[1])

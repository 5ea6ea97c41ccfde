"""The spans of an exchange: the client's view of klamm, and klamm's view of the broker.

Attributes are those of OpenTelemetry's conventions for messaging and for Kafka, and klamm's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from klamm.client.types import Exchange
from klamm.decoders.text import valid_text
from klamm.proxy.control.exchange import Seen, exchange_of
from klamm.proxy.traces.parents import Carrier, carried

NS, MS = 1_000_000_000, 1_000_000
LONGEST = 255  # characters of a text that clients choose
MOST_NAMED = 20  # topics, errors and rules in one attribute
# Of the conventions; other APIs concern no messages, and have no type.
TYPES = {
    "Produce": "send",
    "Fetch": "receive",
    "ShareFetch": "receive",
    "OffsetCommit": "settle",
    "TxnOffsetCommit": "settle",
    "ShareAcknowledge": "settle",
}
EXTRACT = TraceContextTextMapPropagator().extract
Address = tuple[str, int]


class Traced(NamedTuple):
    """An exchange, and the address of its broker as far as it is known."""

    seen: Seen
    broker: Address | None


class Times(NamedTuple):
    """Of an exchange, in ns since 1970: when its request came, went on to the broker, was answered by it,
    and when the answer went on to the client.
    """

    came: int
    asked: int
    answered: int
    left: int


def spans_of(provider: TracerProvider) -> Callable[[Traced], None]:
    """A function that makes the spans of an exchange; the provider's processors get them."""
    tracer = provider.get_tracer("klamm")

    def make(traced: Traced) -> None:
        seen, exchange = traced.seen, exchange_of(traced.seen)
        times, own = times_of(seen, exchange), exchange.origin == "klamm" and not exchange.latency_ms
        messages = carried(seen.request, seen.response) if seen.request is not None else None
        shared = attributes(exchange)
        if messages is not None and messages.records:
            shared["messaging.batch.message_count"] = messages.records
        parent, links = _of_carriers([] if messages is None else messages.carriers)
        name = exchange.api
        if "messaging.destination.name" in shared:
            name += " " + str(shared["messaging.destination.name"])
        of_client = shared | _client(exchange)
        outer = tracer.start_span(name, parent, SpanKind.SERVER, of_client, links, times.came)
        if exchange.response_bytes is not None and not own:
            inside, of_broker = set_span_in_context(outer, Context()), shared | _broker(traced.broker)
            inner = tracer.start_span(name, inside, SpanKind.CLIENT, of_broker, (), times.asked)
            if exchange.origin == "broker":
                _fail(inner, exchange.errors)
            inner.end(times.answered)
        _fail(outer, exchange.errors)
        outer.end(times.left)

    return make


def times_of(seen: Seen, exchange: Exchange) -> Times:
    """The delays of rules are those that they asked for."""
    answered = int(seen.time * NS)
    came = answered - (seen.fields["latency_ns"] or seen.fields.get("waited_ns", 0))
    before, after = (round(ms * MS) for ms in (exchange.request_delay_ms, exchange.response_delay_ms))
    return Times(came, min(came + before, answered), answered, answered + after)


def attributes(exchange: Exchange) -> dict[str, Any]:
    """The attributes of both spans."""
    found: dict[str, Any] = {
        "messaging.system": "kafka",
        "messaging.operation.name": exchange.api,
        "messaging.operation.type": TYPES.get(exchange.api),
        "messaging.client.id": _text(exchange.client_id),
        "messaging.consumer.group.name": _text(exchange.group),
        "klamm.cluster": exchange.cluster,
        "klamm.broker": exchange.broker,
        "klamm.api.name": exchange.api,
        "klamm.api.version": exchange.version,
        "klamm.connection.id": exchange.connection_id,
        "klamm.origin": exchange.origin,
        "klamm.request.size": exchange.request_bytes,
        "klamm.response.size": exchange.response_bytes,
        "klamm.correlation_id": exchange.correlation_id,
        "klamm.principal": _text(exchange.principal),
        "klamm.unanswered": exchange.unanswered or None,
    }
    if len(exchange.topics) == 1:
        ((topic, partitions),) = exchange.topics.items()
        found["messaging.destination.name"] = _text(topic)
        if len(partitions) == 1:
            found["messaging.destination.partition.id"] = str(partitions[0])
    elif exchange.topics:
        found["klamm.topics"] = [_text(topic) for topic in list(exchange.topics)[:MOST_NAMED]]
    if exchange.rules:
        found["klamm.rule"] = exchange.rules[:MOST_NAMED]
    if exchange.errors:
        found["klamm.errors"] = list(exchange.errors)[:MOST_NAMED]
    return {name: value for name, value in found.items() if value is not None}


def _client(exchange: Exchange) -> dict[str, Any]:
    host, _, port = exchange.connection.rpartition(":")
    host = host.strip("[]")
    return {
        "client.address": host,
        "client.port": int(port),
        "network.peer.address": host,
        "network.peer.port": int(port),
    }


def _broker(address: Address | None) -> dict[str, Any]:
    return {} if address is None else {"server.address": address[0], "server.port": address[1]}


def _fail(span: Span, errors: Mapping[str, int]) -> None:
    """Say that the answer has error codes; its `error.type` is the most frequent one."""
    if errors:
        span.set_attribute("error.type", max(errors, key=lambda name: errors[name]))
        span.set_status(Status(StatusCode.ERROR))


def _of_carriers(carriers: list[Carrier]) -> tuple[Context, list[Link]]:
    """The parent that the first tells, if it can be read, and links to the others."""
    contexts = [EXTRACT(carrier, Context()) for carrier in carriers]
    valid = [each for each in contexts if _told(each).is_valid]
    return (valid[0] if valid else Context()), [Link(_told(each)) for each in valid[1:]]


def _told(context: Context) -> SpanContext:
    return get_current_span(context).get_span_context()


def _text(text: str | None) -> str | None:
    return None if text is None else valid_text(text)[:LONGEST]

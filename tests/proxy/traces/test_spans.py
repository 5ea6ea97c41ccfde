"""The spans of an exchange: names, kinds, times, attributes, and the traces that its records go with."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.records import Batch, Record, write
from klamm.proxy.control.exchange import Seen, seen
from klamm.proxy.traces.parents import MOST, carried
from klamm.proxy.traces.sdk import maker
from klamm.proxy.traces.spans import Traced
from klamm.rules.frame import Frame, Peer, Treatment

MS = 1_000_000
NOW = 1_700_000_000_000_000_000
FIELDS = {
    "api": "Produce",
    "version": 9,
    "client_id": "app",
    "correlation_id": 7,
    "topics": {"orders": [2]},
    "errors": [],
    "request_bytes": 100,
    "response_bytes": 50,
    "latency_ns": 30 * MS,
    "origin": "broker",
    "cluster": "kafka",
    "broker": "3",
    "connection": "[::1]:35218",
    "connection_id": 2,
}
PEER = Peer("kafka", "3", "127.0.0.1:35218", "")
TRACE = "4bf92f3577b34da6a3ce929d0e0e{:04x}"


def spans(seen: Seen, broker: Any = ("kafka-3", 9092)) -> list[Any]:
    """Those of one exchange, by kind: the broker's first."""
    found, failed = maker()([Traced(seen, broker)])
    assert failed == 0
    return found


def of(**fields: Any) -> list[Any]:
    return spans(Seen(NOW / 1e9, FIELDS | fields))


def test_an_exchange_is_a_span_of_the_client_and_within_it_one_of_the_broker() -> None:
    inner, outer = of()
    assert [each.name for each in (outer, inner)] == ["Produce orders"] * 2
    assert (outer.kind.name, inner.kind.name) == ("SERVER", "CLIENT")
    assert outer.parent is None
    assert inner.parent.span_id == outer.context.span_id
    assert inner.parent.trace_id == outer.context.trace_id
    assert (outer.end_time - outer.start_time, outer.end_time) == (30 * MS, NOW)
    assert dict(inner.attributes) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "Produce",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "2",
        "messaging.client.id": "app",
        "server.address": "kafka-3",
        "server.port": 9092,
        "klamm.cluster": "kafka",
        "klamm.broker": "3",
        "klamm.api.name": "Produce",
        "klamm.api.version": 9,
        "klamm.connection.id": 2,
        "klamm.correlation_id": 7,
        "klamm.origin": "broker",
        "klamm.request.size": 100,
        "klamm.response.size": 50,
    }
    assert outer.attributes["client.address"] == outer.attributes["network.peer.address"] == "::1"
    assert outer.attributes["client.port"] == 35218
    assert "server.address" not in outer.attributes


def test_delays_of_rules_are_outside_of_the_brokers_span() -> None:
    before, after = Treatment(), Treatment()
    before.rules, before.delay_ns = ["late", "late-too"], 10 * MS
    after.rules, after.delay_ns = ["late"], 5 * MS
    inner, outer = of(treatments=(before, after))
    assert (inner.start_time, inner.end_time) == (NOW - 20 * MS, NOW)
    assert (outer.start_time, outer.end_time) == (NOW - 30 * MS, NOW + 5 * MS)
    assert outer.attributes["klamm.rule"] == ("late", "late-too")


def test_an_answer_of_klamms_own_has_no_span_of_the_broker_and_no_answer_has_none() -> None:
    [own] = of(origin="klamm", latency_ns=0, errors=[(None, 6), ("orders", 6), (None, 3)])
    assert own.status.status_code.name == "ERROR"
    assert own.attributes["error.type"] == "NOT_LEADER_OR_FOLLOWER"
    assert set(own.attributes["klamm.errors"]) == {"NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"}
    [one_way] = of(response_bytes=None, latency_ns=None)
    assert one_way.start_time == one_way.end_time
    assert one_way.status.status_code.name == "UNSET"


def test_a_request_that_got_no_answer_lasts_until_its_connection_ended_and_says_why() -> None:
    why = {"unanswered": "closed by client", "waited_ns": 20 * MS}
    [span] = of(response_bytes=None, latency_ns=None, **why)
    assert (span.start_time, span.end_time) == (NOW - 20 * MS, NOW)
    assert span.attributes["klamm.unanswered"] == "closed by client"


def test_an_error_that_klamm_put_into_an_answer_is_not_the_brokers() -> None:
    inner, outer = of(origin="klamm", errors=[(None, 6)])
    assert (inner.status.status_code.name, outer.status.status_code.name) == ("UNSET", "ERROR")
    inner, outer = of(errors=[(None, 6)])
    assert (inner.status.status_code.name, outer.status.status_code.name) == ("ERROR", "ERROR")


def test_other_apis_have_no_type_and_several_topics_no_destination() -> None:
    _, outer = of(api="Metadata", topics={"a": [], "b": []}, group="g", principal="User:CN=app")
    assert outer.name == "Metadata"
    assert "messaging.operation.type" not in outer.attributes
    assert "messaging.destination.name" not in outer.attributes
    assert outer.attributes["klamm.topics"] == ("a", "b")
    assert outer.attributes["messaging.consumer.group.name"] == "g"
    assert outer.attributes["klamm.principal"] == "User:CN=app"


@pytest.mark.parametrize("client_id", ["\udcff", "x" * 40_000, "\0\n\x1b[31m", None])
def test_any_text_of_clients_is_exported(client_id: str | None) -> None:
    _, outer = of(client_id=client_id)
    text = outer.attributes.get("messaging.client.id", "")
    assert len(str(text).encode()) <= 255


def test_an_exchange_that_cannot_be_made_into_spans_is_counted() -> None:
    assert maker()([(Seen(0.0, {}), None)]) == ([], 1)


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    assert of()[0].resource.attributes["service.name"] == "klamm"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gate")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    resource = of()[0].resource.attributes
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("gate", "test")
    assert resource["service.version"]


def record(number: int, state: bytes | None = None) -> Record:
    parent = f"00-{TRACE.format(number)}-00f067aa0ba902b7-01".encode()
    more = () if state is None else (("tracestate", state),)
    return Record(value=b"secret", headers=(("traceparent", parent), *more))


def produce(*batches: bytes) -> Frame:
    data = [{"index": number, "records": each} for number, each in enumerate(batches)]
    values: dict[str, Any] = {"transactional_id": None, "acks": -1, "timeout_ms": 1}
    values["topic_data"] = [{"name": "orders", "partition_data": data}]
    body = encode(values, 0, 9, "request")
    frame = Frame(API["Produce"], 9, "request", body, "app", PEER, 1)
    frame.header_bytes = 20
    return frame


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_the_first_record_is_the_parent_and_the_others_are_links(codec: str) -> None:
    batch = write(
        Batch(codec=codec), [Record(value=b"x"), record(1, b"k=v"), record(2), record(1), record(3)]
    )
    [outer] = spans(seen(produce(batch), None))
    assert outer.parent.is_remote
    assert f"{outer.context.trace_id:032x}" == TRACE.format(1)
    assert outer.context.trace_state["k"] == "v"
    assert [f"{link.context.trace_id:032x}" for link in outer.links] == [TRACE.format(n) for n in (2, 3)]
    assert outer.attributes["messaging.batch.message_count"] == 5
    assert b"secret" not in repr(outer.to_json()).encode()


def test_links_are_bounded() -> None:
    found = carried(produce(write(Batch(), [record(number) for number in range(1000)])))
    assert (found.records, len(found.carriers)) == (1000, MOST)


@pytest.mark.parametrize(
    "records",
    [
        b"\xff" * 80,
        write(Batch(), [Record(headers=(("traceparent", b"\xff\xfe"),))]),
        write(Batch(), [Record(headers=(("traceparent", b"00-0-0-0"),))]),
        write(Batch(magic=1), [Record(value=b"old")]),
        write(Batch(), [Record(headers=(("traceparent", None),))]),
    ],
)
def test_records_that_tell_no_trace_begin_one(records: bytes) -> None:
    [outer] = spans(seen(produce(records), None))
    assert outer.parent is None
    assert outer.links == ()


def test_a_record_that_is_not_sampled_is_followed_in_that() -> None:
    parent = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    frame = produce(write(Batch(), [Record(headers=(("traceparent", parent),))]))
    assert spans(seen(frame, None)) == []

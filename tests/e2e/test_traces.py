"""Traces of a real cluster's exchanges, which go on from those of a real client's records."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e import topics
from tests.e2e.klamm_process import klamm_in_front_of
from tests.fakes.collector import collector

pytestmark = pytest.mark.brokers

TOPIC, COUNT = "traced", 20
TRACE = "4bf92f3577b34da6a3ce929d0e0e{:04x}"
SECRET = b"nobody-reads-this"


def test_what_a_client_produces_and_consumes_is_in_the_traces_of_its_records(
    kafka: Cluster, tmp_path: Path
) -> None:
    topics.create(kafka.bootstrap(), TOPIC, [[2]])
    with collector() as found:
        file = tmp_path / "klamm.yaml"
        file.write_text(f"traces: {{endpoint: '{found.url}', sample: 100%, parents: true}}\n")
        options = ("--config", str(file), "--state", "none", "--workers", "2")
        with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", tmp_path / "log", *options) as klamm:
            producer = Producer({"bootstrap.servers": klamm.bootstrap, "client.id": "shop", "linger.ms": 200})
            for number in range(COUNT):
                parent = f"00-{TRACE.format(number)}-00f067aa0ba902b7-01".encode()
                producer.produce(TOPIC, SECRET, headers=[("traceparent", parent)])
            producer.flush(60)
            of_group = {"group.id": "billing", "client.id": "billing", "auto.offset.reset": "earliest"}
            consumer = Consumer({"bootstrap.servers": klamm.bootstrap, **of_group})
            consumer.subscribe([TOPIC])
            taken: list[bytes | None] = []

            def consumed() -> bool:
                taken.extend(each.value() for each in consumer.consume(COUNT, 1.0) if not each.error())
                return len(taken) >= COUNT

            wait_for(consumed, "the records", [klamm.process])
            consumer.close()
            wait_for(lambda: found.of("LeaveGroup", "client"), "the last span", [klamm.process])
            assert (
                sum(row["count"] for row in klamm.counters()["traced"] if row["outcome"] != "exported") == 0
            )
    assert taken == [SECRET] * COUNT
    for api, client in (("Produce", "shop"), ("Fetch", "billing")):
        spans = [each for each in found.of(api, "server") if each.parent]
        traces = {trace for each in spans for trace in (each.trace, *each.links)}
        assert traces == {TRACE.format(number) for number in range(COUNT)}
        assert {each.attributes["messaging.client.id"] for each in spans} == {client}
        assert {each.attributes["messaging.destination.name"] for each in spans} == {TOPIC}
        assert sum(each.attributes["messaging.batch.message_count"] for each in spans) == COUNT
        inside = [each for each in found.of(api, "client") if each.parent in {one.id for one in spans}]
        address = kafka.address(2)
        assert {(each.attributes["server.address"], each.attributes["server.port"]) for each in inside} == {
            address
        }
    assert len({each.resource["service.instance.id"] for each in found.spans}) <= 2
    assert not any(SECRET in body for body in found.bodies)

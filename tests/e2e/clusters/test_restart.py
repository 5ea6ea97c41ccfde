"""Behind SASL klamm may not ask for the brokers. Clients that know brokers' addresses only, and never go back
to bootstrap.servers (Java up to 3.9), find them again when klamm has been restarted.
"""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.brokers.jars import compiled, java
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import free_block, wait_for
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT, PER_S, PARTITIONS = 600, 60, 6
JARS = {"java-2.8.2": "2.8.2", "java-3.9.1": "oracle-3.9.1"}


def _producer(client: str, bootstrap: str, topic: str) -> list[str]:
    jars = JARS[client]
    classes = compiled(jars, programs.FOLDER / "java" / "kafka_2_8")
    return java(jars, "SteadyProducer", bootstrap, topic, str(COUNT), str(PER_S), classes=classes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("remembering", ["state", "range"])
@pytest.mark.parametrize("client", JARS)
def test_a_producer_behind_sasl_survives_a_restart_of_klamm(
    client: str, remembering: str, kafka: Cluster, inside: Namespace, tmp_path: Path
) -> None:
    topic = f"restart-{client}-{remembering}"
    topics.create(kafka.bootstrap(), topic, topics.spread(PARTITIONS))
    first = free_block(inside.host)
    options = {
        "state": ("--listen", f"{inside.host}:{first}", "--state", str(tmp_path / "state")),
        "range": ("--state", "none"),  # klamm_in_front_of writes the range of ports in full
    }[remembering]
    bootstrap = kafka.bootstrap("SASL_PLAINTEXT")

    def acknowledged(count: int) -> bool:
        return f"acknowledged so far: {count}".encode() in producer.log.read_bytes()

    def start(name: str) -> AbstractContextManager[Klamm]:
        return klamm_in_front_of(bootstrap, inside.host, tmp_path / name, *options, first=first, ready=False)

    with start("before.log") as klamm:
        klamm.wait_until_listening()
        producer = inside.start(tmp_path / "producer.log", *_producer(client, klamm.bootstrap, topic))
        wait_for(lambda: acknowledged(100), "records acknowledged", [producer, klamm.process])
    with start("after.log") as klamm:
        wait_for(lambda: not producer.running, "the producer's end", [klamm.process], timeout_s=90)
        led_elsewhere = b"led_elsewhere" in klamm.process.log.read_bytes()
    [result] = programs.results(producer.log.read_text())
    assert result == {"acknowledged": COUNT, "failed": 0}, producer.tail()
    assert led_elsewhere == (remembering == "range")

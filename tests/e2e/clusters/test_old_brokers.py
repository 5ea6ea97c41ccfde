"""Kafka 0.8.2.2 and 0.10.1.1 through klamm, with clients that still speak to them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.brokers.namespace import Namespace
from tests.brokers.zookeeper import OldCluster
from tests.clients import programs, records
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 100
ACKS = ("all", "1", "0")
CLIENTS = {"0.8.2.2": ("kafka-python", "java-0.8"), "0.10.1.1": ("kafka-python", "librdkafka")}


@pytest.fixture(scope="module")
def old_klamm(
    old_kafka: OldCluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Klamm]:
    """klamm in front of the old cluster."""
    log = tmp_path_factory.mktemp(f"klamm-{old_kafka.version}") / "klamm.log"
    with klamm_in_front_of(old_kafka.bootstrap(), inside.host, log, "--log", "all") as klamm:
        yield klamm


@pytest.mark.parametrize("which", [0, 1], ids=["kafka-python", "another client"])
def test_everything_produced_is_consumed_byte_for_byte(
    which: int, old_kafka: OldCluster, old_klamm: Klamm, inside: Namespace
) -> None:
    client = CLIENTS[old_kafka.version][which]
    topic = f"old-{client}"
    api_version = "0.8.2" if old_kafka.version == "0.8.2.2" else None
    shared: dict[str, Any] = {"topic": topic, "headers": False, "api_version": api_version}
    actions: list[dict[str, Any]] = [
        {"do": "produce", "acks": acks, "seed": acks, "count": COUNT, "compression": compression, **shared}
        for acks, compression in zip(ACKS, ("none", "gzip", "none"), strict=True)
    ]
    actions.append({"do": "consume", "count": len(ACKS) * COUNT, "group": topic, **shared})
    lines = programs.results(
        inside.run(*programs.command(client, old_klamm.bootstrap, *actions), timeout_s=90)
    )
    wanted = [mark for acks in ACKS for mark in records.expected(topic, acks, range(COUNT), headers=False)]
    assert [line["acknowledged"] for line in lines[:3]] == [COUNT] * 3
    assert (lines[3]["count"], lines[3]["digest"]) == (len(wanted), records.digest(wanted))

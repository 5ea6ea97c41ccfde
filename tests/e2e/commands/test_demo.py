"""`klamm demo` on a cluster of somebody's own."""

import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from klamm.cli.demo.traffic import TOPICS
from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, wait_for

pytestmark = pytest.mark.brokers


def demo_topics(bootstrap: str) -> set[str]:
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics
    return {name for name in found if name.startswith("klamm-demo-")}


def test_a_demo_on_a_cluster_of_yours_makes_its_topics_and_removes_them(
    kafka: Cluster, tmp_path: Path
) -> None:
    words = ["demo", "--bootstrap", kafka.bootstrap(), "--seconds", "15"]
    demo = Process([sys.executable, "-m", "klamm.cli", *words], tmp_path / "demo.log")
    wait_for(lambda: demo_topics(kafka.bootstrap()) >= set(TOPICS), "the demo's topics", [demo])
    assert demo.child.wait(90) == 0, demo.tail()
    assert "ending the clients, removing their topics" in demo.log.read_text()
    assert demo_topics(kafka.bootstrap()) == set()

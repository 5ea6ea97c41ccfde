"""`klamm demo` on a cluster of somebody's own."""

import sys

import pytest
from confluent_kafka.admin import AdminClient

from tests.brokers.kraft import Cluster
from tests.examples.programs import said

pytestmark = pytest.mark.brokers


def demo_topics(bootstrap: str) -> set[str]:
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics
    return {name for name in found if name.startswith("klamm-demo-")}


def test_a_demo_on_a_cluster_of_yours_makes_its_topics_and_removes_them(kafka: Cluster) -> None:
    output = said(
        sys.executable, "-m", "klamm.cli", "demo", "--bootstrap", kafka.bootstrap(), "--seconds", "6"
    )
    assert "klamm-demo-orders" in output
    assert "ending the clients, removing their topics" in output
    assert demo_topics(kafka.bootstrap()) == set()

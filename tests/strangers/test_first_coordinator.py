"""Kafka 0.8.2.2 without a topic: it answers FindCoordinator 0 with correlation id 0."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.brokers.wire import receive_exactly
from tests.brokers.zookeeper import old_cluster
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers

REQUEST = bytes.fromhex("00000010 000a 0000 00000007 0003 617070 0001 67")  # correlation id 7, group "g"
ANSWER = bytes.fromhex("00000010 00000000 000f ffffffff 0000 ffffffff")  # id 0, COORDINATOR_NOT_AVAILABLE


def test_the_answer_with_id_0_reaches_the_client(tmp_path: Path) -> None:
    log = tmp_path / "klamm.log"
    with (
        old_cluster("0.8.2.2", tmp_path, empty=True) as kafka,
        klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, "--log", "all") as klamm,
        socket.create_connection(klamm.address, timeout=30) as client,
    ):
        client.sendall(REQUEST)
        assert receive_exactly(client, len(ANSWER)) == ANSWER
    assert '"errors":{"COORDINATOR_NOT_AVAILABLE":1}' in log.read_text()

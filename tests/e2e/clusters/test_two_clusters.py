"""One klamm in front of two clusters with the same node ids: rules for a broker of one, or of neither."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND

pytestmark = pytest.mark.brokers

LEADER = 2
RULES = """rules:
  - {name: gone, broker: 9, delay: 1ms}
  - {name: nowhere, cluster: us, delay: 1ms}
  - {name: both, api: Heartbeat, broker: 2, delay: 1ms}
  - {name: fine, api: Heartbeat, broker: 2, cluster: a, delay: 1ms}
"""


class Pair(NamedTuple):
    """klamm, and where clients find the clusters a and b."""

    process: Process
    admin: str
    bootstrap: dict[str, str]

    def says(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of a command."""
        env = {**os.environ, "KLAMM_ADMIN": self.admin}
        done = subprocess.run(
            [str(COMMAND), *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def lines(self, kind: str) -> list[dict[str, Any]]:
        lines = self.process.log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith('{"time')]
        return [line for line in found if line["event"] == kind]


@pytest.fixture(scope="module")
def pair(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    admin, firsts = f"127.0.0.1:{free_ports()}", {name: free_block() for name in "ab"}
    clusters = "".join(
        f"  - {{name: {name}, bootstrap: '{kafka.bootstrap()}', listen: '127.0.0.1:{first}-{first + 99}'}}\n"
        for name, first in firsts.items()
    )
    log = "log: {format: json}\nrules: {file: rules.yaml}\n"
    (folder / "klamm.yaml").write_text(f"clusters:\n{clusters}admin: {admin}\n{log}")
    (folder / "rules.yaml").write_text(RULES)
    process = Process([str(COMMAND), "run", "--config", str(folder / "klamm.yaml")], folder / "klamm.log")
    try:
        wait_for(lambda: "bootstrap.servers" in process.log.read_text(), "klamm", [process])
        yield Pair(process, admin, {name: f"127.0.0.1:{first}" for name, first in firsts.items()})
    finally:
        process.stop()


def delivered(bootstrap: str, topic: str, timeout_s: float) -> bool:
    """Does a record reach the leader in time?"""
    settings = {"bootstrap.servers": bootstrap, "log_level": 0, "message.timeout.ms": int(timeout_s * 1000)}
    producer = Producer({**settings, "reconnect.backoff.max.ms": 200})
    fine: list[bool] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: fine.append(error is None))
    assert producer.flush(timeout_s + 20) == 0
    return fine == [True]


def test_a_broker_of_one_cluster_is_down_and_that_of_the_other_is_not(kafka: Cluster, pair: Pair) -> None:
    topic = "of-one-leader"
    topics.create(kafka.bootstrap(), topic, [[LEADER, 1, 3]])
    code, out, errors = pair.says("down", "--broker", str(LEADER), "--follow", "0")
    choose = "choose with cluster: a, or take all with cluster: '*'"
    assert (code, out, errors) == (2, "", f"klamm: broker: broker 2 is in the clusters a and b: {choose}\n")
    assert {name: delivered(at, topic, 20) for name, at in pair.bootstrap.items()} == {"a": True, "b": True}
    code, out, errors = pair.says("down", "--broker", str(LEADER), "--cluster", "a", "--follow", "0")
    try:
        assert (code, len(out.splitlines()), errors) == (0, 2, "")
        assert {name: delivered(at, topic, 4) for name, at in pair.bootstrap.items()} == {
            "a": False,
            "b": True,
        }
    finally:
        pair.says("rules", "off", "--all")
    assert delivered(pair.bootstrap["a"], topic, 20)


def test_a_file_that_names_what_is_not_there_is_said_in_the_log_and_the_list(pair: Pair) -> None:
    wait_for(lambda: len(pair.lines("rule_doubt")) >= 3, "doubts")
    brokers = "a has 1, 2 and 3; b has 1, 2 and 3"
    expected = {
        "gone": f"broker: there is no broker 9: {brokers}",
        "nowhere": "cluster: there is no cluster 'us': klamm knows a and b",
        "both": "broker: broker 2 is in the clusters a and b: choose with cluster: a, or take all with "
        "cluster: '*'",
    }
    begins = "acts nowhere, or where it is not meant to"
    assert {line["rule"]: line["message"] for line in pair.lines("rule_doubt")} == {
        rule: f"the rule {rule} {begins}: {reason}" for rule, reason in expected.items()
    }
    listed = pair.says("rules", "list")[1]
    assert [line for line in listed.splitlines() if line.startswith("warning")] == [
        f"warning: {rule}: {reason}" for rule, reason in expected.items()
    ]

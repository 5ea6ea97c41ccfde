"""deploy/compose/compose.yaml, run without a container engine: each service is a process in one namespace.

The names of the services lead to loopback addresses. Kafka is its jars here, with the settings that its image
makes of the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.brokers.jars import java
from tests.brokers.kraft import OLDER
from tests.brokers.processes import Process, wait_for
from tests.deploy.given import DEPLOY
from tests.e2e.klamm_process import COMMAND

pytestmark = pytest.mark.brokers

SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
BROKERS = [name for name in SERVICES if name.startswith("kafka-")]
NOT_SETTINGS = {"KAFKA_HEAP_OPTS"}  # of the environment: for the JVM
PERFORMANCE = "/opt/kafka/bin/kafka-producer-perf-test.sh"


class Network:
    """A network and a /etc/hosts of their own, in which each service has an address."""

    def __init__(self, holder: int, addresses: dict[str, str]) -> None:
        self.holder, self.addresses = holder, addresses

    def words(self, words: list[str]) -> list[str]:
        return ["nsenter", f"--target={self.holder}", "--mount", "--net", "--wd=/", *words]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    addresses = {name: f"127.0.0.{number}" for number, name in enumerate(SERVICES, 11)}
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{to} {name}\n" for name, to in addresses.items()))
    script = f"mount --bind {hosts} /etc/hosts && ip link set lo up && echo ready && exec sleep infinity"
    holder = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield Network(holder.pid, addresses)
    finally:
        holder.kill()
        holder.communicate()


def start(network: Network, name: str, command: list[str], folder: Path) -> Process:
    return Process(network.words(command), folder / f"{name}.log", {"STATE_DIRECTORY": str(folder)})


def broker(network: Network, name: str, folder: Path) -> Process:
    """A broker with the settings of its service, listening at its own address: all share one host here."""
    environment = SERVICES[name]["environment"]
    settings = {
        key.removeprefix("KAFKA_").replace("_", ".").lower(): str(value)
        for key, value in environment.items()
        if key.startswith("KAFKA_") and key not in NOT_SETTINGS
    }
    settings["listeners"] = settings["listeners"].replace("://:", f"://{network.addresses[name]}:")
    settings["log.dirs"] = str(folder / name)
    properties = folder / f"{name}.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    done = subprocess.run(
        java(
            OLDER, "kafka.tools.StorageTool", "format", "-t", environment["CLUSTER_ID"], "-c", str(properties)
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return start(network, name, java(OLDER, "kafka.Kafka", str(properties)), folder)


def is_healthy(network: Network, name: str) -> bool:
    """Does its health check succeed? That of a broker asks localhost; here it asks the broker's address."""
    _, *words = SERVICES[name]["healthcheck"]["test"]
    words = [word.replace("localhost", network.addresses[name]) for word in words]
    own = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    done = subprocess.run(network.words(words), capture_output=True, check=False, env={**os.environ, **own})
    return done.returncode == 0


def test_the_producer_sends_all_its_records_through_klamm(network: Network, tmp_path: Path) -> None:
    with ExitStack() as running:
        brokers = []
        for name in BROKERS:
            brokers.append(broker(network, name, tmp_path))
            running.callback(brokers[-1].kill)
        wait_for(lambda: all(is_healthy(network, name) for name in BROKERS), "Kafka", brokers)
        command = [str(COMMAND), "run", *SERVICES["klamm"]["command"]]
        klamm = start(network, "klamm", command, tmp_path)
        running.callback(klamm.kill)
        wait_for(lambda: is_healthy(network, "klamm"), "klamm", [klamm, *brokers])
        program, *options = SERVICES["producer"]["command"]
        assert program == PERFORMANCE
        options = [option for option in options if not option.startswith("--throughput=")]
        producer = start(
            network,
            "producer",
            java(OLDER, "org.apache.kafka.tools.ProducerPerformance", *options, "--throughput=-1"),
            tmp_path,
        )
        running.callback(producer.kill)
        assert producer.child.wait(timeout=120) == 0, producer.tail()
        assert "6000 records sent" in producer.log.read_text()
        assert klamm.stop() == 0, klamm.tail()
    lines = [json.loads(line) for line in klamm.log.read_text().splitlines() if line.startswith("{")]
    produced = [line for line in lines if line["event"] == "exchange"]
    assert {line["api"] for line in produced} == {"Produce"}
    assert all("orders" in line["topics"] for line in produced)

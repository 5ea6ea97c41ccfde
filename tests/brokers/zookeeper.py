"""Kafka 0.8.2.2 and 0.10.1.1 with a ZooKeeper, as they were run in their day."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.brokers import wire
from tests.brokers.jars import java
from tests.brokers.processes import Process, free_ports, wait_for

VERSIONS = ("0.8.2.2", "0.10.1.1")

SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "3",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "zookeeper.session.timeout.ms": "10000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "delete.topic.enable": "true",
}

LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ABSOLUTE} %p %c{1} %m%n
"""


class OldCluster:
    """A running ZooKeeper and its brokers; `old_cluster` makes one. `empty`: it has no topic at first."""

    def __init__(self, version: str, directory: Path, empty: bool) -> None:
        self.version, self.empty = version, empty
        self.directory = directory
        self.zookeeper_port = free_ports()
        self.ports: dict[int, int] = {}
        self.processes: list[Process] = []
        (directory / "log4j.properties").write_text(LOG4J)

    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self, node_ids: tuple[int, ...]) -> None:
        """Start ZooKeeper and the brokers, and wait until each names all of them, or only answers."""
        directory = self.directory
        (directory / "zk.properties").write_text(
            f"dataDir={directory}/zk\nclientPort={self.zookeeper_port}\nclientPortAddress=127.0.0.1\n"
        )
        options = (
            "-Dzookeeper.admin.enableServer=false",
            f"-Dlog4j.configuration=file:{directory}/log4j.properties",
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._run(
            "zookeeper", java(self.version, main, f"{directory}/zk.properties", heap_mb=128, options=options)
        )
        for node_id in node_ids:
            port = self.ports[node_id] = free_ports()
            values = {
                **SETTINGS,
                "offsets.topic.replication.factor": "3" if self.empty else "1",
                "broker.id": str(node_id),
                "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
                "log.dirs": f"{directory}/data-{node_id}",
                **self._address(port),
            }
            properties = directory / f"broker-{node_id}.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            wait_for(self._zookeeper_answers, f"ZooKeeper for Kafka {self.version}", self.processes, 180)
            self._run(
                f"broker-{node_id}", java(self.version, "kafka.Kafka", str(properties), options=options)
            )
        wait_for(self._all_agree, f"Kafka {self.version}", self.processes, 180)

    def stop(self) -> None:
        """SIGKILL, brokers first: without ZooKeeper they hang."""
        for process in reversed(self.processes):
            process.kill()

    def logs(self) -> str:
        """The tails of all logs."""
        return "\n".join(process.tail() for process in self.processes)

    def _run(self, name: str, command: list[str]) -> None:
        self.processes.append(Process(command, self.directory / f"{name}.log"))

    def _address(self, port: int) -> dict[str, str]:
        if self.version.startswith("0.8"):
            return {"host.name": "127.0.0.1", "port": str(port), "advertised.host.name": "127.0.0.1"}
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }

    def _zookeeper_answers(self) -> bool:
        return wire.answers(("127.0.0.1", self.zookeeper_port), b"srvr", b"Zookeeper version")

    def _all_agree(self) -> bool:
        if self.empty:
            return all(wire.metadata(("127.0.0.1", port)) == {} for port in self.ports.values())
        # A 0.8 broker names no brokers while the cluster has no topic: this one is made by being asked for. A
        # broker that came after it is told to the first with the next topic only: so another one every 3 s.
        topic = f"ready-{int(time.monotonic()) // 3}"
        answers = [wire.metadata(("127.0.0.1", port), topic) for port in self.ports.values()]
        return all({node.node_id: node.port for node in nodes.values()} == self.ports for nodes in answers)


@contextmanager
def old_cluster(
    version: str, directory: Path, node_ids: tuple[int, ...] = (0,), empty: bool = False
) -> Iterator[OldCluster]:
    """A running cluster of Kafka `version` ("0.8.2.2" or "0.10.1.1") in `directory`, killed at the end.
    `empty`: without a topic. 0.8 names no broker then, and has no coordinator, as it wants three brokers.
    """
    cluster = OldCluster(version, directory, empty)
    try:
        cluster.start(node_ids)
        yield cluster
    finally:
        cluster.stop()

"""A Kafka 4.x cluster without ZooKeeper: one node is broker and controller, the others are brokers."""

import base64
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.brokers import certificates, wire
from tests.brokers.jars import class_archive, java, made_once
from tests.brokers.processes import Process, free_ports, wait_for

VERSION = "4.4.0"
OLDER = "4.3.1"  # one broker of it, and its Java client, where that costs little
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
SECURITY = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")

SETTINGS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams,share",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "60000",  # on a busy machine a broker may say nothing for seconds
    "controller.quorum.election.timeout.ms": "500",
    "metadata.max.idle.interval.ms": "0",  # else an idle controller writes a record twice a second, for all
    "log.retention.hours": "-1",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "socket.request.max.bytes": "209715200",
    "message.max.bytes": "104857600",
    "fetch.max.bytes": "209715200",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
}

SOON_MISSED = {"broker.session.timeout.ms": "5000"}  # for a test that kills a broker

LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss,SSS} %p %c{1} %m%n
"""


class Broker:
    """One node: its directory, its ports by listener name, and its process while it runs."""

    def __init__(
        self, node_id: int, directory: Path, host: str, ports: dict[str, int], process: Process
    ) -> None:
        self.node_id = node_id
        self.directory = directory
        self.host = host
        self.ports = ports
        self.process = process


class Cluster:
    """A running cluster; `kraft_cluster` makes one."""

    def __init__(
        self,
        directory: Path,
        listeners: Sequence[str],
        settings: Mapping[str, str],
        hosts: Mapping[int, str],
        unreachable: Sequence[str],
        version: str = VERSION,
    ) -> None:
        self.version = version
        self.directory = directory
        self.listeners = listeners
        self.settings = {**SETTINGS, **settings}
        self.hosts = hosts
        self.unreachable = unreachable
        # The first byte keeps the text from beginning with "-", which StorageTool takes for an option.
        self.cluster_id = base64.urlsafe_b64encode(b"k" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        self.racks: Mapping[int, str] = {}
        self.controller, self.controller_port = 1, free_ports()
        self.controller_is_separate = False
        self.brokers: dict[int, Broker] = {}
        self.separate: dict[int, Broker] = {}  # the controller, where it is no broker
        self.jvm_options: tuple[str, ...] = (f"-Dlog4j2.configurationFile={directory}/log4j2.properties",)
        self.ca = directory / "ca.pem"
        if any("SSL" in name for name in listeners):
            certificates.make(directory, [*hosts.values(), "localhost", "127.0.0.1"])
        (directory / "log4j2.properties").write_text(LOG4J)

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """The addresses of all running brokers on `listener`, as bootstrap.servers takes them."""
        running = [broker for broker in self.brokers.values() if broker.process.running]
        return ",".join(f"{self._reachable(listener, broker)}:{broker.ports[listener]}" for broker in running)

    def address(self, node_id: int, listener: str = "PLAINTEXT") -> tuple[str, int]:
        """Where one broker listens."""
        broker = self.brokers[node_id]
        return self._reachable(listener, broker), broker.ports[listener]

    def maps(self, listener: str) -> list[str]:
        """ADVERTISED=REACHABLE for every broker of an unreachable listener."""
        nodes = [
            (self._advertised(listener, node_id), self.address(node_id, listener)) for node_id in self.brokers
        ]
        return [f"{name}:{port}={host}:{port}" for name, (host, port) in nodes]

    def start(self, node_ids: Sequence[int]) -> None:
        """Start new brokers, or killed ones on their directories and new ports; return when all are known."""
        fresh = [node_id for node_id in node_ids if node_id not in self.brokers]
        ports = {node_id: self._write_properties(node_id) for node_id in node_ids}
        formats = [Process(self._format(node_id), self._folder(node_id) / "format.log") for node_id in fresh]
        for process in formats:
            if process.child.wait(timeout=180):
                raise RuntimeError(f"formatting failed\n{process.tail()}")
        for node_id in node_ids:
            folder = self._folder(node_id)
            role = self.separate if self._is_separate(node_id) else self.brokers
            properties = f"{folder}/server.properties"
            command = java(self.version, "kafka.Kafka", properties, options=self.jvm_options)
            host = self.hosts.get(node_id, "127.0.0.1")
            role[node_id] = Broker(
                node_id, folder, host, ports[node_id], Process(command, folder / "broker.log")
            )
        self.wait_until_ready()

    def kill(self, node_id: int) -> None:
        """SIGKILL to one broker."""
        self.brokers[node_id].process.kill()

    def wait_until_ready(self, timeout_s: float = 180.0) -> None:
        """Wait until every running broker names every running broker, with the ports they have now."""
        running = [broker for broker in self.brokers.values() if broker.process.running]
        expected = {wire.Node(broker.node_id, broker.host, broker.ports["PLAINTEXT"]) for broker in running}

        def all_agree() -> bool:
            answers = [wire.metadata((broker.host, broker.ports["PLAINTEXT"])) for broker in running]
            return all(set(nodes.values()) == expected for nodes in answers)

        wait_for(all_agree, "Kafka cluster", [broker.process for broker in running], timeout_s)

    def stop(self) -> None:
        """SIGKILL to all: the data is not needed any more."""
        for broker in [*self.brokers.values(), *self.separate.values()]:
            broker.process.kill()

    def logs(self) -> str:
        """The tails of all brokers' logs."""
        nodes = [*self.separate.values(), *self.brokers.values()]
        return "\n".join(node.process.tail() for node in nodes)

    def _is_separate(self, node_id: int) -> bool:
        return node_id == self.controller and self.controller_is_separate

    def _folder(self, node_id: int) -> Path:
        return self.directory / f"broker-{node_id}"

    def _reachable(self, listener: str, broker: Broker) -> str:
        return "127.0.0.1" if listener in self.unreachable else broker.host

    def _advertised(self, listener: str, node_id: int) -> str:
        return (
            f"kafka-{node_id}.invalid"
            if listener in self.unreachable
            else self.hosts.get(node_id, "127.0.0.1")
        )

    def _format(self, node_id: int) -> list[str]:
        command = ["format", "-t", self.cluster_id, "-c", f"{self._folder(node_id)}/server.properties"]
        for user, password in USERS.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                command += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
        return java(self.version, "kafka.tools.StorageTool", *command, heap_mb=128)

    def _write_properties(self, node_id: int) -> dict[str, int]:
        folder = self._folder(node_id)
        folder.mkdir(exist_ok=True)
        first = free_ports(len(self.listeners))
        ports = {name: first + index for index, name in enumerate(self.listeners)}
        bind = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
        advertised = [f"{name}://{self._advertised(name, node_id)}:{port}" for name, port in ports.items()]
        controller, separate = node_id == self.controller, self._is_separate(node_id)
        own = [f"CONTROLLER://127.0.0.1:{self.controller_port}"] * controller
        protocols = [f"{name}:{name}" for name in SECURITY] + ["CONTROLLER:PLAINTEXT"]
        values = {
            **self.settings,
            "process.roles": "controller" if separate else "broker,controller" if controller else "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": f"{self.controller}@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(own if separate else bind + own),
            "listener.security.protocol.map": ",".join(protocols),
            "log.dirs": f"{folder}/data",
        }
        if node_id in self.racks:
            values["broker.rack"] = self.racks[node_id]
        if not separate:
            values |= {
                "advertised.listeners": ",".join(advertised),
                "inter.broker.listener.name": "PLAINTEXT",
            }
        for name in self.listeners:
            values.update(_security(name, self.directory))
        (folder / "server.properties").write_text(
            "".join(f"{key}={value}\n" for key, value in values.items())
        )
        return ports


def _security(listener: str, directory: Path) -> dict[str, str]:
    """The settings of one SASL or SSL listener; none for PLAINTEXT."""
    prefix = f"listener.name.{listener.lower()}"
    security = "org.apache.kafka.common.security"
    values = {}
    if "SASL" in listener:
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        plain = f"{prefix}.plain.sasl.jaas.config"
        values[plain] = f"{security}.plain.PlainLoginModule required {users};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            scram = f"{prefix}.{mechanism}.sasl.jaas.config"
            values[scram] = f"{security}.scram.ScramLoginModule required;"
    if "SSL" in listener:
        values[f"{prefix}.ssl.keystore.type"] = "PEM"
        values[f"{prefix}.ssl.keystore.location"] = f"{directory}/broker.pem"
    return values


def _archive_classes(version: str, archive: Path) -> None:
    """Write the classes that a broker loads until it has started; to load them is half of a start's work."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder), ["PLAINTEXT"], {}, {}, (), version)
        cluster.jvm_options += (f"-XX:ArchiveClassesAtExit={archive}",)
        try:
            cluster.start([cluster.controller])
            cluster.brokers[cluster.controller].process.stop(patience_s=120)
            if not archive.exists():
                raise RuntimeError(f"no archive of the classes of Kafka {version}\n{cluster.logs()}")
        finally:
            cluster.stop()


@contextmanager
def kraft_cluster(
    directory: Path,
    node_ids: Sequence[int] = (1, 2, 3),
    listeners: Sequence[str] = ("PLAINTEXT",),
    settings: Mapping[str, str] | None = None,
    hosts: Mapping[int, str] | None = None,
    unreachable: Sequence[str] = (),
    separate: bool = False,
    version: str = VERSION,
    jvm_options: Sequence[str] = (),
    racks: Mapping[int, str] | None = None,
) -> Iterator[Cluster]:
    """A running cluster of Kafka `version` in `directory`, killed at the end.

    The first of `node_ids` is the controller, and a broker too unless `separate`. `listeners` are names of
    security protocols, PLAINTEXT first. `jvm_options` are more of them. `hosts` says which host a broker
    advertises, 127.0.0.1 unless told; it must lead to 127.0.0.1. `racks` says where a broker is. On
    `unreachable` listeners the brokers advertise names that lead nowhere.
    """
    made_once(class_archive(version), lambda part: _archive_classes(version, part))
    cluster = Cluster(directory, listeners, settings or {}, hosts or {}, unreachable, version)
    cluster.controller, cluster.controller_is_separate = node_ids[0], separate
    cluster.jvm_options += tuple(jvm_options)
    cluster.racks = racks or {}
    try:
        cluster.start(node_ids)
        yield cluster
    finally:
        cluster.stop()

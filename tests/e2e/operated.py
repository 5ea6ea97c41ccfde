"""klamm on a bad day, for those who watch it: real clients at work and in trouble, until the context ends."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from klamm.client.sync import Klamm as Admin
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.klamm_process import COMMAND, Klamm
from tests.fakes import tls

TOPIC, QUIET = "watched", "quiet"  # the second has no records
USER, PASSWORD = "shop", "planted-password-of-shop"
SOON_DAYS = 3  # until klamm's certificate expires
PAUSE_S = 0.1  # of a client, before it goes on
RULES = "rules:\n  - {name: refuse, api: Produce, client: faulty, error: NOT_LEADER_OR_FOLLOWER}\n"
COMMON: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 200,
}


class Operated:
    """`klamm` has the clusters `open` and `guarded`, which are one; clients of the second authenticate, over
    TLS. `certificate` is klamm's, and its own authority.
    """

    def __init__(self, klamm: Klamm, guarded: str, certificate: Path) -> None:
        self.klamm, self.guarded, self.certificate = klamm, guarded, certificate
        self.end = threading.Event()
        self.failures: list[Exception] = []
        works = (
            self.produce("orders-app", acks="all"),
            self.produce("metrics-app", acks="0"),
            self.produce("faulty", acks="all"),
            self.consume,
            self.ask_for_a_topic_that_is_not_there,
            self.come_and_go,
            self.authenticate(PASSWORD),
            self.authenticate("a-wrong-password"),
            self.speak_tls,
            self.ask_what_nobody_knows,
        )
        self.threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]

    def _repeat(self, work: Callable[[], object]) -> None:
        try:
            while not self.end.is_set():
                work()
                self.end.wait(PAUSE_S)
        except Exception as error:  # told when the context ends
            self.failures.append(error)

    def produce(self, client: str, acks: str) -> Callable[[], object]:
        """Records one by one; `faulty` gets an error of klamm for each."""
        own = {"client.id": client, "acks": acks, "message.timeout.ms": 5_000}
        producer = Producer({**COMMON, **own, "bootstrap.servers": self.klamm.bootstrap})

        def send() -> None:
            producer.produce(TOPIC, b"a record")
            producer.flush(1.0)

        return send

    def consume(self) -> None:
        """In a group, until the end."""
        own = {"client.id": "billing", "group.id": "billing", "auto.offset.reset": "earliest"}
        consumer = Consumer({**COMMON, **own, "bootstrap.servers": self.klamm.bootstrap})
        consumer.subscribe([TOPIC])
        while not self.end.is_set():
            consumer.poll(PAUSE_S)
        consumer.close()

    def ask_for_a_topic_that_is_not_there(self) -> None:
        """Again and again, on one connection."""
        own = {"client.id": "lost", "bootstrap.servers": self.klamm.bootstrap}
        lost = Producer({**COMMON, **own})
        while not self.end.is_set():
            listed(lost, "no-such-topic")
            self.end.wait(PAUSE_S)

    def come_and_go(self) -> None:
        """A consumer without a group, which leaves while its Fetch waits for records."""
        own = {"client.id": "visitor", "group.id": "none", "fetch.wait.max.ms": 10_000}
        visitor = Consumer({**COMMON, **own, "bootstrap.servers": self.klamm.bootstrap})
        visitor.assign([TopicPartition(QUIET, 0, 0)])
        visitor.poll(1.0)
        visitor.close()

    def authenticate(self, password: str) -> Callable[[], object]:
        """A client of the guarded cluster, whose password may be wrong."""
        own = {
            "client.id": "member",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificate),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": USER,
            "sasl.password": password,
        }
        client = Producer({**COMMON, **own, "bootstrap.servers": self.guarded})
        return lambda: listed(client, TOPIC)

    def speak_tls(self) -> None:
        """A client with the wrong setting."""
        own = {"client.id": "mistaken", "security.protocol": "SSL", "bootstrap.servers": self.klamm.bootstrap}
        mistaken = Producer({**COMMON, **own})
        while not self.end.is_set():
            listed(mistaken, TOPIC)

    def ask_what_nobody_knows(self) -> None:
        """An API that neither klamm knows nor the broker, which closes the connection."""
        frame = bytearray(request_frame_of_metadata())
        struct.pack_into(">h", frame, 4, 9_999)
        with socket.create_connection(self.klamm.address, timeout=60) as stranger:
            stranger.sendall(frame)
            wait_for_the_end(stranger)


def wait_for_the_end(stranger: socket.socket) -> None:
    """Of a connection, closed or reset."""
    try:
        assert stranger.recv(1) == b""
    except ConnectionResetError:
        return


def request_frame_of_metadata() -> bytes:
    """A whole frame, of a client by hand."""
    body = encode({"topics": []}, "Metadata", 4, "request")
    return request_frame(API["Metadata"], 4, 1, "by-hand", body)


def listed(client: Producer, topic: str) -> None:
    """Ask for a topic; there may be no answer."""
    try:
        client.list_topics(topic, timeout=1.0)
    except KafkaException:
        return


@contextmanager
def operated(cluster: Cluster, folder: Path) -> Iterator[Operated]:
    """klamm with rules, a capture, an audit log, a certificate that expires soon, and traces that nobody
    takes.
    """
    command = [str(COMMAND), "users", "set", str(folder / "users"), USER]
    subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=60)
    (folder / "rules.yaml").write_text(RULES)
    tls.of_days(folder, (-1, SOON_DAYS))
    admin, first, guarded = f"127.0.0.1:{free_ports()}", free_block(), free_block()
    sasl = {"mechanisms": ["SCRAM-SHA-256"], "users": "users"}
    clusters = [
        {"name": "open", "bootstrap": cluster.bootstrap(), "listen": f"127.0.0.1:{first}-{first + 99}"},
        {
            "name": "guarded",
            "bootstrap": cluster.bootstrap(),
            "listen": f"127.0.0.1:{guarded}-{guarded + 99}",
            "listen_sasl": sasl,
            "listen_tls": {"cert": "broker.pem"},
        },
    ]
    settings = {
        "clusters": clusters,
        "admin": admin,
        "rules": {"file": "rules.yaml"},
        "capture": str(folder / "traffic"),
        "audit": str(folder / "audit"),
        "traces": {"endpoint": f"http://127.0.0.1:{free_ports()}/v1/traces", "sample": "100%"},
    }
    (folder / "klamm.yaml").write_text(json.dumps(settings))
    words = [str(COMMAND), "run", "--config", str(folder / "klamm.yaml"), "--state", "none"]
    process = Process(words, folder / "klamm.log", {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    try:
        klamm = Klamm(process, "127.0.0.1", first, admin)
        wait_for(klamm.ready, "klamm", [process])
        Admin(admin).add_rule({"name": "forgotten", "api": "Heartbeat", "delay": "1ms", "for": "forever"})
        running = Operated(klamm, f"127.0.0.1:{guarded}", folder / "broker.pem")
        try:
            for thread in running.threads:
                thread.start()
            yield running
        finally:
            running.end.set()
            for thread in running.threads:
                thread.join(60)
        assert running.failures == []
    finally:
        code = process.stop(patience_s=60, by=signal.SIGINT)
    assert code == 0, process.tail()
    assert "Traceback" not in process.log.read_text(), process.tail()

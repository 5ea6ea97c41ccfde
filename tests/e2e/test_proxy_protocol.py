"""Real clients behind a real load balancer: HAProxy, which tells klamm their addresses."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.brokers import certificates
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, free_block, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 100
SENDS = {
    "version 1": "send-proxy",
    "version 2": "send-proxy-v2",
    "version 2, checked": "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority",
}
HAPROXY = """\
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend clients
    unique-id-format %ci:%cp
    bind {host}:{first}-{last}
    default_backend klamm
backend klamm
    server klamm 127.0.0.1 check check-send-proxy inter 200ms port {first} {sends}
"""


@pytest.fixture(scope="module", params=["plain text", "TLS"])
def files(
    request: pytest.FixtureRequest, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Path | None:
    """klamm's certificate, for the address of the load balancer, where klamm speaks TLS."""
    if request.param == "plain text":
        return None
    folder = tmp_path_factory.mktemp("balanced-tls")
    certificates.make(folder, [inside.host])
    return folder


@pytest.fixture(scope="module", params=SENDS)
def balanced(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    inside: Namespace,
    files: Path | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Klamm]:
    """klamm behind HAProxy, which listens at the same ports where the clients can reach it."""
    folder = tmp_path_factory.mktemp("balanced")
    settings = folder / "klamm.yaml"
    cluster = {"bootstrap": kafka.bootstrap(), "proxy_protocol": {"from": "127.0.0.0/8"}}
    settings.write_text(json.dumps({"clusters": [cluster]}))
    first = free_block(inside.host)
    options = ["--config", str(settings), "--advertise", inside.host, "--log", "Produce,Fetch"]
    options += ["--capture", str(folder / "traffic")]
    options += [] if files is None else ["--listen-tls-cert", str(files / "broker.pem")]
    log = folder / "klamm.log"
    with klamm_in_front_of(
        kafka.bootstrap(), "127.0.0.1", log, *options, first=first, advertise=False
    ) as klamm:
        config = folder / "haproxy.cfg"
        config.write_text(
            HAPROXY.format(host=inside.host, first=first, last=first + 99, sends=SENDS[request.param])
        )
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        assert program is not None, "this test needs HAProxy (Debian package haproxy)"
        balancer = Process([program, "-db", "-f", str(config)], folder / "haproxy.log")
        try:
            klamm.host, host = inside.host, klamm.host
            wait_for(
                lambda: socket.create_connection(klamm.address, 5).close() or True, "HAProxy", [balancer]
            )
            yield klamm
            klamm.host = host
        finally:
            balancer.stop()


def client_of(inside: Namespace) -> str:
    """The address of the clients' end of the link."""
    return str(ip_address(inside.host) + 1)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafkajs"])
def test_klamm_tells_the_addresses_of_clients_behind_haproxy(
    client: str, balanced: Klamm, files: Path | None, kafka: Cluster, inside: Namespace, tmp_path: Path
) -> None:
    topic = f"balanced-{client}-{uuid4().hex}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    settings: dict[str, Any] = {"topic": topic, "count": COUNT}
    settings |= {} if files is None else {"security": "SSL", "ca": str(files / "ca.pem")}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    lines = programs.results(inside.run(*programs.command(client, balanced.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))

    def seen() -> dict[str, set[str]]:
        logged = [
            json.loads(line) for line in balanced.process.log.read_text().splitlines() if line[:1] == "{"
        ]
        found: dict[str, set[str]] = {}
        for line in logged:
            if line["event"] == "exchange" and topic in line.get("topics", {}):
                found.setdefault(line["api"], set()).add(line["connection"].rpartition(":")[0])
        return found

    wait_for(lambda: len(seen()) == 2, "the log", [balanced.process])
    assert seen() == {"Produce": {client_of(inside)}, "Fetch": {client_of(inside)}}


def connected(klamm: Klamm) -> dict[str, str]:
    """The clients' addresses by the connections' ids, as the admin API has them."""
    rows = json.loads(klamm.get("/v1/connections"))
    return {str(row["id"]): row["client"].rpartition(":")[0] for row in rows}


def listed(klamm: Klamm) -> dict[str, str]:
    """The same as the command prints them."""
    printed = subprocess.check_output([COMMAND, "connections", "--admin", klamm.admin], text=True)
    rows = [line.split() for line in printed.splitlines()]
    return {row[0]: row[1].rpartition(":")[0] for row in rows}


def is_new(earlier: set[str], found: dict[str, str], inside: Namespace) -> bool:
    """Is there a connection of the clients that was not there earlier?"""
    return client_of(inside) in {address for number, address in found.items() if number not in earlier}


@pytest.mark.sampled(3)
def test_connections_and_captures_have_the_address(
    balanced: Klamm, files: Path | None, kafka: Cluster, inside: Namespace, tmp_path: Path
) -> None:
    topic = f"shown-{uuid4().hex}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    secured = {} if files is None else {"security": "SSL", "ca": str(files / "ca.pem")}
    consume = {"do": "consume", "topic": topic, "count": 1, "group": topic, "timeout_s": 60, **secured}
    earlier = set(connected(balanced))  # of the test before, whose end HAProxy has not told yet
    waiting = inside.start(
        tmp_path / "client.log", *programs.command("librdkafka", balanced.bootstrap, consume)
    )
    try:
        processes = [balanced.process, waiting]
        wait_for(lambda: is_new(earlier, connected(balanced), inside), "the connection", processes)
        wait_for(lambda: is_new(earlier, listed(balanced), inside), "a line for the connection", processes)
    finally:
        waiting.stop()
    traffic = balanced.process.log.parent / "traffic"

    def shown() -> str:
        return subprocess.run(
            [COMMAND, "show", str(traffic), f'api == Metadata and topic == "{topic}"', "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stdout

    wait_for(lambda: f'"{client_of(inside)}:' in shown(), "the capture")


def test_a_balancer_without_a_header_is_told_apart_from_its_health_checks(balanced: Klamm) -> None:
    assert "bad_proxy_header" not in balanced.process.log.read_text()
    with socket.create_connection(("127.0.0.1", balanced.port), 10) as plain:
        plain.sendall(b"\0\0\0\x1e\0\x12\0\3")
        with contextlib.suppress(ConnectionResetError):
            assert plain.recv(1) == b""
    wait_for(lambda: "bad_proxy_header" in balanced.process.log.read_text(), "the log")
    balanced.foreseen |= {"bad_proxy_header"}

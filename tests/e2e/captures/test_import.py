"""tcpdump's packets of real clients, imported: compared with the clients' own words, and with klamm's
capture.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.captured import ENDED_BY_CLIENT, Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.storage.reading import read
from klamm.decoders import API
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.captures.dialogue import request
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.captures.tcpdump import tcpdump
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC = "imported"
SPOKEN = re.compile(r"(Sent|Received) (\w+)(?:Request|Response) \(v(\d+), .*?CorrId (\d+)")
SIDES = {"Sent": "request", "Received": "response"}


@pytest.fixture(scope="module", autouse=True)
def topic(kafka: Cluster) -> None:
    topics.create(kafka.bootstrap(), TOPIC, topics.spread())


def imported(file: Path, folder: Path, *options: str) -> list[Captured]:
    command = [str(COMMAND), "import", str(file), "-o", str(folder), "--records", "keep", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(read([folder]))


def key(name: str) -> int:
    """librdkafka's names are nearly Kafka's."""
    api = API.get(name) or API.get(f"{name}s")
    assert api is not None, name
    return api.key


def kcat(kafka: Cluster, *words: str, input_text: str = "") -> Counter[tuple[str, int, int, int]]:
    """Run it; what it says that it sent and received: which, API key, version, correlation id."""
    command = ["kcat", "-b", kafka.bootstrap(), "-d", "protocol", *words]
    done = subprocess.run(command, input=input_text, capture_output=True, text=True, timeout=120, check=True)
    found = SPOKEN.findall(done.stderr)
    return Counter((SIDES[what], key(name), int(version), int(last)) for what, name, version, last in found)


def test_an_import_has_what_a_client_says_that_it_sent_and_received(kafka: Cluster, tmp_path: Path) -> None:
    numbers = sorted(kafka.address(node_id)[1] for node_id in (1, 2, 3))
    with tcpdump(tmp_path / "seen.pcap", "lo", f"{numbers[0]}-{numbers[-1]}"):
        lines = "\n".join(map(str, range(500)))
        spoken = kcat(kafka, "-P", "-t", TOPIC, input_text=lines)
        spoken += kcat(kafka, "-P", "-t", TOPIC, "-X", "acks=0", input_text=lines)
        spoken += kcat(kafka, "-G", "imported", "-e", TOPIC)
    rows = imported(tmp_path / "seen.pcap", tmp_path / "imported")
    frames = [row for row in rows if row.kind == "frame" and row.client_id == "rdkafka"]  # brokers talk too
    found = Counter((str(row.side), row.api_key, row.api_version, row.correlation_id) for row in frames)
    assert spoken - found == Counter()  # kcat printed no packets that came as it ended
    assert {side for side, *_ in (found - spoken)} <= {"response"}
    assert {API[api].name for _, api, *_ in spoken} >= {"Produce", "Fetch", "JoinGroup", "SyncGroup"}
    connections = {row.connection for row in frames}
    assert {row.text for row in rows if row.kind == "opened" and row.connection in connections} == {""}


def test_tls_of_a_real_broker_is_read_with_the_secrets_of_its_client(kafka: Cluster, tmp_path: Path) -> None:
    host, port = kafka.address(1, "SASL_SSL")
    context = ssl.create_default_context(cafile=str(kafka.ca))
    context.keylog_filename = str(tmp_path / "secrets")
    asked = request(1, version=2), request(2, "SaslHandshake", 1, mechanism="SCRAM-SHA-256")
    with tcpdump(tmp_path / "seen.pcap", "lo", str(port)):
        with context.wrap_socket(socket.create_connection((host, port)), server_hostname=host) as client:
            with client.makefile("rwb") as file:
                for frame in asked:
                    file.write(frame)
                    file.flush()
                    file.read(int.from_bytes(file.read(4), "big"))
    rows = imported(tmp_path / "seen.pcap", tmp_path / "imported", "--keys", str(tmp_path / "secrets"))
    found = list(exchanges(rows))
    assert [one.request and one.request.frame for one in found] == [frame[4:] for frame in asked]
    assert [one.response and one.response.correlation_id for one in found] == [1, 2]


def exchange_counts(rows: list[Captured]) -> Counter[tuple[object, ...]]:
    """Exchanges as the client saw them, whatever their connections and times."""
    found: Counter[tuple[object, ...]] = Counter()
    for one in exchanges(rows):
        first, answer = one.first, one.response
        asked = one.request.frame if one.request else None
        seen = (answer.forwarded or answer.frame) if answer is not None else None
        found[first.api_key, first.api_version, first.correlation_id, first.client_id, asked, seen] += 1
    return found


def endings(rows: list[Captured]) -> Counter[str]:
    """Why connections ended, as rows tell it."""
    return Counter(row.text for row in rows if row.kind == "closed")


def test_klamm_and_tcpdump_capture_the_same_exchanges(
    kafka: Cluster, inside: Namespace, log: Path, tmp_path: Path
) -> None:
    captured = tmp_path / "captured"
    options = "--capture", str(captured), "--capture-records", "keep"
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, *options) as klamm:
        with tcpdump(tmp_path / "seen.pcap", "eth0", f"{klamm.port}-{klamm.port + 99}", inside):
            for client in ("librdkafka", "java"):
                steps: list[dict[str, Any]] = [
                    {"do": "produce", "topic": TOPIC, "seed": client, "count": 100, "idempotent": True},
                    {"do": "produce", "topic": TOPIC, "seed": client, "count": 20, "acks": "0"},
                    {"do": "consume", "topic": TOPIC, "group": f"{TOPIC}-{client}", "count": 100},
                ]
                inside.run(*programs.command(client, klamm.bootstrap, *steps), timeout_s=120)
    packets, live = imported(tmp_path / "seen.pcap", tmp_path / "imported"), list(read([captured]))
    by_client = set(ENDED_BY_CLIENT)  # a client that closes before it has read all is a reset in the packets
    assert set(endings(packets)) <= by_client
    assert set(endings(live)) <= by_client
    by_tcpdump, by_klamm = exchange_counts(packets), exchange_counts(live)
    too_late = by_klamm - by_tcpdump  # klamm sent it, and the client had closed
    assert by_tcpdump - by_klamm == Counter({(*seen[:-1], None): count for seen, count in too_late.items()})
    assert too_late.total() < 10
    assert by_klamm.total() > 50

"""Packets of Linux in VXLAN, with TCP Fast Open, as tcpdump sees them: in the tunnel, and plain too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.captures.captured import Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.packets.importing import Import
from klamm.captures.packets.packet_files import packets
from klamm.captures.packets.tcp_segments import SYN, Segment, segment
from klamm.captures.streams.blanking import Keeping
from tests.brokers.namespace import Namespace, namespace, need_namespaces
from tests.brokers.processes import wait_for
from tests.e2e.captures.fast_open import ANSWERED, ASKED, CONNECTIONS, PORT
from tests.e2e.captures.tcpdump import tcpdump

HOSTS = "198.19.255.1", "198.19.255.2"  # of the link; and in the tunnel
INNER = "198.19.254.1", "198.19.254.2"


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces with a VXLAN tunnel from one to the other."""
    need_namespaces()
    with namespace(1) as client, namespace(2) as broker:
        link = ["ip", "link", "add", "wire", "netns", client.name, "type", "veth"]
        subprocess.run([*link, "peer", "name", "wire", "netns", broker.name], check=True, timeout=10)
        for number, end in enumerate((client, broker)):
            end.run("ip", "address", "add", f"{HOSTS[number]}/24", "dev", "wire")
            end.run("ip", "link", "set", "wire", "up")
            tunnel = f"id 7 remote {HOSTS[1 - number]} dstport 4789 dev wire"
            end.run("ip", "link", "add", "tunnel", "type", "vxlan", *tunnel.split())
            end.run("ip", "address", "add", f"{INNER[number]}/24", "dev", "tunnel")
            end.run("ip", "link", "set", "tunnel", "up")
            end.run("sysctl", "-q", "-w", "net.ipv4.tcp_fastopen=3")
        yield client, broker._replace(host=HOSTS[0])


@pytest.mark.parametrize("interface", ["wire", "any"])
def test_connections_with_data_in_their_first_packet_are_read_from_their_tunnel(
    ends: tuple[Namespace, Namespace], interface: str, tmp_path: Path
) -> None:
    client, broker = ends
    program = sys.executable, "-m", "tests.e2e.captures.fast_open"
    log, file = tmp_path / "server.log", tmp_path / "seen.pcap"
    server = broker.start(log, *program, "serve", INNER[1])
    try:
        wait_for(lambda: "serving" in log.read_text(), "the server", [server])
        with tcpdump(file, interface, str(PORT), broker, besides="udp port 4789"):
            client.run(*program, "ask", INNER[1])
    finally:
        server.stop()
    rows: list[Captured] = []
    importing = Import("capture", Keeping("keep"), rows.extend)
    with file.open("rb") as opened:
        for packet in packets(opened):
            importing.take(packet)
    importing.end()
    found = list(exchanges(rows))
    assert [one.request and one.request.frame for one in found] == [one[4:] for one in ASKED] * CONNECTIONS
    answers = [one.response and one.response.frame for one in found]
    assert answers == [one[4:] for one in ANSWERED] * CONNECTIONS
    assert importing.found.connections["Kafka"] == CONNECTIONS
    assert not importing.found.holes
    assert (importing.found.repeated_bytes > 0) == (interface == "any")
    with file.open("rb") as opened:
        segments = [segment(packet) for packet in packets(opened)]
    assert any(isinstance(one, Segment) and one.flags & SYN and one.data for one in segments)

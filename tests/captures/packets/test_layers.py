"""Headers before TCP: tunnels, as tshark opens them, and names for what is no TCP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.packets.layers import MALFORMED, MOST_HEADERS, NOT_TCP, Unread
from klamm.captures.packets.packet_files import Packet
from klamm.captures.packets.tcp_segments import Segment, segment
from tests.captures import tshark
from tests.captures.dialogue import ETHERNET, Dialogue, pcap
from tests.captures.packets.test_importing import ALL, imported, joined, spoken
from tests.captures.tunnels import (
    MACS,
    TUNNELS,
    erspan_2,
    geneve,
    gre,
    ipv4,
    tunnelled,
    udp,
    vlan,
    vxlan,
)

Tunnel = Callable[[bytes], bytes]
HOSTS = {"IPv4": ("10.0.0.7", "10.0.0.1"), "IPv6": ("fd00::7", "fd00::1")}
ARP = MACS + b"\x08\x06" + bytes(28)
each_tunnel = pytest.mark.parametrize("tunnel", TUNNELS.values(), ids=TUNNELS)


@pytest.mark.parametrize("hosts", HOSTS.values(), ids=HOSTS)
@each_tunnel
def test_a_segment_in_a_tunnel_is_the_one_that_was_put_in(tunnel: Tunnel, hosts: tuple[str, str]) -> None:
    for packet in Dialogue(*hosts).open().ask(0).close().packets:
        assert segment(tunnelled(packet, tunnel)) == segment(packet)


def test_tshark_sees_the_same_in_all_tunnels(tmp_path: Path) -> None:
    packets = [
        tunnelled(packet, tunnel)
        for tunnel in TUNNELS.values()
        for hosts in HOSTS.values()
        for packet in Dialogue(*hosts).open().ask(0).packets
    ]
    file = tmp_path / "tunnels.pcap"
    file.write_bytes(pcap(packets))
    names = ("tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.payload")
    seen = tshark.fields(file, *names, options=("-d", "udp.port==8472,vxlan"))
    ours = []
    for packet in packets:
        one = segment(packet)
        assert isinstance(one, Segment)
        port = int.from_bytes(one.flow[-4:-2], "big")
        ours.append((*map(str, (port, one.sequence, one.acknowledged, one.size)), one.data.hex()))
    assert ours == seen


@each_tunnel
def test_a_connection_that_was_mirrored_is_read(tunnel: Tunnel) -> None:
    rows, importing = imported([tunnelled(packet, tunnel) for packet in spoken().close().packets])
    assert joined(rows) == ALL
    assert rows[0].connection is not None
    assert (rows[0].connection.client, rows[0].connection.broker) == ("10.0.0.7:40000", "10.0.0.1:29092")
    assert not importing.found.holes
    assert not importing.found.unread


@pytest.mark.parametrize("delay", [0, 1, 5, 100])
def test_packets_that_are_there_plain_and_mirrored_count_once(delay: int) -> None:
    plain = spoken().close().packets
    mirrored = [tunnelled(packet, erspan_2) for packet in plain]
    mirrored = [packet._replace(time_ns=packet.time_ns + delay * 1_000_000) for packet in mirrored]
    rows, importing = imported(sorted(plain + mirrored, key=lambda packet: packet.time_ns))
    assert joined(rows) == ALL
    assert importing.found.connections == {"Kafka": 1}
    assert not importing.found.holes


def test_what_a_mirror_cut_is_known_and_padding_behind_the_tunnel_is_no_data() -> None:
    dialogue = Dialogue()
    dialogue.send("request", b"question")
    packet = dialogue.packets[0]
    cut = tunnelled(packet._replace(data=packet.data[:-3]), vxlan)
    one = segment(cut._replace(data=cut.data + bytes(20)))
    assert isinstance(one, Segment)
    assert (one.data, one.size) == (b"quest", 8)


@pytest.mark.parametrize(
    ("behind", "what"),
    [
        (vxlan(ARP), "ARP in VXLAN"),
        (geneve(MACS + ipv4(1, bytes(8))), "ICMP in GENEVE"),
        (erspan_2(MACS + udp(53, b"?")), "UDP port 53 in ERSPAN"),
        (erspan_2(MACS + b"\0\x26" + bytes(38)), "LLC in ERSPAN"),
        (gre(0x880B, b"ppp", 0x3001), "PPP in GRE"),
        (gre(0x0006, bytes(40)), "LLC in GRE"),
        (gre(0x88CC, bytes(40)), "LLDP in GRE"),
        (geneve(bytes(40), kind=6), "LLC in GENEVE"),
        (ipv4(4, ipv4(47, b"\0\0\x08\x06" + bytes(28))[2:]), "ARP in GRE"),
        (ipv4(50, bytes(40)), "ESP (IPsec)"),
        (vlan(b"\x88\xcc" + bytes(40)), "LLDP"),
        (udp(4790, bytes(40)), "UDP port 4790"),
    ],
)
def test_what_is_no_tcp_is_named_with_its_tunnel(behind: bytes, what: str) -> None:
    assert segment(Packet(1, ETHERNET, MACS + behind)) == (NOT_TCP, what)


@pytest.mark.parametrize(
    ("behind", "what"),
    [
        (udp(4789, b"\x08\0\0"), "VXLAN"),
        (vxlan(ARP, flags=0), "VXLAN"),
        (vxlan(ARP[:13]), "Ethernet in VXLAN"),
        (udp(6081, b"\x02\0\x65\x58\0\0\x07\0" + bytes(4)), "GENEVE"),
        (geneve(ARP, first=0x40), "GENEVE"),
        (ipv4(47, b"\x30\0"), "GRE"),
        (gre(0x0800, bytes(40), 0x4000), "GRE"),
        (gre(0x0800, bytes(40), 0x0001), "GRE"),
        (gre(0x6558, b"", 0xB000), "Ethernet in GRE"),
        (gre(0x88BE, b"\x20" + bytes(60), 0x1000), "ERSPAN in GRE"),
        (gre(0x22EB, b"\x10" + bytes(60), 0x1000), "ERSPAN in GRE"),
        (gre(0x22EB, b"\x20" + bytes(5), 0x1000), "ERSPAN in GRE"),
        (vxlan(MACS + ipv4(6, bytes(19))), "TCP in VXLAN"),
        (vxlan(MACS + ipv4(6, bytes(20))), "TCP in VXLAN"),
        (b"\x88\x47\0\0\x11\x40\x70", "MPLS"),
        (udp(6081, b"\x02\0\x65\x58"), "GENEVE"),
        (ipv4(17, b"\0\0"), "UDP"),
        (vlan(b"\x08"), "VLAN"),
    ],
)
def test_headers_that_are_cut_or_cannot_be_are_named(behind: bytes, what: str) -> None:
    assert segment(Packet(1, ETHERNET, MACS + behind)) == (MALFORMED, what)


def test_tunnels_in_tunnels_have_an_end() -> None:
    packet = Dialogue().open().packets[0]
    inside = packet
    for _ in range((MOST_HEADERS - 3) // 3):  # of each GRE tunnel: IP, GRE, Ethernet
        inside = tunnelled(inside, lambda frame: gre(0x6558, frame))
    assert segment(inside) == segment(packet)
    for _ in range(3):
        inside = tunnelled(inside, lambda frame: gre(0x6558, frame))
    one = segment(inside)
    assert isinstance(one, Unread)
    assert one.why == MALFORMED


@given(st.sampled_from(list(TUNNELS.values())), st.data())
def test_damaged_tunnels_are_segments_or_named(tunnel: Tunnel, data: st.DataObject) -> None:
    packet = bytearray(tunnelled(Dialogue().open().packets[0], tunnel).data)
    for _ in range(data.draw(st.integers(0, 3))):
        packet[data.draw(st.integers(12, len(packet) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(packet[: data.draw(st.integers(0, len(packet)))])
    assert isinstance(segment(Packet(1, ETHERNET, damaged)), Segment | Unread)

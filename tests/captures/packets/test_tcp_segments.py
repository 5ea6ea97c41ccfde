"""Packets of all links to segments: the quick way and the one header by header, as dpkt reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dpkt.ip import IP
from dpkt.ip6 import IP6
from dpkt.tcp import TCP
from dpkt.udp import UDP
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.packets.layers import FRAGMENTS, IPV4, IPV6, MALFORMED, NOT_TCP, PORTS, Unread
from klamm.captures.packets.packet_files import Packet
from klamm.captures.packets.tcp_segments import Segment, backward, behind, endpoints, segment
from tests.captures.dialogue import LINKS, RAW, Dialogue

V4, V6 = ("10.0.0.7", "10.0.0.1"), ("fd00::7", "fd00::1")


def one(packet: Packet) -> Segment:
    found = segment(packet)
    assert isinstance(found, Segment), found
    return found


@pytest.mark.parametrize("hosts", [V4, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("link", LINKS)
def test_a_segment_is_the_same_on_every_link(link: str, hosts: tuple[str, str]) -> None:
    dialogue = Dialogue(*hosts, link=link, first=17)
    dialogue.send("request", b"question")
    found = one(dialogue.packets[0])
    assert (found.sequence, found.acknowledged, found.data, found.size) == (17, 5, b"question", 8)
    written = tuple(f"[{host}]" if ":" in host else host for host in hosts)
    assert endpoints(found.flow) == (f"{written[0]}:40000", f"{written[1]}:29092")
    assert endpoints(backward(found.flow)) == (f"{written[1]}:29092", f"{written[0]}:40000")


def by_dpkt(kind: Any, data: bytes) -> Segment | None:
    """The segment of a packet of IP as dpkt reads it; None where it finds none."""
    try:
        ip = kind(data)
        tcp = ip.data
        if kind is IP:
            size = ip.len - ip.hl * 4 if ip.len else -1
        else:
            size = ip.plen - sum(one.length for one in ip.all_extension_headers) if ip.plen else -1
        if not isinstance(tcp, TCP):
            return None
        size = len(tcp.data) if size < 0 else size - tcp.off * 4
    except Exception:  # on malformed packets dpkt raises anything
        return None
    flow = ip.src + ip.dst + PORTS.pack(tcp.sport, tcp.dport)
    return Segment(5, flow, tcp.seq, tcp.ack, tcp.flags & 0xFF, tcp.data, size) if size >= 0 else None


@given(
    st.sampled_from([V4, V6]),
    st.binary(max_size=30),
    st.integers(0, 10),
    st.integers(0, 40),
    st.integers(0, 255),
)
def test_both_ways_give_what_dpkt_gives(
    hosts: tuple[str, str], data: bytes, options: int, lacking: int, flags: int
) -> None:
    dialogue = Dialogue(*hosts, link="raw")
    tcp = TCP(sport=1, dport=2, seq=3, ack=4, off=5 + options, flags=flags, data=data)
    tcp.opts = bytes(options * 4)
    packet = dialogue.packed(tcp, "request", "response").data
    for whole in (packet, packet + b"padding"[: len(data)], packet[: max(1, len(packet) - lacking)]):
        kind, judge = (IPV4, IP) if hosts is V4 else (IPV6, IP6)
        quick = segment(Packet(5, RAW, whole))
        assert quick == behind(5, whole, kind, 0)
        assert (None if isinstance(quick, Unread) else quick) == by_dpkt(judge, whole)


def test_padding_is_no_data_and_what_the_capture_cut_is_known() -> None:
    dialogue = Dialogue()
    dialogue.send("request", b"question")
    packet = dialogue.packets[0]
    assert one(packet._replace(data=packet.data + bytes(6))).data == b"question"
    cut = one(packet._replace(data=packet.data[:-3]))
    assert (cut.data, cut.size) == (b"quest", 8)


@pytest.mark.parametrize("hosts", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_length_of_zero_that_offloading_leaves_is_that_of_the_packet(hosts: tuple[str, str]) -> None:
    dialogue = Dialogue(*hosts, link="raw")
    dialogue.send("request", b"question")
    data = bytearray(dialogue.packets[0].data)
    data[2:4] = data[4:6] = b"\0\0" if len(hosts[0]) > 7 else data[4:6]
    if ":" in hosts[0]:
        data[4:6] = b"\0\0"
    found = one(Packet(1, RAW, bytes(data)))
    assert (found.data, found.size) == (b"question", 8)


def with_options(tcp: Any) -> bytes:
    ip = IP(src=bytes(4), dst=bytes(4), p=6, hl=7, data=tcp)
    ip.opts, ip.len = bytes(8), 28 + len(tcp)
    return bytes(ip)


def extended(tcp: Any) -> bytes:
    """Hop-by-hop options, a routing header, then an atomic fragment: one that is whole (RFC 6946)."""
    data = b"\x2b\0" + bytes(6) + b"\x2c\0" + bytes(6) + b"\x06\0" + bytes(6) + bytes(tcp)
    return b"\x60" + bytes(3) + len(data).to_bytes(2, "big") + b"\0\x40" + bytes(32) + data


@pytest.mark.parametrize("made", [with_options, extended])
def test_headers_with_more_in_them_are_read(made: Callable[[Any], bytes]) -> None:
    found = one(Packet(1, RAW, made(TCP(sport=1, dport=2, seq=3, data=b"question"))))
    assert (found.sequence, found.data, found.size) == (3, b"question", 8)
    cut = one(Packet(1, RAW, made(TCP(sport=1, dport=2, seq=3, data=b"question"))[:-2]))
    assert (cut.data, cut.size) == (b"questi", 8)


def fragment(flags: int) -> bytes:
    ip = IP(src=bytes(4), dst=bytes(4), p=6, data=TCP(data=b"part"))
    ip.len = len(ip)
    data = bytearray(bytes(ip))
    data[6:8] = flags.to_bytes(2, "big")
    return bytes(data)


def fragment_6(flags: int) -> bytes:
    data = b"\x06\0" + flags.to_bytes(2, "big") + bytes(4) + bytes(TCP(data=b"part"))
    return b"\x60" + bytes(3) + len(data).to_bytes(2, "big") + b"\x2c\x40" + bytes(32) + data


def udp(to: int = 53) -> bytes:
    data = UDP(sport=50_000, dport=to, data=b"data", ulen=12)
    ip = IP(src=bytes(4), dst=bytes(4), p=17, data=data)
    ip.len = len(ip)
    return bytes(ip)


@pytest.mark.parametrize(
    ("packet", "why", "what"),
    [
        (Packet(1, 147, b"?" * 80), "of unknown links", "link type 147"),
        (Packet(1, 1, bytes(12) + b"\x08\x06" + bytes(28)), NOT_TCP, "ARP"),
        (Packet(1, 1, bytes(12) + b"\0\x26" + bytes(38)), NOT_TCP, "LLC"),
        (Packet(1, 1, bytes(12) + b"\x88\xb5" + bytes(38)), NOT_TCP, "EtherType 0x88b5"),
        (Packet(1, 113, bytes(14) + b"\0\4" + bytes(38)), NOT_TCP, "LLC"),
        (Packet(1, RAW, udp()), NOT_TCP, "UDP port 53"),
        (Packet(1, RAW, udp(40_000)), NOT_TCP, "UDP"),
        (Packet(1, RAW, bytes(IP(p=99))), NOT_TCP, "IP protocol 99"),
        (Packet(1, RAW, bytes(IP6(src=bytes(16), dst=bytes(16), nxt=58, data=b""))), NOT_TCP, "ICMPv6"),
        (Packet(1, RAW, fragment(0x2000)), FRAGMENTS, "TCP"),
        (Packet(1, RAW, fragment(0x0010)), FRAGMENTS, "TCP"),
        (Packet(1, RAW, fragment_6(0x0001)), FRAGMENTS, "TCP"),
        (Packet(1, RAW, fragment_6(0x0100)), FRAGMENTS, "TCP"),
        (Packet(1, RAW, fragment(0)[:30]), MALFORMED, "TCP"),
        (Packet(1, RAW, fragment(0)[:15]), MALFORMED, "IPv4"),
        (Packet(1, RAW, b"?"), MALFORMED, "IPv4"),
        (Packet(1, RAW, udp()[:22]), MALFORMED, "UDP"),
        (Packet(1, 1, b""), MALFORMED, "link"),
    ],
)
def test_what_is_no_segment_is_named(packet: Packet, why: str, what: str) -> None:
    assert segment(packet) == (why, what)


@given(st.sampled_from([0, 1, 101, 113, 276]), st.binary(max_size=120))
def test_any_bytes_are_a_segment_or_named(link_type: int, data: bytes) -> None:
    for start in (b"", bytes(12) + b"\x08\0\x45", bytes(12) + b"\x86\xdd\x60", b"\x60" + bytes(5)):
        assert isinstance(segment(Packet(1, link_type, start + data)), Segment | Unread)

"""Packets to segments of TCP.

What nearly every packet is, an IP header without options or extensions around TCP, is read here, twenty times
as fast as dpkt does it; dpkt reads the others.
"""

from __future__ import annotations

from ipaddress import ip_address
from struct import Struct
from typing import NamedTuple

from dpkt.ethernet import Ethernet
from dpkt.ip import IP
from dpkt.ip6 import IP6
from dpkt.tcp import TCP

from klamm.captures.packets.packet_files import Packet

# LINKTYPE of tcpdump.org: where the packet begins, and where its EtherType stands; -1: its version tells.
LINKS = {
    0: (4, -1),  # BSD loopback
    1: (14, 12),  # Ethernet
    12: (0, -1),  # raw IP, as some systems number it
    14: (0, -1),
    101: (0, -1),  # raw IP
    108: (4, -1),  # OpenBSD loopback
    113: (16, 14),  # Linux cooked
    228: (0, -1),  # raw IPv4
    229: (0, -1),  # raw IPv6
    276: (20, 0),  # Linux cooked, version 2
}
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
VERSIONS = {4: IPV4, 6: IPV6}
TCP_NUMBER = 6
FRAGMENT = 0x3FFF  # more fragments, or an offset

IPV4_HEADER = Struct(">xxHxxHxBxx8s")
IPV6_HEADER = Struct(">xxxxHBx32s")
TCP_HEADER = Struct(">4sIIBB")
PORTS = Struct(">HH")
FIN, SYN, RST, ACK = 1, 2, 4, 16

NOT_TCP, FRAGMENTED, MALFORMED = "not TCP", "IP fragments", "malformed or cut short"


class Segment(NamedTuple):
    """`flow` is from sender to receiver: two addresses, two ports. `size` is that of the data, which may have
    been cut in the capture.
    """

    time_ns: int
    flow: bytes
    sequence: int
    acknowledged: int  # position in the other direction; valid if `flags` has ACK
    flags: int
    data: bytes
    size: int


def segment(packet: Packet) -> Segment | str:
    """The TCP segment of a packet, or the reason why it is not read."""
    time_ns, link_type, data = packet
    link = LINKS.get(link_type)
    if link is None:
        return f"link type {link_type}"
    start, kind_at = link
    if len(data) <= start:
        return MALFORMED
    if kind_at < 0:
        kind = VERSIONS.get(data[start] >> 4, b"\0\0")
    else:
        kind = data[kind_at : kind_at + 2]
    if kind == IPV4 and data[start] == 0x45 and len(data) >= start + 40:
        total, fragment, protocol, addresses = IPV4_HEADER.unpack_from(data, start)
        if protocol == TCP_NUMBER and not fragment & FRAGMENT:
            end = start + total if total else len(data)
            return _segment(time_ns, data, addresses, start + 20, end)
    elif kind == IPV6 and len(data) >= start + 60:
        length, protocol, addresses = IPV6_HEADER.unpack_from(data, start)
        if protocol == TCP_NUMBER:
            return _segment(
                time_ns, data, addresses, start + 40, start + 40 + length if length else len(data)
            )
    return unusual(time_ns, bytes(12) + kind + data[start:])


def _segment(time_ns: int, data: bytes, addresses: bytes, at: int, end: int) -> Segment | str:
    """TCP from `at` on. Where offloading leaves a length of 0 in IP, the end is that of the packet."""
    ports, sequence, acknowledged, words, flags = TCP_HEADER.unpack_from(data, at)
    at += words >> 4 << 2
    if words < 0x50 or at > end:
        return MALFORMED
    return Segment(time_ns, addresses + ports, sequence, acknowledged, flags, data[at:end], end - at)


def unusual(time_ns: int, ethernet: bytes) -> Segment | str:
    """The slow reader for every packet: VLAN, options, extension headers, and packets without TCP."""
    try:
        ip = Ethernet(ethernet).data
        if isinstance(ip, IP):
            size = ip.len - ip.hl * 4 if ip.len else -1
            fragmented = ip.mf or ip.offset
        elif isinstance(ip, IP6):
            extensions = ip.all_extension_headers
            size = ip.plen - sum(one.length for one in extensions) if ip.plen else -1
            fragmented = any(getattr(one, "m_flag", 0) or getattr(one, "frag_off", 0) for one in extensions)
        else:
            return NOT_TCP
        tcp = ip.data
        if fragmented:
            return FRAGMENTED
        if not isinstance(tcp, TCP):
            return MALFORMED if ip.p == TCP_NUMBER else NOT_TCP
        size = len(tcp.data) if size < 0 else size - tcp.off * 4
        if size < 0:
            return MALFORMED
    except Exception:  # on malformed packets dpkt raises anything
        return MALFORMED
    flow = ip.src + ip.dst + PORTS.pack(tcp.sport, tcp.dport)
    return Segment(time_ns, flow, tcp.seq, tcp.ack, tcp.flags & 0xFF, tcp.data, size)


def endpoints(flow: bytes) -> tuple[str, str]:
    """Source and destination, as host:port."""
    size = (len(flow) - 4) // 2
    hosts = (str(ip_address(flow[at : at + size])) for at in (0, size))
    pattern = "[{}]:{}" if size == 16 else "{}:{}"
    source, target = map(pattern.format, hosts, PORTS.unpack(flow[-4:]))
    return source, target


def backward(flow: bytes) -> bytes:
    """The other direction of a flow."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]

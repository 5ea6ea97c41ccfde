"""Packets to segments of TCP.

Most packets are an IP header without options or extensions around TCP: these are read here, several times as
fast as header by header (`layers.py`), which reads all others.
"""

from __future__ import annotations

from ipaddress import ip_address
from struct import Struct
from typing import NamedTuple

from klamm.captures.packets.layers import (
    FRAGMENT,
    IPV4,
    IPV4_HEADER,
    IPV6,
    IPV6_HEADER,
    MALFORMED,
    PORTS,
    TCP,
    VERSIONS,
    Place,
    Unread,
    tcp_in,
    typed,
    within,
)
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
TCP_HEADER = Struct(">4sIIBB6x")
FIN, SYN, RST, ACK = 1, 2, 4, 16


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


def segment(packet: Packet) -> Segment | Unread:
    """The TCP segment of a packet, or the reason why it is not read."""
    time_ns, link_type, data = packet
    link = LINKS.get(link_type)
    if link is None:
        return Unread("of unknown links", f"link type {link_type}")
    start, kind_at = link
    size = len(data)
    if size <= start:
        return Unread(MALFORMED, "link")
    if kind_at < 0:
        kind = VERSIONS.get(data[start] >> 4, IPV4)
    else:
        kind = data[kind_at] << 8 | data[kind_at + 1]
    if kind == IPV4 and data[start] == 0x45 and size >= start + 40:
        _, total, fragment, protocol, addresses = IPV4_HEADER.unpack_from(data, start)
        if protocol == TCP and not fragment & FRAGMENT:
            end = start + total if total else size
            return _segment(time_ns, data, addresses, start + 20, end, size) or Unread(MALFORMED, "TCP")
    elif kind == IPV6 and size >= start + 60:
        length, protocol, addresses = IPV6_HEADER.unpack_from(data, start)
        if protocol == TCP:
            end = start + 40 + length if length else size
            return _segment(time_ns, data, addresses, start + 40, end, size) or Unread(MALFORMED, "TCP")
    return behind(time_ns, data, typed(kind), start)


def behind(time_ns: int, data: bytes, kind: int, at: int) -> Segment | Unread:
    """The segment behind any headers, of which the first begins at `at` and is of this EtherType."""
    place = tcp_in(data, Place(kind, at, len(data), len(data)))
    if isinstance(place, Unread):
        return place
    found = _segment(time_ns, data, place.addresses, place.at, place.end, place.limit)
    return found or Unread(MALFORMED, within("TCP", place.tunnel))


def _segment(time_ns: int, data: bytes, addresses: bytes, at: int, end: int, limit: int) -> Segment | None:
    """TCP from `at` to `end`, where it is whole: bytes from `limit` on are no part of it, or missing."""
    if at + TCP_HEADER.size > limit:
        return None
    ports, sequence, acknowledged, words, flags = TCP_HEADER.unpack_from(data, at)
    at += words >> 4 << 2
    if words < 0x50 or at > end:
        return None
    data = data[at : min(end, limit)]
    return Segment(time_ns, addresses + ports, sequence, acknowledged, flags, data, end - at)


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

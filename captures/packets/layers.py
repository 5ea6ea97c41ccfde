"""The headers before TCP, one function each: Ethernet, VLAN, MPLS, IP with options and extensions, and the
tunnels in which clouds and switches mirror traffic.

VXLAN is RFC 7348, GENEVE RFC 8926, GRE RFC 2784 and RFC 2890, ERSPAN draft-foschiano-erspan.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Final, Literal, NamedTuple

# Kinds of headers: below 256 the protocols of IP, from 1536 on EtherTypes, between them our own numbers.
TCP, UDP, GRE = 6, 17, 47
LLC, VXLAN, GENEVE, ERSPAN_1, DATAGRAM = 256, 257, 258, 259, 260
IPV4, ERSPAN_3, ETHERNET, PPP, IPV6, MPLS, ERSPAN_2 = 0x0800, 0x22EB, 0x6558, 0x880B, 0x86DD, 0x8847, 0x88BE

NAMES = {
    0: "IPv6 options", 1: "ICMP", 2: "IGMP", 4: "IPv4", TCP: "TCP", UDP: "UDP", 41: "IPv6",
    43: "IPv6 routing", 44: "IPv6 fragment", GRE: "GRE", 50: "ESP (IPsec)", 51: "AH (IPsec)", 58: "ICMPv6",
    60: "IPv6 options", 89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP", 135: "IPv6 mobility",
    LLC: "LLC", VXLAN: "VXLAN", GENEVE: "GENEVE", ERSPAN_1: "ERSPAN", DATAGRAM: "UDP",
    IPV4: "IPv4", 0x0806: "ARP", ERSPAN_3: "ERSPAN", ETHERNET: "Ethernet", 0x8100: "VLAN", 0x8809: "LACP",
    PPP: "PPP", IPV6: "IPv6", MPLS: "MPLS", 0x8863: "PPPoE", 0x8864: "PPPoE", 0x888E: "EAPOL", 0x88A8: "VLAN",
    ERSPAN_2: "ERSPAN", 0x88CC: "LLDP", 0x9100: "VLAN",
}  # fmt: skip
TUNNELS = {4789: VXLAN, 8472: VXLAN, 6081: GENEVE}  # by the port of UDP; Linux's own port for VXLAN is 8472
OPTIONAL_BITS = 0xB000  # of GRE: checksum, key, sequence number; each stands for 4 bytes
ROUTING, SEQUENCE, VERSION = 0x4000, 0x1000, 0x0007  # of GRE
EPHEMERAL = 32_768  # ports from here on say nothing
VERSIONS = {4: IPV4, 6: IPV6}
SMALLEST_TYPE = 0x0600  # a smaller number in Ethernet is a length
MOST_HEADERS = 32
FRAGMENT, FRAGMENT_6 = 0x3FFF, 0xFFF9  # more fragments, or an offset

IPV4_HEADER = Struct(">BxHxxHxBxx8s")
IPV6_HEADER = Struct(">xxxxHBx32s")
WORD = Struct(">H")
PORTS = Struct(">HH")

Why = Literal["not TCP", "IP fragments", "malformed or cut short", "of unknown links"]
NOT_TCP: Final = "not TCP"
FRAGMENTS: Final = "IP fragments"
MALFORMED: Final = "malformed or cut short"


class Unread(NamedTuple):
    """Why a packet has no segment, and what it is, such as "ARP in VXLAN"."""

    why: Why
    what: str


class Place(NamedTuple):
    """Where a header of this kind begins. By the last IP header the packet goes up to `end`; bytes from
    `limit` on are missing, or belong to headers before it.
    """

    kind: int
    at: int
    end: int
    limit: int
    addresses: bytes = b""  # of the last IP header, source and destination
    tunnel: str = ""  # the innermost one

    def then(self, kind: int, at: int, tunnel: str = "") -> Place:
        """The place behind a header, which is called `tunnel` if it is that of one."""
        return Place(kind, at, self.end, self.limit, self.addresses, tunnel or self.tunnel)


class _Malformed(Exception):
    """A header that cannot be."""


class _Fragment(Exception):
    """A part of an IP packet with this protocol in it."""

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol


def tcp_in(data: bytes, place: Place) -> Place | Unread:
    """Where TCP begins within `place`; its header may be cut. Any bytes are read or named, none raise."""
    try:
        for _ in range(MOST_HEADERS):
            if place.kind == TCP:
                return place
            if place.kind not in READERS:
                return Unread(NOT_TCP, _name(data, place))
            behind = READERS[place.kind](data, place)
            if behind.at > min(behind.limit, behind.end):
                break
            place = behind
    except _Fragment as part:
        return Unread(FRAGMENTS, _name(data, place.then(part.protocol, place.at)))
    except (StructError, IndexError, _Malformed):
        pass
    return Unread(MALFORMED, _name(data, place))


def _name(data: bytes, place: Place) -> str:
    kind = place.kind
    name = NAMES.get(kind) or (f"EtherType 0x{kind:04x}" if kind >= SMALLEST_TYPE else f"IP protocol {kind}")
    if kind == DATAGRAM:
        port = min(PORTS.unpack_from(data, place.at))
        name += f" port {port}" if port < EPHEMERAL else ""
    return within(name, place.tunnel)


def within(name: str, tunnel: str) -> str:
    """The name of something that was in a tunnel, or in none ("")."""
    return f"{name} in {tunnel}" if tunnel else name


def typed(number: int) -> int:
    """The kind for the number in place of an EtherType, which may also be a length."""
    return number if number >= SMALLEST_TYPE else LLC


def _ethernet(data: bytes, place: Place) -> Place:
    return _typed(data, place, place.at + 12)


def _vlan(data: bytes, place: Place) -> Place:
    return _typed(data, place, place.at + 2)


def _typed(data: bytes, place: Place, at: int) -> Place:
    return place.then(_type_at(data, at), at + 2)


def _type_at(data: bytes, at: int) -> int:
    return typed(WORD.unpack_from(data, at)[0])


def _mpls(data: bytes, place: Place) -> Place:
    """One label; behind the last the version of IP tells."""
    at, is_last = place.at + 4, data[place.at + 2] & 1
    kind = VERSIONS.get(data[at] >> 4) if is_last else MPLS
    if kind is None:
        raise _Malformed
    return place.then(kind, at)


def _ipv4(data: bytes, place: Place) -> Place:
    """Where offloading leaves a length of 0, the end is that of the packet. So in IPv6."""
    first, total, fragment, protocol, addresses = IPV4_HEADER.unpack_from(data, place.at)
    size = (first & 15) * 4
    if first >> 4 != 4 or size < 20:
        raise _Malformed
    return _ip(
        place, place.at + size, place.at + total if total else place.end, protocol, addresses, fragment
    )


def _ipv6(data: bytes, place: Place) -> Place:
    length, protocol, addresses = IPV6_HEADER.unpack_from(data, place.at)
    at = place.at + 40
    return _ip(place, at, at + length if length else place.end, protocol, addresses)


def _ip(place: Place, at: int, end: int, protocol: int, addresses: bytes, fragment: int = 0) -> Place:
    if fragment & FRAGMENT:
        raise _Fragment(protocol)
    return Place(protocol, at, end, min(place.limit, place.end), addresses, place.tunnel)


def _extension(data: bytes, place: Place) -> Place:
    return place.then(data[place.at], place.at + (data[place.at + 1] + 1) * 8)


def _authentication(data: bytes, place: Place) -> Place:
    return place.then(data[place.at], place.at + (data[place.at + 1] + 2) * 4)


def _fragment(data: bytes, place: Place) -> Place:
    """One that is whole (RFC 6946) goes on."""
    (offset,) = WORD.unpack_from(data, place.at + 2)
    if offset & FRAGMENT_6:
        raise _Fragment(data[place.at])
    return place.then(data[place.at], place.at + 8)


def _ip_in_ip(data: bytes, place: Place) -> Place:
    kind = IPV4 if place.kind == 4 else IPV6
    return READERS[kind](data, place.then(kind, place.at, "IP"))


def _udp(data: bytes, place: Place) -> Place:
    _, port = PORTS.unpack_from(data, place.at)
    kind = TUNNELS.get(port)
    return place.then(DATAGRAM, place.at) if kind is None else place.then(kind, place.at + 8)


def _vxlan(data: bytes, place: Place) -> Place:
    if not data[place.at] & 8:
        raise _Malformed  # the flag that says that there is an identifier
    return place.then(ETHERNET, place.at + 8, "VXLAN")


def _geneve(data: bytes, place: Place) -> Place:
    """Its options are skipped: `first` has their length in words of 4 bytes."""
    first = data[place.at]
    if first >> 6:
        raise _Malformed
    return place.then(_type_at(data, place.at + 2), place.at + 8 + (first & 0x3F) * 4, "GENEVE")


def _gre(data: bytes, place: Place) -> Place:
    """PPTP has PPP in a version of its own (RFC 2637)."""
    (flags,) = WORD.unpack_from(data, place.at)
    kind = _type_at(data, place.at + 2)
    if flags & (ROUTING | VERSION) and kind != PPP:
        raise _Malformed
    if kind == ERSPAN_2 and not flags & SEQUENCE:
        kind = ERSPAN_1
    return place.then(kind, place.at + 4 + 4 * (flags & OPTIONAL_BITS).bit_count(), "GRE")


def _erspan_1(_: bytes, place: Place) -> Place:
    return place.then(ETHERNET, place.at, "ERSPAN")


def _erspan_2(data: bytes, place: Place) -> Place:
    if data[place.at] >> 4 != 1:
        raise _Malformed
    return place.then(ETHERNET, place.at + 8, "ERSPAN")


def _erspan_3(data: bytes, place: Place) -> Place:
    """The last bit says that 8 bytes of the platform follow."""
    if data[place.at] >> 4 != 2:
        raise _Malformed
    more = data[place.at + 11] & 1
    return place.then(ETHERNET, place.at + 12 + more * 8, "ERSPAN")


READERS: dict[int, Callable[[bytes, Place], Place]] = {
    **dict.fromkeys((0, 43, 60, 135), _extension),
    4: _ip_in_ip, UDP: _udp, 41: _ip_in_ip, 44: _fragment, GRE: _gre, 51: _authentication,
    VXLAN: _vxlan, GENEVE: _geneve, ERSPAN_1: _erspan_1, ERSPAN_2: _erspan_2, ERSPAN_3: _erspan_3,
    IPV4: _ipv4, IPV6: _ipv6, MPLS: _mpls, ETHERNET: _ethernet,
    **dict.fromkeys((0x8100, 0x88A8, 0x9100), _vlan),
}  # fmt: skip

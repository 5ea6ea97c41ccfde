"""Headers of tunnels around packets, as the clouds and switches that mirror traffic write them."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

from klamm.captures.packets.packet_files import Packet
from tests.captures.dialogue import ETHERNET

V4, V6 = bytes([192, 0, 2, 1, 192, 0, 2, 2]), bytes(15) + b"\1" + bytes(15) + b"\2"
MACS = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])


def ipv4(protocol: int, data: bytes) -> bytes:
    """As a packet on Ethernet: from its EtherType on. So in `ipv6`."""
    return pack(">HBBHHHBBH", 0x0800, 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0) + V4 + data


def ipv6(protocol: int, data: bytes) -> bytes:
    return pack(">HIHBB", 0x86DD, 6 << 28, len(data), protocol, 64) + V6 + data


def udp(port: int, data: bytes) -> bytes:
    return ipv4(17, pack(">HHHH", 50_000, port, 8 + len(data), 0) + data)


def vxlan(frame: bytes, port: int = 4789, flags: int = 8) -> bytes:
    return udp(port, pack(">B3xI", flags, 7 << 8) + frame)


def geneve(frame: bytes, options: bytes = b"", kind: int = 0x6558, first: int = 0) -> bytes:
    return udp(6081, pack(">BBHI", first | len(options) // 4, 0, kind, 7 << 8) + options + frame)


def gre(kind: int, data: bytes, flags: int = 0) -> bytes:
    """`flags`: 0x8000 a checksum, 0x2000 a key, 0x1000 a sequence number."""
    fields = b"".join(pack(">I", 5) for bit in (0x8000, 0x2000, 0x1000) if flags & bit)
    return ipv4(47, pack(">HH", flags, kind) + fields + data)


def erspan_1(frame: bytes) -> bytes:
    return gre(0x88BE, frame)


def erspan_2(frame: bytes, flags: int = 0x1000) -> bytes:
    return gre(0x88BE, pack(">HHI", 1 << 12 | 100, 5, 3) + frame, flags)


def erspan_3(frame: bytes, platform: bytes = b"") -> bytes:
    return gre(0x22EB, pack(">HHIHH", 2 << 12 | 100, 5, 12345, 0, bool(platform)) + platform + frame, 0x1000)


def vlan(typed: bytes, kind: int = 0x8100) -> bytes:
    return pack(">HH", kind, 9) + typed


# Each makes, of a frame of Ethernet, what stands behind the addresses of the outer frame.
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "VXLAN": vxlan,
    "VXLAN on Linux's port": lambda frame: vxlan(frame, 8472),
    "GENEVE": geneve,
    "GENEVE with options": lambda frame: geneve(frame, bytes(range(24))),
    "GENEVE with most options": lambda frame: geneve(frame, bytes(252)),
    "GENEVE with IP": lambda frame: geneve(frame[14:], kind=int.from_bytes(frame[12:14], "big")),
    "GRE with IP": lambda frame: gre(int.from_bytes(frame[12:14], "big"), frame[14:]),
    "GRE with Ethernet": lambda frame: gre(0x6558, frame),
    "GRE with a checksum": lambda frame: gre(0x6558, frame, 0x8000),
    "GRE with a key": lambda frame: gre(0x6558, frame, 0x2000),
    "GRE with all": lambda frame: gre(0x6558, frame, 0xB000),
    "ERSPAN I": erspan_1,
    "ERSPAN II": erspan_2,
    "ERSPAN II with a key": lambda frame: erspan_2(frame, 0x3000),
    "ERSPAN III": erspan_3,
    "ERSPAN III of a platform": lambda frame: erspan_3(frame, platform=bytes(8)),
    "IP in IP": lambda frame: ipv4(4 if frame[12] == 8 else 41, frame[14:]),
    "IP in IPv6": lambda frame: ipv6(4 if frame[12] == 8 else 41, frame[14:]),
    "MPLS": lambda frame: pack(">HII", 0x8847, 1 << 12 | 64, 2 << 12 | 1 << 8 | 64) + frame[14:],
    "VLAN around VXLAN": lambda frame: vlan(vxlan(frame)),
    "QinQ around ERSPAN": lambda frame: vlan(vlan(erspan_2(frame)), 0x88A8),
    "VLAN in GENEVE": lambda frame: geneve(frame[:12] + vlan(frame[12:])),
    "VXLAN in GRE": lambda frame: gre(0x0800, vxlan(frame)[2:]),
}


def tunnelled(packet: Packet, tunnel: Callable[[bytes], bytes]) -> Packet:
    """A packet of Ethernet in a tunnel of Ethernet."""
    return packet._replace(link_type=ETHERNET, data=MACS + tunnel(packet.data))

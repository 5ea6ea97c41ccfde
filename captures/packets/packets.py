"""Builds TCP packets that could have carried a connection, for tools that read packets.

The packets begin with their IP header. Nothing is lost, sent twice or late, and the windows are wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import NamedTuple

from klamm.decoders.schema import Side

IPV4 = Struct(">BBHHHBBH8s")
IPV6 = Struct(">IHBB32s")
TCP = Struct(">HHIIBBHHH")
PSEUDO = Struct(">II")  # the TCP length and the protocol, as in IPv6; in IPv4 they add up to the same
PROTOCOL, HOPS, DO_NOT_FRAGMENT = 6, 64, 0x4000
FIN, SYN, RESET, PUSH, ACK = 1, 2, 4, 8, 16
SEGMENT = 65_475  # bytes of data; with the headers of IPv6 too it fits in a packet of 64 KiB
SYN_OPTIONS = Struct(">BBHBBBB").pack(2, 4, SEGMENT, 1, 3, 3, 14)  # segment size; window scale 2 ** 14
WINDOW = 0xFFFF
UNACKNOWLEDGED = 1 << 28  # bytes, a quarter of the window: then the other end says that it has them
ALL_ONES = 0xFFFF


class End(NamedTuple):
    address: IPv4Address | IPv6Address
    port: int


class Packet(NamedTuple):
    """`data` is the beginning of a packet of `size` bytes, or all of it."""

    data: bytes
    size: int


class TcpConnection:
    """One connection. `first` is the first sequence number of both ends; both have one IP version."""

    __slots__ = ("acknowledged", "next", "ways")

    def __init__(self, client: End, broker: End, first: int) -> None:
        self.ways = {"request": _way(client, broker), "response": _way(broker, client)}
        self.next = {"request": first, "response": first}  # sequence numbers, by sender
        self.acknowledged = dict(self.next)

    def opened(self) -> Iterator[Packet]:
        """The handshake."""
        yield self._control("request", SYN, SYN_OPTIONS)
        yield self._control("response", SYN | ACK, SYN_OPTIONS)
        yield self._control("request", ACK)

    def sent(self, side: Side, data: bytes, size: int) -> Iterator[Packet]:
        """`size` bytes, of which `data` is the beginning; the packets are cut where the rest is not known."""
        for start in range(0, size, SEGMENT):
            length = min(SEGMENT, size - start)
            yield self._packet(
                side, ACK | PUSH * (start + length == size), data[start : start + length], length
            )
            self.next[side] += length
            if self.next[side] - self.acknowledged[side] > UNACKNOWLEDGED:
                yield self._control("response" if side == "request" else "request", ACK)

    def missed(self, side: Side, size: int) -> None:
        """Skips bytes, so that no packet has them."""
        self.next[side] += size

    def closed(self, first: Side = "request", reset: bool = False) -> Iterator[Packet]:
        """`first` is the end that closes first."""
        if reset:
            yield self._control(first, RESET | ACK)
            return
        yield self._control(first, FIN | ACK)
        yield self._control("response" if first == "request" else "request", FIN | ACK)
        yield self._control(first, ACK)

    def _control(self, side: Side, flags: int, options: bytes = b"") -> Packet:
        packet = self._packet(side, flags, b"", 0, options)
        self.next[side] += bool(flags & (SYN | FIN))
        return packet

    def _packet(self, side: Side, flags: int, data: bytes, length: int, options: bytes = b"") -> Packet:
        other: Side = "response" if side == "request" else "request"
        way, seen = self.ways[side], 0
        if flags & ACK:
            self.acknowledged[other] = self.next[other]
            seen = self.next[other] & 0xFFFFFFFF
        header_size = TCP.size + len(options)
        size = header_size + length
        fields = *way.ports, self.next[side] & 0xFFFFFFFF, seen, header_size << 2, flags, WINDOW
        known = 0
        if len(data) == length:
            known = checksum(
                way.addresses, PSEUDO.pack(size, PROTOCOL), TCP.pack(*fields, 0, 0), options, data
            )
        return Packet(way.ip(size) + TCP.pack(*fields, known, 0) + options + data, way.ip_size + size)


class _Way(NamedTuple):
    """One direction of the connection. `addresses` are both, packed."""

    addresses: bytes
    ports: tuple[int, int]

    @property
    def ip_size(self) -> int:
        return IPV4.size if len(self.addresses) == 8 else IPV6.size

    def ip(self, size: int) -> bytes:
        """The IP header of a packet with so many bytes of data."""
        if self.ip_size == IPV6.size:
            return IPV6.pack(6 << 28, size, PROTOCOL, HOPS, self.addresses)
        fields = 0x45, 0, IPV4.size + size, 0, DO_NOT_FRAGMENT, HOPS, PROTOCOL
        return IPV4.pack(*fields, checksum(IPV4.pack(*fields, 0, self.addresses)), self.addresses)


def _way(source: End, target: End) -> _Way:
    return _Way(source.address.packed + target.address.packed, (source.port, target.port))


def checksum(*parts: bytes) -> int:
    """The checksum of IP and TCP (RFC 1071); all parts but the last have an even number of bytes."""
    total = sum([int.from_bytes(part + b"\0" if len(part) % 2 else part) % ALL_ONES for part in parts])
    return ALL_ONES - total % ALL_ONES

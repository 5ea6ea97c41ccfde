"""Files of packets, read one packet at a time: pcap (micro- and nanoseconds, both byte orders) and pcapng.

Times are whole nanoseconds, and each interface of a pcapng file has its own link and clock.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Iterator
from io import BufferedReader
from itertools import chain
from struct import Struct
from typing import NamedTuple
from zlib import error as ZlibError

LARGEST_BYTES = 64 << 20  # of a packet or block; more than any tool writes
MOST_EMPTY = 1000  # packets one after the other: a file of zeros would have millions
GZIP = b"\x1f\x8b"

# magic: byte order, nanoseconds in a unit of time, bytes of a packet's header
PCAP = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000, 16),
    bytes.fromhex("a1b2c3d4"): (">", 1000, 16),
    bytes.fromhex("4d3cb2a1"): ("<", 1, 16),
    bytes.fromhex("a1b23c4d"): (">", 1, 16),
    bytes.fromhex("34cdb2a1"): ("<", 1000, 24),  # of Linux 2.2
    bytes.fromhex("a1b2cd34"): (">", 1000, 24),
}

# Blocks of pcapng (draft-ietf-opsawg-pcapng). A section may have another byte order than the one before it.
SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
PCAPNG = SECTION.to_bytes(4, "big")
ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
END, RESOLUTION, OFFSET = 0, 9, 14  # options of an interface: opt_endofopt, if_tsresol, if_tsoffset


class Packet(NamedTuple):
    """One packet; `data` may be only its first bytes. `link_type` is a LINKTYPE of tcpdump.org."""

    time_ns: int  # since 1970, as the file says: any number
    link_type: int
    data: bytes


class BadFile(ValueError):
    """No file of packets, or the rest of one that cannot be read; the text says why."""


def in_order(
    files: Iterable[tuple[str, BufferedReader]], problems: list[str]
) -> Iterator[tuple[str, Iterator[Packet]]]:
    """Sorts files, given as names and packets, by the times of their first packets: one capture may be cut
    into several. A file that cannot be read becomes a line of `problems`.
    """
    begun = []
    for name, file in files:
        known = _telling(name, file, problems)
        first = next(known, None)
        if first is not None:
            begun.append((first.time_ns, name, chain([first], known)))
    for _, name, known in sorted(begun, key=lambda one: one[0]):
        yield name, known


def _telling(name: str, file: BufferedReader, problems: list[str]) -> Iterator[Packet]:
    try:
        yield from packets(file)
    except BadFile as bad:
        problems.append(f"{name}: {bad}")


def packets(file: BufferedReader) -> Iterator[Packet]:
    """Reads all packets of a file, in its order, gzip or not. Raises BadFile behind the last readable one."""
    try:
        if file.peek(2)[:2] == GZIP:
            with gzip.open(file) as unzipped:
                yield from _packets(BufferedReader(unzipped))
        else:
            yield from _packets(file)
    except (EOFError, gzip.BadGzipFile, ZlibError):
        raise BadFile("its compressed data is damaged or cut short") from None


def _packets(file: BufferedReader) -> Iterator[Packet]:
    magic = file.peek(4)[:4]
    if magic in PCAP:
        yield from _pcap(file, *PCAP[magic])
    elif magic == PCAPNG:
        yield from _pcapng(file)
    else:
        raise BadFile("it is no pcap or pcapng file" if magic else "it is empty")


def _part(file: BufferedReader, size: int, what: str) -> bytes:
    if not 0 <= size <= LARGEST_BYTES:
        raise BadFile(f"{what} is damaged: it announces {size} bytes; the rest is not read")
    found = file.read(size)
    if len(found) < size:
        raise BadFile(f"it ends within {what}")
    return found


def _pcap(file: BufferedReader, order: str, unit_ns: int, header_bytes: int) -> Iterator[Packet]:
    *_, link_type = Struct(f"{order}4xHHiIII").unpack(_part(file, 24, "its header"))
    link_type &= 0xFFFF  # the upper bits are the length of check sequences
    header = Struct(f"{order}IIII{header_bytes - 16}x")
    number, empty = 1, 0
    while start := file.read(header.size):
        if len(start) < header.size:
            raise BadFile(f"it ends within packet {number}")
        seconds, units, size, _ = header.unpack(start)
        empty = 0 if size else empty + 1
        if empty > MOST_EMPTY:
            raise BadFile(f"{MOST_EMPTY:,} packets up to packet {number} have no bytes; the rest is not read")
        yield Packet(
            seconds * 1_000_000_000 + units * unit_ns, link_type, _part(file, size, f"packet {number}")
        )
        number += 1


class _Interface(NamedTuple):
    """Times count units of 1/`resolution` s from `offset_ns` on."""

    link_type: int
    snap_bytes: int  # 0: packets are whole
    resolution: int
    offset_ns: int


class _Section:
    """The byte order and the interfaces, which the packets of a section need."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.interfaces: list[_Interface] = []
        self.time_ns = 0  # simple packets have none, and get that of the one before
        shapes = {INTERFACE: "HHI", OLD_PACKET: "HHIIII", SIMPLE_PACKET: "I", PACKET: "IIIII"}
        self.shapes = {kind: Struct(order + shape) for kind, shape in shapes.items()}

    def read(self, kind: int, body: bytes) -> Packet | None:
        """A packet, if the block is one. struct.error or IndexError where it is damaged."""
        if kind not in self.shapes:
            return None
        shape = self.shapes[kind]
        fields = shape.unpack_from(body)
        if kind == INTERFACE:
            self.interfaces.append(self._interface(fields[0], fields[2], body[shape.size :]))
            return None
        if kind == SIMPLE_PACKET:
            interface = self.interfaces[0]
            size = min(fields[0], interface.snap_bytes or fields[0])
        else:
            *number, high, low, size, _ = fields
            interface = self.interfaces[number[0]]
            self.time_ns = (high << 32 | low) * 1_000_000_000 // interface.resolution + interface.offset_ns
        if size > len(body) - shape.size:
            raise IndexError
        return Packet(self.time_ns, interface.link_type, body[shape.size : shape.size + size])

    def _interface(self, link_type: int, snap_bytes: int, options: bytes) -> _Interface:
        resolution, offset_s = 1_000_000, 0
        while len(options) >= 4:
            code, size = struct.unpack_from(f"{self.order}HH", options)
            if code == END:
                break
            if code == RESOLUTION:
                resolution = 2 ** (options[4] & 0x7F) if options[4] & 0x80 else 10 ** options[4]
            elif code == OFFSET:
                (offset_s,) = struct.unpack_from(f"{self.order}q", options, 4)
            options = options[4 + size + -size % 4 :]
        return _Interface(link_type, snap_bytes, resolution, offset_s * 1_000_000_000)


def _pcapng(file: BufferedReader) -> Iterator[Packet]:
    section = _Section("<")
    number = 1
    while start := file.read(8):
        what = f"block {number}"
        if len(start) < 8:
            raise BadFile(f"it ends within {what}")
        if start.startswith(PCAPNG):
            order = ORDERS.get(file.peek(4)[:4])
            if order is None and len(file.peek(4)) >= 4:
                raise BadFile(f"{what} is damaged: it has no byte order; the rest is not read")
            section = _Section(order or "<")
        kind, size = struct.unpack(f"{section.order}II", start)
        body = _part(file, size - 8, what)
        try:
            packet = section.read(kind, body[:-4])
        except (struct.error, IndexError):
            raise BadFile(f"{what} is damaged; the rest is not read") from None
        if packet is not None:
            yield packet
        number += 1

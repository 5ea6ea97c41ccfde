"""Blocks of a pcapng file, little-endian, times in nanoseconds (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address
from struct import Struct

SECTION, INTERFACE, NAMES, PACKET = 0x0A0D0D0A, 1, 4, 6
RAW_IP = 101  # the link type: packets begin with their IP header
WHOLE = 0  # packets are kept whole
COMMENT, APPLICATION, NAME, DESCRIPTION, RESOLUTION = 1, 4, 2, 3, 9
NANOSECONDS = b"\x09"  # 10 ** -9

BLOCK = Struct("<II")
OPTION = Struct("<HH")
ENDING = Struct("<I")
SECTION_HEAD = Struct("<IHHq")
INTERFACE_HEAD = Struct("<HHI")
PACKET_HEAD = Struct("<IIIII")

Options = Iterable[tuple[int, bytes]]


def section(application: str, comment: str) -> bytes:
    """The first block of a file."""
    head = SECTION_HEAD.pack(0x1A2B3C4D, 1, 0, -1)  # byte order, version, unknown length
    return _block(SECTION, head, [(COMMENT, comment.encode()), (APPLICATION, application.encode())])


def interface(name: str, description: str) -> bytes:
    """Packets name an interface by its place among those of the file."""
    options = [(NAME, name.encode()), (DESCRIPTION, description.encode()), (RESOLUTION, NANOSECONDS)]
    return _block(INTERFACE, INTERFACE_HEAD.pack(RAW_IP, 0, WHOLE), options)


def names(known: Mapping[IPv4Address | IPv6Address, str]) -> bytes:
    """Names of addresses."""
    records = (
        _option(1 if at.version == 4 else 2, at.packed + name.encode() + b"\0") for at, name in known.items()
    )
    return _block(NAMES, b"".join(records) + OPTION.pack(0, 0))


def packet(interface: int, time_ns: int, data: bytes, size: int, comment: str = "") -> bytes:
    """`data` is the packet, or its beginning where it has `size` bytes and the rest is not known."""
    head = PACKET_HEAD.pack(interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), size)
    return _block(PACKET, head + data + _padding(data), [(COMMENT, comment.encode())] if comment else ())


def _block(kind: int, body: bytes, options: Options = ()) -> bytes:
    written_options = b"".join(_option(code, value) for code, value in options)
    if written_options:
        written_options += OPTION.pack(0, 0)
    size = 12 + len(body) + len(written_options)
    return BLOCK.pack(kind, size) + body + written_options + ENDING.pack(size)


def _option(code: int, value: bytes) -> bytes:
    return OPTION.pack(code, len(value)) + value + _padding(value)


def _padding(data: bytes) -> bytes:
    return bytes(-len(data) % 4)

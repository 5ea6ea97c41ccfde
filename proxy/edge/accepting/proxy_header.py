"""The header of the PROXY protocol, version 1 (text) and 2 (binary), with which a load balancer tells the
address of its client. Pure: bytes in, the header out.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

TEXT, BINARY = b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"  # the first bytes of version 1 and 2
LONGEST_TEXT = 107  # bytes of version 1, the end of its line included
LONGEST = 4096  # bytes of version 2 behind its first 16
START = Struct(">12sBBH")  # signature, version and command, family and protocol, bytes that follow
LOCAL, PROXY = 0, 1
UNSPEC, STREAM = 0, 1
TCP4, TCP6, UNIX = Struct(">4s4sHH"), Struct(">16s16sHH"), Struct(">108s108s")
FAMILIES = {1: TCP4, 2: TCP6, 3: UNIX}
TLV = Struct(">BH")
CRC32C, CHECKSUM = 3, Struct(">I")


class BadHeader(ValueError):
    """The bytes begin as a header and are none."""


class NoHeader(ValueError):
    """The bytes do not begin as a header."""


class ProxyHeader(NamedTuple):
    """`size` in bytes. `client` None: the balancer speaks for itself, or does not know the client."""

    size: int
    client: tuple[str, int] | None


def read_header(data: bytes) -> ProxyHeader | None:
    """The header at the start of these bytes; None while more of them are needed. Raises BadHeader and
    NoHeader.
    """
    if data[:6] == TEXT[: len(data)]:
        return _text(data)
    if data[:12] == BINARY[: len(data)]:
        return _binary(data)
    raise NoHeader


def _text(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, LONGEST_TEXT)
    if end < 0:
        if len(data) >= LONGEST_TEXT:
            raise BadHeader(f"version 1 has no end within {LONGEST_TEXT} bytes")
        return None
    family, *words = data[len(TEXT) : end].decode("latin-1").split(" ")
    if family == "UNKNOWN":
        return ProxyHeader(end + 2, None)
    if family not in ("TCP4", "TCP6") or len(words) != 4:
        raise BadHeader("version 1 is PROXY TCP4 or TCP6, two addresses and two ports")
    make = IPv4Address if family == "TCP4" else IPv6Address
    try:
        source, _ = (_host(make(word)) for word in words[:2])
    except ValueError:
        raise BadHeader(f"version 1 has an address that is none of {family}") from None
    port, _ = (_port(word) for word in words[2:])
    return ProxyHeader(end + 2, (source, port))


def _port(word: str) -> int:
    if not (word.isascii() and word.isdigit() and str(int(word[:6])) == word and int(word) <= 65535):
        raise BadHeader("version 1 has a port that is no number from 0 to 65535")
    return int(word)


def _binary(data: bytes) -> ProxyHeader | None:
    if len(data) < START.size:
        return None
    _, what, kind, more = START.unpack_from(data)
    version, command, size = what >> 4, what & 15, START.size + more
    if version != 2 or command not in (LOCAL, PROXY):
        raise BadHeader(f"version {version}, command {command} is unknown; known are 0 and 1 of version 2")
    if more > LONGEST:
        raise BadHeader(f"version 2 announces {more} bytes; klamm takes {LONGEST}")
    if len(data) < size:
        return None
    header, family, protocol = data[:size], kind >> 4, kind & 15
    if command == LOCAL or UNSPEC in (family, protocol):
        return ProxyHeader(size, None)
    if family not in FAMILIES or protocol != STREAM:
        raise BadHeader(f"family {family}, protocol {protocol} is unknown; known are TCP and UNIX streams")
    layout = FAMILIES[family]
    if more < layout.size:
        raise BadHeader(f"version 2 has {more} bytes for the addresses; they take {layout.size}")
    _check(header, START.size + layout.size)
    if layout is UNIX:
        return ProxyHeader(size, None)
    source, _, port, _ = layout.unpack_from(header, START.size)
    return ProxyHeader(size, (_host(ip_address(source)), port))


def _check(header: bytes, at: int) -> None:
    """Check the extensions from `at` on: their sizes, and the checksum if there is one."""
    while at < len(header):
        value = at + TLV.size
        if value > len(header):
            raise BadHeader("version 2 has an extension that is cut short")
        kind, size = TLV.unpack_from(header, at)
        at = value + size
        if at > len(header) or (kind == CRC32C and size != CHECKSUM.size):
            raise BadHeader("version 2 has an extension of a wrong size")
        if kind == CRC32C:
            (announced,) = CHECKSUM.unpack_from(header, value)
            if crc32c(header[:value] + bytes(CHECKSUM.size) + header[at:]) != announced:
                raise BadHeader("version 2 has a wrong checksum (CRC32C)")


def _host(address: IPv4Address | IPv6Address) -> str:
    """As klamm writes hosts: an IPv4 address within IPv6 in its IPv4 form."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise ValueError("a zone means nothing to another host")
        return str(address.ipv4_mapped or address)
    return str(address)

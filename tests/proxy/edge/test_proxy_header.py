"""Headers of the PROXY protocol as load balancers write them, cut anywhere, and those that are none."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.edge.accepting.proxy_header import BadHeader, NoHeader, ProxyHeader, read_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
FOLLOWS = b"\0\0\0\x1e\0\x12\0\3"  # the first bytes of an ApiVersions request
FOUR, SIX = ("10.1.2.3", 40001), ("2001:db8::7", 40002)


def text(words: str) -> bytes:
    return f"PROXY {words}\r\n".encode()


def addresses(client: tuple[str, int], server: tuple[str, int]) -> bytes:
    """The addresses of a TCP connection."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    hosts = b"".join(socket.inet_pton(family, each[0]) for each in (client, server))
    return hosts + struct.pack(">HH", client[1], server[1])


def binary(content: bytes, kind: int = 0x11, command: int = 0x21) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, kind, len(content)) + content


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack(">BH", kind, len(value)) + value


def checked(content: bytes, kind: int = 0x11, behind: bytes = b"") -> bytes:
    """With the extension that has the checksum of the whole header."""
    blank = binary(content + tlv(3, bytes(4)) + behind, kind)
    return binary(content + tlv(3, struct.pack(">I", crc32c(blank))) + behind, kind)


T4 = addresses(FOUR, ("10.0.0.1", 9092))
T6 = addresses(SIX, ("2001:db8::1", 9092))
HEADERS: dict[str, tuple[bytes, tuple[str, int] | None]] = {
    "v1 TCP4": (text("TCP4 10.1.2.3 10.0.0.1 40001 9092"), FOUR),
    "v1 TCP6": (text("TCP6 2001:db8::7 2001:db8::1 40002 9092"), SIX),
    "v1 IPv4 in TCP6": (text("TCP6 ::ffff:10.1.2.3 ::1 40001 9092"), FOUR),
    "v1 UNKNOWN": (text("UNKNOWN"), None),
    "v1 UNKNOWN with anything": (text("UNKNOWN ffff:f...f:ffff x 1"), None),
    "v1 of 107 bytes": (text("UNKNOWN " + "x" * 91), None),
    "v2 TCP4": (binary(T4), FOUR),
    "v2 TCP6": (binary(T6, 0x21), SIX),
    "v2 IPv4 in TCP6": (binary(addresses(("::ffff:10.1.2.3", 40001), ("::1", 1)), 0x21), FOUR),
    "v2 with extensions": (
        binary(T4 + tlv(4, b"noop") + tlv(0x20, bytes(60)) + tlv(0xEA, b"vpce")),
        FOUR,
    ),
    "v2 with a checksum": (checked(T4), FOUR),
    "v2 with a checksum in the middle": (checked(T6 + tlv(4, b"x"), 0x21, tlv(4, bytes(9))), SIX),
    "v2 of the largest size": (binary(T4 + tlv(4, bytes(4096 - 15))), FOUR),
    "v2 UNIX": (binary(bytes(216), 0x31), None),
    "v2 UNSPEC": (binary(b"", 0x00), None),
    "v2 UNSPEC with anything": (binary(b"\1\2\3", 0x00), None),
    "v2 LOCAL": (binary(b"", 0x00, 0x20), None),
    "v2 LOCAL with addresses": (binary(T4, 0x11, 0x20), None),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_is_read_whole_and_no_byte_of_what_follows(name: str) -> None:
    header, client = HEADERS[name]
    for behind in (b"", FOLLOWS, b"\r\n", header):
        assert read_header(header + behind) == ProxyHeader(len(header), client)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_cut_anywhere_needs_more_bytes(name: str) -> None:
    header, _ = HEADERS[name]
    assert [read_header(header[:cut]) for cut in range(len(header))] == [None] * len(header)


BAD: dict[str, tuple[bytes, str]] = {
    "no end": (b"PROXY TCP4 " + b"1" * 96, "no end within 107 bytes"),
    "an end too late": (text("UNKNOWN " + "x" * 92), "no end within 107 bytes"),
    "another family": (text("UDP4 10.0.0.1 10.0.0.2 1 2"), "TCP4 or TCP6"),
    "too few words": (text("TCP4 10.0.0.1 10.0.0.2 1"), "TCP4 or TCP6"),
    "too many words": (text("TCP4 10.0.0.1 10.0.0.2 1 2 3"), "TCP4 or TCP6"),
    "two spaces": (text("TCP4  10.0.0.1 10.0.0.2 1 2"), "TCP4 or TCP6"),
    "IPv6 in TCP4": (text("TCP4 ::1 10.0.0.2 1 2"), "an address"),
    "IPv4 in TCP6": (text("TCP6 10.0.0.1 ::1 1 2"), "an address"),
    "leading zeros": (text("TCP4 010.0.0.1 10.0.0.2 1 2"), "an address"),
    "a zone": (text("TCP6 fe80::1%eth0 ::1 1 2"), "an address"),
    "a large port": (text("TCP4 10.0.0.1 10.0.0.2 65536 2"), "a port"),
    "a huge port": (text(f"TCP4 10.0.0.1 10.0.0.2 1 {'9' * 60}"), "a port"),
    "a port with a sign": (text("TCP4 10.0.0.1 10.0.0.2 -1 2"), "a port"),
    "a port with a zero": (text("TCP4 10.0.0.1 10.0.0.2 1 02"), "a port"),
    "a port of other digits": ("PROXY TCP4 10.0.0.1 10.0.0.2 ² 2\r\n".encode("latin-1"), "a port"),
    "another version": (binary(T4, command=0x31), "version 3"),
    "another command": (binary(T4, command=0x22), "command 2"),
    "too much": (binary(bytes(4097))[:16], "klamm takes 4096"),
    "a datagram": (binary(T4, 0x12), "family 1, protocol 2"),
    "a family that is unknown": (binary(T4, 0x41), "family 4"),
    "too little for IPv4": (binary(T4[:-1]), "they take 12"),
    "too little for IPv6": (binary(T4, 0x21), "they take 36"),
    "too little for UNIX": (binary(bytes(215), 0x31), "they take 216"),
    "an extension that is cut short": (binary(T4 + b"\4\0"), "cut short"),
    "an extension that is too long": (binary(T4 + b"\4\0\2x"), "a wrong size"),
    "a checksum of two bytes": (binary(T4 + tlv(3, b"\0\0")), "a wrong size"),
    "a wrong checksum": (binary(T4 + tlv(3, b"\0\0\0\1")), "a wrong checksum"),
    "a byte after the checksum was taken": (checked(T4, behind=tlv(4, b"a"))[:-1] + b"b", "a wrong checksum"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_header_is_told_apart(name: str) -> None:
    header, says = BAD[name]
    with pytest.raises(BadHeader, match=says):
        read_header(header + FOLLOWS)


@pytest.mark.parametrize("first", [FOLLOWS, b"\x16\x03\x01\2", b"PROXX", b"proxy ", b"\r\n\r\nx", b"\n"])
def test_other_bytes_are_no_header_from_the_first_one_that_differs(first: bytes) -> None:
    with pytest.raises(NoHeader):
        read_header(first)


def outcome(data: bytes) -> Any:
    try:
        return read_header(data)
    except (BadHeader, NoHeader) as error:
        return type(error)


STARTS = st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21\x11\0\x0f" + T4])


@given(STARTS, st.binary(max_size=400))
def test_any_bytes_have_one_outcome_that_more_bytes_do_not_change(start: bytes, rest: bytes) -> None:
    data = start + rest
    outcomes = [outcome(data[:cut]) for cut in range(len(data) + 1)]
    decided = [each for each in outcomes if each is not None]
    assert outcomes == [None] * (len(outcomes) - len(decided)) + decided
    assert len(set(decided)) <= 1


@given(st.sampled_from(sorted(HEADERS)), st.data())
def test_a_header_with_one_wrong_byte_never_ends_otherwise(name: str, data: st.DataObject) -> None:
    header = bytearray(HEADERS[name][0])
    header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    found = outcome(bytes(header) + bytes(5000))
    assert found in (BadHeader, NoHeader) or found.size <= 16 + 4096


@given(
    st.ip_addresses(v=4) | st.ip_addresses(v=6),
    st.integers(0, 65535),
)
def test_any_address_is_read_in_both_versions(host: Any, port: int) -> None:
    client = (str(getattr(host, "ipv4_mapped", None) or host), port)
    family, kind = ("TCP4", 0x11) if host.version == 4 else ("TCP6", 0x21)
    for header in (
        text(f"{family} {host} {host} {port} 1"),
        checked(addresses((str(host), port), (str(host), 1)), kind),
    ):
        assert read_header(header) == ProxyHeader(len(header), client)

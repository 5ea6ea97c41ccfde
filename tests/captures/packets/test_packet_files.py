"""Files of packets: those that tools write, and those that are damaged."""

from __future__ import annotations

import gzip
import io
from struct import pack
from typing import Any

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.packets.packet_files import BadFile, Packet, in_order, packets
from tests.captures.dialogue import BEGIN_NS, pcap

SOME = [Packet(BEGIN_NS + 1000 * number, 1, bytes([number]) * number) for number in range(5)]


def read(data: bytes) -> tuple[list[Packet], str]:
    """The packets, and what is wrong."""
    found = []
    try:
        for packet in packets(io.BufferedReader(io.BytesIO(data))):
            found.append(packet)
    except BadFile as bad:
        return found, str(bad)
    return found, ""


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return pack(f"{order}II", kind, size) + body + pack(f"{order}I", size)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link_type: int, options: bytes = b"", order: str = "<", snap_bytes: int = 0) -> bytes:
    return block(1, pack(f"{order}HHI", link_type, 0, snap_bytes) + options, order)


def enhanced(number: int, time: int, data: bytes, order: str = "<") -> bytes:
    head = pack(f"{order}IIIII", number, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data, order)


@pytest.mark.parametrize("nanoseconds", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_is_read_in_both_orders_and_units(order: str, nanoseconds: bool) -> None:
    some = [packet._replace(time_ns=packet.time_ns + nanoseconds) for packet in SOME]
    assert read(pcap(some, order, nanoseconds)) == (some, "")


def test_what_dpkt_writes_is_read() -> None:
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=101)
    writer.writepkt(b"data", ts=1.5)
    assert read(file.getvalue()) == ([Packet(1_500_000_000, 101, b"data")], "")
    file = io.BytesIO()
    dpkt.pcapng.Writer(file).writepkt(b"data", ts=1.5)
    assert read(file.getvalue()) == ([Packet(1_500_000_000, 1, b"data")], "")


def test_pcapng_has_interfaces_with_links_and_clocks_of_their_own() -> None:
    nanoseconds = pack("<HHB3x", 9, 1, 9)
    halves_from_10_s = pack("<HHB3xHHq", 9, 1, 0x81, 14, 8, 10) + bytes(4)
    data = section() + interface(1) + interface(276, nanoseconds) + interface(101, halves_from_10_s)
    data += enhanced(0, 7, b"a") + enhanced(1, 7, b"b") + block(5, b"statistics..") + enhanced(2, 7, b"c")
    expected = [Packet(7000, 1, b"a"), Packet(7, 276, b"b"), Packet(13_500_000_000, 101, b"c")]
    assert read(data) == (expected, "")


def test_each_section_of_pcapng_has_its_order_and_interfaces() -> None:
    data = section() + interface(1) + enhanced(0, 1, b"a")
    data += section(">") + interface(113, order=">") + enhanced(0, 2, b"b", ">")
    assert read(data) == ([Packet(1000, 1, b"a"), Packet(2000, 113, b"b")], "")


def test_simple_and_old_packets_of_pcapng_are_read() -> None:
    old = pack("<HHIIII", 0, 0, 0, 5, 3, 3) + b"old"
    simple = pack("<I", 9) + b"simp"
    data = section() + interface(1, snap_bytes=4) + block(2, old) + block(3, simple)
    assert read(data) == ([Packet(5000, 1, b"old"), Packet(5000, 1, b"simp")], "")


@pytest.mark.parametrize(
    "data",
    [pcap(SOME), section() + interface(1) + b"".join(enhanced(0, n, p.data) for n, p in enumerate(SOME))],
)
def test_a_file_that_ends_too_early_gives_what_is_whole(data: bytes) -> None:
    whole, _ = read(data)
    assert len(whole) == len(SOME)
    problems = set()
    for size in range(len(data)):
        found, problem = read(data[:size])
        assert found == whole[: len(found)]
        problems.add(problem.rstrip("0123456789"))
    assert problems <= {"", "it is empty", "it is no pcap or pcapng file", "it ends within its header",
                    "it ends within packet ", "it ends within block "}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b"not packets", "it is no pcap or pcapng file"),
        (
            pcap([])[:24] + pack("<IIII", 1, 1, 1 << 30, 60),
            "packet 1 is damaged: it announces 1073741824 bytes",
        ),
        (pcap([])[:24] + bytes(32_000), "1,000 packets up to packet 1001 have no bytes"),
        (section() + enhanced(0, 1, b"a"), "block 2 is damaged"),
        (section() + interface(1)[:4] + pack("<I", 4), "block 2 is damaged: it announces -4 bytes"),
        (b"\x0a\x0d\x0d\x0a" + bytes(20), "block 1 is damaged: it has no byte order"),
        (section() + interface(1) + block(6, pack("<IIIII", 0, 0, 0, 99, 99)), "block 3 is damaged"),
    ],
)
def test_damage_is_said(data: bytes, problem: str) -> None:
    assert read(data)[1].startswith(problem)


def test_a_file_that_is_gzip_is_read_and_one_that_is_cut_too() -> None:
    data = gzip.compress(pcap(SOME))
    assert read(data) == (SOME, "")
    found, problem = read(data[:-12])
    assert found == SOME[: len(found)]
    assert problem == "its compressed data is damaged or cut short"


@given(st.binary(max_size=200), st.integers(0, 150))
def test_any_damage_is_a_bad_file_and_nothing_else(noise: bytes, at: int) -> None:
    for data in (pcap(SOME), section() + interface(1, pack("<HHB3x", 9, 1, 9)) + enhanced(0, 7, b"data")):
        read(data[:at] + noise)


def test_files_are_read_in_the_order_of_their_times() -> None:
    problems: list[str] = []
    named: list[tuple[str, Any]] = [
        (name, io.BufferedReader(io.BytesIO(data)))
        for name, data in (
            ("late", pcap(SOME[3:])),
            ("bad", b"?"),
            ("early", pcap(SOME[:3])[:-1]),
            ("none", pcap([])),
        )
    ]
    found = [(name, list(known)) for name, known in in_order(named, problems)]
    assert found == [("early", SOME[:2]), ("late", SOME[3:])]
    assert problems == ["bad: it is no pcap or pcapng file", "early: it ends within packet 3"]

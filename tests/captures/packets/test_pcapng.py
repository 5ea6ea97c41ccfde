"""Packets made of captures, as tshark and dpkt read them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.captured import Captured
from klamm.captures.packets.endpoints import Endpoints
from klamm.captures.packets.packets import SEGMENT, End, TcpConnection
from klamm.captures.packets.pcapng import Packets
from klamm.decoders.records import Batch, Record, write
from klamm.decoders.schema import Side
from tests.captures import rows as made_rows
from tests.captures.rows import START_NS, connection, in_time
from tests.captures.tshark import GOOD, UNVERIFIED, Message, fields, messages, summary

PRODUCE = 8  # a version of Produce that Debian's tshark knows
BATCH = write(Batch(), [Record(index, key=b"key", value=b"value") for index in range(3)])
HEADER = 61  # bytes of a batch, before its records


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "exported.pcapng"


def export(rows: Iterable[Captured], file: Path) -> Packets:
    packets = Packets()
    with open(file, "wb") as opened:
        opened.write(packets.head("klamm"))
        for row in rows:
            opened.writelines(packets.blocks(row))
    return packets


def expected(rows: Iterable[Captured]) -> list[Message]:
    return [
        Message(row.side or "", row.api_key, row.api_version, row.correlation_id)
        for row in rows
        if row.kind == "frame"
    ]


def reader(number: int = 1, client: str = "10.0.0.7:50000", broker: str = "1") -> made_rows.Talk:
    return made_rows.Talk(connection(number, broker, client))


def test_tshark_reads_the_same_apis_versions_and_correlation_ids(file: Path) -> None:
    first = reader().opened().produce(records=BATCH, version=PRODUCE).heartbeat().closed()
    second = reader(2, "[::1]:50001", "controller 1").opened().heartbeat().heartbeat(25).closed()
    rows = in_time(first, second)
    assert export(rows, file).frames == 8
    assert messages(file) == expected(rows)


def test_a_request_whose_version_tshark_does_not_know_still_has_its_header(file: Path) -> None:
    rows = reader().opened().fetch().heartbeat().rows
    export(rows, file)
    request, response, *others = expected(rows)
    assert messages(file) == [request, response._replace(key=-1, version=-1), *others]


def test_tshark_says_that_it_does_not_know_a_version_or_finds_the_packet_malformed(file: Path) -> None:
    export(reader().opened().fetch().rows, file)
    text = summary(file)
    assert "Kafka Fetch v15 Request" in text
    assert "[Unsupported API version]" in text or "[Malformed Packet]" in text
    assert "Response (Undecoded, Request Missing)" in text


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_blank_records_are_no_hindrance(codec: str, file: Path) -> None:
    batch = write(Batch(codec=codec), [Record(index, value=b"value" * 100) for index in range(3)])
    blank = batch[:HEADER] + bytes(len(batch) - HEADER)
    rows = reader().opened().produce(records=blank, version=PRODUCE).heartbeat().rows
    export(rows, file)
    assert messages(file) == expected(rows)


def test_times_are_exact(file: Path) -> None:
    rows = [
        row._replace(time_ns=START_NS + 123 + index) for index, row in enumerate(reader().heartbeat().rows)
    ]
    export(rows, file)
    assert fields(file, "frame.time_epoch") == [("1700000000.000000123",), ("1700000000.000000124",)]


@pytest.mark.parametrize("client", ["10.0.0.7:50000", "[2001:db8:1::7]:50000"])
def test_checksums_are_right_for_frames_of_any_size(client: str, file: Path) -> None:
    talk = reader(client=client).opened()
    for size in (0, 1, 2, 255, 256, SEGMENT, 3 * SEGMENT + 1):
        talk.produce(records=b"\xff" * size, version=PRODUCE)
    export(talk.closed().rows, file)
    assert set(fields(file, "tcp.checksum.status")) == {(GOOD,)}
    if ":" not in client.partition(":")[0] and "[" not in client:
        assert set(fields(file, "ip.checksum.status")) == {(GOOD,)}


def test_a_frame_larger_than_a_packet_is_one_frame_again(file: Path) -> None:
    large = write(Batch(), [Record(0, value=bytes(1_000_000))])
    rows = reader().opened().produce(records=large, version=PRODUCE).heartbeat().rows
    export(rows, file)
    assert messages(file) == expected(rows)
    assert [size for (size,) in fields(file, "kafka.len") if size] == [str(row.size) for row in rows[1:]]


def test_a_frame_that_was_not_kept_has_its_header_and_the_next_ones_are_whole(file: Path) -> None:
    rows = reader().opened().produce(records=bytes(200_000), version=PRODUCE).heartbeat().closed().rows
    rows[1] = rows[1]._replace(frame=None)
    rows[2] = rows[2]._replace(frame=None)
    export(rows, file)
    request, response, *others = expected(rows)
    assert messages(file) == [request, response._replace(key=-1, version=-1), *others]
    of_request = fields(
        file, "kafka.len", "kafka.client_id", "frame.len", "frame.cap_len", options=("-Y", "kafka")
    )[0]
    assert of_request[:3] == (str(rows[1].size), "app", str(SEGMENT + 40))
    assert int(of_request[3]) < 100
    assert set(fields(file, "tcp.checksum.status")) == {(GOOD,), (UNVERIFIED,)}
    assert fields(file, "frame.number", options=("-Y", "tcp.analysis.flags")) == []


def test_a_connection_that_began_before_the_capture_has_no_handshake(file: Path) -> None:
    export(reader().heartbeat().rows, file)
    assert fields(file, "tcp.flags.syn") == [("0",), ("0",)]


CLIENT_ENDS, BROKER_ENDS = ["9092", "50000", "9092"], ["50000", "9092", "50000"]  # to which ports


@pytest.mark.parametrize(
    ("why", "to", "reset"),
    [
        ("closed by client", CLIENT_ENDS, ["0"] * 3),
        ("closed by broker", BROKER_ENDS, ["0"] * 3),
        ("reset by client", CLIENT_ENDS[:1], ["1"]),
        ("reset by broker", BROKER_ENDS[:1], ["1"]),
        ("klamm ends", CLIENT_ENDS, ["0"] * 3),
    ],
)
def test_a_connection_ends_as_it_did_with_the_reason_beside_it(
    why: str, to: list[str], reset: list[str], file: Path
) -> None:
    export(reader().opened().heartbeat().closed(why).rows, file)
    ends = fields(file, "tcp.dstport", "tcp.flags.reset", "frame.comment")[5:]
    assert [port for port, _, _ in ends] == to
    assert [flag for _, flag, _ in ends] == reset
    assert ends[0][2] == f"klamm: {why}"
    assert set(fields(file, "tcp.checksum.status")) == {(GOOD,)}


def test_lost_frames_are_a_gap_and_a_comment(file: Path) -> None:
    rows = reader().opened().heartbeat().heartbeat().rows
    rows.insert(3, Captured(rows[2].time_ns, "lost", connection(), lost=7, text="the disk is slow"))
    rows.insert(2, made_rows.lost(5, "the queue was full"))
    export(rows, file)
    assert messages(file) == expected(rows)
    gaps = fields(file, "frame.comment", options=("-Y", "tcp.analysis.lost_segment"))
    assert gaps[0] == ("klamm: 7 frames of this connection are missing before this: the disk is slow",)
    comments = fields(file, "frame.comment", options=("-Y", "frame.comment"))
    assert comments[0] == ("klamm: 5 frames are missing before this: the queue was full",)


def test_what_klamm_did_to_a_frame_is_a_comment(file: Path) -> None:
    rows = reader().heartbeat().rows
    export([rows[0]._replace(fate="withheld"), rows[1]._replace(fate="made")], file)
    comments = [("klamm: klamm did not send this on",), ("klamm: klamm said this itself",)]
    assert fields(file, "frame.comment") == comments


def test_addresses_that_are_known_stay_and_brokers_that_have_only_a_label_are_named(file: Path) -> None:
    known = reader(1, "10.0.0.7:50000", "10.0.0.8:19092").heartbeat()
    mapped = reader(2, "[::ffff:10.0.0.7]:50001", "2").heartbeat()
    unknown = reader(3, "somebody", "[fe80::1%eth0]:9094").heartbeat()
    packets = export(in_time(known, mapped, unknown), file)
    assert packets.ports == {19092, 9092, 9094}
    fields_asked = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "ipv6.src", "ipv6.dst")
    asked = fields(file, *fields_asked, options=("-Y", "tcp.len == 34"))
    assert asked == [
        ("10.0.0.7", "50000", "10.0.0.8", "19092", "", ""),
        ("10.0.0.7", "50001", "192.0.2.1", "9092", "", ""),
        ("", "1024", "", "9094", "2001:db8::1", "fe80::1"),
    ]
    hosts = fields(file, "ip.dst_host", options=("-N", "n", "-Y", "ip.dst == 192.0.2.1"))
    assert hosts == [("broker-2.main",)]


def test_connections_with_the_same_addresses_at_the_same_time_stay_apart(file: Path) -> None:
    """As in captures of two clients in two networks, or where nobody knows who the client is."""
    export(in_time(reader(1).opened().heartbeat(), reader(2).opened().heartbeat()), file)
    assert {stream for (stream,) in fields(file, "tcp.stream")} == {"0", "1"}
    assert set(fields(file, "tcp.checksum.status")) == {(GOOD,)}


def test_a_port_that_is_used_again_is_a_new_connection_with_the_same_addresses(file: Path) -> None:
    rows = [*reader(1).opened().heartbeat().closed().rows, *reader(2).opened().heartbeat().rows]
    export(rows, file)
    assert {stream for (stream,) in fields(file, "tcp.stream")} == {"0", "1"}
    assert {source for (source,) in fields(file, "ip.src")} == {"10.0.0.7", "192.0.2.1"}


def test_raw_tokens_are_in_their_place_and_no_requests(file: Path) -> None:
    rows = reader().opened().heartbeat().heartbeat().rows
    token = Captured(rows[2].time_ns, "token", connection(), "request", size=40, frame=bytes(40))
    export([*rows[:3], token, token._replace(side="response"), *rows[3:]], file)
    assert [int(size) for (size,) in fields(file, "tcp.len")][5:7] == [44, 44]
    assert [key for (key,) in fields(file, "kafka.request_key", options=("-Y", "kafka.request_key"))] == [
        "12",
        "12",
    ]
    assert fields(file, "frame.number", options=("-Y", "tcp.analysis.flags")) == []


def test_other_readers_of_pcapng_read_it(file: Path) -> None:
    rows = reader().opened().heartbeat().rows
    export(rows, file)
    with open(file, "rb") as opened:
        packets = [dpkt.ip.IP(data) for _, data in dpkt.pcapng.Reader(opened)]
    assert packets[3].data.data == rows[1].size.to_bytes(4, "big") + (rows[1].frame or b"")


@given(
    st.lists(st.tuples(st.sampled_from(["request", "response"]), st.binary(max_size=300)), max_size=20),
    st.integers(2**32 - 1000, 2**32 - 1),
)
def test_sequence_numbers_say_where_each_byte_stands(chunks: list[tuple[Side, bytes]], first: int) -> None:
    """They begin anew after 4 GiB."""
    talk = TcpConnection(End(ip_address("10.0.0.1"), 1), End(ip_address("10.0.0.2"), 9092), first)
    packets = [*talk.opened()]
    for side, data in chunks:
        packets += talk.sent(side, data, len(data))
    streams = {1: bytearray(), 9092: bytearray()}
    for data, size in packets:
        assert len(data) == size
        segment = dpkt.ip.IP(data).data
        assert (
            segment.seq
            == (first + len(streams[segment.sport]) + (not segment.flags & dpkt.tcp.TH_SYN)) % 2**32
        )
        streams[segment.sport] += segment.data
        other = streams[1 if segment.sport == 9092 else 9092]
        assert not segment.flags & dpkt.tcp.TH_ACK or segment.ack == (first + 1 + len(other)) % 2**32
    assert bytes(streams[1]) == b"".join(data for side, data in chunks if side == "request")
    assert bytes(streams[9092]) == b"".join(data for side, data in chunks if side == "response")


def test_much_that_only_one_end_says_is_acknowledged() -> None:
    talk = TcpConnection(End(ip_address("10.0.0.1"), 1), End(ip_address("10.0.0.2"), 9092), 0)
    packets = [packet for _ in range(5) for packet in talk.sent("request", b"", 100_000_000)]
    answers = [dpkt.ip.IP(data).data for data, size in packets if len(data) == size]
    assert [(segment.sport, segment.flags) for segment in answers] == [(9092, dpkt.tcp.TH_ACK)]


def test_brokers_have_other_addresses_where_those_for_documentation_are_used_up() -> None:
    endpoints = Endpoints()
    for number in range(3 * 254):
        broker = endpoints.open(connection(number, str(number), "10.0.0.7:50000")).broker
        assert not broker.address.is_loopback, number
    assert str(endpoints.open(connection(9999, "9999", "10.0.0.7:50000")).broker.address) == "127.64.0.1"

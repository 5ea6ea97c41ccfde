"""Packets to rows: the same as if klamm had been there."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.captured import Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.packets.importing import Import
from klamm.captures.packets.packet_files import Packet
from klamm.captures.packets.tcp_segments import ACK, SYN
from klamm.captures.streams.blanking import Keeping
from tests.captures.dialogue import BEGIN_NS, LINKS, MS, Dialogue, request, response

ORDERS: dict[str, Any] = {"name": "Metadata", "version": 1}


def imported(packets: list[Packet], *ports: int) -> tuple[list[Captured], Import]:
    rows: list[Captured] = []
    importing = Import("capture", Keeping("keep"), rows.extend, ports)
    for packet in packets:
        importing.take(packet)
    importing.end()
    return rows, importing


def joined(rows: list[Captured]) -> list[tuple[int, int, int]]:
    """API key, and correlation ids of request and answer (-1: there is none)."""
    return [
        (
            one.first.api_key,
            one.request.correlation_id if one.request else -1,
            one.response.correlation_id if one.response else -1,
        )
        for one in exchanges(rows)
    ]


def spoken(**settings: object) -> Dialogue:
    """ApiVersions, then Metadata three times."""
    dialogue = Dialogue(**settings).open().ask(0)  # type: ignore[arg-type]
    for number in (1, 2, 3):
        dialogue.ask(number, **ORDERS)
    return dialogue


ALL = [(18, 0, 0), (3, 1, 1), (3, 2, 2), (3, 3, 3)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("hosts", [("10.0.0.7", "10.0.0.1"), ("fd00::7", "fd00::1")], ids=["IPv4", "IPv6"])
def test_a_conversation_is_found_on_any_port_and_link(link: str, hosts: tuple[str, str]) -> None:
    client, broker = hosts
    rows, importing = imported(spoken(client=client, broker=broker, link=link).close().packets)
    assert joined(rows) == ALL
    opened, closed = rows[0], rows[-1]
    assert (opened.kind, opened.time_ns, opened.text) == ("opened", BEGIN_NS + MS, "")
    assert (closed.kind, closed.text) == ("closed", "closed by client")
    assert opened.connection is not None
    assert opened.connection.client.startswith(("10.0.0.7:40000", "[fd00::7]:40000"))
    assert opened.connection.broker.startswith(("10.0.0.1:29092", "[fd00::1]:29092"))
    assert importing.found.connections == {"Kafka": 1}
    assert importing.found.requests == importing.found.responses == Counter({3: 3, 18: 1})
    assert not importing.found.holes


def test_frames_have_the_times_and_bytes_of_their_packets() -> None:
    dialogue = spoken()
    rows, _ = imported(dialogue.packets)
    frames = [row for row in rows if row.kind == "frame"]
    assert [row.time_ns for row in frames] == [packet.time_ns for packet in dialogue.packets[3:]]
    assert frames[0].frame == request(0)[4:]
    assert frames[0].client_id == "tests"


def test_a_connection_that_began_before_is_read_from_its_next_requests_on() -> None:
    dialogue = spoken()
    for number in range(4, 9):
        dialogue.ask(number, **ORDERS)
    rows, importing = imported(dialogue.packets[6:])  # the first is an answer
    assert joined(rows) == [(-1, -1, 1), *((3, number, number) for number in range(2, 9))]
    assert rows[0].text == "it was there when the capture began"
    assert importing.found.mid_stream == 1
    assert not importing.found.holes


def test_the_client_is_found_by_what_it_says_where_the_port_would_mislead() -> None:
    rows, _ = imported(spoken(ports=(2000, 50_000)).packets[3:])
    assert rows[0].connection is not None
    assert rows[0].connection.client == "10.0.0.7:2000"


def test_neighbours_that_change_places_and_repeated_packets_change_nothing() -> None:
    packets = spoken().close().packets
    random = Random(3)
    order = sorted(range(3, len(packets)), key=lambda number: number + random.uniform(0, 3))
    mixed = [*packets[:3], *(packets[number] for number in order for _ in range(random.randint(1, 2)))]
    rows, importing = imported(mixed)
    assert joined(rows) == ALL
    assert importing.found.repeated_bytes > 0
    assert not importing.found.holes


def test_a_lost_packet_is_a_hole_with_its_place_and_the_rest_is_there() -> None:
    dialogue = spoken()
    for number in range(4, 50):
        dialogue.ask(number, **ORDERS)
    lost = dialogue.packets.pop(5)  # the first request for metadata
    rows, importing = imported(dialogue.packets)
    assert joined(rows) == [(18, 0, 0), (-1, -1, 1), *((3, number, number) for number in range(2, 50))]
    (hole,) = importing.found.holes
    assert (hole.client, hole.broker, hole.side) == ("10.0.0.7:40000", "10.0.0.1:29092", "request")
    assert hole.missing == len(request(1, **ORDERS))
    assert hole.time_ns - lost.time_ns == MS
    gaps = [row for row in rows if row.kind == "lost"]
    assert gaps[0].side == "request"
    assert gaps[0].connection == rows[0].connection


def test_packets_that_the_capture_cut_are_holes_and_their_headers_are_read() -> None:
    dialogue = Dialogue().open()
    for number in range(3):
        dialogue.ask(number, name="ApiVersions")
        dialogue.send("request", request(number, "Metadata", 1, topics=[{"name": "t" * 200}]))
    cut = [packet._replace(data=packet.data[:96]) for packet in dialogue.packets]
    rows, importing = imported(cut)
    metadata = [row for row in rows if row.kind == "frame" and row.api_key == 3]
    assert [row.correlation_id for row in metadata] == [0, 1, 2]
    assert {row.frame for row in metadata} == {None}
    assert (importing.found.cut_packets, importing.found.holes) == (3, [])
    assert importing.found.cut_bytes == sum(max(0, len(packet.data) - 96) for packet in dialogue.packets)
    assert not importing.found.whole


@pytest.mark.parametrize("kept", [68, 96])
def test_a_connection_whose_first_request_the_capture_cut_is_kafka(kept: int) -> None:
    dialogue = Dialogue().open()
    software = {"client_software_name": "a-software-with-a-long-name", "client_software_version": "1.2.3"}
    for number in range(3):
        dialogue.send("request", request(number, "ApiVersions", 4, **software))
        dialogue.send("response", response(number, "ApiVersions", 4, api_keys=[]))
    cut = [packet._replace(data=packet.data[:kept]) for packet in dialogue.packets]
    rows, importing = imported(cut)
    asked = [row for row in rows if row.kind == "frame" and row.side == "request"]
    assert [(row.api_key, row.api_version, row.correlation_id) for row in asked] == [
        (18, 4, n) for n in range(3)
    ]
    assert importing.found.connections == {"Kafka": 1}
    assert importing.found.holes == []


def test_half_a_connection_is_read_where_it_has_the_requests() -> None:
    packets = spoken().packets
    asked = [packet for packet in packets if packet.data[26:30] == bytes([10, 0, 0, 7])]
    rows, importing = imported(asked)
    assert joined(rows) == [(key, number, -1) for key, number, _ in ALL]
    answered = [packet for packet in packets if packet not in asked]
    rows, importing = imported(answered)
    assert rows == []
    assert importing.found.connections == {"other": 1}
    rows, importing = imported(answered, 29_092)
    assert importing.found.connections == {"Kafka": 1}
    assert {row.side for row in rows if row.kind == "frame"} == {"response"}
    sizes = [len(response(0)), *(len(response(number, **ORDERS)) for number in (1, 2, 3))]
    assert (importing.found.without_request, importing.found.without_request_bytes) == (4, sum(sizes))
    assert not importing.found.responses


def test_requests_in_the_first_packet_of_a_connection_are_read() -> None:
    dialogue = Dialogue()
    dialogue.send("request", request(0), SYN)
    dialogue.send("response", response(0), SYN | ACK)
    dialogue.send("request", b"")
    rows, importing = imported(dialogue.ask(1, **ORDERS).close().packets)
    assert joined(rows) == ALL[:2]
    assert [row.time_ns for row in rows[1:3]] == [packet.time_ns for packet in dialogue.packets[:2]]
    assert importing.found.connections == {"Kafka": 1}
    assert not importing.found.holes


def test_copies_of_packets_that_come_after_the_end_of_their_connection_are_no_other() -> None:
    packets = spoken().close().packets
    late = [packet._replace(time_ns=packet.time_ns + 500 * MS) for packet in packets]
    rows, importing = imported(packets + late)
    assert joined(rows) == ALL
    assert importing.found.connections == {"Kafka": 1}


def test_ports_that_are_named_are_the_only_ones() -> None:
    packets = spoken().packets + spoken(ports=(41_000, 9092)).packets
    rows, importing = imported(packets, 9092)
    assert {row.connection.broker for row in rows if row.connection} == {"10.0.0.1:9092"}
    assert importing.found.connections == {"Kafka": 1, "other": 1}


def test_a_port_that_is_used_again_is_another_connection() -> None:
    first = spoken(first=1000).close()
    second = spoken(first=900_000, begin_ns=first.time_ns)
    broken = spoken(first=5_000_000, begin_ns=second.time_ns).reset()
    rows, importing = imported([*first.packets, *second.packets, *broken.packets])
    assert joined(rows) == ALL * 3
    assert importing.found.connections == {"Kafka": 3}
    assert [row.text for row in rows if row.kind == "closed"] == [
        "closed by client",
        "another connection took its port",
        "reset by broker",
    ]


def test_what_is_not_kafka_is_counted() -> None:
    tls, http, silent = (Dialogue(ports=(port, to)).open() for port, to in ((1, 9093), (2, 80), (3, 81)))
    tls.send("request", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    http.send("request", b"GET / HTTP/1.1\r\n\r\n")
    other = Packet(BEGIN_NS, 1, bytes(12) + b"\x08\x06" + bytes(28))
    rows, importing = imported([*tls.packets, *http.packets, *silent.packets, other, other])
    assert rows == []
    assert importing.found.connections == {"TLS": 1, "other": 2}
    assert importing.found.not_read["TLS", "10.0.0.1:9093"] == 1
    assert importing.found.unread == {("not TCP", "ARP"): 2}
    assert imported(tls.packets, 9093)[1].found.connections == {"TLS": 1}


def test_connections_that_ended_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    packets: list[Packet] = []
    monkeypatch.setattr("klamm.captures.packets.importing.SWEEP", 50)
    for number in range(300):
        dialogue = Dialogue(ports=(number, 70), begin_ns=BEGIN_NS + number * 2000 * MS)
        dialogue.send("request", b"", 2)
        packets += dialogue.reset().packets
    importing = Import("capture", Keeping(), list[Captured]().extend)
    for packet in packets:
        importing.take(packet)
    assert len(importing._talks) < 2 * 120
    importing.end()
    assert importing.found.connections == {"other": 300}


@given(st.data())
def test_damaged_packets_never_end_an_import(data: st.DataObject) -> None:
    packets = list(spoken().close().packets + spoken(link="cooked", ports=(41_000, 9092)).packets)
    for _ in range(data.draw(st.integers(1, 8))):
        number = data.draw(st.integers(0, len(packets) - 1))
        damaged = bytearray(packets[number].data)
        at = data.draw(st.integers(0, len(damaged)))
        noise = data.draw(st.binary(max_size=9))
        damaged[at : at + data.draw(st.sampled_from([0, len(noise)]))] = noise
        packets[number] = packets[number]._replace(data=bytes(damaged))
    for ports in ((), (9092, 29_092)):
        rows, importing = imported(packets, *ports)
        frames = sum(row.kind == "frame" for row in rows)
        found = importing.found
        assert frames == found.requests.total() + found.responses.total() + found.without_request
        kinds = Counter(row.kind for row in rows)
        assert kinds["opened"] == kinds["closed"] == importing.found.connections["Kafka"]


def test_a_first_request_that_was_lost_does_not_hide_the_others() -> None:
    dialogue = spoken()
    del dialogue.packets[3]
    rows, importing = imported(dialogue.packets)
    assert rows[0].text == ""
    assert joined(rows) == [(-1, -1, 0), *ALL[1:]]
    assert [(hole.side, hole.missing) for hole in importing.found.holes] == [("request", len(request(0)))]


def test_a_connection_that_no_packet_ends_ends_with_the_packets_and_its_cluster_has_no_name() -> None:
    rows, _ = imported(spoken().packets)
    assert (rows[-1].kind, rows[-1].text) == ("closed", "the packets end")
    assert {row.connection.cluster for row in rows if row.connection} == {""}


@pytest.mark.parametrize(("ports", "found"), [((), {"other": 1}), ((29_092,), {"Kafka": 1})])
def test_a_connection_whose_cut_first_request_is_no_apiversions_is_kafka_where_its_port_is_named(
    ports: tuple[int, ...], found: dict[str, int]
) -> None:
    dialogue = Dialogue().open()
    dialogue.send("request", request(0, "Metadata", 1, topics=[{"name": "t" * 200}]))
    cut = [packet._replace(data=packet.data[:96]) for packet in dialogue.packets]
    assert imported(cut, *ports)[1].found.connections == found

"""Captured frames as rules see them."""

from __future__ import annotations

from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.frames import Framing, columns
from tests.captures.rows import Talk, connection, in_time


def test_an_api_or_version_that_klamm_does_not_know_has_no_frame() -> None:
    row = Talk().heartbeat().rows[0]
    assert Framing().frame(row._replace(api_key=9999)) is None
    assert Framing().frame(row._replace(api_version=99)) is None


def test_a_frame_that_ends_within_its_header_has_no_frame() -> None:
    for row, header_bytes in zip(Talk().heartbeat().rows, (14, 5), strict=True):
        whole = row.frame or b""
        for size in range(header_bytes):
            assert Framing().frame(row._replace(frame=whole[:size])) is None
        framed = Framing().frame(row._replace(frame=whole[:header_bytes]))
        assert framed is not None
        assert framed.body == b""


def test_columns_are_what_stands_at_paths_also_where_a_pick_cannot_read_it() -> None:
    topics = [{"name": "\udcff", "partition_data": [{"index": 7}]}]
    talk = Talk().exchange("Produce", 9, {"acks": 1, "topic_data": topics}, {})
    frame = Framing().frame(talk.rows[0])
    assert frame is not None
    paths = (("acks",), ("topic_data", "name"), ("topic_data", "partition_data", "index"))
    assert columns(0, 9, "request", frame.body, paths) == [1, ["\udcff"], [[7]]]


def test_columns_of_a_body_that_cannot_be_read_are_nothing() -> None:
    row = Talk().heartbeat().rows[0]
    frame = Framing().frame(row._replace(frame=(row.frame or b"")[:-3]))
    assert frame is not None
    assert columns(12, 4, "request", frame.body, (("group_id",), ("group_instance_id",))) == [None, None]


def test_an_exchange_ends_with_its_response_else_with_its_connection() -> None:
    talk = Talk()
    talk.request("Heartbeat", 4, {"group_id": "g"})
    talk.closed()
    later = Talk(of=connection(2), now_ms=5).heartbeat()
    ends = list(exchanges(in_time(talk, later)))
    assert [one.first.connection for one in ends] == [talk.of, later.of]
    assert ends[0].response is None
    assert ends[1].last is ends[1].response
    assert ends[0].last is ends[0].request
    assert Exchange(None, ends[1].response).latency_ns is None

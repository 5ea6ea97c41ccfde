"""Captured frames as rules see them."""

from __future__ import annotations

import pytest

from klamm.captures.captured import Captured
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.frames import Framing, chosen, columns
from klamm.rules.expressions import parse
from tests.captures.rows import Talk, connection, in_time


def found(rows: list[Captured], where: str | None = None) -> list[int]:
    """The numbers of the exchanges for which it holds."""
    expression = None if where is None else parse(where)
    return [one.exchange.first.exchange for one in chosen(exchanges(rows), expression)]


def work() -> list[Captured]:
    """0 Metadata, 1 Produce, 2 Fetch by topic id, 3 Heartbeat that fails, 4 Produce that wants no answer."""
    return Talk().metadata().produce().fetch().heartbeat(27).produce(acks=0).rows


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ('topic == "orders"', [0, 1, 2, 4]),
        ("error != NONE", [3]),
        ("error == REBALANCE_IN_PROGRESS", [3]),
        ("latency_ms > 3", [2]),
        ("acks == -1", [1]),
        ("request.acks == 0", [4]),
        ('client_id == "app" and api == Fetch', [2]),
        ('client == "10.0.0.7" and broker == "1" and side == "response"', [0, 1, 2, 3]),
        ('group == "billing"', [3]),
        ('topic == "nothing"', []),
    ],
)
def test_an_expression_chooses_as_it_does_in_rules(where: str, numbers: list[int]) -> None:
    assert found(work(), where) == numbers


def test_without_an_expression_every_exchange_is_chosen() -> None:
    assert found(work()) == [0, 1, 2, 3, 4]


def test_a_topic_id_has_a_name_from_the_answer_on_that_tells_it() -> None:
    before, after = Talk().fetch().metadata(), Talk().metadata().fetch()
    assert found(before.rows, 'topic == "orders" and api == Fetch') == []
    assert found(after.rows, 'topic == "orders" and api == Fetch') == [1]


def test_names_are_known_on_all_connections() -> None:
    asking = Talk().metadata()
    fetching = Talk(of=connection(2), now_ms=10).fetch()
    assert found(in_time(asking, fetching), 'topic == "orders" and api == Fetch') == [0]


def test_what_was_kept_as_its_size_only_is_shown_but_not_chosen() -> None:
    rows = [row._replace(frame=None) for row in Talk().heartbeat().rows]
    [framed] = chosen(exchanges(rows))
    assert (framed.request, framed.response) == (None, None)
    assert found(rows, "api == Heartbeat") == []


def test_an_api_or_version_that_klamm_does_not_know_has_no_frame() -> None:
    row = Talk().heartbeat().rows[0]
    assert Framing().frame(row._replace(api_key=9999)) is None
    assert Framing().frame(row._replace(api_version=99)) is None


def test_an_api_versions_request_of_an_unknown_version_is_found_by_its_refusal() -> None:
    refused = Talk().exchange("ApiVersions", 0, {}, {"error_code": 35, "api_keys": []}).rows
    rows = [
        row._replace(api_version=5, frame=row.frame if row.side == "response" else None) for row in refused
    ]
    for where in (
        "error == UNSUPPORTED_VERSION",
        "api == ApiVersions",
        'client_id == "app"',
        "connection == 1",
    ):
        assert found(rows, where) == [0]


def test_a_frame_that_ends_within_its_header_has_no_frame() -> None:
    for row, header_bytes in zip(Talk().heartbeat().rows, (14, 5), strict=True):
        whole = row.frame or b""
        for size in range(header_bytes):
            assert Framing().frame(row._replace(frame=whole[:size])) is None
        framed = Framing().frame(row._replace(frame=whole[:header_bytes]))
        assert framed is not None
        assert framed.body == b""


def test_a_response_whose_request_is_missing_is_chosen_by_itself() -> None:
    response = Talk().heartbeat(27).rows[1]
    assert found([response], "error == REBALANCE_IN_PROGRESS") == [0]
    assert found([response], "latency_ms > 0") == []


def test_an_answer_to_too_new_an_api_versions_request_is_in_the_oldest_layout() -> None:
    talk = Talk()
    number = talk.request("ApiVersions", 4, {})
    talk.response("ApiVersions", 0, {"error_code": 35}, number, api_version=4)
    [framed] = chosen(exchanges(talk.rows), parse("error == UNSUPPORTED_VERSION"))
    assert framed.response is not None
    assert framed.response.version == 0


def test_columns_are_what_stands_at_paths_also_where_a_pick_cannot_read_it() -> None:
    topics = [{"name": "\udcff", "partition_data": [{"index": 7}]}]
    talk = Talk().exchange("Produce", 9, {"acks": 1, "topic_data": topics}, {})
    frame = Framing().frame(talk.rows[0])
    assert frame is not None
    paths = (("acks",), ("topic_data", "name"), ("topic_data", "partition_data", "index"))
    assert columns(frame, paths) == [1, ["\udcff"], [[7]]]


def test_columns_of_a_body_that_cannot_be_read_are_nothing() -> None:
    row = Talk().heartbeat().rows[0]
    frame = Framing().frame(row._replace(frame=(row.frame or b"")[:-3]))
    assert frame is not None
    assert columns(frame, (("group_id",), ("group_instance_id",))) == [None, None]


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

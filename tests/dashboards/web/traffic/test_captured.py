"""The traffic of captures: figures of exchanges that a test has made up, and how far they are read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.choosing import chosen as framed
from klamm.captures.exchanges import exchanges
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.traffic.answers import Asked, Chosen, Traffic
from klamm.dashboards.web.traffic.chosen import chosen
from klamm.dashboards.web.traffic.rows import Tables
from klamm.dashboards.web.traffic.tally import Tally
from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from tests.captures.rows import MS, START_NS, TOPIC_ID, Talk, connection, in_time, written

SOFTWARE = {"client_software_name": "librdkafka", "client_software_version": "2.6.0"}
VERSIONS = {"api_keys": [], "error_code": 0}


def writer() -> Talk:
    """Connects, and writes four times: 3 bytes each, one of them refused, one without an answer."""
    talk = (
        Talk(connection(1, "1", "10.0.0.7:1"), "app").opened().exchange("ApiVersions", 3, SOFTWARE, VERSIONS)
    )
    talk.produce(records=b"abc").produce(records=b"abc").produce(records=b"abc", acks=0)
    return refused(talk)


def refused(talk: Talk, **of_response: Any) -> Talk:
    asked = {
        "acks": -1,
        "topic_data": [{"name": "orders", "partition_data": [{"index": 3, "records": b"abc"}]}],
    }
    failed = {"index": 3, "error_code": 19}
    answer = {"responses": [{"name": "orders", "partition_responses": [failed]}]}
    return talk.exchange("Produce", 9, asked, answer, 20.0, **of_response)


def reader() -> Talk:
    """Learns the topic's id, reads it by that, and is in a group that is rebalanced once."""
    talk = Talk(connection(2, "2", "10.0.0.8:1"), "reader").metadata().fetch(records=b"12345")
    return talk.heartbeat().heartbeat(27)


def tallied(*talks: Talk) -> Tally:
    tally = Tally()
    for one in framed(exchanges(in_time(*talks))):
        tally.add(one)
    return tally


def whole(kind: Any, name: str, tally: Tally) -> Chosen:
    found = chosen(Tables(tally.cells), Asked(kind=kind, cluster="main", name=name))
    assert found is not None
    return found


def test_a_client_has_its_requests_errors_bytes_software_and_edges() -> None:
    found = whole("client", "app", tallied(writer(), reader()))
    row = found.row
    assert (row.requests, row.responses, row.errors, row.share) == (5, 4, 1, 0.2)
    sizes = [one.size + 4 for one in writer().rows if one.side == "request"]
    assert row.request_bytes == sum(sizes)
    assert (row.connections, row.software) == (1, "librdkafka 2.6.0")
    assert [(edge.kind, edge.name, edge.requests) for edge in found.edges] == [
        ("broker", "1", 5), ("topic", "orders", 4),
    ]  # fmt: skip
    assert (found.edges[1].request_bytes, found.edges[1].response_bytes) == (12, 0)
    assert [(one.error, one.origin, one.count) for one in found.errors] == [
        ("NOT_ENOUGH_REPLICAS", "broker", 1)
    ]
    assert [(one.api, one.version, one.requests) for one in found.apis] == [
        ("Produce", 9, 4),
        ("ApiVersions", 3, 1),
    ]
    assert found.notes == []


def test_latencies_are_those_of_the_exchanges() -> None:
    found = whole("client", "app", tallied(writer()))
    assert found.row.p50 is not None
    assert found.row.p99 is not None
    assert found.row.p50.ms == pytest.approx(1, rel=0.03)
    assert found.row.p99.ms == pytest.approx(20, rel=0.03)


def test_a_consumer_has_its_group_and_a_topic_that_it_named_by_id() -> None:
    found = whole("client", "reader", tallied(writer(), reader()))
    assert found.groups == ["billing"]
    topic = next(edge for edge in found.edges if edge.kind == "topic")
    assert (topic.name, topic.requests, topic.response_bytes) == ("orders", 1, 5)
    assert [(one.error, one.count) for one in found.errors] == [("REBALANCE_IN_PROGRESS", 1)]


def test_a_topic_has_its_clients_and_the_bytes_of_its_records() -> None:
    found = whole("topic", "orders", tallied(writer(), reader()))
    assert [(edge.name, edge.requests) for edge in found.edges] == [("app", 4), ("reader", 1)]
    assert (found.row.request_bytes, found.row.response_bytes, found.row.errors) == (12, 5, 1)
    assert found.row.clients == 2


def test_a_topic_id_without_a_name_is_told_as_that() -> None:
    tally = tallied(Talk().fetch(records=b"1"))
    (about,) = tally.cells.about
    assert about.topic == "id:AAECAwQFBgcICQoLDA0ODw"


def test_a_topic_of_a_fetch_session_is_known_by_the_answer() -> None:
    found = {"partition_index": 3, "error_code": 0, "high_watermark": 1, "records": b"123"}
    answer = {"responses": [{"topic_id": TOPIC_ID, "partitions": [found]}]}
    asked = {"max_wait_ms": 500, "session_id": 7, "session_epoch": 2, "topics": []}
    tally = tallied(Talk().metadata().exchange("Fetch", 15, asked, answer))
    found_topic = whole("topic", "orders", tally)
    assert (found_topic.row.requests, found_topic.row.response_bytes) == (1, 3)


def test_an_answer_that_klamm_made_is_an_error_of_klamm_and_has_no_latency() -> None:
    found = whole("client", "app", tallied(refused(Talk(), fate="made")))
    assert [(one.error, one.origin) for one in found.errors] == [("NOT_ENOUGH_REPLICAS", "klamm")]
    assert (found.row.requests, found.row.responses, found.row.p99) == (1, 0, None)
    topic = whole("topic", "orders", tallied(refused(Talk(), fate="made")))
    assert topic.row.errors == 1


def test_an_error_that_klamm_wrote_into_an_answer_is_one_of_klamm() -> None:
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 3, "error_code": 6}]}]}
    body = encode(answer, "Produce", 9, "response")
    forwarded = response_frame(API["Produce"], 9, 0, body)[4:]
    found = whole("client", "app", tallied(refused(Talk(), fate="rewritten", forwarded=forwarded)))
    assert {(one.error, one.origin) for one in found.errors} == {
        ("NOT_ENOUGH_REPLICAS", "broker"), ("NOT_LEADER_OR_FOLLOWER", "klamm"),
    }  # fmt: skip


def test_an_error_that_klamm_passed_on_in_an_answer_that_it_rewrote_is_one_of_the_broker() -> None:
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 3, "error_code": 19}]}]}
    forwarded = response_frame(API["Produce"], 9, 0, encode(answer, "Produce", 9, "response"))[4:]
    found = whole("client", "app", tallied(refused(Talk(), fate="rewritten", forwarded=forwarded)))
    assert [(one.error, one.origin, one.count) for one in found.errors] == [
        ("NOT_ENOUGH_REPLICAS", "broker", 1)
    ]


def test_a_metadata_answer_about_all_topics_is_no_edge_to_them() -> None:
    tally = tallied(Talk().metadata())
    assert not tally.cells.about


def test_frames_of_which_only_the_size_was_kept_count_with_it_and_are_told() -> None:
    talk = Talk().produce()
    talk.rows = [one._replace(frame=None) for one in talk.rows]
    tally = tallied(talk)
    assert tally.unkept == 2
    row = whole("client", "app", tally).row
    assert (row.requests, row.request_bytes) == (1, talk.rows[0].size + 4)


def test_answers_without_their_requests_are_of_no_client_and_no_api_and_are_told(tmp_path: Path) -> None:
    talk = Talk().answer_alone().produce()
    tally = tallied(talk)
    assert (tally.exchanges, tally.without_request) == (2, 1)
    assert {(call.client, call.api) for call in tally.cells.calls} == {("app", "Produce")}
    (found,) = asked([str(written(tmp_path / "a.arrow", talk.rows))], Asked())
    assert found.notes == [
        "Answers without their requests, whose clients and APIs nobody knows, are not counted: 1."
    ]


def test_connections_beyond_the_bound_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.traffic.tally.MOST_OPENED", 1)
    tally = tallied(writer(), reader())
    assert (len(tally.cells.opened), tally.full) == (1, True)
    assert whole("client", "reader", tally).row.requests == 4


def asked(paths: list[str], *questions: Asked) -> list[Traffic]:
    async def ask() -> list[Traffic]:
        source, found = Captures(paths), list[Traffic]()
        for question in questions:
            while (answer := await source.traffic(question)).state == "reading":
                pass
            found.append(answer)
        return found

    return asyncio.run(ask())


@pytest.fixture
def capture(tmp_path: Path) -> list[str]:
    return [str(written(tmp_path / "a.arrow", in_time(writer(), reader())))]


def test_a_capture_is_counted_whole_over_its_time(capture: list[str]) -> None:
    (found,) = asked(capture, Asked())
    assert (found.state, found.exchanges, found.problem) == ("whole", 9, "")
    assert found.since == START_NS / 1e9
    last_ms = max(writer().now_ms, reader().now_ms)
    assert found.seconds == pytest.approx(last_ms / 1000, abs=1e-6)
    assert found.counts == {"client": 2, "broker": 2, "topic": 1, "software": 2}
    assert [(row.name, row.errors) for row in found.rows] == [("app", 1), ("reader", 1)]


def test_a_filter_and_a_part_of_the_time_choose_what_counts(capture: list[str]) -> None:
    begin = START_NS / 1e9
    failed, early, none = asked(
        capture,
        Asked(where="error != NONE"),
        Asked(since=begin, until=begin + 1.5 * MS / 1e9),
        Asked(since=begin + 3600),
    )
    assert failed.exchanges == 2
    assert failed.rows[0].where == '(error != NONE) and client_id == "app"'
    assert (early.exchanges, early.seconds) == (2, pytest.approx(0.0015, abs=1e-4))
    assert (none.exchanges, none.rows) == (0, [])


def test_a_page_that_asks_again_reads_no_more_and_another_page_reads_anew(
    capture: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    passage = Captures._passage
    monkeypatch.setattr(
        Captures, "_passage", lambda self, asked: begun.append(asked.page) or passage(self, asked)
    )
    found = asked(
        capture, Asked(page="a"), Asked(page="a", table="topic"), Asked(page="a", search="rea"),
        Asked(page="b"),
    )  # fmt: skip
    assert begun == ["a", "b"]
    assert [row.name for row in found[1].rows] == ["orders"]
    assert [row.name for row in found[2].rows] == ["reader"]


def test_a_reading_that_nobody_wants_ends_and_begins_again(
    capture: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.dashboards.web.captured.COUNTED", 2)
    monkeypatch.setattr("klamm.dashboards.web.traffic.captured.UNSEEN_S", -1.0)

    async def ask() -> Traffic:
        source = Captures(capture)
        await source.traffic(Asked())
        monkeypatch.setattr("klamm.dashboards.web.traffic.captured.UNSEEN_S", 30.0)
        while (found := await source.traffic(Asked())).state == "reading":
            pass
        return found

    assert asyncio.run(ask()).exchanges == 9


def test_only_a_few_readings_are_kept(capture: list[str]) -> None:
    async def ask() -> tuple[int, bool]:
        source = Captures(capture)
        await source.traffic(Asked(page="a"))
        (first,) = source.counted.readings.values()
        for page in "bcdefgh":
            await source.traffic(Asked(page=page))
        return len(source.counted.readings), first.is_given_up

    assert asyncio.run(ask()) == (3, True)


def test_what_is_read_so_far_is_told_with_its_time(
    capture: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.dashboards.web.captured.COUNTED", 1)
    monkeypatch.setattr("klamm.dashboards.web.traffic.captured.SOON_S", 0.0)
    monkeypatch.setattr("klamm.dashboards.web.traffic.captured.REST", -1)  # sums up anew each time

    async def ask() -> list[Traffic]:
        source = Captures(capture)
        found = [await source.traffic(Asked())]
        while found[-1].state == "reading":
            found.append(await source.traffic(Asked()))
        return found

    *parts, end = asyncio.run(ask())
    some = [one for one in parts if 0 < one.exchanges < 9]
    assert some
    assert all(one.seconds < end.seconds for one in some[:2])
    assert sum(row.requests or 0 for row in end.rows) == 9


def test_what_cannot_be_read_is_told(tmp_path: Path, capture: list[str]) -> None:
    (tmp_path / "b.arrow").write_bytes(b"no capture")
    (found,) = asked([*capture, str(tmp_path / "b.arrow")], Asked())
    assert "b.arrow" in found.problem
    assert found.exchanges == 9

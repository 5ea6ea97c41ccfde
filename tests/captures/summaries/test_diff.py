"""The differences between two captures of the same work."""

from __future__ import annotations

import random

from klamm.captures.captured import Captured
from klamm.captures.summaries.diff import Difference, differences
from klamm.captures.summaries.diff_measures import measure, name_of
from klamm.decoders import records
from klamm.decoders.records import Batch, Record
from tests.captures.rows import Talk, connection, in_time

FACTOR = 1.5


def between(before: list[Captured], after: list[Captured], together: bool = False) -> list[Difference]:
    return differences(measure(before, together), measure(after, together), FACTOR)


def changes(before: Talk, after: Talk) -> list[tuple[str, str, str | None, str | None]]:
    """Differences of one client, as (aspect, what, before, after)."""
    found = between(before.rows, after.rows)
    assert {one.client for one in found} <= {"app"}
    return [(one.aspect, one.what, one.before, one.after) for one in found]


def batch(count: int, codec: str = "none") -> bytes:
    return records.write(Batch(codec=codec), [Record(value=b"x" * 20)] * count)


def test_the_same_work_has_no_differences() -> None:
    one, other = (
        Talk(now_ms=at).metadata().produce(records=batch(3)).fetch().heartbeat(27) for at in (0, 999)
    )
    assert changes(one, other) == []


def test_a_client_that_is_new_or_gone_is_said_once() -> None:
    one = Talk(client_id="old").metadata().produce()
    other = Talk(client_id="new").metadata()
    assert between(one.rows, other.rows) == [
        Difference("clients", "old", "client", "2 requests: Metadata, Produce", None),
        Difference("clients", "new", "client", None, "1 requests: Metadata", at_start=True),
    ]


def test_together_all_clients_are_one() -> None:
    one, other = Talk(client_id="old").metadata(), Talk(client_id="new").metadata()
    assert between(one.rows, other.rows, together=True) == []


def test_client_ids_are_the_same_but_for_uuids_in_them() -> None:
    assert name_of("a-0a1b2c3d-1111-2222-3333-444455556666-consumer") == "a-*-consumer"
    one = Talk(client_id="a-0a1b2c3d-1111-2222-3333-444455556666").metadata()
    other = Talk(client_id="a-ffffffff-1111-2222-3333-444455556666").metadata()
    assert between(one.rows, other.rows) == []


def test_errors_come_first_then_apis_then_what_weighs_less_and_start_up_last() -> None:
    before = Talk().produce(acks=-1).heartbeat()
    after = Talk().metadata().produce(acks=1, version=10).fetch().heartbeat(25)
    assert changes(before, after) == [
        ("errors", "Heartbeat errors", "none", "UNKNOWN_MEMBER_ID x1 of 1"),
        ("apis", "Fetch", None, "1 requests"),
        ("settings", "Produce acks", "-1 (all)", "1"),
        ("versions", "Produce version", "9", "10"),
        ("apis", "Metadata", None, "1 requests"),
    ]


def test_apis_that_are_missing_come_before_those_that_are_new_and_before_slower_ones() -> None:
    before, after = Talk().heartbeat(), Talk().fetch()
    for _ in range(30):
        before.produce(records=batch(1))
        after.exchange("Produce", 9, {"acks": -1}, {}, took_ms=90)
    found = [(aspect, what) for aspect, what, *_ in changes(before, after)]
    assert found[:3] == [("apis", "Heartbeat"), ("apis", "Fetch"), ("latency", "Produce latency p50")]


def test_a_storm_of_metadata_and_errors_in_it_are_no_start_up() -> None:
    def work(times: int, error_code: int = 0) -> Talk:
        talk = Talk().heartbeat()
        for _ in range(times):
            topics = [{"name": "orders", "error_code": error_code, "partitions": []}]
            talk.exchange("Metadata", 12, {"topics": None}, {"brokers": [], "topics": topics})
        return talk

    assert not any(one.at_start for one in between(work(2).rows, work(200).rows))
    [failing] = between(work(1).rows, work(1, 3).rows)
    assert (failing.aspect, failing.at_start) == ("errors", False)
    [more] = between(work(0).rows, work(2).rows)
    assert (more.what, more.at_start) == ("Metadata", True)


def test_three_metadata_requests_of_a_connection_are_start_up_and_four_are_not() -> None:
    def work(times: int) -> Talk:
        talk = Talk().heartbeat()
        for _ in range(times):
            talk.metadata()
        return talk

    for times, at_start in ((3, True), (4, False)):
        [found] = between(work(0).rows, work(times).rows)
        assert (found.what, found.at_start) == ("Metadata", at_start)


def test_what_a_client_older_than_its_broker_is_told_of_versions_is_start_up() -> None:
    def work(error_code: int) -> Talk:
        return Talk().exchange("ApiVersions", 3, {}, {"error_code": error_code}).heartbeat()

    [found] = between(work(0).rows, work(35).rows)
    assert (found.aspect, found.what, found.at_start) == ("errors", "ApiVersions errors", True)


def test_a_client_that_cannot_even_begin_is_no_start_up() -> None:
    failing = Talk().exchange("SaslAuthenticate", 1, {"auth_bytes": b"x"}, {"error_code": 58})
    [found] = between([], failing.rows)
    assert (found.aspect, found.at_start) == ("clients", False)


def test_a_client_that_only_connects_comes_last() -> None:
    one = Talk(client_id="b-worker").produce()
    other = Talk(of=connection(2), client_id="a-bootstrap").metadata()
    found = between(in_time(one, other), [])
    assert [(each.client, each.at_start) for each in found] == [("b-worker", False), ("a-bootstrap", True)]


def test_an_error_that_is_there_as_often_is_none_but_one_that_is_more_frequent_is() -> None:
    def beats(errors: int, of: int = 100) -> Talk:
        talk = Talk()
        for number in range(of):
            talk.heartbeat(27 if number < errors else 0)
        return talk

    assert changes(beats(20), beats(25)) == []
    [found] = changes(beats(20), beats(60))
    assert found == (
        "errors", "Heartbeat errors", "REBALANCE_IN_PROGRESS x20 of 100", "REBALANCE_IN_PROGRESS x60 of 100",
    )  # fmt: skip


def test_requests_without_an_answer_are_errors_if_there_are_more_than_connections_end() -> None:
    def work(unanswered: int) -> Talk:
        talk = Talk()
        for number in range(40):
            if number < unanswered:
                talk.request("Heartbeat", 4, {"group_id": "billing"})
            else:
                talk.heartbeat()
        return talk

    assert changes(work(0), work(3)) == []
    assert changes(work(0), work(20)) == [
        ("errors", "Heartbeat errors", "none", "20 without an answer of 40"),
    ]


def test_settings_of_a_version_that_lacks_them_are_kafkas_defaults() -> None:
    before = Talk().exchange("Fetch", 3, {"max_wait_ms": 500, "max_bytes": 7}, {})
    after = Talk().exchange("Fetch", 4, {"max_wait_ms": 500, "max_bytes": 7, "isolation_level": 1}, {})
    assert changes(before, after) == [
        ("settings", "Fetch isolation_level", "0 (read_uncommitted)", "1 (read_committed)"),
        ("versions", "Fetch version", "3", "4"),
    ]


def test_settings_of_groups_transactions_and_software_are_compared() -> None:
    def work(timeout_ms: int, protocol: str, transactional_id: str | None, version: str) -> Talk:
        join = {
            "group_id": "g",
            "session_timeout_ms": timeout_ms,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": [{"name": protocol, "metadata": b""}],
        }
        talk = Talk().exchange("JoinGroup", 5, join, {})
        talk.exchange("InitProducerId", 4, {"transactional_id": transactional_id}, {})
        software = {"client_software_name": "java", "client_software_version": version}
        return talk.exchange("ApiVersions", 3, software, {})

    assert changes(
        work(10_000, "range", None, "3.9.0"), work(45_000, "cooperative-sticky", "t", "4.1.0")
    ) == [
        ("settings", "InitProducerId transactional_id", "none", "set"),
        ("settings", "JoinGroup protocols.name", "range", "cooperative-sticky"),
        ("settings", "JoinGroup session_timeout_ms", "10000", "45000"),
        ("software", "client_software_version", "3.9.0", "4.1.0"),
    ]


def test_batches_are_compared_by_codec_and_by_how_many_records_they_gather() -> None:
    before, after = Talk(), Talk()
    for _ in range(30):
        before.produce(records=batch(2))
        after.produce(records=batch(200, "gzip"))
    found = changes(before, after)
    assert ("settings", "compression", "none", "gzip") in found
    assert ("batches", "records per batch", "2.0", "200.0") in found


def test_a_count_is_compared_as_a_share_of_all_too() -> None:
    def work(beats: int, fetches: int) -> Talk:
        talk = Talk()
        for _ in range(beats):
            talk.heartbeat()
        for _ in range(fetches):
            talk.fetch()
        return talk

    assert changes(work(50, 50), work(150, 150)) == []  # thrice as long
    assert changes(work(50, 50), work(50, 450)) == [
        ("counts", "Fetch requests", "50 (50.0%)", "450 (90.0%)"),
    ]


def test_a_latency_is_told_where_it_has_shifted_and_not_where_it_jitters() -> None:
    def work(times: float, seed: int) -> Talk:
        draw, talk = random.Random(seed), Talk()
        for _ in range(300):
            talk.heartbeat(took_ms=2 + times * draw.expovariate(0.1))
        return talk

    assert changes(work(1, 1), work(1, 2)) == []
    [(aspect, what, _, _)] = changes(work(1, 1), work(4, 2))
    assert (aspect, what) == ("latency", "Heartbeat latency p50")


def test_a_slow_end_is_told_where_the_middle_is_the_same() -> None:
    def work(slow_ms: float) -> Talk:
        talk = Talk()
        for number in range(1000):
            talk.heartbeat(took_ms=slow_ms if number % 50 == 0 else 3)
        return talk

    assert changes(work(5), work(900)) == [("latency", "Heartbeat latency p99", "5 ms", "900 ms")]


def test_connections_are_counted() -> None:
    def work(connections: int) -> list[Captured]:
        return in_time(*(Talk(of=connection(number)).heartbeat() for number in range(connections)))

    assert between(work(2), work(3)) == []
    [found] = [one for one in between(work(2), work(9)) if one.aspect == "connections"]
    assert (found.before, found.after) == ("2", "9")


def test_an_api_that_klamm_does_not_know_is_told_by_its_key() -> None:
    after = Talk().heartbeat()
    after.rows += [row._replace(api_key=9999, exchange=9) for row in Talk().heartbeat().rows]
    assert changes(Talk().heartbeat(), after) == [("apis", "API key 9999", None, "1 requests")]


def test_damaged_records_and_bodies_are_passed_over() -> None:
    before, after = Talk().produce(records=b"no batch at all, but long enough"), Talk().produce()
    after.rows.append(
        after.rows[0]._replace(frame=(after.rows[0].frame or b"")[:-2], exchange=7, awaits=False)
    )
    assert changes(before, after) == []

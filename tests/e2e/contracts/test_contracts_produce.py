"""Kafka's promises to producers, through klamm: acks, durability, idempotence, sizes."""

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.contracts.contracts import (
    Address,
    Talk,
    Values,
    ask,
    batch,
    batches,
    create,
    fetch,
    fetched,
    produce,
    produced,
)
from tests.e2e.paths import Paths

pytestmark = pytest.mark.brokers

PLAIN, SMALL, STAMPED, COMPACTED = (
    f"contracts-{kind}" for kind in ("produce", "small", "stamped", "compacted")
)
NONE, CORRUPT, NOT_LEADER, TOO_LARGE, BAD_ACKS, GAP, INVALID_RECORD = 0, 2, 6, 10, 21, 45, 87


@pytest.fixture(scope="module")
def leader(kafka: Cluster, paths: Paths) -> Address:
    """Broker 1 through klamm, which leads these topics."""
    bootstrap, leader = kafka.bootstrap(), paths.through["broker", 1]
    create(bootstrap, leader, PLAIN, (1, 2, 3))
    create(bootstrap, leader, SMALL, config={"max.message.bytes": "1000"})
    create(bootstrap, leader, STAMPED, config={"message.timestamp.type": "LogAppendTime"})
    create(bootstrap, leader, COMPACTED, config={"cleanup.policy": "compact"})
    return leader


def end(leader: Address, topic: str) -> int:
    """The offset after the last committed record."""
    return int(fetched(ask(leader, "Fetch", 12, fetch(topic, 0)))["high_watermark"])


@pytest.mark.parametrize("version", [3, 12])
def test_acks_0_is_not_answered_and_the_next_answer_keeps_its_place(version: int, leader: Address) -> None:
    with Talk(leader) as talk:
        before = produced(talk.ask("Produce", version, produce(PLAIN, batch([b"before"]), acks=-1)))
        talk.send("Produce", version, produce(PLAIN, batch([b"unanswered"]), acks=0))
        acknowledged = produced(talk.ask("Produce", version, produce(PLAIN, batch([b"answered"]), acks=1)))
        talk.send("Produce", version, produce(PLAIN, batch([b"unanswered"]), acks=0))
        talk.ask("Metadata", 12, {"topics": []})
        assert talk.silent(0.2)
    assert acknowledged["base_offset"] == before["base_offset"] + 2


def test_an_error_under_acks_0_closes_the_connection(paths: Paths, leader: Address) -> None:
    with Talk(paths.through["broker", 2]) as talk:
        talk.send("Produce", 9, produce(PLAIN, batch([b"to the wrong broker"]), acks=0))
        assert talk.closed()


@pytest.mark.parametrize("acks", [1, -1])
def test_what_is_acknowledged_has_its_offset_and_is_read_there(acks: int, leader: Address) -> None:
    with Talk(leader) as talk:
        answer = produced(talk.ask("Produce", 9, produce(PLAIN, batch([b"a", b"b", b"c"]), acks=acks)))
        read = fetched(
            talk.ask("Fetch", 12, fetch(PLAIN, answer["base_offset"], max_wait_ms=5000, min_bytes=1))
        )
    assert answer["error_code"] == NONE
    assert batches(read["records"])[0] == (answer["base_offset"], -1, 3)


def test_every_replica_in_sync_has_what_acks_all_acknowledged(leader: Address, paths: Paths) -> None:
    """A follower serves what it knows to be committed, which it hears with its next fetch."""
    at = produced(ask(leader, "Produce", 9, produce(PLAIN, batch([b"on all"]), acks=-1)))["base_offset"]
    for node in (2, 3):
        follower = paths.through["broker", node]
        wait_for(lambda to=follower: end(to, PLAIN) > at, "the follower", timeout_s=10)
        read = fetched(ask(follower, "Fetch", 12, fetch(PLAIN, at)))
        assert (read["error_code"], batches(read["records"])[0][0]) == (NONE, at)


def test_other_values_of_acks_are_refused(leader: Address) -> None:
    assert (
        produced(ask(leader, "Produce", 9, produce(PLAIN, batch([b"x"]), acks=2)))["error_code"] == BAD_ACKS
    )


def test_a_batch_is_appended_whole_or_not_at_all(leader: Address) -> None:
    before, good = end(leader, PLAIN), batch([b"first", b"second"])
    damaged = good[:-2] + bytes([good[-2] ^ 1]) + good[-1:]
    assert produced(ask(leader, "Produce", 9, produce(PLAIN, damaged)))["error_code"] == CORRUPT
    assert end(leader, PLAIN) == before


def test_a_batch_larger_than_the_topic_allows_is_refused(leader: Address) -> None:
    large = batch([bytes(2000)])
    assert produced(ask(leader, "Produce", 9, produce(SMALL, large)))["error_code"] == TOO_LARGE


def test_records_that_are_refused_are_named(leader: Address) -> None:
    answer = produced(ask(leader, "Produce", 9, produce(COMPACTED, batch([b"no key"]))))
    assert answer["error_code"] == INVALID_RECORD
    assert [error["batch_index"] for error in answer["record_errors"]] == [0]
    assert answer["error_message"]


def test_the_time_of_the_append_is_told_where_the_broker_sets_it(leader: Address) -> None:
    plain = produced(ask(leader, "Produce", 9, produce(PLAIN, batch([b"x"]))))
    stamped = produced(ask(leader, "Produce", 9, produce(STAMPED, batch([b"x"]))))
    assert plain["log_append_time_ms"] == -1
    assert stamped["log_append_time_ms"] > 1_600_000_000_000


def test_an_idempotent_batch_sent_twice_is_there_once_and_a_gap_is_refused(leader: Address) -> None:
    def begin() -> Values | None:
        answer = talk.ask("InitProducerId", 4, {"transactional_id": None})
        return answer if answer["error_code"] == NONE else None

    with Talk(leader) as talk:
        who = wait_for(begin, "a producer id")
        by = {"producer_id": who["producer_id"], "epoch": who["producer_epoch"]}
        first = batch([b"once", b"only"], **by, sequence=0)
        sent, again, gap = (
            produced(talk.ask("Produce", 9, produce(PLAIN, data)))
            for data in (first, first, batch([b"late"], **by, sequence=9))
        )
    assert sent["error_code"] == again["error_code"] == NONE
    assert sent["base_offset"] == again["base_offset"]
    assert end(leader, PLAIN) == sent["base_offset"] + 2
    assert gap["error_code"] == GAP


def test_a_produce_to_another_broker_than_the_leader_is_refused(leader: Address, paths: Paths) -> None:
    answer = produced(ask(paths.through["broker", 2], "Produce", 9, produce(PLAIN, batch([b"x"]))))
    assert answer["error_code"] == NOT_LEADER

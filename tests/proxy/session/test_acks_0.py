"""Servers that answer Produce requests with acks=0, which Kafka does not: KoP 2.10.3."""

from __future__ import annotations

import pytest

from klamm.proxy.session.effects import Close, Event
from tests.proxy.traffic import (
    ADVERTISE,
    BROKERS,
    Exchanged,
    byte_by_byte,
    exchange,
    ground,
    kinds,
    play,
    produce,
    whole,
)

BEAT = exchange("Heartbeat", 4, {"group_id": "g", "member_id": "m"}, {"error_code": 27}, 9)


def answered(version: int, correlation_id: int = 1, endpoints: bool = False) -> Exchanged:
    return Exchanged(
        produce(version, correlation_id, acks=0).request,
        produce(version, correlation_id, endpoints=endpoints).answer,
    )


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_the_answer_goes_on_and_is_counted(version: int) -> None:
    three = [answered(version, 1), answered(version, 2), BEAT, answered(version, 3)]
    for cut in (whole, byte_by_byte):
        at = ground()
        outcome = play(three, cut, at)
        assert outcome.client == b"".join(one.answer or b"" for one in three)
        assert kinds(outcome.events) == [(Event, "acks_0_answered")] * 3
        [one] = [one for key, one in at.stats.requests.items() if key[3] == "Produce"]
        assert (one.requests, one.responses, sum(one.latency.buckets)) == (3, 3, 0)


def test_its_errors_are_counted_and_its_addresses_replaced() -> None:
    at = ground()
    outcome = play([answered(13, endpoints=True)], byte_by_byte, at)
    assert ADVERTISE.encode() in outcome.client
    assert BROKERS[0]["host"].encode() not in outcome.client
    [one] = at.stats.requests.values()
    assert one.errors == {6: 1}


def test_where_all_produce_requests_wait_for_answers_another_answer_closes() -> None:
    asked = produce(9, 1)
    outcome = play([Exchanged(asked.request, produce(9, 2).answer)], whole)
    assert kinds(outcome.events) == [(Close, "correlation_mismatch")]

"""Exchanges that somebody wants to hear of, where the request alone says so: told once each, whatever else is
remembered of the stream.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.decoders import API
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Exchange
from klamm.rules.expressions import parse
from klamm.rules.plan import ListenerWish, Wishes
from tests.proxy.ruling.ruled import ruled
from tests.proxy.traffic import Exchanged, at_random, byte_by_byte, fetch, play, produce, whole

RARE = 'acks == -1 and any(t.name == "rare" for t in topic_data)'


class Heard:
    """A listener with room for so many."""

    def __init__(self, room: int = 10**9, bodies: bool = False) -> None:
        self.room, self.bodies, self.count, self.lost = room, bodies, 0, 0

    @property
    def full(self) -> bool:
        return self.count >= self.room

    def take(self, one: Any) -> None:
        self.count += 1

    def missed(self, count: int) -> None:
        self.lost += count


def watched(*watchers: ListenerWish, metering: Any = "full") -> ClusterContext:
    return ruled(wishes=Wishes(metering, frozenset(), watchers))


def fields_of(events: tuple[Any, ...], sink: Any) -> list[dict[str, Any]]:
    return [event.fields for event in events if isinstance(event, Exchange) and sink in event.listeners]


def stream(random: Random, count: int = 60) -> tuple[list[Exchanged], set[int]]:
    """Produces, a few of them to the rare topic with acks=all, and fetches; and which these few are."""
    exchanges: list[Exchanged] = []
    rare: set[int] = set()
    for number in range(1, count + 1):
        topic = "rare" if random.random() < 0.1 else "orders"
        acks = random.choice([-1, -1, 1, 0])
        if random.random() < 0.3:
            exchanges.append(fetch(12, number))
            continue
        size = random.choice([100, 100, 300])
        exchanges.append(produce(9, number, acks, size, topic=topic))
        if topic == "rare" and acks == -1:
            rare.add(number)
    return exchanges, rare


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("metering", ["full", "header"])
def test_just_those_that_are_meant_are_told_once_however_the_stream_is_cut(seed: int, metering: str) -> None:
    exchanges, rare = stream(Random(seed))
    sizes = {number: len(one.request) for number, one in enumerate(exchanges, 1)}
    for cut in (whole, at_random(Random(seed), 700), byte_by_byte):
        sink = Heard()
        at = watched(ListenerWish(parse(RARE), sink), metering=metering)
        outcome = play(exchanges, cut, at, batch=20)
        found = fields_of(outcome.events, sink)
        assert [fields["correlation_id"] for fields in found] == sorted(rare)
        assert all(fields["topics"] == {"rare": [0]} for fields in found)
        assert all(fields["request_bytes"] == sizes[fields["correlation_id"]] for fields in found)
        assert outcome.broker == b"".join(one.request for one in exchanges)


def test_all_exchanges_are_told_to_who_wants_all_those_without_an_answer_too() -> None:
    exchanges, _ = stream(Random(1))
    sink = Heard()
    found = fields_of(
        play(exchanges, at_random(Random(1), 700), watched(ListenerWish(None, sink)), 20).events, sink
    )
    assert sorted(fields["correlation_id"] for fields in found) == list(range(1, len(exchanges) + 1))
    unanswered = {number for number, one in enumerate(exchanges, 1) if one.answer is None}
    assert {fields["correlation_id"] for fields in found if fields["response_bytes"] is None} == unanswered


def test_what_finds_no_room_is_counted_and_costs_no_look() -> None:
    exchanges = [produce(9, number, topic="rare") for number in range(1, 201)]
    exchanges += [produce(9, number, 0, topic="rare") for number in range(201, 231)]
    sink = Heard(room=0)
    outcome = play(exchanges, whole, watched(ListenerWish(None, sink)), batch=50)
    assert fields_of(outcome.events, sink) == []
    assert sink.lost == 230


def test_two_listeners_are_told_each_what_it_asked_for() -> None:
    exchanges, rare = stream(Random(5))
    every, few = Heard(), Heard()
    at = watched(ListenerWish(None, every), ListenerWish(parse(RARE), few))
    events = play(exchanges, whole, at, batch=20).events
    assert len(fields_of(events, every)) == len(exchanges)
    assert [fields["correlation_id"] for fields in fields_of(events, few)] == sorted(rare)


@pytest.mark.parametrize(
    ("where", "api", "decided"),
    [
        (RARE, "Produce", True),
        ("acks == 0", "Produce", True),
        ('client_id == "app" and api == Produce', "Produce", True),
        ('topic == "orders"', "Produce", False),  # an answer names topics too
        ("acks == 0 and size > 100", "Produce", False),
        ("latency_ms > 100", "Fetch", False),
        ("error == NOT_LEADER_OR_FOLLOWER", "Produce", False),
        ('acks == 0 and record.key == "k"', "Produce", False),
        ("any(t.name is None for t in topics)", "Metadata", False),  # on both sides
    ],
)
def test_a_request_decides_only_what_its_answer_and_its_records_cannot_change(
    where: str, api: str, decided: bool
) -> None:
    assert parse(where).by_request(API[api]) is decided

"""Listeners that take bodies, of exchanges that the request alone decides: both frames whole, and the bytes
that pass are the same as without them.
"""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, decode
from klamm.decoders.headers import REQUEST, RESPONSE, request_header_version, response_header_version
from klamm.decoders.schema import Side
from klamm.proxy.control.exchange import Seen, body, exchange_of
from klamm.proxy.session.effects import Exchange
from klamm.rules.expressions import parse
from klamm.rules.frame import Frame
from klamm.rules.plan import ListenerWish, Wishes
from tests.proxy.control.test_watching import RARE, Heard, stream
from tests.proxy.ruling.ruled import Talk, act, rule, ruled
from tests.proxy.traffic import (
    ADVERTISE,
    Cutting,
    Exchanged,
    Outcome,
    at_random,
    byte_by_byte,
    exchange,
    metadata,
    play,
    produce,
    whole,
)

LAST_PARTITION = "any(p.index == 3 for t in topic_data for p in t.partition_data)"
SIDES = ("request", "response")
AT = {"cluster": "kafka", "broker": "1", "connection": "10.0.0.7:5000"}  # the edge adds it


def seen_by(listener: Heard, outcome: Outcome) -> list[Seen]:
    """What it was given."""
    told = [e for e in outcome.events if isinstance(e, Exchange) and listener in e.listeners]
    return [Seen(0.0, {**AT, **one.fields}, *one.fields["frames"]) for one in told]


def sent(frame: bytes, side: Side, name: str, version: int) -> bytes:
    """The body of a frame with the client id "app", and without tagged fields in its header."""
    if side == "request":
        tagged = request_header_version(API[name], version) == 2
        return frame[12 + 2 + len("app") + tagged :]
    return frame[8 + (response_header_version(API[name], version) == 1) :]


def watched(*rules: Any, where: str | None = None, **settings: Any) -> tuple[Any, Heard]:
    listener = Heard(bodies=True)
    wish = ListenerWish(None if where is None else parse(where), listener)
    return ruled(*rules, wishes=Wishes("full", frozenset(), (wish,)), **settings), listener


@pytest.mark.parametrize("seed", range(4))
def test_both_bodies_are_there_whole_however_the_stream_is_cut(seed: int) -> None:
    exchanges, rare = stream(Random(seed))
    plain = play(exchanges, whole, batch=20)
    for cut in (whole, at_random(Random(seed), 700), at_random(Random(seed), 40), byte_by_byte):
        at, listener = watched(where=RARE)
        outcome = play(exchanges, cut, at, batch=20)
        found = seen_by(listener, outcome)
        assert [one.fields["correlation_id"] for one in found] == sorted(rare)
        for one in found:
            came = exchanges[one.fields["correlation_id"] - 1]
            assert one.request is not None
            assert one.request.body == sent(came.request, "request", "Produce", 9)
            assert one.response is not None
            assert came.answer is not None
            assert one.response.body == sent(came.answer, "response", "Produce", 9)
            assert one.response.request is one.request
        assert (outcome.broker, outcome.client) == (plain.broker, plain.client)
        assert at.held.now == 0


@pytest.mark.parametrize("cut", [whole, at_random(Random(3), 90), byte_by_byte])
def test_those_without_an_answer_have_the_request(cut: Cutting) -> None:
    at, listener = watched()
    exchanges = [produce(9, number, 0) for number in range(1, 6)]
    found = seen_by(listener, play(exchanges, cut, at))
    assert [one.response for one in found] == [None] * 5
    assert all(one.request is not None and one.request.values["acks"] == 0 for one in found)


def test_addresses_are_shown_as_clients_get_them_beside_what_came() -> None:
    at, listener = watched()
    outcome = play([metadata(12)], whole, at)
    (one,) = seen_by(listener, outcome)
    assert one.response is not None
    assert one.response.came is not None
    hosts = [
        {broker["host"] for broker in decode(each, "Metadata", 12, "response")["brokers"]}
        for each in (one.response.came, one.response.body)
    ]
    assert hosts == [{"kafka-1.internal", "kafka-2.internal", "::1"}, {ADVERTISE}]
    assert one.response.body == sent(outcome.client, "response", "Metadata", 12)


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
def test_rules_that_acted_are_named_and_their_answer_is_shown(cut: Cutting) -> None:
    failing = rule(act("error", 6), api="Produce", name="fails")
    at, listener = watched(failing)
    (one,) = seen_by(listener, play([produce(9)], cut, at))
    shown = exchange_of(one)
    assert (shown.rules, shown.origin) == (["fails"], "klamm")
    assert shown.errors == {"NOT_LEADER_OR_FOLLOWER": 1}
    assert one.request is not None
    assert one.request.body == sent(produce(9).request, "request", "Produce", 9)
    assert body(one.request, raw=True).withheld


def test_an_answer_that_a_rule_changes_is_shown_as_it_came_and_as_it_was_sent() -> None:
    changing = rule(act("error", 6), api="Produce", name="changes", side="response")
    at, listener = watched(changing)
    outcome = play([produce(9)], whole, at)
    (one,) = seen_by(listener, outcome)
    assert one.response is not None
    shown = body(one.response, raw=True)
    answer = produce(9).answer
    assert answer is not None
    assert one.response.body == sent(answer, "response", "Produce", 9)
    assert shown.sent is not None
    assert exchange_of(one).rules == ["changes"]


def test_a_frame_that_may_not_be_held_passes_and_is_told_without_its_body() -> None:
    large = produce(9, size=5000)
    at, _ = watched(held_limit=1000)
    outcome = play([large, produce(9, 2)], at_random(Random(1), 300), at, batch=1)
    first, second = (e.fields for e in outcome.events if isinstance(e, Exchange))
    assert "frames" not in first
    assert isinstance(second["frames"][0], Frame)
    assert outcome.broker == large.request + produce(9, 2).request
    assert at.held.now == 0


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
def test_a_request_whose_answer_the_client_does_not_wait_for_is_told_once(cut: Cutting) -> None:
    at, listener = watched(rule(act("set", {"acks": "1"}), api="Produce"))
    talk = Talk(at)
    talk.client(produce(9, 1, acks=0), cut=cut)
    talk.broker(produce(9, 1), cut=cut)
    (one,) = seen_by(listener, talk.outcome)
    assert one.request is not None
    assert one.request.values["acks"] == 0
    assert one.response is None
    assert talk.outcome.client == b""


def spread(number: int, acks: int, size: int = 3000) -> Exchanged:
    """A Produce whose wanted fields end behind many bytes: partitions with records between."""
    parts = [{"index": index, "records": bytes(size)} for index in range(4)]
    body = {"acks": acks, "topic_data": [{"name": "orders", "partition_data": parts}]}
    answers = [{"index": index} for index in range(4)]
    answer = {"responses": [{"name": "orders", "partition_responses": answers}]} if acks else None
    return exchange("Produce", 9, body, answer, number)


@pytest.mark.parametrize("acks", [0, -1])
@pytest.mark.parametrize("cut", [whole, at_random(Random(3), 900), byte_by_byte])
def test_a_request_whose_fields_end_behind_what_may_be_held_is_told_without_bodies(
    cut: Cutting, acks: int
) -> None:
    at, listener = watched(held_limit=5000)
    exchanges = [spread(number, acks) for number in (1, 2)]
    outcome = play(exchanges, cut, at, batch=1)
    told = [e.fields for e in outcome.events if isinstance(e, Exchange) and listener in e.listeners]
    assert [one["correlation_id"] for one in told] == [1, 2]
    if cut is not whole:
        assert not any("frames" in one for one in told)
    assert at.stats.problems == {}


def test_a_filter_that_cannot_be_judged_on_the_beginning_of_such_a_request_is_a_problem() -> None:
    at, listener = watched(where=LAST_PARTITION, held_limit=5000)
    outcome = play([spread(1, 0), spread(2, 0, size=10)], at_random(Random(3), 900), at, batch=1)
    told = [e.fields for e in outcome.events if isinstance(e, Exchange) and listener in e.listeners]
    assert [one["correlation_id"] for one in told] == [2]
    assert [kind for *_, kind in at.stats.problems] == ["too_large_for_rules"]


def test_one_without_room_costs_no_frame() -> None:
    listener = Heard(room=0, bodies=True)
    at = ruled(wishes=Wishes("full", frozenset(), (ListenerWish(None, listener),)))
    exchanges: list[Exchanged] = [produce(9, number, size=500) for number in range(1, 20)]
    outcome = play(exchanges, at_random(Random(2), 300), at)
    assert listener.lost == len(exchanges)
    assert not [e for e in outcome.events if isinstance(e, Exchange)]


def test_a_body_that_does_not_end_where_its_layout_does_says_so() -> None:
    at, listener = watched()
    one = exchange("Heartbeat", 0, {"group_id": "g", "member_id": "m"}, {})
    answer = bytes.fromhex("0000000a00000001 00000000001b")
    outcome = play([Exchanged(one.request, answer)], whole, at)
    [found] = seen_by(listener, outcome)
    assert found.request is not None
    assert found.response is not None
    assert body(found.request, raw=False).reason == ""
    shown = body(found.response, raw=False)
    assert shown.values == {"error_code": 0}
    assert shown.reason == "the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit"
    assert exchange_of(found).undecodable == {"response": shown.reason}


def test_exchanges_of_apis_and_versions_that_klamm_does_not_know_are_heard() -> None:
    keys = (777, API["Heartbeat"].key)
    asked = [REQUEST.pack(12, key, 99, number) + b"\0\1aX" for number, key in enumerate(keys)]
    answers = [RESPONSE.pack(6, number) + b"zz" for number in range(2)]
    at, listener = watched()
    outcome = play([Exchanged(b"".join(asked), b"".join(answers))], whole, at)
    found = seen_by(listener, outcome)
    why = ["API key 777 is not known", f"Heartbeat v99 is not known, only {API['Heartbeat'].versions}"]
    assert [exchange_of(one).api for one in found] == ["API key 777", "Heartbeat"]
    assert [exchange_of(one).undecodable for one in found] == [dict.fromkeys(SIDES, text) for text in why]
    bodies = [[body(frame, True).raw for frame in one[2:] if frame is not None] for one in found]
    assert bodies == [[None, None], [b64encode(b"X").decode(), b64encode(b"zz").decode()]]


def test_an_exchange_whose_request_does_not_decode_is_heard() -> None:
    beat = exchange("Heartbeat", 4, {"group_id": "g", "member_id": "m"}, {"error_code": 0})
    cut_short = (len(beat.request) - 4 - 3).to_bytes(4, "big") + beat.request[4:-3]
    at, listener = watched()
    [one] = seen_by(listener, play([Exchanged(cut_short, beat.answer)], whole, at))
    assert list(exchange_of(one).undecodable) == ["request"]

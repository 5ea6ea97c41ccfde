"""Requests whose connection ends before their answers come: the log and listeners hear of them, and why."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from klamm.proxy.control.exchange import Seen
from klamm.proxy.control.listeners import ShowTo
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Effect, Exchange
from klamm.proxy.session.session import Session
from klamm.proxy.session.unanswered import MOST_TOLD
from klamm.rules.plan import ListenerWish, Wishes
from tests.proxy.control.test_watching import Heard
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import ADVERTISE, Exchanged, exchange, fetch, produce

CAME, ENDED = 1_000_000, 31_000_000  # ns
WHY = "closed by client"
LOGGED = Wishes("full", None)


def beat(number: int) -> Exchanged:
    return exchange("Heartbeat", 3, {"group_id": "g", "member_id": "m"}, {}, number)


def of(effects: bytes | list[Effect]) -> list[dict[str, Any]]:
    found = [] if isinstance(effects, bytes) else effects
    return [effect.fields for effect in found if isinstance(effect, Exchange)]


def told(at: ClusterContext, *exchanges: Exchanged, answers: bytes = b"") -> list[dict[str, Any]]:
    """The exchanges of a connection that gets these requests, then these answers, and ends."""
    session = Session(at, "1", ADVERTISE)
    early = of(session.from_client(b"".join(one.request for one in exchanges), CAME))
    early += of(session.from_broker(answers, CAME))
    return early + of(session.over(WHY, ENDED))


def listened(*rules: Any, room: int = 10**9, bodies: bool = False) -> tuple[ClusterContext, Heard]:
    listener = Heard(room, bodies)
    return ruled(*rules, wishes=Wishes("full", frozenset(), (ListenerWish(None, listener),))), listener


@pytest.mark.parametrize("bodies", [False, True, None], ids=["listener", "with bodies", "log"])
def test_those_that_have_no_answer_are_told_with_the_reason_and_how_long_they_waited(
    bodies: bool | None,
) -> None:
    at = ruled(wishes=LOGGED) if bodies is None else listened(bodies=bodies)[0]
    three = [beat(number) for number in (1, 2, 3)]
    first, *others = told(at, *three, answers=three[0].answer or b"")
    assert first["response_bytes"] == len(three[0].answer or b"")
    assert "unanswered" not in first
    for number, one in zip((2, 3), others, strict=True):
        assert (one["correlation_id"], one["unanswered"], one["waited_ns"]) == (number, WHY, ENDED - CAME)
        assert (one["response_bytes"], one["latency_ns"], one["group"]) == (None, None, "g")
        assert one["request_bytes"] == len(three[0].request)
        if bodies:
            request, answer = one["frames"]
            assert (request.values["member_id"], answer) == ("m", None)


def test_a_listener_for_whom_a_rule_chooses_hears_of_them_too() -> None:
    seen: list[Seen] = []
    listener = Mock(take=seen.append)
    told(ruled(rule(ShowTo(listener, None), name="watch")), beat(1))
    [one] = seen
    assert (one.fields["unanswered"], one.fields["waited_ns"]) == (WHY, ENDED - CAME)
    assert one.request is not None


def test_nobody_hears_of_them_where_nobody_listens() -> None:
    assert told(ruled(wishes=Wishes("full", frozenset())), beat(1), beat(2)) == []


@pytest.mark.parametrize("at", [listened()[0], ruled(wishes=LOGGED)], ids=["listener", "log"])
def test_a_produce_that_wants_no_answer_is_told_once_and_lacks_none(at: ClusterContext) -> None:
    [one] = told(at, produce(9, 1, 0, 100))
    assert (one["response_bytes"], "unanswered" in one) == (None, False)


@pytest.mark.parametrize("name", ["drop", "duplicate"])
def test_those_of_which_a_rule_has_told_are_not_told_again(name: str) -> None:
    at, _ = listened(rule(act(name), api="Heartbeat"))
    one = told(at, beat(1), answers=b"" if name == "drop" else beat(1).answer or b"")
    assert [each.get("unanswered") for each in one] == [None]


def test_of_very_many_the_oldest_are_told_and_the_others_count_as_missed() -> None:
    at, listener = listened()
    requests = [beat(number) for number in range(1, MOST_TOLD + 8)]
    assert [one["correlation_id"] for one in told(at, *requests)] == [*range(1, MOST_TOLD + 1)]
    assert listener.lost == 7


def test_of_very_many_for_whom_a_rule_chooses_the_others_count_as_missed_too() -> None:
    listener: Any = Heard()
    session = Session(ruled(rule(ShowTo(listener, None), name="watch")), "1", ADVERTISE)
    for number in range(1, MOST_TOLD + 8):
        session.from_client(beat(number).request, CAME * number)
    session.over(WHY, ENDED * MOST_TOLD)
    assert (listener.count, listener.lost) == (MOST_TOLD, 7)


def test_a_full_listener_misses_them() -> None:
    at, listener = listened(room=0)
    assert told(at, beat(1), beat(2)) == []
    assert listener.lost == 2


def test_an_answer_that_ends_in_its_middle_is_told_as_far_as_it_was_read() -> None:
    at, _ = listened()
    one = fetch(12, 1, size=100_000)
    answer = one.answer or b""
    [exchange] = told(at, one, answers=answer[:5000])
    assert (exchange["response_bytes"], "unanswered" in exchange) == (len(answer), False)

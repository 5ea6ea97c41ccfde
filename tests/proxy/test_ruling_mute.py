"""Throttled connections: their requests wait behind the one that was throttled, in order, and for each anew."""

from typing import Any

from klamm.decoders import decode
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.faulty import beat, produced, under
from tests.proxy.ruled import Talk, act, rule, ruled
from tests.proxy.traffic import exchange

MS = 1_000_000


def beats(talk: Talk, *numbers: int, now: int = 0) -> list[tuple[Any, ...]]:
    """The effects of these Heartbeats, sent in one read."""
    data = b"".join(exchange("Heartbeat", 4, {}, {}, number).request for number in numbers)
    effects = talk.session.from_client(data, now)
    return [("send", "broker", data)] if isinstance(effects, bytes) else effects


def test_what_follows_a_throttled_request_waits_and_the_request_itself_does_not() -> None:
    effects = beats(Talk(ruled(rule(act("throttle", 250 * MS)))), 1, now=1000)
    assert [effect[:2] for effect in effects] == [("send", "broker"), ("hold", "broker")]
    assert effects[1][2] == 1000 + 250 * MS


def test_pipelined_requests_are_throttled_one_after_another() -> None:
    effects = beats(Talk(ruled(rule(act("throttle", 250 * MS)))), 1, 2, 3)
    held = [effect[2] for effect in effects if effect[0] == "hold"]
    assert held == [250 * MS, 500 * MS, 750 * MS]
    assert [effect[0] for effect in effects] == ["send", "hold"] * 3


def test_a_throttled_answer_holds_the_requests_that_follow() -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS), side="response")))
    one = exchange("Heartbeat", 4, {}, {})
    talk.client(one)
    assert one.answer is not None
    effects = talk.session.from_broker(one.answer, 10 * MS)
    assert ("hold", "broker", 260 * MS) in effects
    (frame,) = [effect[2] for effect in effects if effect[0] == "send"]
    assert decode(frame[9:], 12, 4, "response")["throttle_time_ms"] == 250


def test_an_answer_of_klamm_s_own_is_throttled_as_one_of_the_broker() -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS)), rule(act("error", 27))))
    effects = beats(talk, 1)
    assert ("hold", "broker", 250 * MS) in effects


@on_uvloop
async def test_a_client_that_does_not_heed_the_throttle_time_is_slowed_all_the_same() -> None:
    async with under("    - {api: Produce, throttle: 60ms}") as (edge, client, broker):
        for _ in range(3):
            client.send("Produce", 9, produced())
        other = await edge.client(1)
        assert await beat(other) == "NONE"
        assert len(broker.requests("Produce")) == 1
        await eventually(lambda: len(broker.requests("Produce")) == 3)
        for _ in range(3):
            assert (await client.answer("Produce", 9))["throttle_time_ms"] == 60

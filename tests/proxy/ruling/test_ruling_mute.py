"""Throttled connections: requests wait behind the one that was throttled, in order, and for each anew."""

from typing import Any

from klamm.decoders import decode
from klamm.proxy.session.effects import MuteChannel, Send
from tests.fakes.waiting import on_uvloop
from tests.proxy.faulty import beat, produced, under
from tests.proxy.ruling.ruled import Talk, act, rule, ruled
from tests.proxy.traffic import exchange, produce

MS = 1_000_000


BEAT = exchange("Heartbeat", 4, {}, {})


def types(effects: Any) -> list[type]:
    return [Send] if isinstance(effects, bytes) else [type(effect) for effect in effects]


def test_what_follows_a_throttled_request_is_not_read_before_its_time() -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS))))
    effects = talk.session.from_client(BEAT.request * 2 + BEAT.request[:9], 1000)
    assert effects == [Send("broker", BEAT.request), MuteChannel(1000 + 250 * MS)]
    assert talk.session.from_client(BEAT.request[9:], 2000) == []
    assert talk.session.unmute(250 * MS) == [Send("broker", BEAT.request), MuteChannel(500 * MS)]
    assert types(talk.session.unmute(500 * MS)) == [Send, MuteChannel]
    assert talk.session.unmute(750 * MS) == []
    assert types(talk.session.from_client(BEAT.request, 800 * MS)) == [Send, MuteChannel]


def test_requests_behind_a_throttled_one_are_counted_when_they_are_read() -> None:
    at = ruled(rule(act("throttle", 250 * MS)))
    talk = Talk(at)
    talk.session.from_client(BEAT.request * 3, 0)
    assert talk.session.pending() == 1
    talk.session.unmute(250 * MS)
    assert talk.session.pending() == 2


def test_a_throttled_answer_mutes_the_connection_behind_a_request_that_has_begun() -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS), side="response", api="Heartbeat")))
    large = produce(9, size=1000).request
    assert BEAT.answer is not None
    talk.client(BEAT)
    assert types(talk.session.from_client(large[:500], 0)) == [Send]
    effects = talk.session.from_broker(BEAT.answer, 10 * MS)
    assert MuteChannel(260 * MS) in effects
    (frame,) = [bytes(effect.data) for effect in effects if isinstance(effect, Send)]
    assert decode(frame[9:], 12, 4, "response")["throttle_time_ms"] == 250
    assert talk.session.from_client(large[500:] + BEAT.request, 20 * MS) == [Send("broker", large[500:])]
    assert talk.session.unmute(260 * MS) == [Send("broker", BEAT.request)]


def test_an_answer_of_klamm_s_own_is_throttled_as_one_of_the_broker() -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS)), rule(act("error", 27))))
    effects = talk.session.from_client(BEAT.request * 2, 0)
    assert MuteChannel(250 * MS) in effects
    assert talk.session.pending() == 0


@on_uvloop
async def test_a_client_that_does_not_heed_the_throttle_time_is_slowed_all_the_same() -> None:
    async with under("    - {api: Produce, throttle: 700ms}") as (edge, client, broker):
        for _ in range(2):
            client.send("Produce", 9, produced())
        assert (await client.answer("Produce", 9))["throttle_time_ms"] == 700
        (link,) = await edge.links(1)
        assert link.session.muted
        assert len(broker.requests("Produce")) == 1
        assert (await client.answer("Produce", 9))["throttle_time_ms"] == 700
        assert len(broker.requests("Produce")) == 2


@on_uvloop
async def test_a_muted_connection_holds_no_other_back() -> None:
    async with under("    - {client: app, api: Produce, throttle: 30s}") as (edge, client, _):
        await client.ask("Produce", 9, produced())
        client.send("Heartbeat", 4, {"group_id": "g"})
        assert await beat(await edge.client(1)) == "NONE"
        assert client.received == b""


@on_uvloop
async def test_a_client_that_ends_while_it_is_muted_gets_its_answers() -> None:
    async with under("    - {api: Heartbeat, throttle: 60ms}") as (edge, client, _):
        for _ in range(3):
            client.send("Heartbeat", 4, {"group_id": "g"})
        client.transport.write_eof()
        for _ in range(3):
            assert (await client.answer("Heartbeat", 4))["throttle_time_ms"] == 60
        assert await client.ended() == "FIN"
        await edge.empty()


@on_uvloop
async def test_a_muted_client_that_is_gone_leaves_nothing_behind() -> None:
    async with under("    - {api: Heartbeat, throttle: 60ms}") as (edge, client, _):
        client.send("Heartbeat", 4, {"group_id": "g"})
        await client.answer("Heartbeat", 4)
        client.reset()
        await edge.empty()

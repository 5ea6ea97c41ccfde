"""A drain: klamm takes no new connections, and each that is open ends between two exchanges."""

from __future__ import annotations

import asyncio
import gc

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy import config
from klamm.proxy.config_types import Seconds
from klamm.proxy.edge import draining
from tests.fakes.broker import Waiting
from tests.fakes.client import connect
from tests.fakes.edge import Edge, cluster, parts_of_links
from tests.fakes.waiting import eventually, on_uvloop, turns

BEAT = {"group_id": "g", "member_id": "m"}
LONG_S = 20.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of these tests end their side late or never."""
    monkeypatch.setattr(draining, "LINGER_S", 0.2)


def begun(klamm: Edge, within_s: float = LONG_S) -> asyncio.Task[int]:
    return asyncio.create_task(klamm.proxied.leaving.drain("drained", within_s))


@on_uvloop
async def test_an_idle_connection_ends_at_once_and_no_new_one_is_taken() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client()
        await client.ask("Heartbeat", 4, BEAT)
        port = klamm.port
        drain = begun(klamm)
        assert await client.ended() == "FIN"
        client.close()
        assert await drain == 0
        with pytest.raises(ConnectionRefusedError):
            await connect("127.0.0.1", port)
        assert klamm.closed() == {"drained": 1}


@on_uvloop
async def test_a_token_behind_a_handshake_of_version_0_is_answered() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN"]}
        client = await klamm.client(1)
        await client.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
        tokens: list[bytes] = []
        broker.on_data = lambda _, data: tokens.append(data)
        client.transport.write(b"\0\0\0\x06\0me\0pw")
        await broker.until(lambda: tokens)
        drain = begun(klamm)
        await turns()
        assert client.ending == ""
        broker.connections[-1].transport.write(b"\0\0\0\0")
        assert await client.frame() == b"\0\0\0\0"
        assert await client.ended() == "FIN"
        client.close()
        assert await drain == 0
        assert klamm.closed() == {"drained": 1}


@on_uvloop
async def test_requests_under_way_are_answered_and_none_behind_them_reaches_the_broker() -> None:
    async with cluster() as (klamm, [broker]):
        waiting = Waiting(broker)
        client = await klamm.client(1)
        for _ in range(2):
            client.send("Heartbeat", 4, BEAT)
        await waiting.came(2)
        drain = begun(klamm)
        await turns()
        client.send("ListGroups", 4)
        await turns()
        waiting.answer()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert client.ending == ""
        waiting.answer()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        client.send("ListGroups", 4)
        await turns()
        assert not client.lost
        client.close()
        assert await drain == 0
        assert not broker.requests("ListGroups")


@on_uvloop
async def test_a_request_of_which_a_part_has_gone_on_goes_on_whole() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        part = {"index": 0, "records": bytes(1 << 20)}
        produce = {"acks": 1, "topic_data": [{"name": "t", "partition_data": [part]}]}
        request = request_frame(API["Produce"], 9, 1, "app", encode(produce, 0, 9, "request"))
        client.transport.write(request[:600_000])
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker is not None and link.session.requests.left > 0)
        drain = begun(klamm)
        await turns()
        assert not drain.done()
        client.transport.write(request[600_000:] + request)
        client.correlation_id = 1
        await client.answer("Produce", 9)
        assert await drain == 0
        assert klamm.stats.requests["kafka", "1", "app", "Produce", 9].requests == 1


@on_uvloop
async def test_a_request_that_is_held_for_rules_and_not_whole_never_reaches_the_broker() -> None:
    async with cluster() as (klamm, [broker]):
        klamm.rule("  - {api: Produce, where: 'len(topic_data) > 5', error: NOT_LEADER_OR_FOLLOWER}")
        client = await klamm.client(1)
        produce = {
            "acks": 1,
            "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": bytes(9000)}]}],
        }
        request = request_frame(API["Produce"], 9, 1, "app", encode(produce, 0, 9, "request"))
        client.transport.write(request[:5000])
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker is not None and link.session.requests.kept)
        assert await begun(klamm) == 0
        await eventually(lambda: client.fin or client.lost)
        assert not broker.connections[-1].received


@on_uvloop
async def test_polls_are_given_up_early_but_no_other_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "POLLS_S", 0.05)
    async with cluster() as (klamm, [broker]):
        fetches, beats = Waiting(broker, "Fetch"), Waiting(broker)
        polling, both = await klamm.client(1), await klamm.client(1)
        polling.send("Fetch", 12, {"topics": []})
        both.send("Heartbeat", 4, BEAT)
        both.send("Fetch", 12, {"topics": []})
        await fetches.came(2)
        await beats.came()
        drain = begun(klamm)
        assert await polling.ended() == "FIN"
        assert both.ending == ""
        beats.answer()
        assert (await both.answer("Heartbeat", 4))["error_code"] == 0
        assert await drain == 0


@on_uvloop
async def test_a_client_that_ends_its_side_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LINGER_S", 1e6)
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        drain = begun(klamm)
        assert await client.ended() == "FIN"
        client.send_fin()
        await klamm.empty()
        assert await drain == 0
        assert klamm.closed() == {"drained": 1}


@on_uvloop
async def test_a_client_that_does_not_end_its_side_is_ended_soon() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        assert await begun(klamm) == 0
        assert klamm.closed() == {"drained": 1}


@on_uvloop
async def test_after_the_time_requests_under_way_are_cut_off_and_counted() -> None:
    async with cluster() as (klamm, [broker]):
        waiting = Waiting(broker)
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await waiting.came()
        assert await begun(klamm, 0.1) == 1
        assert await client.ended()
        assert klamm.closed() == {"drain timed out": 1}
        assert klamm.stats.unanswered["kafka", "1", "Heartbeat", "app", "drain timed out"] == 1


@on_uvloop
async def test_records_without_acknowledgement_arrive_before_the_end() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        part = {"index": 0, "records": bytes(3 << 20)}
        client.send("Produce", 9, {"acks": 0, "topic_data": [{"name": "t", "partition_data": [part]}]})
        [link] = await klamm.links(1)
        await eventually(
            lambda: link.broker is not None and link.client.reads and not link.session.requests.left
        )
        assert await begun(klamm) == 0
        await broker.asked("Produce")


@on_uvloop
async def test_an_answer_that_a_rule_delays_goes_out_before_the_end() -> None:
    async with cluster() as (klamm, [broker]):
        klamm.rule("  - {api: Heartbeat, side: response, delay: 200ms}")
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat")
        drain = begun(klamm)
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await drain == 0


@on_uvloop
async def test_an_answer_that_a_rule_holds_for_longer_is_cut_off_and_counted() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.held_answer(broker)
        assert await begun(klamm, 0.1) == 1
        assert await client.ended()
        assert klamm.closed() == {"drain timed out": 1}


@on_uvloop
async def test_a_connection_of_a_certain_age_ends_between_two_exchanges() -> None:
    limits = config.Limits(max_age_s=Seconds(0.2))
    async with cluster(limits=limits) as (klamm, [broker]):
        waiting = Waiting(broker)
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await waiting.came()
        [link] = await klamm.links(1)
        await eventually(lambda: link.draining is not None)
        assert client.ending == ""
        waiting.answer()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        client.close()
        await eventually(lambda: klamm.closed() == {"reached its age": 1})
        again = await klamm.client(1)
        broker.answers["Heartbeat"] = lambda *_: {"error_code": 0}
        await again.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_nothing_of_a_drained_connection_is_left() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client()
        await client.ask("Heartbeat", 4, BEAT)
        await begun(klamm)
        await klamm.empty()
        del client
        gc.collect()
        assert parts_of_links() == 0

"""Gauges of open connections and pending requests, and klamm's own time, with real connections."""

from __future__ import annotations

from tests.fakes.edge import cluster
from tests.fakes.waiting import on_uvloop

BEAT = {"group_id": "g"}
KEY = ("kafka", "1")


@on_uvloop
async def test_connections_and_requests_that_wait_are_counted_by_broker() -> None:
    async with cluster() as (klamm, [broker]):
        first, second = [await klamm.client(1) for _ in range(2)]
        await first.ask("Heartbeat", 4, BEAT)
        await klamm.links(2)
        del broker.answers["Heartbeat"]
        first.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat", 2)
        assert (klamm.stats.connections[KEY], klamm.stats.opened[KEY]) == (2, 2)
        assert klamm.proxied.in_flight() == {KEY: 1}
        second.close()
        await klamm.links(1)
        assert (klamm.stats.connections[KEY], klamm.stats.opened[KEY]) == (1, 2)
        assert klamm.closed() == {"closed by client": 1}


@on_uvloop
async def test_a_request_whose_answer_a_rule_holds_waits() -> None:
    async with cluster() as (klamm, [broker]):
        await klamm.held_answer(broker)
        assert klamm.proxied.in_flight() == {KEY: 1}
        assert klamm.proxied.leaving.waiting_requests() == 1


@on_uvloop
async def test_own_time_is_that_of_each_frame_that_is_held_and_of_some_that_pass() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        for _ in range(3):
            await client.ask("Metadata", 12, {"topics": []})
        for _ in range(70):
            await client.ask("Heartbeat", 4, BEAT)
        timed = {counters.api: sum(counters.own.buckets) for counters in klamm.stats.requests.values()}
        assert timed["Metadata"] >= 3
        assert 1 <= timed["Heartbeat"] < 70

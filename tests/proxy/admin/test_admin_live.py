"""/v1/live, /v1/exchanges and /v1/connections: what goes through klamm, for those who ask."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from typing import Literal
from unittest.mock import Mock

import pytest

from klamm.client import Refused
from klamm.client.sightings import line as line_of
from klamm.client.types import Line
from klamm.decoders import encode
from klamm.proxy.admin.api.live import WAITING, Reader
from klamm.proxy.config import Limits
from klamm.proxy.control.exchange import Seen
from klamm.proxy.control.listeners import Ring
from klamm.proxy.control.recorder import Recorder
from klamm.proxy.workers.messages import Lost
from klamm.rules.plan import Wishes
from tests.fakes.broker import Waiting
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
PRODUCE = {
    "acks": -1,
    "timeout_ms": 1000,
    "topic_data": [{"name": "orders", "partition_data": [{"index": 3, "records": b""}]}],
}
SAID = {
    "api": "Fetch", "version": 4, "client_id": "app", "cluster": "kafka", "broker": "1", "connection": "a:1",
    "origin": "broker", "request_bytes": 1, "response_bytes": 2, "latency_ns": 3,
}  # fmt: skip


async def next_of(lines: object) -> Line:
    async with asyncio.timeout(5):
        return await anext(lines)  # type: ignore[call-overload]


def quiet(it: Api) -> bool:
    """Is nothing done for listeners?"""
    return it.edge.proxied.context.planner.wishes == Wishes("full", frozenset()) and not it.book.listening


@on_uvloop
async def test_exchanges_are_told_while_somebody_listens_and_cost_nothing_after() -> None:
    async with api() as it:
        client = await it.edge.client()
        await client.ask("Heartbeat", 3, BEAT)
        assert quiet(it)
        async with it.klamm.live() as lines:
            assert not quiet(it)
            await client.ask("Heartbeat", 3, BEAT)
            line = await next_of(lines)
        assert line.exchange is not None
        assert (line.exchange.api, line.exchange.group, line.exchange.client_id) == ("Heartbeat", "g", "app")
        assert line.exchange.request is None
        await eventually(lambda: quiet(it))
        await client.ask("Heartbeat", 3, BEAT)
        assert it.log.exchanges == []


@pytest.mark.parametrize("where", [None, 'api == Heartbeat and group_id == "g"'])
@pytest.mark.parametrize("bodies", ["none", "values"])
@on_uvloop
async def test_a_request_whose_client_leaves_before_the_answer_is_told(
    where: str | None, bodies: Literal["none", "values"]
) -> None:
    async with api() as it:
        waiting = Waiting(it.brokers[0])
        client = await it.edge.client()
        async with it.klamm.live(where, bodies) as lines:
            client.send("Heartbeat", 3, BEAT)
            await waiting.came()
            client.close()
            one = (await next_of(lines)).exchange
        assert one is not None
        assert (one.api, one.client_id, one.group) == ("Heartbeat", "app", "g")
        assert (one.response_bytes, one.latency_ms, one.unanswered) == (None, None, "closed by client")
        assert one.waited_ms > 0
        assert (one.request is not None) == (bodies == "values")
        assert "  ok  " not in line_of(one)
        assert f"no answer in {one.waited_ms:.1f} ms: closed by client" in line_of(one)


@on_uvloop
async def test_a_filter_on_the_answer_leaves_out_requests_that_get_none() -> None:
    async with api() as it:
        waiting = Waiting(it.brokers[0])
        first, second = await it.edge.client(), await it.edge.client()
        async with it.klamm.live("api == Heartbeat and error_code == 27") as lines:
            first.send("Heartbeat", 3, BEAT)
            await waiting.came()
            first.close()
            await eventually(lambda: len(it.edge.proxied.links) == 1)
            waiting.asked.clear()
            second.send("Heartbeat", 3, BEAT)
            await waiting.came()
            waiting.answer(27)
            one = (await next_of(lines)).exchange
        assert one is not None
        assert one.errors == {"REBALANCE_IN_PROGRESS": 1}


@on_uvloop
async def test_a_filter_on_fields_is_decided_where_the_frames_are() -> None:
    async with api() as it:
        client = await it.edge.client()
        async with it.klamm.live('acks == -1 and topic == "orders"', "values") as lines:
            for acks in (1, -1):
                await client.ask("Produce", 8, {**PRODUCE, "acks": acks})
            await client.ask("Heartbeat", 3, BEAT)
            await client.ask("Produce", 8, PRODUCE)
            found = [(await next_of(lines)).exchange for _ in range(2)]
        for one in found:
            assert one is not None
            assert one.request is not None
            assert one.request.values is not None
            assert (one.topics, one.request.values["acks"]) == ({"orders": [3]}, -1)
            assert one.request.values["topic_data"][0]["partition_data"][0]["records"] == {"bytes": 0}
        await eventually(lambda: quiet(it))


@on_uvloop
async def test_a_frame_that_is_too_large_to_be_held_passes_unseen() -> None:
    async with api() as it:
        client = await it.edge.client()
        large = [
            {"name": "orders", "partition_data": [{"index": 4, "records": bytes(Limits().held_frame_bytes)}]}
        ]
        async with it.klamm.live('topic == "orders"', "values") as lines:
            for sent in ({**PRODUCE, "topic_data": large}, PRODUCE):
                await client.ask("Produce", 8, sent)
            line = await next_of(lines)
        assert it.edge.problems() == {"too_large_for_rules": 1}
        assert line.exchange is not None
        assert line.exchange.topics == {"orders": [3]}


@on_uvloop
async def test_a_filter_on_the_answer_is_decided_when_it_comes() -> None:
    async with api() as it:
        client = await it.edge.client()
        await it.klamm.add_rule({"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "nth": "2"})
        async with it.klamm.live("error == REBALANCE_IN_PROGRESS") as lines:
            for _ in range(3):
                await client.ask("Heartbeat", 3, BEAT)
            line = await next_of(lines)
        assert line.exchange is not None
        assert (line.exchange.errors, line.exchange.origin) == ({"REBALANCE_IN_PROGRESS": 1}, "klamm")


@pytest.mark.parametrize("where", ["acsk == 1", "acks =="])
@on_uvloop
async def test_a_filter_that_can_never_hold_is_refused(where: str) -> None:
    async with api() as it:
        with pytest.raises(Refused) as no:
            async with it.klamm.live(where):
                pass
        assert (no.value.status, no.value.mistakes[0].path) == (422, "where")
        assert quiet(it)


@pytest.mark.parametrize("rule", ["", ",", " , "])
@on_uvloop
async def test_a_wish_for_rules_without_a_name_is_refused(rule: str) -> None:
    async with api() as it:
        with pytest.raises(Refused) as no:
            async with it.klamm.live(rule=rule):
                pass
        advice = "write rule=NAME, or a glob, or leave it out"
        assert (no.value.status, no.value.reason) == (
            400,
            f"a wrong parameter: rule: {rule!r} names no rule: {advice}",
        )
        assert quiet(it)


@pytest.mark.parametrize("chosen", ["by the session", "by a rule"])
@on_uvloop
async def test_a_slow_reader_is_told_how_many_it_lost_and_at_which_place(chosen: str) -> None:
    async with api() as it:
        reader = Reader()

        def come(count: int, at: float) -> None:
            for _ in range(count):
                if chosen == "by a rule":
                    reader.take(Seen(at, SAID))
                else:
                    it.control.exchanges.show(dict(SAID), (reader,))

        begun, read, came = time.time(), 0, WAITING
        come(WAITING, begun)
        come(6, begun + 1)
        come(1, begun + 2)
        while reader.full:
            found, lost = reader.batch()
            assert lost is None
            read += len(found)
        while not reader.full:
            come(1, begun + 3)
            came += 1
        come(3, begun + 4)
        told = list[tuple[int, Lost]]()
        while reader.waiting:
            found, lost = reader.batch()
            read += len(found)
            told += [] if lost is None else [(read, lost)]
        assert [(at, one.dropped) for at, one in told] == [(WAITING, 7), (came, 3)]
        assert reader.some.is_set() is False
        times = [(one.since, one.until) for _, one in told]
        if chosen == "by a rule":
            assert times == [(begun + 1, begun + 2), (begun + 4, begun + 4)]
        else:
            assert all(begun <= since <= until <= time.time() for since, until in times)


def test_a_reader_that_goes_while_klamm_waits_for_it_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    @on_uvloop
    async def go() -> None:
        async with api() as it:
            _, writer = await asyncio.open_connection(*it.klamm.admin.split(":"), limit=1)
            writer.write(b"GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await eventually(lambda: not quiet(it))
            (watcher,) = it.control.exchanges.wishes.values()
            stream = watcher.sink
            assert isinstance(stream, Reader)
            long = {**SAID, "client_id": "x" * 20_000}
            while not stream.full:  # the sockets between are
                it.control.exchanges.show(dict(long), (stream,))
                await asyncio.sleep(0)
            writer.transport.abort()
            await eventually(lambda: quiet(it))

    go()
    assert caplog.records == []


@on_uvloop
async def test_the_ring_keeps_exchanges_from_the_first_question_on() -> None:
    async with api() as it:
        client = await it.edge.client()
        await client.ask("Heartbeat", 3, BEAT)
        assert (await it.klamm.exchanges()).exchanges == []
        await client.ask("Heartbeat", 3, BEAT)
        (one,) = (await it.klamm.exchanges()).exchanges
        assert (one.api, one.id) == ("Heartbeat", 1)
        assert (await it.klamm.exchange(1)).request is None
        with pytest.raises(Refused, match="not kept"):
            await it.klamm.exchange(2)
        assert it.control.recorder is not None
        it.control.recorder.stop()
        assert quiet(it)


@on_uvloop
async def test_the_ring_keeps_bodies_when_they_are_asked_for() -> None:
    async with api() as it:
        client = await it.edge.client()
        assert (await it.klamm.exchanges(bodies=True)).bodies
        await client.ask("Produce", 8, PRODUCE)
        await client.ask("Heartbeat", 3, BEAT)
        found = await it.klamm.exchanges('topic == "orders"')
        (one,) = found.exchanges
        whole = await it.klamm.exchange(one.id)
        assert whole.request is not None
        assert whole.request.values is not None
        assert whole.request.values["timeout_ms"] == 1000
        raw = await it.klamm.exchange(one.id, "raw")
        assert raw.request is not None
        assert raw.request.raw == b64encode(encode(PRODUCE, "Produce", 8, "request")).decode()


def test_the_rings_bodies_have_a_bound_and_the_lines_outlive_them() -> None:
    from tests.proxy.admin.ring_frames import framed

    ring = Ring(10, 250, True, 0.0)
    for _ in range(12):
        ring.take(framed(60))
    bodies = [one.request is not None for _, one in ring.kept]
    assert (bodies, ring.bytes) == ([False] * 6 + [True] * 4, 240)
    assert ring.of(2) is None
    assert ring.of(12) is not None


@on_uvloop
async def test_secrets_are_told_as_their_size() -> None:
    async with api() as it:
        client = await it.edge.client()
        it.brokers[0].answers["SaslAuthenticate"] = lambda *_: {"error_code": 0, "auth_bytes": b"token"}
        async with it.klamm.live("api == SaslAuthenticate", "values") as lines:
            await client.ask("SaslAuthenticate", 1, {"auth_bytes": b"password"})
            line = await next_of(lines)
        assert line.exchange is not None
        assert line.exchange.request is not None
        assert line.exchange.request.values == {"auth_bytes": {"bytes": 8}}
        assert "password" not in str(line)


@on_uvloop
async def test_connections_are_listed_and_closed() -> None:
    async with api() as it:
        client = await it.edge.client()
        await client.ask("Heartbeat", 3, BEAT)
        (one,) = await it.klamm.connections()
        assert (one.client_id, one.broker, one.in_flight) == ("app", "bootstrap", 0)
        assert one.software == ""
        await client.ask(
            "ApiVersions", 3, {"client_software_name": "librdkafka", "client_software_version": "2.6.0"}
        )
        (one,) = await it.klamm.connections()
        assert one.software == "librdkafka 2.6.0"
        await it.klamm.close_connection(one.id)
        assert await client.ended() == "RST"
        with pytest.raises(Refused, match="there is no connection"):
            await it.klamm.close_connection(one.id)
        assert it.log.of("changed")[0].fields["change"] == f"DELETE /v1/connections/{one.id}"


@on_uvloop
async def test_clusters_brokers_counters_and_configuration_are_told() -> None:
    async with api() as it:
        (found,) = await it.klamm.clusters()
        assert (found.name, found.nodes) == ("demo", 3)
        assert [node.node_id for node in await it.klamm.brokers()] == [1, 2, 3]
        assert (await it.klamm.counters())["clusters"][0]["name"] == "demo"
        assert (await it.klamm.config())["admin"]["listen"] == "127.0.0.1:19091"


def test_the_ring_has_the_newest_1000_with_16_mib_of_bodies_until_nobody_asked_for_a_minute() -> None:
    from tests.proxy.admin.ring_frames import framed

    async def run() -> None:
        recorder, loop = Recorder(Mock()), asyncio.get_running_loop()
        for _ in range(2):  # a question puts the end off
            began = loop.time()
            ring = recorder.asked(bodies=True)
            assert recorder.end is not None
            assert began + 60 <= recorder.end.when() <= loop.time() + 60
        for _ in range(1005):
            ring.take(framed(64))
        assert (len(ring.kept), ring.kept[0][0]) == (1000, 6)
        for _ in range(20):
            ring.take(framed(1 << 20))
        assert sum(one.request is not None for _, one in ring.kept) == 16
        recorder.stop()

    asyncio.run(run())

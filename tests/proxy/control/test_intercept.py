"""Frames that are paused: what waits, what is decided, and what the two ends then hear."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock

import pytest

from klamm.client import Refused
from klamm.client.types import PausedFrame
from klamm.decoders import ERRORS
from klamm.proxy.control import intercept
from tests.fakes.client import Client
from tests.fakes.waiting import eventually, on_uvloop, turns
from tests.proxy.admin.admin_api import Api, api
from tests.proxy.admin.test_admin_live import next_of
from tests.proxy.faulty import produced

BEAT = {"group_id": "g"}
PAUSE = {"api": "Heartbeat", "pause": "30s"}
ANSWERS = {"api": "Heartbeat", "side": "response", "pause": "30s"}


async def paused(it: Api, count: int = 1) -> list[PausedFrame]:
    """As many as there must be, once they are."""
    await eventually(lambda: len(it.control.intercept.waiting) == count)
    return await it.klamm.paused()


async def code(client: Client, name: str = "Heartbeat", version: int = 4) -> str:
    return ERRORS[(await client.answer(name, version))["error_code"]].name


@on_uvloop
async def test_a_paused_request_and_what_follows_it_wait_and_other_connections_go_on() -> None:
    async with api() as it:
        client, other = await it.edge.client(1), await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        assert (one.api, one.version, one.side, one.client_id) == ("Heartbeat", 4, "request", "app")
        assert one.rule == "hand-Heartbeat-pause-1"
        assert one.until - one.since == pytest.approx(30)
        assert (await other.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert client.received == b""
        await it.klamm.resolve(one.id)
        assert [await code(client) for _ in range(2)] == ["NONE", "NONE"]
        assert await it.klamm.paused() == []


@on_uvloop
async def test_an_edited_request_is_what_the_broker_gets() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        values = (await it.klamm.paused_frame(one.id)).values
        assert values is not None
        assert values["group_id"] == "g"
        await it.klamm.resolve(one.id, values={**values, "group_id": "another"})
        assert await code(client) == "NONE"
        assert [r.values["group_id"] for r in it.brokers[0].requests("Heartbeat")] == ["another"]


@on_uvloop
async def test_an_edited_answer_is_what_the_client_hears() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({"api": "Metadata", "side": "response", "pause": "30s"})
        client.send("Metadata", 12, {"topics": [{"name": "orders"}]})
        (one,) = await paused(it)
        values = (await it.klamm.paused_frame(one.id)).values
        assert values is not None
        values["topics"].append({"name": "orders", "topic_id": "AAECAwQFBgcICQoLDA0ODw"})
        await it.klamm.resolve(one.id, values={**values, "controller_id": 77})
        answer = await client.answer("Metadata", 12)
        assert (answer["controller_id"], answer["topics"][0]["topic_id"]) == (77, bytes(range(16)))
        assert answer["brokers"][0]["port"] == it.edge.port_of(1)


@on_uvloop
async def test_a_request_that_is_dropped_never_comes_to_the_broker_and_later_answers_wait() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, {"group_id": "second"})
        (one,) = await paused(it)
        await it.klamm.resolve(one.id, "drop")
        await it.brokers[0].asked("Heartbeat")
        await turns()
        assert [r.values["group_id"] for r in it.brokers[0].requests("Heartbeat")] == ["second"]
        assert client.received == b""
        client.close()
        await it.edge.empty()


@on_uvloop
async def test_a_request_that_is_answered_with_an_error_never_comes_to_the_broker() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, {"group_id": "second"})
        (one,) = await paused(it)
        await it.klamm.resolve(one.id, "error", code="REBALANCE_IN_PROGRESS")
        assert [await code(client) for _ in range(2)] == ["REBALANCE_IN_PROGRESS", "NONE"]
        assert [r.values["group_id"] for r in it.brokers[0].requests("Heartbeat")] == ["second"]


@on_uvloop
async def test_a_listener_hears_of_each_request_that_a_person_refuses_whatever_came_since() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule(PAUSE)
        async with it.klamm.live() as lines:
            for group in ("first", "second"):
                client.send("Heartbeat", 4, {"group_id": group})
            waiting = await paused(it, 2)
            await it.klamm.add_rule({"api": "Metadata", "delay": "1ms"})
            client.send("Heartbeat", 4, {"group_id": "third"})
            await paused(it, 3)
            for one in waiting:
                await it.klamm.resolve(one.id, "error", code="REBALANCE_IN_PROGRESS")
            told = [(await next_of(lines)).exchange for _ in waiting]
        assert [(one.group, one.errors) for one in told if one] == [
            ("first", {"REBALANCE_IN_PROGRESS": 1}),
            ("second", {"REBALANCE_IN_PROGRESS": 1}),
        ]


@on_uvloop
async def test_a_listener_hears_of_a_request_that_a_person_drops() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule(PAUSE)
        async with it.klamm.live() as lines:
            client.send("Heartbeat", 4, BEAT)
            [one] = await paused(it, 1)
            await it.klamm.resolve(one.id, "drop")
            told = (await next_of(lines)).exchange
            client.close()
        assert told is not None
        assert (told.group, told.response_bytes, told.unanswered) == ("g", None, "")
        assert told.fates == {"request": "withheld"}


@on_uvloop
async def test_an_answer_can_be_dropped_and_can_become_an_error() -> None:
    async with api() as it:
        first, second = await it.edge.client(1), await it.edge.client(1)
        await it.klamm.add_rule(ANSWERS)
        for client in (first, second):
            client.send("Heartbeat", 4, BEAT)
            await paused(it, 1 if client is first else 2)
        one, other = await it.klamm.paused()
        assert (one.side, one.correlation_id) == ("response", 1)
        await it.klamm.resolve(one.id, "drop")
        await it.klamm.resolve(other.id, "error", code=25)
        assert await code(second) == "UNKNOWN_MEMBER_ID"
        await turns()
        assert first.received == b""
        first.close()


@on_uvloop
async def test_a_frame_that_nobody_resolves_goes_on_and_that_is_said() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({"api": "Heartbeat", "pause": "50ms", "times": 1})
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        (line,) = it.log.of("unresolved")
        assert "nobody resolved 1 in 0.05 s" in line.message


@on_uvloop
async def test_frames_go_on_when_their_rule_is_off_or_gone() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        for end in ("off", "removed", "all off"):
            name = (await it.klamm.add_rule({**PAUSE, "times": 1})).name
            client.send("Heartbeat", 4, BEAT)
            await paused(it)
            if end == "off":
                await it.klamm.switch_rule(name, False)
            elif end == "removed":
                await it.klamm.remove_rule(name)
            else:
                await it.klamm.rules_off()
            assert await code(client) == "NONE"
            assert await it.klamm.paused() == []


@on_uvloop
async def test_what_is_held_for_a_connection_that_ended_is_held_no_more() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule(PAUSE)
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        client.reset()
        await paused(it, 0)
        with pytest.raises(Refused, match=rf"^no frame '{one.id}' is paused \(any more\)"):
            await it.klamm.resolve(one.id)
        assert it.control.intercept.bytes == 0


@on_uvloop
async def test_beyond_the_limit_frames_go_on_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intercept, "MOST", 1)
    async with api() as it:
        first, second = await it.edge.client(1), await it.edge.client(1)
        await it.klamm.add_rule(PAUSE)
        first.send("Heartbeat", 4, BEAT)
        await paused(it)
        assert (await second.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert len(it.log.of("too_many_paused")) == 1
        await it.klamm.rules_off()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"values": {"group_id": 5}}, "values.group_id: 5 is no string"),
        ({"values": {"group": "g"}}, "values: no field 'group' in version 4; there are"),
        ({"action": "error"}, "code: a name or number"),
        ({"action": "error", "code": "REBALANCE"}, "code: unknown error 'REBALANCE'"),
        ({"action": "error", "code": 27, "values": {}}, "values: is for another action"),
        ({"action": "drop", "code": 27}, "code: is for another action"),
    ],
)
@on_uvloop
async def test_what_cannot_be_sent_is_said_with_its_path_and_the_frame_still_waits(
    how: dict[str, Any], reason: str
) -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        with pytest.raises(Refused) as no:
            await it.klamm.resolve(one.id, **how)
        assert reason in str(no.value)
        assert [still.id for still in await it.klamm.paused()] == [one.id]
        await it.klamm.resolve(one.id)
        assert await code(client) == "NONE"


@on_uvloop
async def test_a_produce_that_nobody_answers_can_be_edited_but_not_answered() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({"api": "Produce", "pause": "30s"})
        client.send("Produce", 9, {**produced(b"batch"), "acks": 0})
        (one,) = await paused(it)
        values = (await it.klamm.paused_frame(one.id)).values
        assert values is not None
        with pytest.raises(Refused, match="waits for no answer"):
            await it.klamm.resolve(one.id, "error", code=6)
        with pytest.raises(Refused, match="acks: 0 says"):
            await it.klamm.resolve(one.id, values={**values, "acks": 1})
        values["topic_data"][0]["name"] = "other"
        await it.klamm.resolve(one.id, values=values)
        (sent,) = await it.brokers[0].asked("Produce")
        assert sent.values["topic_data"][0]["name"] == "other"
        assert bytes(sent.values["topic_data"][0]["partition_data"][0]["records"]) == b"batch"


@on_uvloop
async def test_a_request_that_another_rule_doubles_is_held_once_and_dropped_twice() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule(
            {"api": "Heartbeat", "times": 1, "do": [{"duplicate": True}, {"pause": "30s"}]}
        )
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        await it.klamm.resolve(one.id, "error", code="UNKNOWN_MEMBER_ID")
        assert await code(client) == "UNKNOWN_MEMBER_ID"
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert len(it.brokers[0].requests("Heartbeat")) == 1


@on_uvloop
async def test_who_resolved_what_stands_in_the_log() -> None:
    async with api() as it:
        client = await it.edge.client(1)
        await it.klamm.add_rule({**PAUSE, "times": 1})
        client.send("Heartbeat", 4, BEAT)
        (one,) = await paused(it)
        await it.klamm.resolve(one.id, "error", code=27)
        line = it.log.of("changed")[-1]
        assert line.message == f"POST /v1/paused/{one.id} by ada (127.0.0.1)"
        assert line.fields["sent"] == {"action": "error", "values": None, "code": 27}


def passed_on(sizes: Iterable[int], connections: int = 1000) -> int:
    """How many of frames of these sizes, paused one after the other, are not paused."""
    sent: list[Any] = []
    links = [Mock(resolve=lambda *one: sent.append(one)) for _ in range(connections)]

    async def pause() -> None:
        found = intercept.Intercept(lambda name: True)
        for number, size in enumerate(sizes):
            link = links[number % connections]
            found.pause(link, "broker", Mock(size=size, pause=Mock(timeout_ns=10**12)))
        for link in links:
            found.forget(link)

    asyncio.run(pause())
    return len(sent)


def test_no_more_than_100_frames_or_64_mib_are_paused() -> None:
    assert [passed_on([1] * count) for count in (100, 101, 105)] == [0, 1, 5]
    assert [passed_on([1 << 20] * count) for count in (64, 65)] == [0, 1]


def test_a_connection_leaves_as_many_places_for_paused_frames_as_it_takes() -> None:
    assert [passed_on([1] * count, 1) for count in (50, 51, 100)] == [0, 1, 50]
    assert [passed_on([1 << 20] * count, 1) for count in (32, 33)] == [0, 1]
    assert passed_on([1] * 100, 4) == 100 - 4 * 20

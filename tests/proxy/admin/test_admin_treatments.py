"""What klamm and its rules did to an exchange, as /v1/live and /v1/exchanges tell it."""

from __future__ import annotations

from base64 import b64decode
from contextlib import AsyncExitStack
from typing import Any, Literal

import pytest
from msgspec import to_builtins

from klamm.client.types import Body, Exchange
from klamm.decoders import decode
from klamm.decoders.error_codes import ERRORS
from klamm.decoders.schema import Side
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line
from tests.fakes.broker import Connection, Request
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api
from tests.proxy.admin.test_admin_live import BEAT, next_of

LATE = {"name": "late", "api": "Heartbeat", "delay": "20ms"}
TOLD = {
    "name": "told",
    "api": "Heartbeat",
    "versions": "1+",
    "side": "response",
    "set": {"throttle_time_ms": 5},
}
ANOTHER = {"name": "another", "api": "Heartbeat", "set": {"generation_id": 9}}


async def beat(it: Api, bodies: str = "none", *rules: dict[str, Any]) -> Exchange:
    """A heartbeat while these rules are in force, as a reader of /v1/live is told of it."""
    for rule in rules:
        await it.klamm.add_rule(rule)
    client = await it.edge.client()
    async with it.klamm.live(None, bodies) as lines:
        await client.ask("Heartbeat", 3, BEAT)
        found = (await next_of(lines)).exchange
    assert found is not None
    return found


def values(text: str | None, side: Side, api: str = "Heartbeat", version: int = 3) -> dict[str, Any]:
    assert text is not None
    return decode(b64decode(text), api, version, side)


@pytest.mark.parametrize("bodies", ["none", "values", "raw"])
@on_uvloop
async def test_the_rules_that_acted_and_their_delays_are_told(bodies: str) -> None:
    async with api() as it:
        found = await beat(it, bodies, LATE, TOLD)
        assert found.rules == ["late", "told"]
        assert (found.request_delay_ms, found.response_delay_ms) == (0.0, 20.0)


@pytest.mark.parametrize("bodies", ["none", "raw"])
@on_uvloop
async def test_a_reader_may_wish_for_exchanges_of_a_rule(bodies: str) -> None:
    async with api() as it:
        await it.klamm.add_rule({**LATE, "nth": 2})
        await it.klamm.add_rule({**TOLD, "nth": 3})
        client = await it.edge.client()
        found = {}
        async with AsyncExitStack() as stack:
            readers = {
                (rule, where): await stack.enter_async_context(it.klamm.live(where, bodies, rule))
                for rule in ("late", "nosuch, late", "[lt]*", "nobody")
                for where in (None, "error_code == 0")
            }
            for _ in range(4):
                await client.ask("Heartbeat", 3, BEAT)
            await it.klamm.add_rule({"name": "nobody", "api": "Metadata", "delay": "1ms"})
            await client.ask("Metadata", 9, {"topics": []})
            for (rule, where), lines in readers.items():
                if rule == "nobody" and where:
                    continue  # the last request is none of those that it wishes for
                count = 2 if rule == "[lt]*" else 1
                found[rule, where] = [(await next_of(lines)).exchange for _ in range(count)]
        assert {key: [one.rules for one in each if one] for key, each in found.items()} == {
            ("late", None): [["late"]],
            ("late", "error_code == 0"): [["late"]],
            ("nosuch, late", None): [["late"]],
            ("nosuch, late", "error_code == 0"): [["late"]],
            ("[lt]*", None): [["late"], ["told"]],
            ("[lt]*", "error_code == 0"): [["late"], ["told"]],
            ("nobody", None): [["nobody"]],
        }


@on_uvloop
async def test_a_request_that_waited_for_a_rule_is_told_apart_from_an_answer_that_did() -> None:
    async with api() as it:
        found = await beat(it, "none", {**LATE, "delay": {"time": "20ms", "of": "request"}})
        assert (found.request_delay_ms, found.response_delay_ms) == (20.0, 0.0)


@on_uvloop
async def test_an_exchange_on_which_no_rule_acts_has_none() -> None:
    async with api() as it:
        found = await beat(it, "none", {**LATE, "client": "nobody"})
        assert (found.rules, found.response_delay_ms) == ([], 0.0)


@pytest.mark.parametrize("bodies", [False, True])
@on_uvloop
async def test_the_newest_exchanges_have_them_too(bodies: bool) -> None:
    async with api() as it:
        await it.klamm.add_rule(LATE)
        await it.klamm.exchanges(bodies=bodies)
        client = await it.edge.client()
        await client.ask("Heartbeat", 3, BEAT)
        (found,) = (await it.klamm.exchanges()).exchanges
        assert (found.rules, found.response_delay_ms) == (["late"], 20.0)


@on_uvloop
async def test_bodies_are_told_as_they_came_and_as_rules_made_them() -> None:
    async with api() as it:
        found = await beat(it, "raw", ANOTHER, TOLD)
        assert found.request is not None
        assert found.response is not None
        assert values(found.request.raw, "request")["generation_id"] == 1
        assert values(found.request.sent, "request")["generation_id"] == 9
        assert values(found.response.raw, "response")["throttle_time_ms"] == 0
        assert values(found.response.sent, "response")["throttle_time_ms"] == 5
        assert (found.request.came, found.response.came) == (None, None)


@on_uvloop
async def test_a_request_that_a_person_has_edited_is_told_as_it_was_sent() -> None:
    async with api() as it:
        await it.klamm.add_rule({"name": "wait", "api": "Heartbeat", "pause": "60s"})
        client = await it.edge.client()
        async with it.klamm.live(None, "raw") as lines:
            client.send("Heartbeat", 3, BEAT)
            await eventually(lambda: len(it.control.intercept.waiting) == 1)
            (paused,) = await it.klamm.paused()
            await it.klamm.resolve(paused.id, "resume", values={**BEAT, "generation_id": 7})
            await client.frame()
            found = (await next_of(lines)).exchange
        assert found is not None
        assert found.request is not None
        assert found.rules == ["wait"]
        assert values(found.request.raw, "request")["generation_id"] == 1
        assert values(found.request.sent, "request")["generation_id"] == 7


PAUSED = {"name": "wait", "api": "Heartbeat", "side": "response", "pause": "60s"}
GONE = {"name": "gone", "api": "Heartbeat", "side": "response", "drop": True}
Action = Literal["resume", "drop", "error"]
MOVED = ERRORS["NOT_COORDINATOR"].code


async def decided(it: Api, where: str | None, bodies: str, action: Action, **more: Any) -> Exchange:
    """A heartbeat whose answer waits for this decision, as it is told after that; never before."""
    await it.klamm.add_rule(PAUSED)
    client = await it.edge.client()
    async with it.klamm.live(where, bodies) as lines:
        client.send("Heartbeat", 3, BEAT)
        await eventually(lambda: len(it.control.intercept.waiting) == 1)
        (paused,) = await it.klamm.paused()
        assert it.edge.log.exchanges == []
        await it.klamm.resolve(paused.id, action, **more)
        found = (await next_of(lines)).exchange
    assert found is not None
    return found


@pytest.mark.parametrize("where", [None, "member_id == 'm'", "throttle_time_ms == 77"])
@on_uvloop
async def test_an_answer_that_a_person_has_edited_is_told_as_it_was_sent(where: str | None) -> None:
    async with api() as it:
        edited = {"error_code": MOVED, "throttle_time_ms": 77}
        found = await decided(it, where, "raw", "resume", values=edited)
        assert found.response is not None
        assert values(found.response.raw, "response") == {"error_code": 0, "throttle_time_ms": 0}
        assert values(found.response.sent, "response") == edited
        assert (found.rules, found.fates, found.errors) == (
            ["wait"],
            {"response": "rewritten"},
            {"NOT_COORDINATOR": 1},
        )
        assert found.latency_ms is not None
        assert found.response_delay_ms > 0


@pytest.mark.parametrize("bodies", ["none", "raw"])
@pytest.mark.parametrize(
    ("action", "more", "fates", "errors"),
    [
        ("resume", {}, {}, {}),
        ("error", {"code": "NOT_COORDINATOR"}, {"response": "rewritten"}, {"NOT_COORDINATOR": 1}),
        ("drop", {}, {"response": "withheld"}, {}),
    ],
)
@on_uvloop
async def test_the_decision_about_an_answer_is_told_with_its_exchange(
    bodies: str, action: Action, more: dict[str, Any], fates: dict[str, str], errors: dict[str, int]
) -> None:
    async with api() as it:
        found = await decided(it, None, bodies, action, **more)
        assert (found.rules, found.fates, found.errors) == (["wait"], fates, errors)


@pytest.mark.parametrize("where", [None, "throttle_time_ms == 0"])
@on_uvloop
async def test_an_answer_that_waits_when_its_connection_ends_is_told_as_withheld(where: str | None) -> None:
    async with api() as it:
        await it.klamm.add_rule(PAUSED)
        client = await it.edge.client()
        async with it.klamm.live(where) as lines:
            client.send("Heartbeat", 3, BEAT)
            await eventually(lambda: len(it.control.intercept.waiting) == 1)
            client.reset()
            found = (await next_of(lines)).exchange
        assert found is not None
        assert (found.rules, found.fates, found.unanswered) == (["wait"], {"response": "withheld"}, "")


@pytest.mark.parametrize("rules", [(GONE,), (PAUSED, GONE)], ids=["dropped", "paused and dropped"])
@on_uvloop
async def test_an_answer_that_a_rule_drops_is_told_as_withheld(rules: tuple[dict[str, Any], ...]) -> None:
    async with api() as it:
        for rule in rules:
            await it.klamm.add_rule(rule)
        client = await it.edge.client()
        async with it.klamm.live("throttle_time_ms == 0") as lines:
            client.send("Heartbeat", 3, BEAT)
            found = (await next_of(lines)).exchange
        assert found is not None
        assert found.fates == {"response": "withheld"}


@on_uvloop
async def test_a_filter_judges_bodies_before_rules_change_them() -> None:
    async with api() as it:
        await it.klamm.add_rule(ANOTHER)
        client = await it.edge.client()
        async with it.klamm.live("generation_id == 1", "raw") as lines:
            await client.ask("Heartbeat", 3, BEAT)
            found = (await next_of(lines)).exchange
        assert found is not None
        assert found.rules == ["another"]


PART_FAILS = {
    "name": "part",
    "api": "OffsetCommit",
    "topic": "refused",
    "error": "GROUP_AUTHORIZATION_FAILED",
}
COMMIT: dict[str, Any] = {
    "group_id": "g",
    "topics": [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("taken", "refused")],
}


def committed(_: Connection, request: Request) -> dict[str, Any]:
    """Every partition is committed."""
    topics = [
        {"name": topic["name"], "partitions": [{"partition_index": 0, "error_code": 0}]}
        for topic in request.values["topics"]
    ]
    return {"topics": topics}


@pytest.mark.parametrize("bodies", ["none", "values", "raw"])
@pytest.mark.parametrize("where", ["error != NONE", "side == 'response' and not error != NONE"])
@on_uvloop
async def test_a_filter_judges_an_answer_as_it_came_and_as_rules_changed_it(where: str, bodies: str) -> None:
    async with api() as it:
        it.brokers[0].answers["OffsetCommit"] = committed
        await it.klamm.add_rule(PART_FAILS)
        client = await it.edge.client()
        async with it.klamm.live(where, bodies) as lines:
            told = await client.ask("OffsetCommit", 8, COMMIT)
            found = (await next_of(lines)).exchange
        codes = [topic["partitions"][0]["error_code"] for topic in told["topics"]]
        assert sorted(codes) == [0, ERRORS["GROUP_AUTHORIZATION_FAILED"].code]
        assert found is not None
        assert (found.rules, found.errors) == (["part"], {"GROUP_AUTHORIZATION_FAILED": 1})
        assert (found.origin, found.changed) == ("klamm", True)
        if bodies == "raw":
            assert found.response is not None
            assert values(found.response.sent, "response", "OffsetCommit", 8) == told


@pytest.mark.parametrize("where", ["throttle_time_ms > 0", "error == UNKNOWN_SERVER_ERROR"])
@on_uvloop
async def test_a_filter_that_holds_for_neither_lets_the_answer_go_on_as_rules_changed_it(where: str) -> None:
    async with api() as it:
        it.brokers[0].answers["OffsetCommit"] = committed
        await it.klamm.add_rule(PART_FAILS)
        client = await it.edge.client()
        async with it.klamm.live(f"({where}) or api == Heartbeat") as lines:
            told = await client.ask("OffsetCommit", 8, COMMIT)
            await client.ask("Heartbeat", 3, BEAT)
            found = (await next_of(lines)).exchange
        assert found is not None
        assert found.api == "Heartbeat"
        assert [topic["partitions"][0]["error_code"] for topic in told["topics"]].count(0) == 1


@on_uvloop
async def test_the_log_tells_a_changed_answer_from_one_of_klamms_own() -> None:
    async with api() as it:
        changed = await beat(it, "none", {**TOLD, "set": {"error_code": 27}})
        assert (changed.origin, changed.changed) == ("klamm", True)
        assert changed.errors == {"REBALANCE_IN_PROGRESS": 1}
        await it.klamm.remove_rule("told")
        own = await beat(it, "none", {"name": "own", "api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"})
        assert (own.origin, own.changed) == ("klamm", False)
    lines = [
        console_line(Entry(1.0, EXCHANGE, "info", "", to_builtins(one)), False) for one in (changed, own)
    ]
    assert [line.rpartition(b"ms ")[2] for line in lines] == [
        b"REBALANCE_IN_PROGRESS (changed by klamm) rules=told\n",
        b"REBALANCE_IN_PROGRESS (answered by klamm) rules=own\n",
    ]


@on_uvloop
async def test_what_goes_on_as_it_came_is_told_once() -> None:
    async with api() as it:
        found = await beat(it, "raw")
        for body in (found.request, found.response):
            assert body is not None
            assert body == Body(body.bytes, raw=body.raw)


@on_uvloop
async def test_addresses_are_told_as_the_broker_wrote_them_beside_those_of_klamm() -> None:
    async with api() as it:
        client = await it.edge.client()
        async with it.klamm.live("api == Metadata", "raw") as lines:
            told = await client.ask("Metadata", 9, {"topics": []})
            found = (await next_of(lines)).exchange
        assert found is not None
        assert found.response is not None
        before = values(found.response.came, "response", "Metadata", 9)
        after = values(found.response.raw, "response", "Metadata", 9)
        assert after == told
        ports = [[node["port"] for node in each["brokers"]] for each in (before, after)]
        assert ports[0] == [each.port for each in it.brokers] != ports[1]
        assert found.response.sent is None


@on_uvloop
async def test_a_request_that_klamm_answers_itself_is_withheld() -> None:
    async with api() as it:
        rule = {"name": "refused", "api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}
        found = await beat(it, "raw", rule)
        assert found.request is not None
        assert found.response is not None
        assert (found.rules, found.origin) == (["refused"], "klamm")
        assert (found.request.withheld, found.response.withheld) == (True, False)


FATES: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a request that is dropped": (
        {"drop": True},
        {"request": "withheld"},
        "request withheld by klamm rules=x",
    ),
    "a request that ends the connection": (
        {"disconnect": {"when": "before"}},
        {"request": "withheld"},
        "request withheld by klamm rules=x",
    ),
    "a request into nothing": (
        {"blackhole": True},
        {"request": "withheld"},
        "request withheld by klamm rules=x",
    ),
    "a request that is changed": (
        {"set": {"generation_id": 9}},
        {"request": "rewritten"},
        "request rewritten by klamm rules=x",
    ),
    "an answer that is dropped": (
        {"drop": True, "side": "response"},
        {"response": "withheld"},
        "response withheld by klamm rules=x",
    ),
    "an answer that is changed": (
        {"set": {"throttle_time_ms": 5}, "side": "response", "versions": "1+"},
        {"response": "rewritten"},
        "(changed by klamm) rules=x",
    ),
    "an answer that is corrupted": (
        {"corrupt": {"what": "truncate", "size": 1}},
        {"response": "rewritten"},
        "(changed by klamm) rules=x",
    ),
    "an answer of klamm's own": (
        {"error": "REBALANCE_IN_PROGRESS"},
        {"request": "withheld", "response": "made"},
        "REBALANCE_IN_PROGRESS (answered by klamm) rules=x",
    ),
    "nothing but a delay": ({"delay": "1ms"}, {}, "response held 1.0ms by klamm rules=x"),
}


@pytest.mark.parametrize("where", [None, "version == 3", 'group_id == "g"'])
@pytest.mark.parametrize("bodies", ["none", "raw"])
@pytest.mark.parametrize("case", FATES)
@on_uvloop
async def test_what_became_of_an_exchange_is_told(case: str, bodies: str, where: str | None) -> None:
    rule, fates, line = FATES[case]
    async with api() as it:
        await it.klamm.add_rule({"name": "x", "api": "Heartbeat", **rule})
        client = await it.edge.client()
        async with it.klamm.live(where, bodies, "x") as lines:
            client.send("Heartbeat", 3, BEAT)
            found = (await next_of(lines)).exchange
        assert found is not None
        assert (found.rules, found.fates) == (["x"], fates)
        assert found.changed == (fates == {"response": "rewritten"})
        assert (found.response_bytes is None) == (list(fates.items()) == [("request", "withheld")])
        entry = Entry(found.time, EXCHANGE, "info", "", to_builtins(found))
        assert console_line(entry, False).decode().rstrip().endswith(line)


@on_uvloop
async def test_an_answer_that_a_rule_left_as_it_was_is_not_told_as_changed() -> None:
    async with api() as it:
        await it.klamm.add_rule({"name": "old", "api": "Metadata", "stale_metadata": True})
        client = await it.edge.client()
        async with it.klamm.live(None, "none", "old") as lines:
            for _ in range(2):
                await client.ask("Metadata", 9, {"topics": []})
                found = (await next_of(lines)).exchange
                assert found is not None
                assert (found.rules, found.changed, found.fates, found.origin) == (
                    ["old"],
                    False,
                    {},
                    "broker",
                )


@on_uvloop
async def test_answers_that_wait_behind_one_that_never_goes_are_told_as_withheld() -> None:
    async with api() as it:
        await it.klamm.add_rule({"name": "x", "api": "Heartbeat", "drop": True, "side": "response"})
        client = await it.edge.client()
        async with it.klamm.live() as lines:
            client.send("Heartbeat", 3, BEAT)
            first = (await next_of(lines)).exchange
            client.send("Metadata", 9, {"topics": []})
            second = (await next_of(lines)).exchange
        assert first is not None
        assert second is not None
        assert [(one.api, one.rules, one.fates) for one in (first, second)] == [
            ("Heartbeat", ["x"], {"response": "withheld"}),
            ("Metadata", [], {"response": "withheld"}),
        ]

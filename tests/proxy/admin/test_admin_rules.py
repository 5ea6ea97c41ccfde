"""/v1/rules: rules made by hand, beside those of a file."""

from __future__ import annotations

import time

import pytest

from klamm.client import Refused
from klamm.proxy.control.rule_book import LASTING_NS, LINGER_NS, S
from klamm.proxy.metrics.snapshot import RuleCounts
from klamm.rules.file.rule_file import read_text
from klamm.rules.rule import Rule
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
ERROR = {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}
FILE = "rules:\n  - {name: slow, api: Fetch, delay: 1ms}\n"


@on_uvloop
async def test_a_rule_that_is_added_acts_on_connections_that_are_open_already() -> None:
    async with api() as it:
        client = await it.edge.client()
        assert (await client.ask("Heartbeat", 3, BEAT))["error_code"] == 0
        made = await it.klamm.add_rule({**ERROR, "times": 1})
        assert (made.name, made.origin, made.made_by) == ("hand-Heartbeat-error-1", "hand", "ada (127.0.0.1)")
        assert [(await client.ask("Heartbeat", 3, BEAT))["error_code"] for _ in range(2)] == [27, 0]
        after = await it.klamm.rule(made.name)
        assert (after.hits, after.matches, after.over, after.written) == (1, 2, True, {**ERROR, "times": 1})


@on_uvloop
async def test_a_rule_that_is_removed_or_off_acts_no_more_and_one_that_is_on_goes_on_counting() -> None:
    async with api() as it:
        client = await it.edge.client()
        name = (await it.klamm.add_rule(ERROR)).name
        codes = [(await client.ask("Heartbeat", 3, BEAT))["error_code"]]
        for enabled in (False, True):
            assert (await it.klamm.switch_rule(name, enabled)).enabled is enabled
            codes.append((await client.ask("Heartbeat", 3, BEAT))["error_code"])
        assert (await it.klamm.rule(name)).hits == 2
        assert (await it.klamm.reset_rule(name)).hits == 0
        await it.klamm.remove_rule(name)
        codes.append((await client.ask("Heartbeat", 3, BEAT))["error_code"])
        assert (codes, await it.klamm.rules()) == ([27, 0, 27, 0], [])


@on_uvloop
async def test_a_rule_is_changed_in_its_place() -> None:
    async with api() as it:
        client = await it.edge.client()
        name = (await it.klamm.add_rule(ERROR)).name
        await client.ask("Heartbeat", 3, BEAT)
        assert (await it.klamm.rule(name)).hits == 1
        other = await it.klamm.change_rule(name, {**ERROR, "error": "UNKNOWN_MEMBER_ID"})
        assert (other.matches, other.hits) == (0, 0)
        assert (other.name, (await client.ask("Heartbeat", 3, BEAT))["error_code"]) == (name, 25)
        with pytest.raises(Refused, match="must be"):
            await it.klamm.change_rule(name, {**ERROR, "name": "other"})


@pytest.mark.parametrize(
    ("written", "mistakes"),
    [
        (
            {"api": "Heartbeet", "error": "REBALANCE_IN_PROGRESS"},
            [("api", "unknown API 'Heartbeet'; did you mean Heartbeat?")],
        ),
        (
            {"api": "Heartbeat", "eror": "REBALANCE_IN_PROGRESS"},
            [("eror", "unknown key; did you mean error?")],
        ),
        (
            {"api": "Fetch", "where": "max_wait == 1", "delay": "1 s 2"},
            [("delay", "'1 s 2' is not a duration: write it as 500ms or 2s")],
        ),
    ],
)
@on_uvloop
async def test_mistakes_are_told_with_their_keys_and_the_nearest_word(
    written: dict[str, str], mistakes: list[tuple[str, str]]
) -> None:
    async with api() as it:
        with pytest.raises(Refused) as no:
            await it.klamm.add_rule(written)
        found = [(mistake.path, mistake.reason) for mistake in no.value.mistakes]
        assert no.value.status == 422
        assert [mistake for mistake in mistakes if mistake not in found] == []
        assert await it.klamm.rules() == []


@on_uvloop
async def test_rules_by_hand_end_after_ten_minutes_or_as_they_say_and_some_never() -> None:
    now = 10 * S
    async with api(clock=lambda: now) as it:
        names = [
            (await it.klamm.add_rule({**ERROR, **lasting})).name
            for lasting in ({}, {"for": "20m"}, {"for": "forever"})
        ]
        assert it.book.expire() == []
        now += LASTING_NS
        assert it.book.expire() == names[:1]
        now += LASTING_NS + LINGER_NS
        assert it.book.expire() == names[1:2]
        assert [rule.name for rule in await it.klamm.rules()] == names[2:]
        assert (await it.klamm.rules())[0].expires is None


@on_uvloop
async def test_the_end_of_a_rule_is_told_as_far_as_it_is_known() -> None:
    now = 10 * S
    async with api(clock=lambda: now) as it:
        it.book.of_file(read_text("rules: [{name: late, api: Fetch, delay: 1ms, for: 5s}]", "rules.yaml"))
        for name, lasting in (
            ("as usual", {}),
            ("short", {"for": "20s"}),
            ("since a match", {"for": "20s", "since": "first match"}),
            ("forever", {"for": "forever"}),
        ):
            await it.klamm.add_rule({**ERROR, **lasting, "name": name})

        async def left() -> dict[str, float | None]:
            wall = time.time()
            rules = await it.klamm.rules()
            return {one.name: None if one.ends is None else round(one.ends - wall) for one in rules}

        usual = LASTING_NS // S
        known = {"late": 5, "as usual": usual, "short": 20, "since a match": usual + 20, "forever": None}
        assert await left() == known
        now += 1 * S
        it.book.engine.by_name["since a match"].first_match_ns = now
        after = {"late": 4, "as usual": usual - 1, "short": 19, "since a match": 20, "forever": None}
        assert await left() == after


@on_uvloop
async def test_rules_that_act_now_and_those_without_an_end_are_counted() -> None:
    now = 0
    async with api(clock=lambda: now) as it:
        book = it.book
        book.of_file(read_text(FILE, "rules.yaml"))
        book.listen(Rule("watching", ()))
        assert book.counts() == RuleCounts(file=1)
        for written in (
            {"api": "Heartbeat", "delay": "1ms", "name": "ten-minutes"},
            {"api": "Heartbeat", "delay": "1ms", "name": "forever", "for": "forever"},
            {"api": "Heartbeat", "delay": "1ms", "name": "short", "for": "1s"},
            {"api": "Heartbeat", "delay": "1ms", "name": "dry", "dry": True, "for": "forever"},
        ):
            await it.klamm.add_rule(written)
        assert book.counts() == RuleCounts(file=1, hand=3, without_end=1)
        now = 2 * S
        assert book.counts() == RuleCounts(file=1, hand=2, without_end=1)
        await it.klamm.switch_rule("forever", False)
        assert book.counts() == RuleCounts(file=1, hand=1)
        book.off()
        assert book.counts() == RuleCounts()


@on_uvloop
async def test_rules_by_hand_and_switches_outlive_a_reload_of_the_file() -> None:
    async with api() as it:
        it.book.of_file(read_text(FILE, "rules.yaml"))
        hand = await it.klamm.add_rule(ERROR)
        await it.klamm.switch_rule("slow", False)
        assert it.book.of_file(read_text(FILE + "  - {api: Produce, delay: 1ms}\n", "rules.yaml")) == []
        found = [(rule.name, rule.origin, rule.enabled) for rule in await it.klamm.rules()]
        assert found == [
            ("slow", "file", False),
            ("Produce-delay-1", "file", True),
            (hand.name, "hand", True),
        ]
        assert (await it.klamm.rule("slow")).written == {"name": "slow", "api": "Fetch", "delay": "1ms"}


@on_uvloop
async def test_a_name_is_taken_once_and_the_files_rules_are_changed_in_the_file() -> None:
    async with api() as it:
        it.book.of_file(read_text(FILE, "rules.yaml"))
        for refused in (
            it.klamm.add_rule({**ERROR, "name": "slow"}),
            it.klamm.remove_rule("slow"),
            it.klamm.change_rule("slow", ERROR),
        ):
            with pytest.raises(Refused) as no:
                await refused
            assert no.value.status == 409
        with pytest.raises(Refused, match="there is no rule 'slov'; did you mean slow") as no:
            await it.klamm.reset_rule("slov")
        assert no.value.status == 404


@on_uvloop
async def test_a_rule_by_hand_may_wait_for_one_of_the_file() -> None:
    async with api() as it:
        it.book.of_file(read_text(FILE, "rules.yaml"))
        assert (await it.klamm.add_rule({**ERROR, "once_hit": "slow"})).enabled


@on_uvloop
async def test_off_ends_everything() -> None:
    async with api() as it:
        it.book.of_file(read_text(FILE, "rules.yaml"))
        client = await it.edge.client()
        name = (await it.klamm.add_rule(ERROR)).name
        assert await it.klamm.rules_off() == ["slow", name]
        assert (await client.ask("Heartbeat", 3, BEAT))["error_code"] == 0
        assert [(rule.name, rule.enabled) for rule in await it.klamm.rules()] == [("slow", False)]


@on_uvloop
async def test_every_change_is_in_the_log_with_who_made_it() -> None:
    async with api() as it:
        name = (await it.klamm.add_rule(ERROR)).name
        await it.klamm.rules()
        await it.klamm.remove_rule(name)
        changes = [(line.fields["change"], line.fields["by"]) for line in it.log.of("changed")]
        by = "ada (127.0.0.1)"
        assert changes == [("POST /v1/rules", by), (f"DELETE /v1/rules/{name}", by)]
        assert it.log.of("changed")[0].fields["sent"] == ERROR

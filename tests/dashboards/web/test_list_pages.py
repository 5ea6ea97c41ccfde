"""What the page of exchanges asks of its server: columns, kinds to hide, one exchange, rules to try."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from klamm.client.asynchronous import AsyncKlamm
from klamm.client.failures import NoAnswer
from klamm.client.types import Exchange
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.lists import Lists
from klamm.dashboards.web.live import Live
from klamm.dashboards.web.noise import NOISE
from klamm.dashboards.web.server import start
from klamm.dashboards.web.source import Found, Gone, Source, Wish
from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from klamm.proxy.config_types import Address
from tests.brokers.processes import free_ports
from tests.captures.rows import Talk, written
from tests.dashboards.web.exchanges import heartbeat, produce, records
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

ONES = {"1": produce(records(b"tea"), rules=["late"], request_delay_ms=1.5), "2": heartbeat(27)}
RULES = b'[{"name":"late","hits":7,"matches":9}]'
FAILING = {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}


class Some:
    """A source of two exchanges. `wishes` are those of its readers."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []

    async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
        self.wishes.append(wish)
        yield Found(list(ONES.items()), hidden=4)

    async def exchange(self, key: str) -> Exchange:
        if key not in ONES:
            raise Gone(f"no exchange {key}")
        return ONES[key]


@asynccontextmanager
async def served(source: Some) -> AsyncIterator[aiohttp.ClientSession]:
    server = await start(cast(Source, source), Address("127.0.0.1", 0))
    try:
        async with aiohttp.ClientSession(f"http://{server.address}") as http:
            yield http
    finally:
        await server.close()


async def got(http: aiohttp.ClientSession, path: str, **query: str) -> tuple[int, Any]:
    async with http.get(path, params=query) as answer:
        return answer.status, json.loads(await answer.text())


@pytest.mark.asyncio
async def test_rows_have_the_rules_that_acted_and_cells_for_the_wished_fields() -> None:
    source = Some()
    async with served(source) as http:
        _, line = await got(http, "/api/rows", fields="request.acks,response.error_code")
        assert line["hidden"] == 4
        assert [row.get("rules") for row in line["rows"]] == [["late"], None]
        assert [row["cells"] for row in line["rows"]] == [["-1", ""], ["", "REBALANCE_IN_PROGRESS"]]
        await got(http, "/api/rows")
    assert [wish.bodies for wish in source.wishes] == [True, False]


@pytest.mark.asyncio
async def test_a_column_that_cannot_be_is_refused_with_its_reason() -> None:
    async with served(Some()) as http:
        for path, name in (("/api/rows", "fields"), ("/api/fields", "check")):
            status, told = await got(http, path, **{name: "request.akcs"})
            assert (status, told["error"]) == (
                422,
                "unknown field 'request.akcs'; did you mean request.acks?",
            )


@pytest.mark.asyncio
async def test_fields_are_those_of_the_apis_in_sight() -> None:
    async with served(Some()) as http:
        _, some = await got(http, "/api/fields", apis="Heartbeat,nonsense")
        assert "request.member_id" in some
        assert "request.acks" not in some
        _, every = await got(http, "/api/fields")
        assert {"request.acks", *some} <= set(every)


@pytest.mark.asyncio
async def test_kinds_to_hide_are_offered_and_passed_to_the_source() -> None:
    source = Some()
    async with served(source) as http:
        _, words = await got(http, "/api/words")
        assert words["noise"] == list(NOISE)
        await got(http, "/api/rows", hide="heartbeats,empty fetches")
        status, told = await got(http, "/api/rows", hide="lag")
        assert (status, "'lag' cannot be hidden" in told["error"]) == (422, True)
    assert [wish.hide for wish in source.wishes] == [("heartbeats", "empty fetches")]


@pytest.mark.asyncio
async def test_one_exchange_has_conditions_to_follow_it_and_its_records_if_they_are_asked_for() -> None:
    async with served(Some()) as http:
        _, found = await got(http, "/api/exchanges/1")
        assert found["exchange"]["request_delay_ms"] == 1.5
        assert [one["name"] for one in found["follow"]] == ["connection", "client", "API", "topic"]
        assert found["request"]["batches"][0]["records"] == 1
        assert '\\"tea\\"' not in json.dumps(found["request"]["tree"])
        _, whole = await got(http, "/api/exchanges/1", records="true")
        assert '\\"tea\\"' in json.dumps(whole["request"]["tree"])


@pytest.mark.asyncio
async def test_forms_versions_and_differences_are_asked_for_one_by_one() -> None:
    async with served(Some()) as http:
        _, copied = await got(http, "/api/exchanges/2/copy/filter")
        assert copied["text"].startswith('client_id == "shop" and api == Heartbeat')
        assert (await got(http, "/api/exchanges/2/copy/xml"))[0] == 422
        _, other = await got(http, "/api/exchanges/1/versions", to="3")
        assert (other["version"], other["to"]) == (9, 3)
        for to in ("99", "x"):
            assert (await got(http, "/api/exchanges/1/versions", to=to))[0] == 422
        _, differ = await got(http, "/api/exchanges/1/differences/2")
        assert {"path": "api", "before": "Produce", "after": "Heartbeat"} in differ["facts"]
        _, rule = await got(http, "/api/exchanges/2/rule")
        assert rule["error"] == "REBALANCE_IN_PROGRESS"
        for path in ("copy/filter", "versions", "differences/1", "rule"):
            assert (await got(http, f"/api/exchanges/9/{path}"))[0] == 404


@pytest.mark.asyncio
async def test_a_rule_is_checked_and_tried_on_the_list() -> None:
    source = Some()
    async with served(source) as http:
        assert (await got(http, "/api/actions"))[1][0]["name"] == "error"
        async with http.post("/api/rule", json=FAILING) as answer:
            assert (await answer.json())["mistakes"] == []
        wish = {"rule": FAILING, "where": "acks == -1", "hide": ["heartbeats"], "since": 1.5, "until": None}
        async with http.post("/api/trial", json=wish) as answer:
            assert (await answer.json())["acts"] == ["1"]
        async with http.post("/api/trial", json={**wish, "keys": ["2"]}) as answer:
            assert ((told := await answer.json())["acts"], told["exchanges"]) == ([], 1)
        for wrong in ({"rule": FAILING, "where": "acks =="}, {"rule": 5}, {}):
            async with http.post("/api/trial", json=wrong) as answer:
                assert answer.status in (400, 422)
    assert source.wishes[0] == Wish("acks == -1", True, 1.5, None, ("heartbeats",), past=True)


@pytest.mark.asyncio
async def test_hits_and_paused_frames_are_told_while_klamm_answers_and_nothing_while_it_does_not() -> None:
    class Asked(Some):
        away = False

        async def relay(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
            if self.away:
                raise NoAnswer("no klamm answers at here")
            return 200, b'[{"id":1},{"id":2}]' if path == "/v1/paused" else RULES

    source = Asked()
    async with served(source) as http:
        assert await got(http, "/api/hits") == (200, {"hits": {"late": 7}, "paused": 2})
        source.away = True
        assert await got(http, "/api/hits") == (200, {"hits": None, "paused": None})


def told(source: Live | Captures, wish: Wish) -> tuple[list[str], int]:
    """The APIs of the exchanges that are found, and how many were hidden."""

    async def read() -> list[Found]:
        return [each async for each in source.found(wish)]

    found = asyncio.run(read())
    return [one.api for each in found for _, one in each.exchanges], sum(each.hidden for each in found)


def test_a_running_klamm_gives_what_it_has_kept_and_ends() -> None:
    live = Live(AsyncKlamm("127.0.0.1:9"))
    for one in ONES.values():
        live.kept.add(one)
    assert told(live, Wish(past=True)) == (["Produce", "Heartbeat"], 0)
    assert told(live, Wish("acks == -1", past=True)) == (["Produce"], 0)
    live.kept.add(heartbeat())
    assert told(live, Wish(past=True, hide=("heartbeats",))) == (["Produce", "Heartbeat"], 1)


def test_the_newest_lists_of_pages_are_found_again_each_with_its_newest_keys() -> None:
    lists = Lists(most=2, rows=3)
    first = lists.open("first")
    first.extend(["7", "8", "11", "12"])
    assert list(lists.open("first")) == ["8", "11", "12"]
    first.append("13")  # of a reader that is not gone yet
    assert list(lists.open("first")) == ["8", "11", "12"]
    lists.open("second")
    lists.open("third")
    assert not lists.open("first")


async def begun(live: Live, wish: Wish, count: int) -> list[Found]:
    async with aclosing(live.found(wish)) as found:
        return [await anext(found) for _ in range(count)]


@on_uvloop
async def test_a_stream_of_a_list_begins_with_what_it_has_got_that_matches() -> None:
    async with api() as it:
        live = Live(it.klamm)
        live.lists.open("a").extend(live.kept.add(one) for one in (*ONES.values(), heartbeat()))
        first, second, _ = live.kept.kept
        state, again = await begun(live, Wish(of_list="a"), 2)
        assert (state.state, again.again) == ("reading", True)
        assert [one.api for _, one in again.exchanges] == ["Produce", "Heartbeat", "Heartbeat"]
        _, again = await begun(
            live, Wish("api == Heartbeat", hide=("heartbeats",), of_list="a", after=int(first)), 2
        )
        assert ([key for key, _ in again.exchanges], again.hidden) == ([second], 1)
        _, again = await begun(live, Wish(of_list="a"), 2)
        assert len(again.exchanges) == 3  # also those that the last filter left out


@on_uvloop
async def test_a_stream_of_a_list_has_what_it_has_got_once_while_klamm_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("klamm.dashboards.web.live.AGAIN_S", 0)
    async with AsyncKlamm(f"127.0.0.1:{free_ports()}") as away:
        live = Live(away)
        live.lists.open("a").extend(live.kept.add(one) for one in ONES.values())
        told, again, still = await begun(live, Wish("acks == -1", of_list="a"), 3)
    assert ("no klamm answers" in told.problem, told.problem) == (True, still.problem)
    assert (again.again, [one.api for _, one in again.exchanges]) == (True, ["Produce"])


def test_an_exchange_of_a_server_that_was_here_before_is_not_taken_for_another_one() -> None:
    before = Live(AsyncKlamm("127.0.0.1:9")).kept.add(heartbeat())
    now = Live(AsyncKlamm("127.0.0.1:9"))
    now.kept.add(heartbeat())
    with pytest.raises(Gone, match="not kept any more"):
        now.kept.of(before)


@pytest.mark.asyncio
async def test_the_name_of_a_list_and_its_first_key_are_checked() -> None:
    source = Some()
    async with served(source) as http:
        await got(http, "/api/rows", list="a", after="12")
        for wrong in ({"list": "a" * 65}, {"after": "-1"}, {"after": "x"}, {"after": ""}):
            status, told = await got(http, "/api/rows", **wrong)
            assert (status, "list is a name" in told["error"]) == (422, True)
    assert [(wish.of_list, wish.after) for wish in source.wishes] == [("a", 12)]


def test_a_capture_leaves_kinds_out_and_counts_them(tmp_path: Path) -> None:
    talk = Talk().opened().metadata().fetch().heartbeat().heartbeat(27)
    source = Captures([str(written(tmp_path / "a.arrow", talk.rows))])
    assert told(source, Wish(hide=("heartbeats", "empty fetches"))) == (["Metadata", "Heartbeat"], 2)


def test_a_capture_knows_what_klamm_sent_in_place_of_a_frame(tmp_path: Path) -> None:
    talk = Talk().opened()
    sent = response_frame(API["Heartbeat"], 3, 0, encode({"error_code": 27}, "Heartbeat", 3, "response"))[4:]
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    talk.exchange("Heartbeat", 3, asked, {"error_code": 0}, fate="rewritten", forwarded=sent)
    talk.exchange("Heartbeat", 3, asked, {"error_code": 0}, fate="withheld")
    source = Captures([str(written(tmp_path / "a.arrow", talk.rows))])

    async def bodies() -> list[Exchange]:
        found = source.found(Wish(bodies=True))
        return [one async for each in found for _, one in each.exchanges]

    rewritten, withheld = asyncio.run(bodies())
    assert rewritten.response is not None
    assert withheld.response is not None
    assert (rewritten.response.sent is not None, rewritten.response.withheld) == (True, False)
    assert (withheld.response.sent, withheld.response.withheld) == (None, True)

"""The admin API under attack: what asks much, or asks nothing, holds up neither traffic nor those who ask."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from klamm.client import Refused as NotDone
from klamm.proxy.admin import guard, health
from klamm.proxy.admin import server as admin
from klamm.proxy.admin.api import live
from klamm.proxy.admin.listening import connections, json_bodies
from klamm.proxy.config_types import Address
from klamm.proxy.control.rule_book import Refused, RuleBook
from klamm.proxy.edge import open_files as open_files_limit
from klamm.proxy.log.file import LogFile
from tests.dashboards.fake_state import FakeState
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
JSON = "application/json"


@asynccontextmanager
async def dialled(it: Api, count: int, said: bytes = b"") -> AsyncIterator[list[asyncio.StreamReader]]:
    """So many connections to the admin API that say this and then nothing."""
    host, port = it.klamm.admin.split(":")
    opened = [await asyncio.open_connection(host, port, limit=1024) for _ in range(count)]
    try:
        for _, writer in opened:
            writer.write(said)
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()


def test_files_are_spared_for_both_listeners() -> None:
    assert open_files_limit.ADMIN_FILES == 2 * (connections.MOST + connections.NEW)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@on_uvloop
async def test_idle_connections_take_neither_files_nor_the_places_of_others() -> None:
    async with api() as it:
        before = open_files()
        async with dialled(it, 400):
            assert await it.klamm.rules() == []
            client = await it.edge.client()
            await client.ask("Heartbeat", 3, BEAT)
            # of the 400 ends that this process holds itself, the other ends of at most so many are open
            await eventually(lambda: open_files() - before < 400 + connections.MOST + 20)
            assert await it.klamm.rules() == []


@on_uvloop
async def test_a_caller_whose_request_is_on_its_way_gives_way_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    monkeypatch.setattr(connections, "NEW_S", 60.0)
    async with api() as it:
        reader, writer = await asyncio.open_connection(*it.klamm.admin.split(":"))
        await eventually(lambda: it.connections.since)
        async with dialled(it, 20, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
            await eventually(lambda: len(it.connections.since) == 21)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


@on_uvloop
async def test_those_that_ask_nothing_give_way_once_they_are_no_longer_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    monkeypatch.setattr(connections, "NEW", 4)
    monkeypatch.setattr(connections, "NEW_S", 60.0)
    monkeypatch.setattr(connections, "LOOK_S", 0.01)
    async with api() as it, dialled(it, 20) as readers:
        await asyncio.gather(*(reader.read() for reader in readers[:13]), return_exceptions=True)
        assert len(it.connections.since) == 7
        monkeypatch.setattr(connections, "NEW_S", 0.0)
        await eventually(lambda: len(it.connections.since) == 3)


@on_uvloop
async def test_headers_that_never_end_and_silence_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.05)
    monkeypatch.setattr(connections, "LOOK_S", 0.01)
    async with api() as it:
        begun = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
        for said in (b"", begun + b"X-", begun + b"\r\n"):
            async with dialled(it, 3, said) as readers:
                for reader in readers:
                    with suppress(ConnectionError):
                        await reader.read()


@on_uvloop
async def test_silence_is_cut_where_a_look_comes_before_the_connection_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvloop accepts in one turn of the loop and tells the protocol in the next, after the timers."""
    monkeypatch.setattr(connections, "IDLE_S", 0.05)
    monkeypatch.setattr(connections, "LOOK_S", 0.0)
    async with api() as it, dialled(it, 1) as (reader,):
        with suppress(ConnectionError):
            await reader.read()


@on_uvloop
async def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "BODY_S", 0.05)
    async with api() as it:
        head = b"POST /v1/rules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        async with dialled(it, 1, head + b"Content-Length: 100\r\n\r\n{") as (reader,):
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 408")


@on_uvloop
async def test_where_all_connections_are_busy_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    head = b"POST /v1/rules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    async with api() as it:
        async with dialled(it, 3, head + b"Content-Length: 100\r\n\r\n"):
            await eventually(lambda: len(it.connections.busy) == 3)
            async with dialled(it, 1, b"GET /v1/rules HTTP/1.1\r\nHost: localhost\r\n\r\n") as (reader,):
                said = await reader.read()
            probe = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            async with dialled(it, 1, probe) as (reader,):
                probed = await reader.read()
        assert said.startswith(b"HTTP/1.1 503")
        assert b"connections are open" in said
        assert probed.startswith(b"HTTP/1.1 200")


@on_uvloop
async def test_where_new_connections_are_busy_too_one_more_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    monkeypatch.setattr(connections, "NEW", 0)
    head = b"POST /v1/rules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    async with api() as it:
        async with dialled(it, 3, head + b"Content-Length: 100\r\n\r\n"):
            await eventually(lambda: len(it.connections.busy) == 3)
            async with dialled(it, 1) as (reader,):
                said = await reader.read()
        assert said.startswith(b"HTTP/1.1 503")


@on_uvloop
async def test_an_answer_that_is_not_taken_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_S", 0.05)
    monkeypatch.setattr(connections, "LOOK_S", 0.01)
    async with api() as it:
        ask = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        async with dialled(it, 1, ask * 500):
            await eventually(lambda: it.connections.since)
            await eventually(lambda: not it.connections.since)


@on_uvloop
async def test_a_seventeenth_reader_is_refused_and_a_place_is_free_when_one_goes() -> None:
    async with api() as it:
        ask = b"GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        async with dialled(it, live.MOST, ask):
            await eventually(lambda: it.control.live == live.MOST)
            with pytest.raises(NotDone, match="16 readers of /v1/live are there, which is the most") as no:
                async with it.klamm.live():
                    pass
            assert no.value.status == 503
        await eventually(lambda: it.control.live == 0)
        async with it.klamm.live():
            assert it.control.live == 1


@on_uvloop
async def test_a_reader_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "UNREAD_S", 0.05)
    monkeypatch.setattr(live, "GATHER_S", 0.0)
    monkeypatch.setattr(live, "SHARE", 1.0)
    async with api() as it:
        client = await it.edge.client()
        async with dialled(it, 1, b"GET /v1/live?bodies=values HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            await eventually(lambda: it.control.live == 1)
            while it.control.live:
                await client.ask("Heartbeat", 3, {**BEAT, "group_id": "g" * 20_000})


@on_uvloop
async def test_rules_are_read_in_a_thread_and_traffic_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, go_on, names = threading.Event(), threading.Event(), []
    read = RuleBook._read

    def slow(*given: Any) -> Any:
        names.append(threading.current_thread().name)
        reading.set()
        assert go_on.wait(60)
        return read(*given)

    monkeypatch.setattr(RuleBook, "_read", slow)
    async with api() as it:
        client = await it.edge.client()
        adding = asyncio.create_task(it.klamm.add_rule({"api": "Produce", "count": True}))
        await eventually(reading.is_set)
        await client.ask("Heartbeat", 3, BEAT)
        assert await it.klamm.rules() == []
        go_on.set()
        assert (await adding).name == "hand-Produce-count-1"
    assert threading.main_thread().name not in names


@on_uvloop
async def test_two_that_add_rules_at_once_get_two_names() -> None:
    async with api() as it:
        made = await asyncio.gather(
            *(it.klamm.add_rule({"api": "Produce", "count": True}) for _ in range(10))
        )
        assert len({rule.name for rule in made}) == 10
        same = {"name": "one", "api": "Produce", "count": True}
        said = await asyncio.gather(*(it.klamm.add_rule(same) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in said].count(NotDone) == 2


@on_uvloop
async def test_a_megabyte_of_one_rule_is_read() -> None:
    async with api() as it:
        topics = [f"orders-{number}" for number in range(60_000)]
        made = await it.klamm.add_rule({"api": "Produce", "topic": topics, "count": True})
        assert it.book.hand[made.name].rule.topic.names == frozenset(topics)


@on_uvloop
async def test_scrapes_that_come_together_are_drawn_once_more_and_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawing, go_on, names = threading.Event(), threading.Event(), []

    def slow(snapshot: Any, accept: str) -> tuple[bytes, str]:
        names.append(threading.current_thread().name)
        drawing.set()
        assert go_on.wait(60)
        return b"drawn\n", "text/plain"

    monkeypatch.setattr(health, "render", slow)
    async with api() as it:
        client = await it.edge.client()

        async def scrape() -> str:
            async with it.http.get("/metrics") as answer:
                return await answer.text()

        first = asyncio.create_task(scrape())
        await eventually(drawing.is_set)
        others = [asyncio.create_task(scrape()) for _ in range(20)]
        await client.ask("Heartbeat", 3, BEAT)
        go_on.set()
        assert {await each for each in (first, *others)} == {"drawn\n"}
    assert len(names) < 20
    assert all(name.startswith("metrics") for name in names)


HOSTS = st.one_of(
    st.text(st.characters(min_codepoint=33, max_codepoint=255)), st.sampled_from(["[", "[::1", "a:b:c", "]"])
)


@given(HOSTS, HOSTS)
def test_no_host_or_origin_is_a_defect(host: str, origin: str) -> None:
    for path in ("/metrics", "/v1/rules"):
        for each in (origin, f"http://{origin}"):
            request = make_mocked_request("GET", path, headers={"Host": host, "Origin": each})
            with suppress(Refused):
                guard.guard(None, request, local=True)


@on_uvloop
async def test_an_origin_that_cannot_be_read_is_of_another_site() -> None:
    async with api() as it:
        for origin in ("http://[", "http://]", "[", "http://[::1", ""):
            assert (await it.send("GET", "/v1/rules", Origin=origin))[0] == 403, origin
        assert (await it.send("GET", "/v1/rules", Host="["))[0] == 403


@on_uvloop
async def test_a_probe_that_names_no_host_is_answered() -> None:
    async with api() as it:
        async with dialled(it, 1, b"GET /healthz HTTP/1.0\r\n\r\n") as (reader,):
            assert (await reader.readuntil(b"\r\n")).split()[1] == b"200"


@pytest.mark.parametrize("name", ["klamm.monitoring.svc:9091", "10.0.0.7:9091", "klamm"])
@on_uvloop
async def test_a_listener_for_others_is_scraped_by_any_name(name: str) -> None:
    everywhere = await health.start(FakeState(), Address("0.0.0.0", 0))
    here = await health.start(FakeState(), Address("127.0.0.1", 0))
    with_api = await admin.start(FakeState(), "0.0.0.0", 0)
    try:
        async with aiohttp.ClientSession() as http:
            for server, status in ((everywhere, 200), (here, 403), (with_api, 200)):
                url = f"http://127.0.0.1:{server.address.port}/metrics"
                async with http.get(url, headers={"Host": name}) as answer:
                    assert answer.status == status
    finally:
        for server in (everywhere, here, with_api):
            await server.close()


@pytest.mark.parametrize("folder", ["", " ", ".", "./", "a/..", "..", "../..", "./.././"])
@on_uvloop
async def test_the_folder_that_klamm_runs_in_is_not_captured_into(folder: str) -> None:
    async with api() as it:
        with pytest.raises(NotDone) as no:
            await it.klamm.begin_capture(folder)
        assert no.value.status == 422
        assert no.value.mistakes[0].path == "folder"
        assert it.control.captures().running is None


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@on_uvloop
async def test_captures_and_logs_are_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o022)
    try:
        async with api() as it:
            folder = tmp_path / "traffic"
            await it.klamm.begin_capture(str(folder))
            client = await it.edge.client()
            await client.ask("Heartbeat", 3, BEAT)
            await it.klamm.end_capture()
        LogFile(tmp_path / "klamm.log").close()
    finally:
        os.umask(before)
    assert mode(folder) == 0o700
    assert {mode(file) for file in folder.iterdir()} == {0o600}
    assert mode(tmp_path / "klamm.log") == 0o600

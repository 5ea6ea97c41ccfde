"""The inspector's server: who is let in, what it answers, and what it relays."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from klamm.client.failures import NoAnswer
from klamm.client.types import Body, Exchange
from klamm.dashboards.web.door import COOKIE
from klamm.dashboards.web.kept import Kept
from klamm.dashboards.web.server import _stay, start
from klamm.dashboards.web.source import About, Found, Gone, Wish
from klamm.dashboards.web.traffic.answers import Asked, Row, Traffic
from klamm.proxy.config_types import Address
from tests.brokers.jars import ROOT

TOKEN = "a-token-of-32-letters-or-so"
ONE = Exchange(
    1.5, "kafka", "2", "127.0.0.1:5", "ApiVersions", 3, "<script>\udcff", "broker", 30, 40, 1.25,
    request=Body(3, raw="AAAA"),
)  # fmt: skip


class Fake:
    """One exchange, and a klamm that echoes."""

    def __init__(self) -> None:
        self.relayed: list[tuple[str, str, bytes | None]] = []
        self.away = False

    async def about(self) -> About:
        return About("live", "here", "1.0")

    async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
        yield Found([("1", ONE)], state=wish.where or "")

    async def exchange(self, key: str) -> Exchange:
        if key != "1":
            raise Gone(f"no exchange {key}")
        return ONE

    async def relay(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if self.away:
            raise NoAnswer("no klamm answers at here")
        self.relayed.append((method, path, body))
        return 201, b'{"done":true}'

    async def traffic(self, asked: Asked) -> Traffic:
        if self.away:
            raise NoAnswer("no klamm answers at here")
        return Traffic("live", 1.0, 3.0, 2.0, {"client": 1}, 1, [Row("client", "kafka", asked.search)])


@asynccontextmanager
async def served(source: Fake, token: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    server = await start(source, Address("127.0.0.1", 0), token)
    try:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(f"http://{server.address}", cookie_jar=jar) as http:
            yield http
    finally:
        await server.close()


@pytest.mark.asyncio
async def test_the_page_its_files_and_health_are_there_with_a_policy_against_scripts() -> None:
    async with served(Fake()) as http:
        for path, kind in (
            ("/", "text/html"), ("/static/main.js", "text/javascript"), ("/static/style.css", "text/css"),
            ("/static/icon.svg", "image/svg+xml"), ("/healthz", "text/plain"),
        ):  # fmt: skip
            async with http.get(path) as answer:
                assert (answer.status, answer.content_type) == (200, kind)
                policy = answer.headers["Content-Security-Policy"]
                assert "script-src 'self';" in policy
                assert "unsafe" not in policy
        async with http.get("/static/..%2fserver.py") as answer:
            assert answer.status == 404


@pytest.mark.asyncio
async def test_rows_are_lines_of_json_whatever_clients_call_themselves() -> None:
    async with served(Fake()) as http, http.get("/api/rows", params={"where": "api == Fetch"}) as answer:
        (line,) = (await answer.text()).splitlines()
        assert json.loads(line)["state"] == "api == Fetch"
        assert json.loads(line)["rows"][0]["client_id"] == "<script>\\udcff"


@pytest.mark.asyncio
async def test_a_page_that_goes_away_in_silence_ends_its_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.server.PAUSE_S", 0.05)
    ended = asyncio.Event()

    class Silent(Fake):
        async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
            try:
                yield Found(state="live")
                await asyncio.Event().wait()
            finally:
                ended.set()

    async with served(Silent()) as http:
        async with http.get("/api/rows") as answer:
            assert json.loads(await answer.content.readline())["state"] == "live"
            assert await answer.content.readline() == b"\n"
            answer.close()
        async with asyncio.timeout(60):
            await ended.wait()


@pytest.mark.asyncio
@pytest.mark.parametrize(("query", "stays"), [("kept=true", True), ("", False)])
async def test_exchanges_are_read_on_for_marks_of_a_page_that_may_be_loaded_again(
    monkeypatch: pytest.MonkeyPatch, query: str, stays: bool
) -> None:
    staying, ended, enough = asyncio.Event(), asyncio.Event(), asyncio.Event()
    wishes = list[Wish]()

    async def stay(found: AsyncGenerator[Found | None, None]) -> None:
        staying.set()
        await _stay(found)

    class Going(Fake):
        async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
            wishes.append(wish)
            try:
                while not staying.is_set():
                    yield Found(state="live")
                    await asyncio.sleep(0)
                yield Found(state="live")
                enough.set()
            finally:
                ended.set()

    monkeypatch.setattr("klamm.dashboards.web.server.STAY_S", 60.0)
    monkeypatch.setattr("klamm.dashboards.web.server._stay", stay)
    async with served(Going()) as http:
        async with http.get(f"/api/marks/groups?{query}") as answer:
            await answer.content.readline()
            answer.close()
        async with asyncio.timeout(60):
            await ended.wait()
    assert (enough.is_set(), [wish.kept for wish in wishes]) == (stays, [stays])


@pytest.mark.asyncio
async def test_an_exchange_has_its_tree_and_one_that_is_gone_is_told() -> None:
    async with served(Fake()) as http:
        async with http.get("/api/exchanges/1") as answer:
            found = await answer.json()
        assert found["request"]["tree"][0]["name"] == "client_software_name"
        async with http.get("/api/exchanges/2") as answer:
            assert (answer.status, (await answer.json())["error"]) == (404, "no exchange 2")


@pytest.mark.asyncio
async def test_a_wrong_filter_is_refused_with_its_reason() -> None:
    async with served(Fake()) as http, http.get("/api/rows", params={"where": "acsk == 1"}) as answer:
        assert answer.status == 422
        assert "did you mean acks?" in (await answer.json())["error"]


@pytest.mark.asyncio
async def test_calls_of_the_admin_api_are_relayed_and_no_others() -> None:
    source = Fake()
    async with served(source) as http:
        async with http.post("/api/klamm/v1/rules/a%2Fb/reset?x=1", json={"a": 1}) as answer:
            assert (answer.status, await answer.json()) == (201, {"done": True})
        assert source.relayed == [("POST", "/v1/rules/a%2Fb/reset?x=1", b'{"a": 1}')]
        for path in ("/api/klamm/metrics", "/api/klamm/v1/live", "/api/klamm/v1/../metrics"):
            async with http.get(path) as answer:
                assert answer.status == 404
        source.away = True
        async with http.get("/api/klamm/v1/rules") as answer:
            assert (answer.status, (await answer.json())["error"]) == (502, "no klamm answers at here")
    assert len(source.relayed) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Host": "evil.example:1234", "Origin": "http://evil.example:1234"},
    ],
)
async def test_pages_of_other_sites_can_neither_read_nor_change(headers: dict[str, str]) -> None:
    source = Fake()
    async with served(source) as http:
        for path in ("/", "/api/rows", "/api/about", "/api/klamm/v1/rules", "/healthz"):
            async with http.get(path, headers=headers) as answer:
                assert answer.status == 403
        async with http.post("/api/klamm/v1/rules/off", json={}, headers=headers) as answer:
            assert answer.status == 403
    assert source.relayed == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "changed", "status"),
    [
        ("/", {}, 200),
        ("/api/rows", {}, 403),
        ("/static/main.js", {}, 403),
        ("/", {"Sec-Fetch-Dest": "iframe"}, 403),
        ("/", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ("/", {"Origin": "http://evil.example"}, 403),
        ("/", {"Host": "evil.example"}, 403),
    ],
)
async def test_a_link_on_another_site_leads_to_the_page_and_nothing_else(
    path: str, changed: dict[str, str], status: int
) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    async with served(Fake()) as http, http.get(path, headers={**followed, **changed}) as answer:
        assert answer.status == status


@pytest.mark.asyncio
async def test_a_form_of_another_site_changes_nothing() -> None:
    source = Fake()
    async with served(source) as http:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            async with http.post(
                "/api/klamm/v1/rules/off", data=b"{}", headers={"Content-Type": kind}
            ) as answer:
                assert answer.status == 415
    assert source.relayed == []


@pytest.mark.asyncio
async def test_from_elsewhere_the_token_is_asked_for_and_a_cookie_is_enough_then() -> None:
    async with served(Fake(), TOKEN) as http:
        for path in ("/api/rows", "/api/about", "/api/exchanges/1", "/static/main.js", "/api/klamm/v1/rules"):
            async with http.get(path) as answer:
                assert answer.status == 401
        async with http.get("/", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/sign-in")
        async with http.post("/session", data={"token": "wrong"}, allow_redirects=False) as answer:
            assert (answer.headers["Location"], COOKIE in answer.cookies) == ("/sign-in#wrong", False)
        async with http.post("/session", data={"token": TOKEN}, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/"
            cookie = answer.cookies[COOKIE]
            assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
            assert TOKEN not in cookie.value
        async with http.get("/api/about") as answer:
            assert answer.status == 200


def test_the_oldest_bodies_and_exchanges_make_room() -> None:
    kept = Kept(most=3, most_bytes=8)
    keys = [kept.add(ONE) for _ in range(4)]
    with pytest.raises(Gone, match="the newest 3"):
        kept.of(keys[0])
    assert kept.of(keys[1]).request == Body(3, reason="only the newest 0 MiB of bodies are kept")
    assert kept.of(keys[3]).request == ONE.request
    assert kept.bytes == 8


def test_the_page_adds_little_to_the_wheel() -> None:
    files = [path for path in (ROOT / "dashboards" / "web").rglob("*.*") if path.suffix != ".pyc"]
    assert len(files) > 20
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 300_000

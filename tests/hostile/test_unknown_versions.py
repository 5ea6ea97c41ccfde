"""A request of a version that klamm does not know: its exchange is shown as what it is, and others too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from klamm.cli.live.tail import text
from klamm.client import AsyncKlamm
from klamm.client.types import Exchange
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.control import exchange
from klamm.proxy.control.exchange import body, exchange_of, seen
from klamm.proxy.traces.parents import carried
from klamm.rules.frame import Frame, Peer
from tests.fakes.broker import Broker, Cluster, Connection, Request
from tests.fakes.client import CLIENT_ID, Client, connect
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import Api, api
from tests.proxy.admin.test_admin_live import next_of
from tests.proxy.test_serve import run

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
NEWER = 9  # of Heartbeat
WHY = f"Heartbeat v{NEWER} is not known, only {API['Heartbeat'].versions}"
BODY = b"of a layout to come"  # behind the tagged fields of a header that klamm does not know either


def answers_all(connection: Connection, request: Request) -> bytes:
    frame = request.correlation_id.to_bytes(4, "big") + bytes(20)
    return len(frame).to_bytes(4, "big") + frame


async def ask_newer(client: Client) -> None:
    client.transport.write(request_frame(API["Heartbeat"], NEWER, 1, CLIENT_ID, BODY))
    await client.frame()


async def ask_both(it: Api) -> None:
    """Of the version that is not known, then of one that is."""
    client = await it.edge.client(1)
    it.brokers[0].answers["Heartbeat"] = answers_all
    await ask_newer(client)
    client.send("Heartbeat", 3, BEAT)
    await client.frame()


def is_told(one: Exchange) -> None:
    assert (one.api, one.version, one.client_id) == ("Heartbeat", NEWER, CLIENT_ID)
    assert one.undecodable == {"request": WHY, "response": WHY}


@pytest.mark.parametrize(
    "where", [None, "api == Heartbeat", 'client_id == "app" or error == NOT_COORDINATOR']
)
@pytest.mark.parametrize("bodies", ["values", "raw"])
@on_uvloop
async def test_the_live_stream_shows_it_and_goes_on(where: str | None, bodies: str) -> None:
    async with api() as it:
        async with it.klamm.live(where, bodies) as lines:
            await ask_both(it)
            found = [(await next_of(lines)).exchange for _ in range(2 - (where == "api == Heartbeat"))]
        if where != "api == Heartbeat":  # decided by requests, of known versions only
            one = found.pop(0)
            assert one is not None
            is_told(one)
            assert one.request is not None
            assert (one.request.bytes, one.request.values) == (1 + len(BODY), None)
            shown = "\n".join(text(one, False, bodies == "raw"))
            assert WHY in shown
        assert [one.version for one in found if one is not None] == [3]
        assert {line.kind for line in it.log.bad()} <= {"unknown_version", "undecodable"}


@on_uvloop
async def test_an_api_that_klamm_does_not_know_is_shown_by_its_key_and_without_bytes() -> None:
    new = API.any(900)
    async with api() as it:
        client = await it.edge.client(1)
        it.brokers[0].answers[new.name] = answers_all
        async with it.klamm.live(None, "raw") as lines:
            client.transport.write(request_frame(new, 1, 1, CLIENT_ID, BODY))
            await client.frame()
            one = (await next_of(lines)).exchange
        assert one is not None
        assert (one.api, one.version, one.client_id) == ("API key 900", 1, "<3 bytes>")
        assert one.undecodable == dict.fromkeys(("request", "response"), "API key 900 is not known")
        assert one.request is not None
        assert (one.request.bytes, one.request.raw, one.request.values) == (len(BODY), None, None)
        shown = "\n".join(text(one, False, True))
        assert f"request, {len(BODY)} bytes: API key 900 is not known" in shown


@on_uvloop
async def test_the_newest_exchanges_have_it() -> None:
    async with api() as it:
        await it.klamm.exchanges(bodies=True)
        await ask_both(it)
        kept = (await it.klamm.exchanges(bodies=True)).exchanges
        assert [one.version for one in kept] == [NEWER, 3]
        is_told(kept[0])
        for where, versions in (
            ("api == Heartbeat", [NEWER, 3]),
            ('group_id == "g"', [3]),
            ("error == NOT_COORDINATOR", []),
        ):
            assert [one.version for one in (await it.klamm.exchanges(where)).exchanges] == versions
        for form in ("values", "raw"):
            one = await it.klamm.exchange(kept[0].id, form)
            is_told(one)
            assert one.request is not None
            assert (one.request.bytes, one.request.raw is None) == (1 + len(BODY), form == "values")


@on_uvloop
async def test_a_failure_of_klamm_to_show_one_exchange_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(frame: Frame, raw: bool) -> None:
        if frame.version == NEWER:
            raise RuntimeError("an error in klamm")

    monkeypatch.setattr(exchange, "body", fails)
    async with api() as it:
        async with it.klamm.live(None, "values") as lines:
            await ask_both(it)
            one, other = [(await next_of(lines)).exchange for _ in range(2)]
        assert one is not None
        assert other is not None
        assert one.undecodable == {"request": "klamm failed to show it: RuntimeError('an error in klamm')"}
        assert (one.version, one.request, other.version) == (NEWER, None, 3)


@on_uvloop
async def test_workers_show_it_and_go_on(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Heartbeat"] = answers_all
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=("--workers", "2")) as klamm:
            await klamm.announced()
            client = await connect("127.0.0.1", klamm.port)
            async with AsyncKlamm(f"127.0.0.1:{klamm.admin}") as admin:
                async with admin.live(None, "values") as lines:
                    waiting = asyncio.create_task(next_of(lines))
                    while not waiting.done():  # the worker may not listen yet
                        client.send("Heartbeat", 3, BEAT)
                        await client.frame()
                    await ask_newer(client)
                    found = [await next_of(lines)]
                    while found[-1].exchange is None or found[-1].exchange.version != NEWER:
                        found.append(await next_of(lines))
                    client.send("Heartbeat", 2, BEAT)
                    await client.frame()
                    after = (await next_of(lines)).exchange
                    assert found[-1].exchange is not None
                    is_told(found[-1].exchange)
                    assert after is not None
                    assert after.version == 2
            client.transport.abort()


def test_tail_shows_the_bytes_of_an_answer_in_version_0_to_a_version_to_come() -> None:
    peer = Peer("kafka", "1", "127.0.0.1:1", "kafka/1/127.0.0.1/1", 1)
    request = Frame(API["ApiVersions"], 99, "request", BODY, CLIENT_ID, peer, 1)
    refusal = encode({"error_code": 35, "api_keys": []}, "ApiVersions", 0, "response")
    answer = Frame(API["ApiVersions"], 99, "response", refusal, CLIENT_ID, peer, 2, request)
    shown = "\n".join(text(exchange.shown(seen(request, answer), 1, "raw"), False, True))
    assert f"request, {len(BODY)} bytes: ApiVersions v99 is not known" in shown
    assert "UNSUPPORTED_VERSION" in shown.partition("  response\n")[2]


@pytest.mark.parametrize("name", [api.name for api in API])
@pytest.mark.parametrize("version", [-1, 99])
def test_no_reader_of_exchanges_fails_on_it(name: str, version: int) -> None:
    peer = Peer("kafka", "1", "127.0.0.1:1", "kafka/1/127.0.0.1/1", 1)
    request = Frame(API[name], version, "request", BODY, CLIENT_ID, peer, 1)
    answer = Frame(API[name], version, "response", BODY, CLIENT_ID, peer, 2, request)
    one = exchange_of(seen(request, answer))
    assert one.undecodable.keys() == {"request", "response"}
    assert carried(request, answer).carriers == []
    for frame in (request, answer):
        for raw in (False, True):
            shown = body(frame, raw)
            assert shown.values is None
            assert shown.raw is not None or f"{name} v{version} is not known" in shown.reason


@pytest.mark.parametrize("version", [-1, 99])
def test_a_body_that_could_have_secrets_is_not_given_raw(version: int) -> None:
    peer = Peer("kafka", "1", "127.0.0.1:1", "kafka/1/127.0.0.1/1", 1)
    request = Frame(API["SaslAuthenticate"], version, "request", b"\0user\0secret", None, peer, 1)
    assert body(request, raw=True).raw is None

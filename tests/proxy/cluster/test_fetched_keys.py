"""Key sets that klamm fetches from the issuer of tokens."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from klamm.proxy import config
from klamm.proxy.cluster import fetched_keys
from klamm.proxy.cluster.fetched_keys import FRESH_S, LARGEST, SOON_S, FetchedKeys
from klamm.proxy.config_types import Text, Url
from tests.fakes.broker import Broker, Cluster
from tests.fakes.edge import Edge, edge
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.edge.test_listen_sasl import log_in
from tests.proxy.sasl_ground import bearer
from tests.tokens import AUDIENCE, ISSUER, Issuer


class Endpoint:
    """The keys of an issuer at a URL, with a status."""

    def __init__(self, text: str) -> None:
        self.text, self.status, self.asked = text, 200, 0
        self.url = ""

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(text=self.text, status=self.status)


@asynccontextmanager
async def endpoint(text: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Endpoint]:
    made, app = Endpoint(text), web.Application()
    app.router.add_get("/keys", made.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0]
    made.url = f"{'http' if tls is None else 'https'}://{'localhost' if tls else host}:{port}/keys"
    try:
        yield made
    finally:
        await runner.cleanup()


@asynccontextmanager
async def guarded(url: str) -> AsyncIterator[Edge]:
    settings = config.ListenSasl(
        ("OAUTHBEARER",),
        jwks_url=Url(url),
        issuer=Text(ISSUER),
        audience=(Text(AUDIENCE),),
    )
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, listen_sasl=settings) as klamm:
        yield klamm


async def shown(klamm: Edge, token: str) -> dict[str, Any]:
    return await log_in(await klamm.client(1), bearer(token), "OAUTHBEARER")


@on_uvloop
async def test_tokens_are_verified_with_the_keys_of_a_url_and_new_keys_are_fetched_when_one_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetched_keys, "LOOK_S", 0.01)
    monkeypatch.setattr(fetched_keys, "SOON_S", 0.0)
    one, two = Issuer("one"), Issuer("two")
    async with endpoint(one.jwks) as issuer, guarded(issuer.url) as klamm:
        await klamm.logged("jwks_loaded")
        assert (await shown(klamm, one.token()))["session_lifetime_ms"] > 0
        issuer.text = two.jwks
        before = issuer.asked
        assert (await shown(klamm, two.token()))["auth_bytes"] != b""  # not known yet
        await klamm.logged("jwks_loaded", 2)
        assert issuer.asked > before
        assert (await shown(klamm, two.token()))["session_lifetime_ms"] > 0


@on_uvloop
async def test_keys_stay_while_the_issuer_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_keys, "LOOK_S", 0.01)
    monkeypatch.setattr(fetched_keys, "SOON_S", 0.0)
    monkeypatch.setattr(fetched_keys, "FRESH_S", 0.0)
    one = Issuer()
    async with endpoint("{}") as issuer, guarded(issuer.url) as klamm:
        [line, *_] = await klamm.logged("jwks_rejected")
        assert "no token can be verified" in line.message
        assert "no key set" in line.message
        assert (await shown(klamm, one.token()))["auth_bytes"] != b""
        issuer.text = one.jwks
        await klamm.logged("jwks_loaded")
        issuer.status, before = 503, len(klamm.log.of("jwks_rejected"))
        await eventually(lambda: len(klamm.log.of("jwks_rejected")) > before)
        last = klamm.log.of("jwks_rejected")[-1]
        assert "the ones before stay" in last.message
        assert "status 503" in last.message
        assert (await shown(klamm, one.token()))["session_lifetime_ms"] > 0


@pytest.mark.parametrize(("text", "says"), [("x" * (LARGEST + 2), "more than 1 MiB"), ("[", "no key set")])
@on_uvloop
async def test_an_answer_that_is_no_key_set_is_told(text: str, says: str) -> None:
    async with endpoint(text) as issuer:
        keys = FetchedKeys(issuer.url, None)
        with pytest.raises(OSError, match=says):
            await keys.fetch()
        assert keys.value == {}
    with pytest.raises(OSError, match=r"/keys cannot be reached: Connection refused$"):
        await keys.fetch()


@on_uvloop
async def test_the_issuer_has_to_be_one_that_klamm_trusts(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with endpoint(Issuer().jwks, context) as issuer:
        assert await FetchedKeys(issuer.url, str(certificates / "ca.pem")).fetch()
        advice = r"certificate is not trusted \(.*\): name its authority with listen_sasl.jwks_ca$"
        with pytest.raises(OSError, match=advice):
            await FetchedKeys(issuer.url, None).fetch()


def test_keys_are_fetched_in_time() -> None:
    keys = FetchedKeys("https://issuer.example.com/keys", None)
    assert keys.due(0.0)
    keys.fetched_at = 100.0
    assert not keys.due(100.0 + FRESH_S - 1)
    assert keys.due(100.0 + FRESH_S)
    keys.missing()
    assert not keys.due(100.0 + SOON_S - 1)
    assert keys.due(100.0 + SOON_S)

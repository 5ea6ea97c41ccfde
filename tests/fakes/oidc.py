"""An OIDC server that gives tokens to clients that know its secret (RFC 6749, 4.4)."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import unquote_plus

from aiohttp import web

from tests.fakes.waiting import Signal

Answer = Callable[[], web.StreamResponse]


class Oidc:
    """`tokens` gives the next one; `answers` are given before it is asked, one each."""

    def __init__(self, tokens: Callable[[], str], identity: str, secret: str, lifetime_s: Any = None) -> None:
        self.tokens, self.identity, self.secret, self.lifetime_s = tokens, identity, secret, lifetime_s
        self.forms: list[dict[str, str]] = []
        self.answers: list[Answer] = []
        self.silent = False
        self.changed = Signal()
        self.url = ""

    async def _give(self, request: web.Request) -> web.StreamResponse:
        self.forms.append({key: str(value) for key, value in (await request.post()).items()})
        self.changed.send()
        if self.silent:
            await self.changed.until(lambda: not self.silent)
        if self.answers:
            return self.answers.pop(0)()
        words = request.headers["Authorization"].removeprefix("Basic ")
        told = [unquote_plus(part) for part in base64.b64decode(words).decode().split(":")]
        if told != [self.identity, self.secret]:
            return web.json_response({"error": "invalid_client", "error_description": "no such"}, status=401)
        found: dict[str, Any] = {"access_token": self.tokens(), "token_type": "Bearer"}
        if self.lifetime_s is not None:
            found["expires_in"] = self.lifetime_s
        return web.json_response(found)

    @contextmanager
    def in_a_thread(self, tls: ssl.SSLContext | None = None) -> Iterator[Oidc]:
        """For tests without a loop."""
        ready, over = threading.Event(), threading.Event()

        async def serve() -> None:
            async with self.listening(tls):
                ready.set()
                await asyncio.to_thread(over.wait)

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            assert ready.wait(30)
            yield self
        finally:
            over.set()
            thread.join(30)

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Oidc]:
        app = web.Application()
        app.router.add_post("/token", self._give)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/token"
        try:
            yield self
        finally:
            self.silent = False
            self.changed.send()
            await runner.cleanup()

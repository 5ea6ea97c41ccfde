"""The same for an event loop: every call is a coroutine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import aiohttp

from klamm.client import calls
from klamm.client.address import target, why
from klamm.client.calls import Call, Written, refusal
from klamm.client.failures import NoAnswer, stream_ended
from klamm.client.reading import reader
from klamm.client.sync import ADMIN, TIMEOUT_S, headers
from klamm.client.types import (
    Capture,
    CaptureWish,
    Cluster,
    Connection,
    Draining,
    Exchange,
    Exchanges,
    Line,
    Node,
    PausedFrame,
    Reloaded,
    Resolution,
    Rule,
    RuleFile,
    Segments,
)

T = TypeVar("T")


class AsyncKlamm:
    """A running klamm, as Klamm has it; use it with `async with`."""

    def __init__(
        self,
        admin: str = ADMIN,
        token: str | None = None,
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
    ) -> None:
        self.admin, self._headers = admin, headers(token, user)
        self._target = target(admin, ca, cert, key)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> AsyncKlamm:
        tls = self._target.tls
        connector = aiohttp.TCPConnector(ssl=True if tls is None else tls)
        self._http = aiohttp.ClientSession(self._target.url, headers=self._headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def rules(self) -> list[Rule]:
        return await self.ask(calls.rules())

    async def rule(self, name: str) -> Rule:
        return await self.ask(calls.rule(name))

    async def add_rule(self, written: Written) -> Rule:
        """A rule as in a file. It ends after 10 minutes, or its `for`; with `for: forever` never."""
        return await self.ask(calls.add_rule(written))

    async def change_rule(self, name: str, written: Written) -> Rule:
        return await self.ask(calls.change_rule(name, written))

    async def switch_rule(self, name: str, enabled: bool) -> Rule:
        return await self.ask(calls.switch_rule(name, enabled))

    async def remove_rule(self, name: str) -> None:
        await self.ask(calls.remove_rule(name))

    async def reset_rule(self, name: str) -> Rule:
        return await self.ask(calls.reset_rule(name))

    async def rules_off(self) -> list[str]:
        """Ends all; the names of those that acted until now."""
        return await self.ask(calls.rules_off())

    async def rule_file(self) -> RuleFile:
        """The file that klamm reads rules from, and its mistakes where the last reading was rejected."""
        return await self.ask(calls.rule_file())

    async def paused(self) -> list[PausedFrame]:
        """Frames that wait to be resolved."""
        return await self.ask(calls.paused())

    async def paused_frame(self, number: int) -> PausedFrame:
        """One of them, with its values."""
        return await self.ask(calls.paused_frame(number))

    async def resolve(
        self,
        number: int,
        action: Literal["resume", "drop", "error"] = "resume",
        values: dict[str, Any] | None = None,
        code: str | int | None = None,
    ) -> None:
        """Let it go on, as it is or with these values; drop it; or answer with an error of Kafka's."""
        await self.ask(calls.resolve(number, Resolution(action, values, code)))

    async def capture(self) -> Capture:
        """The one that runs."""
        return await self.ask(calls.capture())

    async def begin_capture(
        self, folder: str, records: Literal["blank", "keep", "hash"] = "blank", filter: str | None = None
    ) -> Capture:
        """Captures from now on, open connections too; `folder` is one on klamm's machine."""
        return await self.ask(calls.begin_capture(CaptureWish(folder, records, filter)))

    async def end_capture(self) -> None:
        """When it returns, all is written."""
        await self.ask(calls.end_capture())

    async def capture_segments(self) -> Segments:
        """Of the capture that runs, or else of the one that ran last."""
        return await self.ask(calls.capture_segments())

    @asynccontextmanager
    async def capture_archive(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """A tar of these segments, piece by piece."""
        async with self._reading(calls.capture_archive()) as answer:
            yield self._pieces(answer)

    async def drain(self, within_s: float | None = None) -> Draining:
        """klamm ends after it; other calls are answered until then."""
        return await self.ask(calls.drain(within_s))

    async def reload_config(self) -> Reloaded:
        """klamm reads its configuration again, at once."""
        return await self.ask(calls.reload_config())

    async def connections(self) -> list[Connection]:
        return await self.ask(calls.connections())

    async def close_connection(self, number: int) -> None:
        await self.ask(calls.close_connection(number))

    async def clusters(self) -> list[Cluster]:
        return await self.ask(calls.clusters())

    async def brokers(self) -> list[Node]:
        return await self.ask(calls.brokers())

    async def exchanges(self, where: str | None = None, limit: int = 100, bodies: bool = False) -> Exchanges:
        """The newest. klamm keeps them from the first time it is asked on."""
        return await self.ask(calls.exchanges(where, limit, bodies))

    async def exchange(self, number: int, form: str = "values") -> Exchange:
        return await self.ask(calls.exchange(number, form))

    async def counters(self) -> dict[str, Any]:
        return await self.ask(calls.counters())

    async def config(self) -> dict[str, Any]:
        return await self.ask(calls.config())

    async def openapi(self) -> dict[str, Any]:
        return await self.ask(calls.openapi())

    @asynccontextmanager
    async def live(
        self, where: str | None = None, bodies: str = "none", rule: str | None = None
    ) -> AsyncIterator[AsyncIterator[Line]]:
        """Exchanges as they happen, from when the context begins. `rule`: those on which a rule of this name
        acted, or one of those that fit this glob. Where the stream ends, the next line raises NoAnswer.
        """
        async with self._reading(calls.live(where, bodies, rule)) as answer:
            yield self._lines(answer)

    async def ask(self, call: Call[T]) -> T:
        """Carry it out."""
        try:
            async with self._http.request(
                call.method, call.path, data=call.body, timeout=self._timeout
            ) as answer:
                return call.answer(answer.status, await answer.read())
        except (OSError, aiohttp.ClientError) as problem:
            raise self._no_answer(problem) from problem

    @asynccontextmanager
    async def _reading(self, call: Call[Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Its answer, which may take any time once klamm is connected to."""
        connecting = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout.total)
        try:
            answer = await self._http.request(call.method, call.path, timeout=connecting)
            if answer.status >= 400:
                raise refusal(answer.status, await answer.read())
        except (OSError, aiohttp.ClientError) as problem:
            raise self._no_answer(problem) from problem
        try:
            yield answer
        finally:
            answer.close()

    async def _pieces(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        while True:
            try:
                piece = await answer.content.readany()
            except (OSError, aiohttp.ClientError) as problem:
                raise self._no_answer(problem) from problem
            if not piece:
                return
            yield piece

    async def _lines(self, answer: aiohttp.ClientResponse) -> AsyncIterator[Line]:
        decode = reader(Line).decode
        pending = b""
        try:
            async for piece in self._pieces(answer):
                *whole, pending = (pending + piece).split(b"\n")
                for line in whole:
                    yield decode(line)
        except NoAnswer as cut:
            raise stream_ended(self.admin) from cut
        raise stream_ended(self.admin)

    def _no_answer(self, problem: Exception) -> NoAnswer:
        return NoAnswer(f"no klamm answers at {self.admin}: {why(problem)}")

"""The same for an event loop: every call is a coroutine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar

import aiohttp
import msgspec

from klamm.client import calls
from klamm.client.calls import Call, Written, refusal
from klamm.client.failures import NoAnswer
from klamm.client.sync import ADMIN, TIMEOUT_S, headers
from klamm.client.types import (
    Capture,
    CaptureWish,
    Cluster,
    Connection,
    Exchange,
    Exchanges,
    Held,
    Line,
    Node,
    Resolution,
    Rule,
    RuleFile,
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
    ) -> None:
        self.admin, self._headers = admin, headers(token, user)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> AsyncKlamm:
        self._http = aiohttp.ClientSession(f"http://{self.admin}", headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
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

    async def held(self) -> list[Held]:
        """Frames that wait to be resolved."""
        return await self.ask(calls.held())

    async def held_frame(self, number: int) -> Held:
        """One of them, with its values."""
        return await self.ask(calls.held_frame(number))

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
        """From now on, of connections that are open too; `folder` is one on klamm's machine."""
        return await self.ask(calls.begin_capture(CaptureWish(folder, records, filter)))

    async def end_capture(self) -> None:
        """When it returns, all is written."""
        await self.ask(calls.end_capture())

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
        self, where: str | None = None, bodies: str = "none"
    ) -> AsyncIterator[AsyncIterator[Line]]:
        """Exchanges as they happen, from when the context begins."""
        call = calls.live(where, bodies)
        forever = aiohttp.ClientTimeout(total=None)
        try:
            answer = await self._http.request(call.method, call.path, timeout=forever)
            if answer.status >= 400:
                raise refusal(answer.status, await answer.read())
        except (OSError, aiohttp.ClientError) as problem:
            raise self._no_answer(problem) from problem
        try:
            yield self._lines(answer)
        finally:
            answer.close()

    async def ask(self, call: Call[T]) -> T:
        """Carry it out."""
        try:
            async with self._http.request(
                call.method, call.path, data=call.body, timeout=self._timeout
            ) as answer:
                return call.answer(answer.status, await answer.read())
        except (OSError, aiohttp.ClientError) as problem:
            raise self._no_answer(problem) from problem

    async def _lines(self, answer: aiohttp.ClientResponse) -> AsyncIterator[Line]:
        decode = msgspec.json.Decoder(Line).decode
        pending = b""
        while True:
            try:
                piece = await answer.content.readany()
            except (OSError, aiohttp.ClientError) as problem:
                raise self._no_answer(problem) from problem
            if not piece:
                return
            *whole, pending = (pending + piece).split(b"\n")
            for line in whole:
                yield decode(line)

    def _no_answer(self, problem: Exception) -> NoAnswer:
        return NoAnswer(f"no klamm answers at {self.admin}: {problem or type(problem).__name__}")

"""Both clients of the admin API under one face, which takes down what is asked."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from klamm.client import AsyncKlamm, Klamm
from klamm.client.calls import Call
from klamm.client.types import Exchange

USER = "ada"


class Asking:
    """A client of the API that takes down which routes it asks. `do` gives what a call gives."""

    def __init__(self, client: Any, do: Callable[[Any], Any]) -> None:
        self.client, self.do, self.asked = client, do, set[tuple[str, str]]()
        carry_out = client.ask

        def ask(call: Call[Any]) -> Any:
            self.asked.add((call.method, call.path.partition("?")[0]))
            return carry_out(call)

        client.ask = ask

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)
        return lambda *given, **named: self.do(method(*given, **named))

    def archive(self) -> bytes:
        """All of it."""
        self.asked.add(("GET", "/v1/capture/archive"))
        context = self.client.capture_archive()
        if hasattr(context, "__enter__"):
            with context as pieces:
                return b"".join(pieces)

        async def whole() -> bytes:
            async with context as pieces:
                return b"".join([piece async for piece in pieces])

        found: bytes = self.do(whole())
        return found

    @contextmanager
    def live(self, *given: Any) -> Iterator[Callable[[], Exchange]]:
        """Inside, each call waits for the next exchange."""
        self.asked.add(("GET", "/v1/live"))
        context = self.client.live(*given)
        if hasattr(context, "__enter__"):
            with context as lines:
                yield lambda: next(lines).exchange
            return
        lines = self.do(context.__aenter__())
        try:
            yield lambda: self.do(anext(lines)).exchange
        finally:
            self.do(context.__aexit__(None, None, None))


@contextmanager
def asking(kind: str, address: str) -> Iterator[Asking]:
    """The client that blocks, or the one for event loops, on a loop of its own."""
    if kind == "sync":
        yield Asking(Klamm(address, user=USER), lambda found: found)
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(work: Any) -> Any:
        async def done() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), loop).result(60)

    client = AsyncKlamm(address, user=USER)
    try:
        do(client.__aenter__())
        yield Asking(client, do)
        do(client.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

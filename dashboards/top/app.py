"""The loop at the edge: it asks klamm, hears the keyboard and signals, and draws."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from rich.console import Console

from klamm.client.asynchronous import AsyncKlamm
from klamm.client.failures import ApiError, NoAnswer, Refused
from klamm.dashboards.terminal.history import History
from klamm.dashboards.top.data import Connections, Data, Seen
from klamm.dashboards.top.drawing import Screen, screen
from klamm.dashboards.top.keys import Keys
from klamm.dashboards.top.state import BROKER, CLIENT, CONNECTION, EXCHANGE, State, press
from klamm.dashboards.top.terminal import Terminal

ESC_S = 0.05  # after ESC, in which the rest of a sequence may come
KEPT = 1000  # exchanges
AGAIN_S = 1.0  # after a stream of exchanges has ended
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Asking:
    """Asks klamm for its counters and for the data of the shown table, and keeps the answers."""

    def __init__(self, klamm: AsyncKlamm, interval_s: float, options: str = "") -> None:
        self.klamm, self.interval_s, self.options = klamm, interval_s, options
        self.history = History()
        self.connections = self.connections_before = Connections()
        self.exchanges: deque[Seen] = deque(maxlen=KEPT)
        self.left_out = 0
        self.opened: Seen | None = None  # its page is shown, however many come after it
        self.trouble = ""  # of the stream of exchanges
        self._silent_since: float | None = None
        self._reason = ""
        self._numbers = count(1)

    async def ask(self, state: State) -> None:
        """Once. Raises ApiError."""
        self.history.add(await self.klamm.counters())
        if wants_connections(state):
            found = {one.id: one for one in await self.klamm.connections()}
            self.connections_before = self.connections
            self.connections = Connections(time.time(), found)

    async def ask_again(self, state: State) -> None:
        """Once; a klamm that does not answer is told by `notice`."""
        try:
            await self.ask(state)
        except ApiError as problem:
            self._reason = str(problem)
            if self._silent_since is None:
                self._silent_since = time.monotonic()
        else:
            self._silent_since = None

    @property
    def data(self) -> Data | None:
        """A picture's worth; None before the first answer."""
        if not self.history.answers:
            return None
        return Data(
            self.history.previous,
            self.history.answers[-1],
            tuple(self.history.rates),
            self.connections,
            self.connections_before,
            tuple(self.exchanges),
            self.left_out,
            self.opened,
            self.options,
        )

    def notice(self, state: State) -> str:
        """Why there is nothing new."""
        if self._silent_since is not None:
            return f"{self._reason}, for {time.monotonic() - self._silent_since:.0f} s; asking again"
        return self.trouble if state.table == EXCHANGE else ""

    async def listen(self, where: str) -> None:
        """Takes exchanges until it is cancelled, from one klamm after another."""
        self.exchanges.clear()
        self.left_out, self.trouble = 0, ""
        while True:
            try:
                async with self.klamm.live(where or None) as lines:
                    self.trouble = ""
                    async for line in lines:
                        self.left_out += line.dropped + line.unjudged
                        if line.exchange is not None:
                            self.exchanges.append(Seen(next(self._numbers), line.exchange))
            except Refused as wrong:
                self.trouble = str(wrong)
                return
            except NoAnswer as silence:
                self.trouble = str(silence)
            await asyncio.sleep(AGAIN_S)


def wants_connections(state: State) -> bool:
    """Whether connections are on the screen; klamm is asked for them then only."""
    return state.table == CONNECTION or (state.detail is not None and state.table in (CLIENT, BROKER))


class Top:
    """The view in a terminal."""

    def __init__(self, asking: Asking, terminal: Terminal, state: State) -> None:
        self.asking, self.terminal = asking, terminal
        self.state, self.keys = state, Keys()
        self.data: Data | None = None
        self.screen: Screen | None = None
        self.ended_by = 0
        self.failure: BaseException | None = None
        self._due = asyncio.Event()  # klamm is to be asked now
        self._over = asyncio.Event()
        self._stream: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Until q, a signal, or the end of the terminal; the exit code."""
        loop = asyncio.get_running_loop()
        for number in ENDS:
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGWINCH, self.draw)
        loop.add_signal_handler(signal.SIGTSTP, self._pause)
        loop.set_exception_handler(self._fail)
        self.terminal.enter()
        try:
            loop.add_reader(0, self._read)
            asking = asyncio.create_task(self._ask())
            over = asyncio.create_task(self._over.wait())
            try:
                await asyncio.wait((asking, over), return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    asking.result()
            finally:
                for task in (asking, over, self._stream):
                    await _cancelled(task)
                loop.remove_reader(0)
        finally:
            self.terminal.leave()
        if self.failure is not None:
            raise self.failure
        return 128 + self.ended_by if self.ended_by else 0

    def draw(self) -> None:
        """Draw the screen in the size that the terminal has now."""
        self.terminal.measure()
        notice = self.asking.notice(self.state)
        self.screen = screen(self.state, self.data, self.terminal.console, notice)
        self.terminal.draw(self.screen.picture)

    async def _ask(self) -> None:
        while True:
            began = time.monotonic()
            await self.asking.ask_again(self.state)
            if not self.state.frozen or self.data is None:
                self.data = self.asking.data
            self.draw()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self.asking.interval_s - (time.monotonic() - began), 0.05)):
                    await self._due.wait()
            self._due.clear()

    def _read(self) -> None:
        piece = self.terminal.read()
        if not piece:
            self._end(signal.SIGHUP)
            return
        self._press(self.keys.read(piece))
        if self.keys.waits:
            asyncio.get_running_loop().call_later(ESC_S, lambda: self._press(self.keys.end()))

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            if self.screen is None:
                self.draw()
            assert self.screen is not None
            before, self.state = self.state, press(self.state, key, self.screen.shown)
            self._follow(before)
            self.draw()
        if self.state.over:
            self._over.set()

    def _follow(self, before: State) -> None:
        """Ask for what the state needs now."""
        now = self.state
        if wants_connections(now) and not wants_connections(before):
            self._due.set()
        if now.table == EXCHANGE and now.detail != before.detail and self.data is not None:
            found = [seen for seen in self.data.exchanges if str(seen.number) == now.detail]
            self.asking.opened = found[0] if found else None
            self.data = replace(self.data, opened=self.asking.opened)
        if before.frozen and not now.frozen:
            self.data = self.asking.data
        streams, streamed = now.table == EXCHANGE, before.table == EXCHANGE
        if streams != streamed or (streams and now.where != before.where):
            if self._stream is not None:
                self._stream.cancel()
            self._stream = asyncio.create_task(self.asking.listen(now.where)) if streams else None

    def _end(self, number: int) -> None:
        self.ended_by = number
        self._over.set()

    def _fail(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A mistake of this program ends it, with the terminal as it was."""
        self.failure = context.get("exception") or RuntimeError(context["message"])
        self._over.set()

    def _pause(self) -> None:
        """Ctrl-Z: the shell has the terminal until it lets this process go on."""
        self.terminal.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.terminal.enter()
        self.draw()


async def _cancelled(task: asyncio.Task[None] | asyncio.Task[bool] | None) -> None:
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError, ApiError):
            await task


async def top(klamm: AsyncKlamm, console: Console, interval_s: float, table: str, options: str = "") -> int:
    """In the terminal. `options` lead other commands to the same klamm. Raises ApiError where there is none
    to begin with.
    """
    async with klamm:
        asking, state = Asking(klamm, interval_s, options), State(table)
        await asking.ask(state)
        view = Top(asking, Terminal(console), state)
        view.data = asking.data
        return await view.run()


async def frames(
    klamm: AsyncKlamm, interval_s: float, table: str, write: Callable[[Data], None], most: int | None
) -> int:
    """Gives what happened in an interval to `write`, `most` times or until it ends. Raises ApiError."""
    async with klamm:
        asking, state = Asking(klamm, interval_s), State(table)
        await asking.ask(state)
        written = 0
        while most is None or written < most:
            await asyncio.sleep(interval_s)
            await asking.ask(state)
            assert asking.data is not None
            write(asking.data)
            written += 1
    return 0

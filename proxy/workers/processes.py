"""The lead's side: starts the workers, hands connections over to them, and starts a new one for one that
died.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from secrets import randbelow
from typing import Any, NamedTuple, Protocol

from klamm.proxy.cluster.client_ports.room import Room
from klamm.proxy.edge.opened import opened_now
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.workers.channel import Call, Channel, Ended, Failed
from klamm.proxy.workers.messages import Accepted, send_first
from klamm.proxy.workers.shared_counts import log_lock, make_table

MODULE = "klamm.proxy.worker"
START_S = 60.0  # a worker that is not ready by then is stopped, and counts as one that died
AGAIN_FIRST_S, AGAIN_LAST_S = 0.1, 10.0  # until a worker that died at its start is started again
STEADY_S = 10.0  # one that lived for so long is started again at once
ANSWER_S = 5.0  # a worker that does not answer in this time is left out of a scrape
MOST_UNTAKEN = 32  # connections that wait for one worker: the others wait in the queue of the system
END_S = 2.0  # to end after its connections are closed
SUPERVISOR = (
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
)  # the lead's alone


class Owner(Protocol):
    """The lead's proxy: what workers need from it."""

    def boot(self, slot: int) -> Any:
        """The first message for a worker: its settings."""

    def joined(self, worker: Worker) -> None:
        """A worker is ready for its first connection: bring it up to date."""

    def opened(self, cluster: str) -> None: ...

    def left(self, worker: Worker) -> None:
        """A worker has died."""


class Client(NamedTuple):
    """The client of a connection."""

    cluster: str
    host: str
    principal: str | None


@dataclass(eq=False)
class Worker:
    """A process. `connections`: the client of each, None until the worker has told it.
    `last`: its counters when they were taken last. `untaken`: connections on their way to it.
    """

    slot: int
    process: asyncio.subprocess.Process
    channel: Channel
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    connections: dict[int, Client | None] = field(default_factory=dict)
    last: Any = None
    untaken: int = 0
    reason: str = ""


class Workers:
    """As many processes as the settings say. `calls`: what workers may call, besides the names of this
    class; they get the worker as their first argument.
    """

    def __init__(
        self, count: int, owner: Owner, room: Room, log: EventLog, calls: Mapping[str, Call]
    ) -> None:
        self.count, self.owner, self.room, self.log = count, owner, room, log
        self.calls: dict[str, Call] = {
            "ready": self._ready,
            "opened": self._opened,
            "closed": self._closed,
            "taken": self._taken,
            **calls,
        }
        self.seed = str(randbelow(1 << 32))  # hash() of a text is the same in all workers
        self.table = make_table()
        log.lock = partial(log_lock, self.table)
        self.now: dict[int, Worker] = {}
        self.died = 0
        self.keepers: list[asyncio.Task[None]] = []
        self.up: asyncio.Future[None]
        self.ending = False
        self.turns: dict[Callable[[], None], None] = {}  # of listeners that wait until a worker takes more

    @property
    def ready(self) -> list[Worker]:
        return [each for each in self.now.values() if each.ready.is_set()]

    def start(self) -> None:
        """Start them all. `up` is done once each is ready, or fails if one ends before that."""
        loop = asyncio.get_running_loop()
        self.up = loop.create_future()
        self.keepers = [loop.create_task(self._keep(slot)) for slot in range(self.count)]

    async def _keep(self, slot: int) -> None:
        """Have a worker in this slot until cancelled."""
        wait_s, loop = AGAIN_FIRST_S, asyncio.get_running_loop()
        while True:
            began = loop.time()
            worker = await self._spawn(slot)
            code = await worker.process.wait()
            worker.channel.close()
            self._died(worker, code)
            wait_s = AGAIN_FIRST_S if loop.time() - began > STEADY_S else min(2 * wait_s, AGAIN_LAST_S)
            await asyncio.sleep(wait_s)

    async def _spawn(self, slot: int) -> Worker:
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        environment = {key: value for key, value in os.environ.items() if key not in SUPERVISOR}
        given = other.fileno(), self.table
        with other:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                MODULE,
                *map(str, given),
                pass_fds=given,
                stdin=asyncio.subprocess.DEVNULL,
                env={**environment, "PYTHONHASHSEED": self.seed},
            )
        try:
            await asyncio.to_thread(send_first, own, self.owner.boot(slot))
        except BaseException:
            own.close()
            _stop(process)
            await process.wait()
            raise
        channel = Channel(own, {}, lambda: _stop(process))
        worker = self.now[slot] = Worker(slot, process, channel)
        channel.calls = {name: _of(worker, call) for name, call in self.calls.items()}
        asyncio.get_running_loop().call_later(START_S, self._give_up, worker)
        return worker

    def _give_up(self, worker: Worker) -> None:
        if not worker.ready.is_set() and self.now.get(worker.slot) is worker:
            self.end(worker, f"it was not ready in {START_S:g} s")

    def end(self, worker: Worker, why: str) -> None:
        """End a worker that cannot be used; another one starts in its place."""
        worker.reason = why
        _stop(worker.process)

    def _ready(self, worker: Worker) -> None:
        worker.ready.set()
        self.owner.joined(worker)
        self._go_on()
        if len(self.ready) == self.count and not self.up.done():
            self.up.set_result(None)

    def _died(self, worker: Worker, code: int) -> None:
        self.now.pop(worker.slot, None)
        self._go_on()
        for known in worker.connections.values():
            if known is not None:
                self.room.leave(known.host, known.principal)
        if self.ending:
            return
        self.died += 1
        why = worker.reason or (f"signal {-code}" if code < 0 else f"exit code {code}")
        if not self.up.done():
            self.up.set_exception(OSError(f"worker {worker.slot + 1} has ended before it was ready: {why}"))
        lost = len(worker.connections)
        message = (
            f"worker {worker.slot + 1} has died ({why}), and {lost} connections with it; another one starts"
        )
        self.log.event(
            "worker_died", message, "error", per=worker.slot, worker=worker.slot + 1, connections=lost
        )
        self.owner.left(worker)

    def give(self, cluster: str, target: Any, sock: socket.socket, peer: tuple[str, int]) -> bool:
        """Hand an accepted connection over to the worker that has fewest; the caller closes its own socket.
        False if none is ready.
        """
        ready = self.ready
        if not ready:
            return False
        worker = min(ready, key=lambda each: (each.untaken >= MOST_UNTAKEN, len(each.connections)))
        number, since = opened_now()
        worker.connections[number] = None
        worker.untaken += 1
        accepted = Accepted(cluster, target, number, since, peer)
        worker.channel.tell("accept", accepted, file=os.dup(sock.fileno()))
        return True

    def take(self, again: Callable[[], None]) -> bool:
        """May a connection be accepted for them now? If not, `again` is called once one may."""
        ready = self.ready
        if not ready or any(each.untaken < MOST_UNTAKEN for each in ready):
            return True
        self.turns[again] = None
        return False

    def _taken(self, worker: Worker) -> None:
        worker.untaken -= 1
        if self.turns and worker.untaken <= MOST_UNTAKEN // 2:
            self._go_on()

    def _go_on(self) -> None:
        turns, self.turns = self.turns, {}
        for again in turns:
            again()

    def _opened(self, worker: Worker, cluster: str, number: int, host: str, principal: str | None) -> None:
        if number not in worker.connections:
            return
        worker.connections[number] = Client(cluster, host, principal)
        self.owner.opened(cluster)
        no_room = self.room.enter(host, principal)
        if no_room is not None:
            worker.channel.tell("refuse", cluster, number, no_room)

    def _closed(self, worker: Worker, number: int) -> None:
        known = worker.connections.pop(number, None)
        if known is not None:
            self.room.leave(known.host, known.principal)

    def tell(self, name: str, *arguments: Any, but: Worker | None = None) -> None:
        """Call a function of every worker that is ready, and want no answer."""
        for each in self.ready:
            if each is not but:
                each.channel.tell(name, *arguments)

    async def ask(self, name: str, *arguments: Any, within_s: float = ANSWER_S) -> list[tuple[Worker, Any]]:
        """The answers of every worker that is ready, and answers in time. One that failed is logged."""
        asked = self.ready
        found = await asyncio.gather(*(self._ask(each, within_s, name, arguments) for each in asked))
        return [(each, answer[0]) for each, answer in zip(asked, found, strict=True) if answer is not None]

    async def _ask(
        self, worker: Worker, within_s: float, name: str, arguments: Sequence[Any]
    ) -> tuple[Any] | None:
        try:
            async with asyncio.timeout(within_s):
                return (await worker.channel.ask(name, *arguments),)
        except Ended:
            return None
        except (Failed, TimeoutError) as wrong:
            why = (
                f"did not answer {name} in {within_s:g} s" if isinstance(wrong, TimeoutError) else str(wrong)
            )
            message = f"worker {worker.slot + 1}: {why}"
            self.log.event("worker_failed", message, "error", per=worker.slot, worker=worker.slot + 1)
            return None

    async def stop(self) -> None:
        """End them all; their connections are closed."""
        self.ending = True
        for task in self.keepers:
            task.cancel()
        await asyncio.gather(*self.keepers, return_exceptions=True)
        workers = list(self.now.values())
        for worker in workers:
            worker.channel.tell("stop")
        await asyncio.gather(*(self._await_end(worker) for worker in workers))
        self.log.lock = nullcontext
        os.close(self.table)

    async def _await_end(self, worker: Worker) -> None:
        try:
            async with asyncio.timeout(END_S):
                await worker.process.wait()
        except TimeoutError:
            _stop(worker.process)
            await worker.process.wait()
        worker.channel.close()


def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


def _of(worker: Worker, call: Call) -> Callable[..., Any]:
    return lambda *arguments: call(worker, *arguments)

"""Connections for workers that do not get to them: they wait in the queue of the system, not in the lead."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from klamm.proxy.workers.processes import MOST_UNTAKEN
from tests.brokers.processes import children
from tests.e2e.klamm_process import get
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.waiting import on_uvloop
from tests.proxy.test_serve import Run, run

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
WORKERS, CLIENTS = 2, 300
LISTENS = "0A"  # the state of a listening socket


def waiting(port: int) -> int:
    """The connections to this port that the system holds, as nobody has accepted them yet."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        int(queues.partition(":")[2], 16)
        for _, local, _, state, queues, *_ in rows
        if state == LISTENS and int(local.partition(":")[2], 16) == port
    )


@asynccontextmanager
async def with_workers(folder: Path) -> AsyncIterator[tuple[Run, list[int]]]:
    """klamm in front of a broker, and the process ids of its workers."""
    async with Broker(Cluster(), 1).listening() as broker:
        options = ("--workers", str(WORKERS), "--state", "none")
        async with run(folder / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            workers = children(klamm.process.child.pid)
            assert len(workers) == WORKERS
            yield klamm, workers


@on_uvloop
async def test_connections_that_no_worker_takes_wait_in_the_queue_of_the_system(tmp_path: Path) -> None:
    async with with_workers(tmp_path) as (klamm, workers):
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        clients = [await connect("127.0.0.1", klamm.port + 2) for _ in range(CLIENTS)]
        for _ in range(20):  # turns of the lead's loop, each of which accepts what it may
            await asyncio.to_thread(get, f"http://127.0.0.1:{klamm.admin}/healthz")
        accepted = CLIENTS - waiting(klamm.port + 2)
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        assert accepted <= WORKERS * MOST_UNTAKEN
        for client in clients:
            assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
            client.transport.abort()


@on_uvloop
async def test_a_worker_that_stands_still_keeps_no_client_from_the_others(tmp_path: Path) -> None:
    async with with_workers(tmp_path) as (klamm, [still, _]):
        os.kill(still, signal.SIGSTOP)
        clients = [await connect("127.0.0.1", klamm.port + 2) for _ in range(CLIENTS)]
        answers = [asyncio.ensure_future(client.ask("Heartbeat", 4, BEAT)) for client in clients]
        for served, done in enumerate(asyncio.as_completed(answers), 1):
            assert (await done)["error_code"] == 0
            if served == CLIENTS - MOST_UNTAKEN:
                os.kill(still, signal.SIGCONT)
        for client in clients:
            client.transport.abort()

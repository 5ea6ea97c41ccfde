"""The lead of a klamm whose workers cannot start, or do not answer."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from klamm.proxy.config import Admin, Cluster, Config, State
from klamm.proxy.config_types import Count, Listen
from klamm.proxy.log.event_log import open_log
from klamm.proxy.serve import CannotServe, Proxy
from klamm.proxy.workers import processes
from tests.brokers.processes import children
from tests.fakes.broker import Broker
from tests.fakes.broker import Cluster as Brokers
from tests.fakes.client import connect
from tests.fakes.waiting import on_uvloop
from tests.proxy.test_serve import run


def test_klamm_ends_with_a_reason_where_a_worker_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MODULE", "klamm.no_such_module")
    config = Config(admin=Admin(listen=None), state=State(None), workers=Count(2))
    config = replace(config, clusters=(Cluster(bootstrap=(), listen=Listen("127.0.0.1", 0, 0)),))
    log = open_log(config.log)
    with pytest.raises(CannotServe, match=r"worker \d has ended before it was ready: exit code 1"):
        uvloop.run(Proxy(config, log).run(lambda _: None))
    log.close()


@pytest.mark.parametrize("stuck", [True, False], ids=["stuck", "answers"])
@on_uvloop
async def test_connections_of_a_worker_that_does_not_answer_a_drain_count_as_cut_off(
    stuck: bool, tmp_path: Path
) -> None:
    file = tmp_path / "klamm.yaml"
    file.write_text("limits: {drain_s: 0.5}\nworkers: 2\n")
    async with Broker(Brokers(), 1).listening() as broker:
        options = ("--config", str(file))
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            clients = [await connect("127.0.0.1", klamm.port + 2) for _ in range(4)]
            for client in clients:
                await client.ask("Heartbeat", 4, {})
            if stuck:
                os.kill(children(klamm.process.child.pid)[0], signal.SIGSTOP)
            os.kill(klamm.process.child.pid, signal.SIGTERM)
            assert await asyncio.to_thread(klamm.process.child.wait, 30) == (3 if stuck else 0)
            [line] = klamm.lines("drained")
            assert line.get("connections") == (2 if stuck else None)
            for client in clients:
                client.close()

"""klamm as a process that exports traces: with a collector, without one, and without the library."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klamm.decoders.records import Batch, Record, write
from klamm.proxy.config import Config, Traces
from klamm.proxy.traces.tracing import Tracing
from tests.brokers.processes import Process, free_ports
from tests.e2e.klamm_process import COMMAND
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.collector import Collector, collector
from tests.fakes.waiting import LOOK_S, PATIENCE_S, eventually, on_uvloop

ROOM = 9
RULES = """
rules:
  - {api: ListGroups, delay: 20ms}
  - {api: DescribeGroups, error: GROUP_AUTHORIZATION_FAILED}
"""
PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ASKED: dict[str, tuple[int, dict[str, Any]]] = {
    "Heartbeat": (4, {}),
    "ListGroups": (3, {}),
    "DescribeGroups": (3, {"groups": ["billing"], "include_authorized_operations": False}),
}
PRODUCED: dict[str, Any] = {"responses": [], "throttle_time_ms": 0}


class Run:
    def __init__(self, process: Process, port: int, admin: int) -> None:
        self.process, self.port, self.admin = process, port, admin

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = self.process.log.read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["event"] == kind]

    async def counted(self) -> dict[str, int]:
        def get() -> dict[str, int]:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/v1/counters", timeout=30) as answer:
                return {row["outcome"]: row["count"] for row in json.load(answer)["traced"]}

        return await asyncio.to_thread(get)

    async def exported(self, count: int) -> dict[str, int]:
        """The counts, once klamm has the collector's answers for so many exchanges."""
        async with asyncio.timeout(PATIENCE_S):
            while (counts := await self.counted())["exported"] < count:
                await asyncio.sleep(LOOK_S)
        return counts


@asynccontextmanager
async def klamm(folder: Path, broker: Broker, traces: str, more: str = "") -> AsyncIterator[Run]:
    """A klamm in front of the broker that exports traces, ready; it is ended by SIGTERM."""
    first, admin = free_ports(ROOM), free_ports()
    file, log = folder / "klamm.yaml", folder / "log"
    file.write_text(
        f"clusters: [{{bootstrap: 127.0.0.1:{broker.port}, listen: 127.0.0.1:{first}-{first + ROOM - 1}}}]\n"
        f"admin: 127.0.0.1:{admin}\nstate: none\n"
        f"log: {{format: json, file: {log}}}\ntraces: {traces}\n{more}\n"
    )
    process = Process([str(COMMAND), "run", "--config", str(file)], folder / "output")
    process.log = log
    try:
        output = folder / "output"
        await eventually(lambda: "bootstrap.servers" in output.read_text() or not process.running)
        assert process.running, output.read_text()
        yield Run(process, first, admin)
        assert await asyncio.to_thread(process.stop, 60) == 0
    finally:
        process.kill()


async def ask(port: int, *names: str) -> None:
    client = await connect("127.0.0.1", port)
    for name in names:
        await client.ask(name, *ASKED[name])
    client.close()


def settings(to: Collector, **more: str) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in {"endpoint": to.url, **more}.items()) + "}"


@on_uvloop
async def test_exchanges_reach_a_collector_with_what_rules_did(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["ListGroups"] = lambda *_: {"throttle_time_ms": 0, "error_code": 0, "groups": []}
        with collector() as found:
            traces = settings(found, sample="100%", filter="client_id == 'app'")
            async with klamm(tmp_path, broker, traces, f"rules: {tmp_path / 'rules.yaml'}") as run:
                await ask(run.port + 2, "Heartbeat", "ListGroups", "DescribeGroups")
                await eventually(lambda: found.of("DescribeGroups", "server"))
                assert await run.exported(3) == {"exported": 3, "failed": 0, "dropped": 0}
        assert len(found.spans) == 5
        [slow], [inside] = found.of("ListGroups", "server"), found.of("ListGroups", "client")
        assert slow.end >= inside.end + 10_000_000
        assert slow.attributes["klamm.rule"] == ["ListGroups-delay-1"]
        assert inside.parent == slow.id
        assert inside.attributes["server.port"] == broker.port
        [refused] = found.of("DescribeGroups", "server")
        assert (refused.failed, refused.attributes["error.type"]) == (True, "GROUP_AUTHORIZATION_FAILED")
        assert refused.attributes["klamm.origin"] == "klamm"
        assert slow.resource["service.name"] == "klamm"


@pytest.mark.parametrize("parents", ["true", "false"])
@on_uvloop
async def test_a_trace_of_records_goes_on_only_where_a_setting_asks_for_it(
    parents: str, tmp_path: Path
) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Produce"] = lambda *_: PRODUCED
        with collector() as found:
            async with klamm(
                tmp_path, broker, settings(found, sample="1.0", parents=parents), "workers: 2"
            ) as run:
                records = write(Batch(), [Record(value=b"secret", headers=(("traceparent", PARENT),))])
                data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
                client = await connect("127.0.0.1", run.port + 2)
                values = {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": data}
                await client.ask("Produce", 9, values)
                await client.ask("Heartbeat", 4)
                client.close()
        [produced], [inside] = found.of("Produce", "server"), found.of("Produce", "client")
        assert (produced.parent == "00f067aa0ba902b7") == (parents == "true")
        assert (produced.trace == PARENT[3:35].decode()) == (parents == "true")
        assert (inside.trace, inside.parent) == (produced.trace, produced.id)
        assert produced.attributes["messaging.destination.name"] == "orders"
        assert len(found.of("Heartbeat", "server")) == 1
        assert not any(b"secret" in body for body in found.bodies)


@on_uvloop
async def test_a_dead_collector_costs_one_line_of_the_log_and_no_exchange(tmp_path: Path) -> None:
    port = free_ports()
    traces = f"{{endpoint: 'http://127.0.0.1:{port}/v1/traces', sample: 100%}}"
    async with Broker(Cluster(), 1).listening() as broker:
        async with klamm(tmp_path, broker, traces) as run:
            while not (await run.counted())["dropped"]:  # an export is tried for seconds: others wait
                await ask(run.port + 2, *["Heartbeat"] * 500)
            await eventually(lambda: run.events("traces_failed"))
            assert (await run.counted())["exported"] == 0
        lines = [each["message"] for each in run.events("traces_failed")]
        assert "Connection refused" in lines[0]
        assert len(lines) < 5  # one a minute, and how many there were more
        assert run.events("defect") == run.events("traces_resumed") == []
        assert "opentelemetry" not in (tmp_path / "output").read_text().lower()


@on_uvloop
async def test_exports_go_on_when_the_collector_is_there_again(tmp_path: Path) -> None:
    port = free_ports()
    traces = f"{{endpoint: 'http://127.0.0.1:{port}/v1/traces', sample: 100%}}"
    async with Broker(Cluster(), 1).listening() as broker:
        async with klamm(tmp_path, broker, traces) as run:
            await ask(run.port + 2, "Heartbeat")
            await eventually(lambda: run.events("traces_failed"))
            with collector(port) as found:
                await ask(run.port + 2, "Heartbeat")
                await eventually(lambda: run.events("traces_resumed"))
                assert found.of("Heartbeat", "server")
            assert await run.exported(1) == {"exported": 1, "failed": 1, "dropped": 0}


@on_uvloop
async def test_a_share_of_the_exchanges_is_taken(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        with collector() as found:
            async with klamm(tmp_path, broker, settings(found, sample="10%")) as run:
                await asyncio.gather(*(ask(run.port + 2, *["Heartbeat"] * 500) for _ in range(4)))
        assert 100 < len(found.of("Heartbeat", "server")) < 320


@on_uvloop
async def test_a_share_of_the_exchanges_with_records_is_held_and_taken(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Produce"] = lambda *_: PRODUCED
        values = {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": []}
        with collector() as found:
            async with klamm(tmp_path, broker, settings(found, sample="10%", parents="true")) as run:
                client = await connect("127.0.0.1", run.port + 2)
                for _ in range(2000):
                    await client.ask("Produce", 9, values)
                client.close()
        assert 100 < len(found.of("Produce", "server")) < 320


@on_uvloop
async def test_a_filter_may_ask_for_errors(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        codes = iter([0, 15, 0])
        broker.answers["ListGroups"] = lambda *_: {
            "throttle_time_ms": 0,
            "error_code": next(codes),
            "groups": [],
        }
        with collector() as found:
            traces = settings(found, sample="100%", filter="error != NONE")
            async with klamm(tmp_path, broker, traces) as run:
                await ask(run.port + 2, "ListGroups", "ListGroups", "ListGroups", "Heartbeat")
        assert [each.attributes["error.type"] for each in found.spans] == ["COORDINATOR_NOT_AVAILABLE"] * 2


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "klamm.proxy.traces.s"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    owner: Any = SimpleNamespace(config=Config(traces=Traces()))
    with pytest.raises(
        OSError, match=r"^traces need OpenTelemetry \(opentelemetry\S*\): .*pip install .*otel"
    ):
        Tracing(owner).begin()


def test_without_the_setting_the_library_is_not_imported() -> None:
    program = (
        "import sys; from types import SimpleNamespace; from klamm.proxy import serve, config\n"
        "serve.Tracing(SimpleNamespace(config=config.Config())).begin()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

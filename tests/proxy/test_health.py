"""/metrics, /healthz and /readyz on a listener of their own, and readiness of one cluster, any, or all."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from klamm.proxy.admin import health
from klamm.proxy.admin.server import start as start_admin
from klamm.proxy.config_types import Address
from klamm.proxy.metrics.snapshot import ClusterState
from tests.brokers.processes import free_ports
from tests.dashboards.fake_state import FakeState
from tests.fakes.broker import Broker, Cluster
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.test_serve import Run, run

ANY = Address("127.0.0.1", 0)


class Three(FakeState):
    """Three clusters: a and b are ready, c is not."""

    def clusters(self) -> list[ClusterState]:
        states = [ClusterState(name, ("k:1",), "127.0.0.1:1", None, True) for name in "ab"]
        return [*states, ClusterState("c", ("k:1",), "127.0.0.1:1", reason="k:1 refuses connections")]


@asynccontextmanager
async def asked(state: FakeState) -> AsyncIterator[aiohttp.ClientSession]:
    server = await health.start(state, ANY)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.address.port}") as http:
            yield http
    finally:
        await server.close()


def test_it_serves_metrics_and_health_and_nothing_else() -> None:
    async def check() -> None:
        async with asked(FakeState()) as http:
            for path in ("/metrics", "/healthz", "/readyz", "/"):
                async with http.get(path) as answer:
                    assert answer.status == 200, path
            for path in ("/v1/counters", "/v1/rules", "/v1/exchanges", "/v1/openapi.json", "/v1/config"):
                async with http.get(path) as answer:
                    assert answer.status == 404, path
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                for path in ("/metrics", "/healthz", "/readyz"):
                    async with http.request(method, path, data=b"{}") as answer:
                        assert answer.status == 405, (method, path)

    asyncio.run(check())


READINESS = [
    ("/readyz", 503, "c: k:1 refuses connections\n"),
    ("/readyz?require=all", 503, "c: k:1 refuses connections\n"),
    ("/readyz?require=any", 200, "ready\nc: k:1 refuses connections\n"),
    ("/readyz?cluster=a", 200, "ready\n"),
    ("/readyz?cluster=c", 503, "c: k:1 refuses connections\n"),
    ("/readyz?cluster=a&cluster=b", 200, "ready\n"),
    ("/readyz?cluster=a&cluster=c", 503, "c: k:1 refuses connections\n"),
    ("/readyz?cluster=a&cluster=c&require=any", 200, "ready\nc: k:1 refuses connections\n"),
    ("/readyz?cluster=c&require=any", 503, "c: k:1 refuses connections\n"),
    ("/readyz?cluster=d", 404, "there is no cluster 'd'; known are a, b, c"),
    ("/readyz?clster=a", 400, "unknown parameter 'clster': there are cluster and require"),
    ("/readyz?require=some", 400, "require must be all or any, not 'some'"),
]


@pytest.mark.parametrize("which", ["admin", "metrics"])
def test_readiness_is_of_one_cluster_of_any_or_of_all(which: str) -> None:
    async def check() -> None:
        state = Three()
        server = await (start_admin(state, *ANY) if which == "admin" else health.start(state, ANY))
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{server.address.port}") as http:
                for path, status, expected in READINESS:
                    async with http.get(path) as answer:
                        text = await answer.text()
                        found = json.loads(text)["error"] if status in (400, 404) else text
                        assert (path, answer.status, found) == (path, status, expected)
        finally:
            await server.close()

    asyncio.run(check())


def test_a_port_in_use_is_one_line_that_names_the_option() -> None:
    async def check() -> str:
        server = await health.start(FakeState(), ANY)
        try:
            with pytest.raises(OSError) as failure:
                await health.start(FakeState(), server.address)
            return str(failure.value.strerror)
        finally:
            await server.close()

    assert asyncio.run(check()).endswith("choose another with --metrics HOST:PORT")


def ask(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("admin", ["127.0.0.1:0", "none"])
@on_uvloop
async def test_the_option_opens_it_with_the_admin_api_or_without(admin: str, tmp_path: Path) -> None:
    port = free_ports()
    options = ("--metrics", f"0.0.0.0:{port}", "--admin", admin)
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            await eventually(lambda: f"metrics and health: http://0.0.0.0:{port}/\n" in klamm.text())
            assert ("admin API: http://127.0.0.1:" in klamm.text()) == (admin != "none")
            for path, status in (("/metrics", 200), ("/readyz", 200), ("/v1/rules", 404)):
                assert await asyncio.to_thread(ask, port, path) == status
            assert klamm.process.stop() == 0


def three(tmp_path: Path, bootstraps: Sequence[int]) -> tuple[str, ...]:
    """Options of a klamm before three clusters."""
    first = free_ports(30)
    rows = [
        f"- {{name: {name}, bootstrap: 127.0.0.1:{port}, listen: 127.0.0.1:{at}-{at + 9}}}\n"
        for name, port, at in zip("abc", bootstraps, (first, first + 10, first + 20), strict=True)
    ]
    (tmp_path / "klamm.yaml").write_text("clusters:\n" + "".join(rows))
    return "--config", str(tmp_path / "klamm.yaml")


def standing(klamm: Run) -> list[str]:
    """The clusters whose banner was printed, in that order."""
    begin = "klamm stands in front of "
    return [line.removeprefix(begin)[0] for line in klamm.text().splitlines() if line.startswith(begin)]


@on_uvloop
async def test_a_cluster_that_does_not_answer_hides_no_other(tmp_path: Path) -> None:
    missing = free_ports()
    async with Broker(Cluster(), 1).listening() as a, Broker(Cluster(), 1).listening() as c:
        options = three(tmp_path, (a.port, missing, c.port))
        async with run(tmp_path / "log", options=options) as klamm:
            await eventually(lambda: len(standing(klamm)) == 2)
            assert standing(klamm) == ["a", "c"]
            assert "metrics and health" in klamm.text()
            assert (await klamm.get("/readyz"))[0] == 503
            assert await klamm.get("/readyz?cluster=c") == (200, "ready\n")
            assert (await klamm.get("/readyz?cluster=b"))[0] == 503
            assert (await klamm.get("/readyz?require=any"))[0] == 200
            async with Broker(Cluster(), 1).listening(port=missing):
                await eventually(lambda: len(standing(klamm)) == 3)
                assert standing(klamm) == ["a", "c", "b"]
                assert klamm.text().count("metrics and health") == 1
                assert await klamm.get("/readyz") == (200, "ready\n")

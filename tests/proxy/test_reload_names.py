"""klamm reads klamm.yaml again: clusters behind one port come and go, and change their names."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import certificates
from tests.brokers.processes import Process, free_ports
from tests.e2e.klamm_process import COMMAND
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client
from tests.fakes.waiting import eventually, on_uvloop

ALL = {"topics": []}
FINAL = "unrecognized.name"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    certificates.make(folder, ["*.orders.example", "*.billing.example"])
    return folder


class Ground:
    """A klamm with a file, in front of up to two clusters behind one port."""

    def __init__(self, folder: Path, files: Path, orders: Broker, billing: Broker) -> None:
        self.file, self.files = folder / "klamm.yaml", files
        self.brokers = {"orders": orders, "billing": billing}
        self.port, self.admin = free_ports(), free_ports()
        self.clients: list[Client] = []
        self.process: Process

    def write(self, more: str = "", **clusters: str) -> None:
        """The file with these clusters, each with the beginning of its nodes' names, and `more` in each."""
        text = f"admin: 127.0.0.1:{self.admin}\nstate: none\nclusters:\n"
        for name, before in clusters.items():
            names = f"{{bootstrap: first.{name}.example, nodes: {before}$(node).{name}.example}}"
            text += f"  - name: {name}\n    bootstrap: 127.0.0.1:{self.brokers[name].port}\n"
            text += f"    listen: 127.0.0.1:{self.port}\n    listen_tls: {{cert: {self.files}/broker.pem}}\n"
            text += f"    names: {names}\n    {more}\n"
        self.file.write_text(text)

    def post(self) -> tuple[int, dict[str, Any]]:
        """Of POST /v1/config."""
        ask = urllib.request.Request(f"http://127.0.0.1:{self.admin}/v1/config", method="POST")
        try:
            with urllib.request.urlopen(ask, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    async def reload(self, more: str = "", **clusters: str) -> dict[str, Any]:
        self.write(more, **clusters)
        status, answer = await asyncio.to_thread(self.post)
        assert status == 200, answer
        return answer

    async def client(self, name: str) -> Client:
        """A client that asks for this name. Raises OSError."""
        made, context = Client(), ssl.create_default_context(cafile=self.files / "ca.pem")
        loop = asyncio.get_running_loop()
        where = "127.0.0.1", self.port
        await loop.create_connection(lambda: made, *where, ssl=context, server_hostname=name)
        self.clients.append(made)
        return made

    async def client_soon(self, name: str) -> Client:
        """The same, as clients do it: again and again until the port is open and the cluster found."""
        while True:
            try:
                return await self.client(name)
            except ConnectionError:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(folder: Path, files: Path, **clusters: str) -> AsyncIterator[Ground]:
    async with Broker(Cluster(), 1).listening() as orders, Broker(Cluster(), 1).listening() as billing:
        ground = Ground(folder, files, orders, billing)
        ground.write(**clusters)
        ground.process = Process([str(COMMAND), "run", "--config", str(ground.file)], folder / "klamm.log")
        try:
            await eventually(lambda: "bootstrap.servers" in ground.process.log.read_text())
            yield ground
            assert ground.process.running, ground.process.tail()
            assert "Traceback" not in ground.process.log.read_text()
        finally:
            for client in ground.clients:
                client.transport.abort()
            ground.process.kill()


async def names_of(client: Client) -> list[str]:
    return [row["host"] for row in (await client.ask("Metadata", 12, ALL))["brokers"]]


@on_uvloop
async def test_a_cluster_comes_behind_a_port_that_is_open_and_goes_again(tmp_path: Path, files: Path) -> None:
    async with running(tmp_path, files, orders="b-") as it:
        stays = await it.client("first.orders.example")
        with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
            await it.client("first.billing.example")
        assert (await it.reload(orders="b-", billing="b-"))["changed"] == ["clusters[billing]"]
        comes = await it.client_soon("first.billing.example")
        assert await names_of(comes) == ["b-1.billing.example"]
        assert await names_of(stays) == ["b-1.orders.example"]
        await it.reload(orders="b-")
        await comes.changed.until(lambda: comes.fin or comes.lost)
        with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
            await it.client("first.billing.example")
        assert await names_of(stays) == ["b-1.orders.example"]
        await it.reload(billing="b-")
        await stays.changed.until(lambda: stays.fin or stays.lost)
        assert await names_of(await it.client_soon("first.billing.example")) == ["b-1.billing.example"]


@on_uvloop
async def test_clusters_take_other_names_and_no_connection_ends(tmp_path: Path, files: Path) -> None:
    async with running(tmp_path, files, orders="b-", billing="b-") as it:
        orders = await it.client_soon("first.orders.example")
        billing = await it.client_soon("first.billing.example")
        assert await names_of(orders) == ["b-1.orders.example"]
        answer = await it.reload(orders="node-", billing="b-")
        assert answer["changed"] == ["clusters[orders].names.nodes"]
        assert await names_of(orders) == ["node-1.orders.example"]
        assert await names_of(billing) == ["b-1.billing.example"]
        assert await names_of(await it.client("node-1.orders.example")) == ["node-1.orders.example"]


@on_uvloop
async def test_names_that_meet_change_nothing_and_the_answer_says_why(tmp_path: Path, files: Path) -> None:
    async with running(tmp_path, files, orders="b-") as it:
        stays = await it.client("first.orders.example")
        it.write(orders="b-", billing="b-")
        it.file.write_text(it.file.read_text().replace("first.billing.example", "first.orders.example"))
        status, answer = await asyncio.to_thread(it.post)
        assert status == 422
        assert "first.orders.example is a name of cluster orders, which shares" in answer["error"]
        assert await names_of(stays) == ["b-1.orders.example"]


@on_uvloop
async def test_a_port_is_opened_anew_for_a_balancer_in_front_of_it(tmp_path: Path, files: Path) -> None:
    """The header comes before the name, so this ends the connections of all clusters of the port."""
    async with running(tmp_path, files, orders="b-", billing="b-") as it:
        before = await it.client_soon("first.billing.example")
        await it.reload("proxy_protocol: {from: [192.0.2.0/24]}", orders="b-", billing="b-")
        await before.changed.until(lambda: before.fin or before.lost)
        for name in ("orders", "billing"):
            after = await it.client_soon(f"first.{name}.example")
            assert await names_of(after) == [f"b-1.{name}.example"]

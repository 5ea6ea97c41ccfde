"""klamm reads klamm.yaml again: new settings are used, and connections of what did not change go on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import pty
import re
import signal
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
from tests.fakes.client import Client, connect
from tests.fakes.waiting import eventually, on_uvloop

ALL = {"topics": []}
ROOM = 9

HEARS_HANGUPS = ("env", "--default-signal=HUP")  # where nohup is around the tests


class Ground:
    """A klamm with a file, in front of two clusters of one fake broker each."""

    def __init__(self, folder: Path, orders: Broker, billing: Broker) -> None:
        self.folder, self.file = folder, folder / "klamm.yaml"
        self.ports = {"orders": free_ports(ROOM), "billing": free_ports(ROOM)}
        self.brokers = {"orders": orders, "billing": billing}
        self.admin = free_ports()
        self.clients: list[Client] = []
        self.process: Process
        self.ended = False

    def write(self, *clusters: str, more: str = "", of_cluster: str = "") -> None:
        """The file with these clusters, `of_cluster` in each of them, and `more` at its end."""
        text = f"admin: 127.0.0.1:{self.admin}\nstate: none\nclusters:\n"
        for name in clusters:
            broker, first = self.brokers[name], self.ports[name]
            text += f"  - name: {name}\n    bootstrap: 127.0.0.1:{broker.port}\n"
            text += f"    listen: 127.0.0.1:{first}-{first + ROOM - 1}\n    {of_cluster}\n"
        beside = self.file.with_suffix(".new")
        beside.write_text(text + more)
        beside.replace(self.file)

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = (
            json.loads(line) for line in self.process.log.read_text().splitlines() if line.startswith("{")
        )
        return [line for line in found if line["event"] == event]

    def post(self) -> tuple[int, dict[str, Any]]:
        """Of POST /v1/config."""
        ask = urllib.request.Request(f"http://127.0.0.1:{self.admin}/v1/config", method="POST")
        try:
            with urllib.request.urlopen(ask, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    async def reload(self) -> dict[str, Any]:
        status, answer = await asyncio.to_thread(self.post)
        assert status == 200, answer
        return answer

    async def client(self, cluster: str) -> Client:
        async def connected() -> Client | None:
            try:
                return await connect("127.0.0.1", self.ports[cluster])
            except OSError:
                return None

        while (found := await connected()) is None:
            await asyncio.sleep(0.01)
        self.clients.append(found)
        return found


@asynccontextmanager
async def running(folder: Path, *clusters: str, of_cluster: str = "") -> AsyncIterator[Ground]:
    async with Broker(Cluster(), 1).listening() as orders, Broker(Cluster(), 1).listening() as billing:
        ground = Ground(folder, orders, billing)
        ground.write(*clusters, of_cluster=of_cluster)
        command = [*HEARS_HANGUPS, str(COMMAND), "run", "--config", str(ground.file)]
        ground.process = Process(command, folder / "klamm.log")
        try:
            await eventually(lambda: "bootstrap.servers" in ground.process.log.read_text())
            yield ground
            assert ground.process.running != ground.ended, ground.process.tail()
            assert "Traceback" not in ground.process.log.read_text()
        finally:
            for client in ground.clients:
                client.close()
            ground.process.kill()


async def works(client: Client) -> None:
    await client.ask("Metadata", 12, ALL)


@on_uvloop
async def test_a_changed_file_is_read_and_open_connections_go_on(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        client = await it.client("orders")
        await works(client)
        log = tmp_path / "other.log"
        it.write("orders", more=f"log: {{apis: all, file: {log}}}\nlimits: {{connections_per_address: 1}}\n")
        await eventually(lambda: log.exists() and "config_loaded" in log.read_text())
        await works(client)
        await eventually(lambda: '"event":"exchange"' in log.read_text())
        refused = await it.client("orders")
        assert await refused.ended() == "RST"
        await works(client)


@on_uvloop
async def test_a_rate_of_connections_begins_and_ends_under_clients(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        open_before = await it.client("orders")
        await works(open_before)
        it.write("orders", more="limits: {connects_per_second: 1}\n")
        assert (await it.reload())["changed"] == ["limits.connects_per_second"]
        for each in [await it.client("orders") for _ in range(4)]:
            await works(each)
        await works(open_before)
        [line, *_] = it.lines("too_many_connects")
        why = "more than 1 connections in a second: the others wait (limits.connects_per_second)"
        assert line["message"] == why
        counted = re.search(r'kind="too_many_connects"} (\d+)', await asyncio.to_thread(it.get, "/metrics"))
        assert counted is not None
        assert int(counted[1]) >= 1
        it.write("orders")
        assert (await it.reload())["changed"] == ["limits.connects_per_second"]
        await works(await it.client("orders"))


@on_uvloop
async def test_a_file_with_mistakes_changes_nothing_and_says_why(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        client = await it.client("orders")
        it.write("orders", more="limits: {drain_s: soon}\n")
        status, answer = await asyncio.to_thread(it.post)
        assert status == 422
        assert "limits.drain_s: 'soon' is not a duration" in answer["error"]
        await eventually(lambda: it.lines("config_rejected"))
        assert "klamm_config_rejected 1" in await asyncio.to_thread(it.get, "/metrics")
        await works(client)
        it.write("orders", more="limits: {drain_s: 7s}\n")
        assert (await it.reload())["changed"] == ["limits.drain_s"]
        assert "klamm_config_rejected 0" in await asyncio.to_thread(it.get, "/metrics")
        assert json.loads(await asyncio.to_thread(it.get, "/v1/config"))["limits"]["drain_s"] == 7


@on_uvloop
async def test_a_cluster_comes_and_another_goes(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        orders = await it.client("orders")
        it.write("orders", "billing")
        assert (await it.reload())["changed"] == ["clusters[billing]"]
        billing = await it.client("billing")
        await works(billing)
        it.write("billing")
        await it.reload()
        assert await orders.ended() == "FIN"
        await works(billing)
        with pytest.raises(ConnectionError):
            await connect("127.0.0.1", it.ports["orders"])
        states = json.loads(await asyncio.to_thread(it.get, "/v1/clusters"))
        assert [state["name"] for state in states] == ["billing"]
        await eventually(lambda: [line["cluster"] for line in it.lines("cluster_gone")] == ["orders"])


@on_uvloop
async def test_a_new_cluster_has_the_limits_of_the_same_file(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        it.write("orders", "billing", more="limits: {frame_bytes: 1KiB, held_frame_bytes: 1KiB}\n")
        await it.reload()
        for cluster in ("orders", "billing"):
            client = await it.client(cluster)
            client.send("Metadata", 12, {"topics": [{"name": "t" * 2000}]})
            assert await client.ended()
            await eventually(lambda: cluster in [line["cluster"] for line in it.lines("bad_size")])  # noqa: B023


@on_uvloop
async def test_a_cluster_moves_to_other_ports(tmp_path: Path) -> None:
    async with running(tmp_path, "orders", "billing") as it:
        orders, billing = await it.client("orders"), await it.client("billing")
        before = it.ports["orders"]
        it.ports = {**it.ports, "orders": free_ports(ROOM)}
        it.write("orders", "billing")
        assert (await it.reload())["changed"] == ["clusters[orders].listen"]
        assert await orders.ended() == "FIN"
        await works(await it.client("orders"))
        await works(billing)
        with pytest.raises(ConnectionError):
            await connect("127.0.0.1", before)


@on_uvloop
async def test_a_port_that_is_taken_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it, Broker(Cluster(), 1).listening() as other:
        client = await it.client("orders")
        it.ports = {**it.ports, "billing": other.port}
        it.write("orders", "billing", more="limits: {drain_s: 7s}\n")
        status, answer = await asyncio.to_thread(it.post)
        assert status == 422
        assert f"cluster billing: cannot listen on 127.0.0.1:{other.port}: " in answer["error"]
        await works(client)
        assert json.loads(await asyncio.to_thread(it.get, "/v1/config"))["limits"]["drain_s"] == 10


@on_uvloop
async def test_new_connections_go_to_other_bootstrap_servers(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it, Broker(Cluster(), 2).listening() as other:
        client = await it.client("orders")
        await works(client)
        it.brokers["orders"] = other
        it.write("orders")
        assert (await it.reload())["changed"] == ["clusters[orders].bootstrap"]
        await works(await it.client("orders"))
        assert other.connections
        await works(client)


async def presented(port: int) -> bytes:
    """The certificate that klamm shows, in DER."""
    shown = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
    return ssl.PEM_cert_to_DER_cert(shown)


@on_uvloop
async def test_other_certificates_are_for_new_connections(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "other"]
    for folder in files:
        folder.mkdir()
        certificates.make(folder, ["127.0.0.1"])
    one, other = (ssl.PEM_cert_to_DER_cert((folder / "broker.crt").read_text()) for folder in files)
    use = "listen_tls: {{cert: {}}}".format
    async with running(tmp_path, "orders", of_cluster=use(files[0] / "broker.pem")) as it:
        assert await presented(it.ports["orders"]) == one
        it.write("orders", of_cluster=use(tmp_path / "ca.key"))
        (tmp_path / "ca.key").write_text("no certificate")
        status, answer = await asyncio.to_thread(it.post)
        assert status == 422
        assert "clusters[0].listen_tls.cert: no certificate with its private key is in" in answer["error"]
        assert await presented(it.ports["orders"]) == one
        it.write("orders", of_cluster=use(files[1] / "broker.pem"))
        assert (await it.reload())["changed"] == ["clusters[orders].listen_tls.cert"]
        assert await presented(it.ports["orders"]) == other


@on_uvloop
async def test_a_capture_begins_and_ends(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        client = await it.client("orders")
        it.write("orders", more=f"capture: {tmp_path / 'captured'}\n")
        assert (await it.reload())["changed"] == ["capture"]
        await works(client)
        it.write("orders")
        await it.reload()
        assert list((tmp_path / "captured").glob("*.arrow"))
        await works(client)


@on_uvloop
async def test_what_waits_for_the_next_start_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        it.write("orders", more="metrics: {listen: 127.0.0.1:1, expire_s: 5s}\n")
        assert (await it.reload()) == {
            "file": str(it.file),
            "changed": ["metrics.listen", "metrics.expire_s"],
            "at_start": ["metrics.listen"],
        }
        await eventually(lambda: it.lines("config_waits"))
        [line] = it.lines("config_waits")
        assert line["message"] == "taken at klamm's next start only: metrics.listen"


@on_uvloop
async def test_a_hangup_reads_the_file_again(tmp_path: Path) -> None:
    async with running(tmp_path, "orders") as it:
        client = await it.client("orders")
        it.process.child.send_signal(signal.SIGHUP)
        await eventually(lambda: it.lines("config_loaded"))
        assert it.lines("config_loaded")[0]["message"] == "SIGHUP: no setting is another"
        await works(client)


def test_klamm_ends_with_its_terminal(tmp_path: Path) -> None:
    file, admin, port = tmp_path / "klamm.yaml", free_ports(), free_ports(ROOM)
    file.write_text(
        f"admin: 127.0.0.1:{admin}\nstate: none\n"
        f"clusters: [{{bootstrap: 127.0.0.1:1, listen: 127.0.0.1:{port}-{port + ROOM - 1}}}]\n"
    )
    child, terminal = pty.fork()
    if not child:
        os.execvp("env", [*HEARS_HANGUPS, str(COMMAND), "run", "--config", str(file)])
    try:
        text = b""
        while b"127.0.0.1:1" not in text:
            text += os.read(terminal, 4096)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, text

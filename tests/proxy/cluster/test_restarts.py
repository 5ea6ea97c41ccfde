"""Ports that are open before their nodes are named: pinned ones, those of the run before, whole ranges."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from klamm.cli.running.banner import banner
from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.client_ports import ports as listeners
from klamm.proxy.cluster.client_ports import strays
from klamm.proxy.cluster.client_ports.strays import LED_BACK
from klamm.proxy.cluster.nodes.saved_nodes import memory_of
from klamm.proxy.cluster.nodes.state_file import LARGEST, file_of, folder_by_default, kept_node
from klamm.proxy.config import Cluster as Settings
from klamm.proxy.config import State
from klamm.proxy.config_types import Address, Listen, StateFolder
from klamm.proxy.greeting import Greeting
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Node, NodeKey
from tests.brokers.processes import free_ports
from tests.fakes.broker import Broker, Cluster, Connection, Request, closes, metadata
from tests.fakes.client import Client, connect
from tests.fakes.edge import Edge, Lines, edge
from tests.fakes.waiting import eventually, on_uvloop, turns

ALL = {"topics": []}


def to_clients_only(connection: Connection, request: Request) -> dict[str, Any] | None:
    """Metadata of a broker behind SASL, which klamm may not ask."""
    return closes(connection, request) if request.client_id == "klamm" else metadata(connection, request)


@asynccontextmanager
async def two_brokers(sasl: bool = True) -> AsyncIterator[tuple[Broker, Broker]]:
    """The brokers 1 and 2 of a cluster."""
    nodes = Cluster()
    first, second = await Broker(nodes, 1).start(), await Broker(nodes, 2).start()
    for broker in (first, second) if sasl else ():
        broker.answers |= {"Metadata": to_clients_only, "SaslHandshake": closes}
    try:
        yield first, second
    finally:
        await first.stop()
        await second.stop()


def range_of(count: int = 10, written: bool = False) -> Listen:
    """So many free ports; `written`: with their end."""
    first = free_ports(count)
    return Listen("127.0.0.1", first, first + count - 1 if written else None)


async def to_port(klamm: Edge, port: int) -> Client:
    client = await connect("127.0.0.1", port)
    klamm.clients.append(client)
    return client


async def heartbeat(client: Client) -> None:
    assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0


@on_uvloop
async def test_a_pinned_port_leads_to_another_broker_until_its_node_is_named() -> None:
    async with two_brokers() as (first, second):
        port = free_ports()
        async with edge(first, ports={2: port}) as klamm:
            assert not klamm.proxied.state().named
            early = await to_port(klamm, port)
            await heartbeat(early)
            assert (len(first.requests("Heartbeat")), len(second.requests("Heartbeat"))) == (1, 0)
            [line] = klamm.log.of("led_elsewhere")
            assert (
                f"the broker of port {port} is not known yet: led to 127.0.0.1:{first.port}" in line.message
            )
            rows = (await early.ask("Metadata", 12, ALL))["brokers"]
            assert {row["node_id"]: row["port"] for row in rows}[2] == port
            assert await early.ended() == "FIN"  # else it would go on to ask the wrong broker
            assert klamm.proxied.state().named
            await klamm.empty()
            assert klamm.closed() == {LED_BACK: 1}
            await heartbeat(await to_port(klamm, port))
            assert len(second.requests("Heartbeat")) == 1


@on_uvloop
async def test_a_connection_that_was_led_to_the_right_broker_stays() -> None:
    async with two_brokers() as (first, _):
        port = free_ports()
        async with edge(first, ports={1: port}) as klamm:
            client = await to_port(klamm, port)
            await client.ask("Metadata", 12, ALL)
            await turns()
            await heartbeat(client)
            assert not klamm.proxied.leading.strays.led_to


@on_uvloop
async def test_a_connection_that_is_led_back_gets_the_answers_that_are_due() -> None:
    async with two_brokers() as (first, _):
        port = free_ports()
        held: list[tuple[Connection, Request]] = []
        answer = first.answers["Heartbeat"]
        first.answers["Heartbeat"] = lambda *asked: held.append(asked)
        async with edge(first, ports={2: port}) as klamm:
            waiting = await to_port(klamm, port)
            waiting.send("Heartbeat", 4, {})
            await first.until(lambda: held)
            await (await klamm.client()).ask("Metadata", 12, ALL)
            await eventually(lambda: not klamm.proxied.leading.strays.led_to)
            assert not waiting.fin
            first.answers["Heartbeat"] = answer
            held[0][0].answer(held[0][1])
            assert (await waiting.answer("Heartbeat", 4))["error_code"] == 0
            assert await waiting.ended() == "FIN"


@on_uvloop
async def test_a_connection_that_is_led_back_does_not_wait_for_answers_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strays, "ANSWERS_S", 0.02)
    async with two_brokers() as (first, _):
        port = free_ports()
        del first.answers["Heartbeat"]
        async with edge(first, ports={2: port}) as klamm:
            waiting = await to_port(klamm, port)
            waiting.send("Heartbeat", 4, {})
            await first.asked("Heartbeat")
            await (await klamm.client()).ask("Metadata", 12, ALL)
            assert await waiting.ended() == "FIN"
            assert waiting.received == b""


@pytest.mark.parametrize(
    ("written", "most", "opened"), [(True, 10, True), (False, 10, False), (True, 9, False)]
)
@on_uvloop
async def test_a_range_whose_end_is_written_is_open_from_the_start_behind_sasl(
    written: bool, most: int, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "MOST_AHEAD", most)
    async with two_brokers() as (first, second):
        at = range_of(10, written)
        async with edge(first, listen=at) as klamm:
            ports = set(klamm.proxied.ports.by_port)
            assert ports == (set(at.ports) if opened else {at.first})
            if opened:
                client = await to_port(klamm, at.first + 3)  # of broker 2
                await client.ask("Metadata", 12, ALL)
                assert await client.ended() == "FIN"
                await heartbeat(await klamm.client(2))
                assert second.requests("Heartbeat")
                assert set(klamm.proxied.ports.by_port) == ports


@on_uvloop
async def test_a_range_is_not_opened_where_klamm_may_ask() -> None:
    async with two_brokers(sasl=False) as (first, _):
        at = range_of(10, written=True)
        async with edge(first, listen=at) as klamm:
            assert sorted(klamm.proxied.ports.by_port) == [at.first, at.first + 2, at.first + 3]
            assert klamm.proxied.state().named


@on_uvloop
async def test_ports_that_cannot_be_opened_ahead_are_named_in_one_line() -> None:
    async with two_brokers() as (first, _):
        taken = (first.port, free_ports())
        async with edge(first, ports={7: taken[0], 8: taken[1]}) as klamm:
            [line] = klamm.log.of("unbindable")
            message = f"not open before their brokers are known: ports {taken[0]}: address already in use"
            assert (line.level, line.message) == ("warning", message)
            assert taken[1] in klamm.proxied.ports.by_port


async def learned(klamm: Edge) -> dict[str, int]:
    """Where klamm listens for each node, once a client has asked."""
    await (await klamm.client()).ask("Metadata", 12, ALL)
    return {str(key): node.listen_port or 0 for key, node in klamm.proxied.topology.nodes.items()}


@on_uvloop
async def test_what_an_answer_named_is_bound_after_a_restart_before_any_client(tmp_path: Path) -> None:
    async with two_brokers() as (first, second):
        at = range_of()
        async with edge(first, listen=at, state=tmp_path / "state") as klamm:
            before = await learned(klamm)
        assert before == {"1": at.first + 2, "2": at.first + 3}
        async with edge(first, listen=at, state=tmp_path / "state") as klamm:
            state = klamm.proxied.state()
            assert [(str(node.node_id), node.listening, node.remembered) for node in state.nodes] == [
                (node, f"127.0.0.1:{port}", True) for node, port in before.items()
            ]
            assert not state.named
            client = await to_port(klamm, before["2"])
            await heartbeat(client)
            assert len(second.requests("Heartbeat")) == 1
            assert not klamm.log.of("led_elsewhere")
            assert await learned(klamm) == before
            assert not any(node.remembered for node in klamm.proxied.state().nodes)
            await heartbeat(client)  # it was led to its node, and stays


@on_uvloop
async def test_remembered_brokers_are_dialled_before_any_client_has_come(tmp_path: Path) -> None:
    async with two_brokers() as (first, second):
        at = range_of()
        async with edge(first, listen=at, state=tmp_path) as klamm:
            await learned(klamm)
        await second.stop()
        async with edge(first, listen=at, state=tmp_path) as klamm:
            await klamm.logged("broker_unreachable")
            state = klamm.proxied.state()
            assert [(node.node_id, node.up, node.remembered) for node in state.nodes] == [
                (1, True, True),
                (2, False, True),
            ]


@on_uvloop
async def test_a_remembered_node_that_has_moved_is_found_through_another_broker(tmp_path: Path) -> None:
    async with two_brokers() as (first, second):
        at = range_of()
        async with edge(first, listen=at, state=tmp_path) as klamm:
            before = await learned(klamm)
        await second.stop()
        moved = await Broker(first.cluster, 2).start()
        async with edge(first, listen=at, state=tmp_path) as klamm:
            client = await to_port(klamm, before["2"])
            await heartbeat(client)
            assert len(first.requests("Heartbeat")) == 1
            await client.ask("Metadata", 12, ALL)
            assert await client.ended() == "FIN"
            await heartbeat(await to_port(klamm, before["2"]))
            assert len(moved.requests("Heartbeat")) == 1
        nodes = json.loads(file_of(tmp_path, "kafka", at.first).read_bytes())["nodes"]
        assert {each["node_id"]: each["port"] for each in nodes}[2] == moved.port
        await moved.stop()


@on_uvloop
async def test_a_node_that_moves_is_remembered_where_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    async with two_brokers() as (first, _):
        at = range_of()
        file = file_of(tmp_path, "kafka", at.first)
        async with edge(first, listen=at, state=tmp_path) as klamm:
            await learned(klamm)
            await eventually(file.exists)
            first.cluster.nodes[2] = ("kafka-2", 9092)
            await learned(klamm)
            await eventually(lambda: b"kafka-2" in file.read_bytes())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cluster_id": "another"}, "it is of the cluster with the id another, this one has fake-cluster"),
        (
            {"bootstrap": ["kafka-8:1", "kafka-9:1"], "cluster_id": None},
            "it is of other bootstrap servers: kafka-8:1, kafka-9:1",
        ),
        ({"cluster": "orders"}, "it is of cluster orders"),
    ],
)
@on_uvloop
async def test_what_is_of_another_cluster_is_not_used(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    async with two_brokers(sasl=False) as (first, _):
        at = range_of()
        file = file_of(tmp_path, "kafka", at.first)
        async with edge(first, listen=at, state=tmp_path) as klamm:
            before = await learned(klamm)
        kept = json.loads(file.read_bytes())
        assert kept["cluster_id"] == "fake-cluster"
        kept["nodes"] += [
            {"kind": "broker", "node_id": 9, "host": "h", "port": 1, "listen_port": at.first + 5}
        ]
        file.write_text(json.dumps({**kept, **change}))
        async with edge(first, listen=at, state=tmp_path) as klamm:
            [line] = klamm.log.of("state")
            assert (line.level, line.message) == ("info", f"{file} is not used: {why}")
            assert at.first + 5 not in klamm.proxied.ports.by_port
            assert await learned(klamm) == before
        assert json.loads(file.read_bytes())["cluster_id"] == "fake-cluster"


@pytest.mark.parametrize("sasl", [True, False])
@on_uvloop
async def test_the_banner_names_the_node_whose_port_another_process_has(sasl: bool, tmp_path: Path) -> None:
    async with two_brokers(sasl) as (first, _):
        at = range_of()
        async with edge(first, listen=at, state=tmp_path) as klamm:
            before = await learned(klamm)
        taken = before["2"]
        with socket.create_server(("127.0.0.1", taken)):
            async with edge(first, listen=at, state=tmp_path) as klamm:
                state = klamm.proxied.state()
                assert [node.listening for node in state.nodes] == [f"127.0.0.1:{before['1']}", ""]
                text = banner(Greeting([state], False, None, None, "", None))
                [row] = [line for line in text.splitlines() if line.startswith("  broker 2")]
                assert row.endswith(f"  nothing: port {taken}: address already in use")


@pytest.mark.parametrize("sasl", [True, False])
@on_uvloop
async def test_another_bootstrap_server_beside_one_that_stays_keeps_what_is_remembered(
    sasl: bool, tmp_path: Path
) -> None:
    async with two_brokers(sasl) as (first, second):
        at = range_of()
        file = file_of(tmp_path, "kafka", at.first)
        async with edge(first, listen=at, state=tmp_path) as klamm:
            before = await learned(klamm)
        both = (Address("127.0.0.1", first.port), Address("127.0.0.1", second.port))
        async with edge(both, listen=at, state=tmp_path) as klamm:
            assert set(before.values()) <= set(klamm.proxied.ports.by_port)
            assert not klamm.log.of("state")
        assert json.loads(file.read_bytes())["bootstrap"] == sorted(map(str, both))


@on_uvloop
async def test_other_bootstrap_servers_of_the_same_cluster_id_keep_what_is_remembered(tmp_path: Path) -> None:
    async with two_brokers(sasl=False) as (first, _):
        at = range_of()
        file = file_of(tmp_path, "kafka", at.first)
        away = {**node(node_id=9, port=1), "listen_port": at.first + 5}
        file.write_bytes(kept(away, cluster_id="fake-cluster", bootstrap=["kafka-9:9092"]))
        async with edge(first, listen=at, state=tmp_path) as klamm:
            assert at.first + 5 in klamm.proxied.ports.by_port


def node(**change: Any) -> dict[str, Any]:
    return {"kind": "broker", "node_id": 1, "host": "h", "port": 9092, "listen_port": 19093, **change}


def kept(*nodes: dict[str, Any], **change: Any) -> bytes:
    whole = {"format": 1, "cluster": "kafka", "cluster_id": None, "bootstrap": ["h:1"], "nodes": nodes}
    return json.dumps({**whole, **change}).encode()


GARBAGE = {
    "nothing": b"",
    "half": kept(node())[:-9],
    "a list": b"[]",
    "no JSON": b"\x00\xff\xfe",
    "another format": kept(format=2),
    "depth": b"[" * 100_000,
    "a port of 0": kept(node(listen_port=0)),
    "a port of 70000": kept(node(port=70_000)),
    "a negative id": kept(node(node_id=-1)),
    "a port as text": kept(node(port="9092")),
    "another kind": kept(node(kind="observer")),
    "a node twice": kept(node(), node(listen_port=19094)),
    "a port twice": kept(node(), node(node_id=2)),
    "a key that is missing": kept(cluster_id=None, nodes=None),
    "size": b" " * LARGEST + kept(node()),
}


@pytest.mark.parametrize("garbage", GARBAGE)
@on_uvloop
async def test_a_file_that_is_garbage_is_said_and_written_anew(garbage: str, tmp_path: Path) -> None:
    async with two_brokers() as (first, _):
        at = range_of()
        file = file_of(tmp_path, "kafka", at.first)
        file.write_bytes(GARBAGE[garbage])
        async with edge(first, listen=at, state=tmp_path) as klamm:
            [line] = klamm.log.of("state")
            assert line.level == "warning"
            assert line.message.startswith(f"{file} cannot be used: ")
            assert "\n" not in line.message
            before = await learned(klamm)
        nodes = json.loads(file.read_bytes())["nodes"]
        assert {str(each["node_id"]): each["listen_port"] for each in nodes} == before


@on_uvloop
async def test_a_pipe_in_the_place_of_the_file_does_not_hold_klamm(tmp_path: Path) -> None:
    async with two_brokers() as (first, _):
        at = range_of()
        os.mkfifo(file_of(tmp_path, "kafka", at.first))
        async with edge(first, listen=at, state=tmp_path) as klamm:
            assert "it is no regular file" in klamm.log.of("state")[0].message


@on_uvloop
async def test_a_folder_that_cannot_be_had_is_said_once_and_klamm_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with two_brokers() as (first, _):
        at = range_of()
        async with edge(first, listen=at, state=tmp_path / "file" / "state") as klamm:
            assert await learned(klamm) == {"1": at.first + 2, "2": at.first + 3}
            [line] = klamm.log.of("state")
            assert line.level == "warning"
            assert "Not a directory; name a folder with --state DIR, or say --state none" in line.message


@on_uvloop
async def test_the_file_is_whole_or_not_there_and_of_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    folder = tmp_path / "a" / "b"
    full = True

    def fsync(file: int) -> None:
        if full:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    async with two_brokers() as (first, _):
        at = range_of()
        file = file_of(folder, "kafka", at.first)
        async with edge(first, listen=at, state=folder) as klamm:
            await learned(klamm)
            [line] = await klamm.logged("state")
            assert f"cannot be remembered in {file}: No space left on device; trying again" in line.message
            assert not file.exists()
            full = False
            await eventually(file.exists)
            _, line = await klamm.logged("state", 2)
            assert line.message == f"the nodes' ports are remembered in {file} again"
        assert [each.name for each in folder.iterdir()] == [file.name]
        assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/klamm:/x", "XDG_STATE_HOME": "/s", "HOME": "/h"}, "/var/lib/klamm"),
        ({"STATE_DIRECTORY": "", "XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/klamm"),
        ({"XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/klamm"),
        ({}, "/.local/state/klamm"),
    ],
)
def test_the_folder_by_default(environment: dict[str, str], folder: str) -> None:
    assert folder_by_default(environment) == Path(folder)


def test_nothing_is_remembered_where_nothing_is_to_be_or_where_ports_are_any_that_are_free(
    tmp_path: Path,
) -> None:
    here, log = State(StateFolder(str(tmp_path))), cast(EventLog, Lines())
    fixed, any_port = (
        Settings((Address("k", 1),), listen=Listen("127.0.0.1", first)) for first in (19092, 0)
    )
    assert memory_of(here, fixed, log) is not None
    assert memory_of(here, any_port, log) is None
    assert memory_of(State(None), fixed, log) is None


def test_a_node_whose_name_is_no_utf_8_is_not_remembered() -> None:
    """No file could have it, and without it the file has the others."""
    assert kept_node(Node(NodeKey("broker", 1), "kafk\udcff", 9092, 19093)) is None

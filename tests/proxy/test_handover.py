"""Handing the listening sockets of one klamm to the next: what is refused, given up, and left as it was."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from klamm.proxy.control.process import handover
from klamm.proxy.control.process.handover import Handover, NotTaken, take_over
from klamm.proxy.edge.accepting.inherited import INHERITED
from klamm.proxy.edge.accepting.listener import bound
from tests.brokers.processes import Process, free_ports
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.edge import Lines
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.test_serve import Run, run


class Before:
    """A klamm that has a listening socket, and waits for the next one."""

    def __init__(self, path: Path, ready: Iterable[str] = ("orders",)) -> None:
        self.log, self.left = Lines(), list[int]()
        self.handover = Handover(str(path), lambda: ready, self.left.append, self.log)


@asynccontextmanager
async def waits(path: Path) -> AsyncIterator[tuple[Before, int]]:
    """And the port that it listens on."""
    before = Before(path)
    [sock] = await bound("127.0.0.1", 0, 1)
    before.handover.listen()
    try:
        with sock:
            yield before, sock.getsockname()[1]
    finally:
        before.handover.close()
        INHERITED.close_handed_over()


def mode(path: Path) -> int | None:
    """Who may use the file; None: it is not there."""
    return path.stat().st_mode & 0o777 if path.exists() else None


def segments(folder: Path) -> list[str]:
    """Their names; each klamm writes its own."""
    return [path.name for path in folder.glob("*.arrow")]


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short: that of a UNIX socket has 107 bytes at most."""
    return tmp_path_factory.mktemp("h") / "handover"


@on_uvloop
async def test_only_its_owner_can_connect_to_it_and_it_goes_when_klamm_goes(path: Path) -> None:
    async with waits(path):
        assert mode(path) == 0o600
    assert mode(path) is None


@on_uvloop
async def test_the_next_klamm_has_the_socket_and_the_one_before_leaves(path: Path) -> None:
    async with waits(path) as (before, port):
        after = await asyncio.to_thread(take_over, str(path))
        assert after is not None
        assert (after.pid, after.ready) == (os.getpid(), {"orders"})
        found = asyncio.Event()
        succeeding = asyncio.create_task(after.succeed({"orders": found, "billing": asyncio.Event()}))
        assert not before.left
        found.set()
        await succeeding
        assert before.left == [os.getpid()]
        assert mode(path) is None  # the next klamm waits there now
        taken = INHERITED.take("127.0.0.1", port)
        assert taken is not None
        with taken:
            assert taken.getsockname()[1] == port


@on_uvloop
async def test_where_the_next_one_gives_up_the_one_before_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "READY_S", 0.01)
    async with waits(path) as (before, _):
        after = await asyncio.to_thread(take_over, str(path))
        assert after is not None
        with pytest.raises(
            NotTaken, match=r"orders: ready there, and not found here within 0.01 s; .* goes on"
        ):
            await after.succeed({"orders": asyncio.Event()})
        await eventually(lambda: before.log.of("handover_failed"))
        assert before.left == []
        INHERITED.close_handed_over()
        again = await asyncio.to_thread(take_over, str(path))
        assert again is not None
        again.sock.close()


@on_uvloop
async def test_two_do_not_take_over_at_once(path: Path) -> None:
    async with waits(path):
        first = await asyncio.to_thread(take_over, str(path))
        assert first is not None
        with pytest.raises(NotTaken, match="drains, or another klamm takes over from it"):
            await asyncio.to_thread(take_over, str(path))
        first.sock.close()


@on_uvloop
async def test_more_sockets_than_a_packet_has_room_for(path: Path) -> None:
    async with waits(path):
        sockets = [sock for _ in range(2 * handover.FILES) for sock in await bound("127.0.0.1", 0, 1)]
        after = await asyncio.to_thread(take_over, str(path))
        assert after is not None
        after.sock.close()
        for each in sockets:
            assert INHERITED.has(each.getsockname()[1])
            each.close()


def test_nobody_waits(path: Path) -> None:
    assert take_over(str(path)) is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ended:
        ended.bind(str(path))
    assert take_over(str(path)) is None


def test_another_process_listens_there(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(NotTaken, match=f"handover: {path} cannot be used: "):
            take_over(str(path))


@pytest.mark.parametrize("there", ["a file", "no folder", "too long"])
@on_uvloop
async def test_a_place_where_nobody_can_listen_is_told_and_left_as_it_is(there: str, path: Path) -> None:
    where = {"a file": path, "no folder": path / "none", "too long": path.with_name("x" * 110)}[there]
    if there == "a file":
        where.write_text("mine")
    with pytest.raises(OSError, match=f"handover: cannot listen at {where}: "):
        Before(where).handover.listen()
    assert there != "a file" or where.read_text() == "mine"


@on_uvloop
async def test_a_klamm_that_is_never_ready_ends_and_the_one_before_serves_on(
    path: Path, tmp_path: Path
) -> None:
    """The next one has other brokers, under the same name of the cluster, and is told to end meanwhile."""
    async with Broker(Cluster(), 1).listening() as broker:
        options = ("--handover", str(path), "--state", "none")
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            async with run(tmp_path / "next", "127.0.0.1:1", options=options) as after:
                await eventually(lambda: klamm.lines("handover"))
                after.process.child.terminate()
                await asyncio.to_thread(after.process.child.wait, 30)
            await eventually(lambda: klamm.lines("handover_failed"))
            client = await connect("127.0.0.1", klamm.port)
            await client.ask("Heartbeat", 4, {})
            client.close()
            assert (await klamm.get("/readyz"))[0] == 200


@on_uvloop
async def test_a_port_that_the_new_settings_do_not_have_is_closed(path: Path, tmp_path: Path) -> None:
    metrics, folder = free_ports(), tmp_path / "captured"
    shared = ("--handover", str(path), "--state", "none", "--capture", str(folder))
    options = (*shared, "--metrics", f"127.0.0.1:{metrics}")
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            (await connect("127.0.0.1", metrics)).close()
            client = await connect("127.0.0.1", klamm.port)
            await client.ask("Heartbeat", 4, {})
            command = [each for each in klamm.process.command if each not in options[-2:]]
            after = Run(Process(command, tmp_path / "next"), klamm.port, klamm.admin)
            try:
                await after.announced()
                assert await asyncio.to_thread(klamm.process.child.wait, 30) == 0
                assert await client.ended() == "FIN"
                client.close()
                with pytest.raises(ConnectionRefusedError):
                    await connect("127.0.0.1", metrics)
                assert (await after.get("/readyz"))[0] == 200
                client = await connect("127.0.0.1", klamm.port)
                await client.ask("Heartbeat", 4, {})
                client.close()
                [line] = after.lines("took_over")
                assert line["pid"] == klamm.process.child.pid
                assert after.lines("capture_shared") == []  # both captured there meanwhile
            finally:
                after.process.stop()
    assert len(segments(folder)) == 2

"""`klamm run` as a process: what it prints, when it is ready, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from klamm.decoders import API
from klamm.decoders.headers import request_frame
from klamm.proxy import config, greeting
from klamm.proxy.config_types import Address, InputFile
from klamm.proxy.edge.open_files import SPARE_FILES
from klamm.proxy.metrics import expiry
from klamm.proxy.serve import CannotServe, Proxy
from klamm.proxy.session.observing.counters import OTHER
from tests.brokers.processes import Process, free_ports
from tests.e2e.klamm_process import COMMAND
from tests.fakes.broker import Broker, Cluster, Waiting
from tests.fakes.client import Client, connect
from tests.fakes.edge import ANY_PORT, Lines
from tests.fakes.waiting import LOOK_S, PATIENCE_S, eventually, on_uvloop

ALL = {"topics": []}


class Run:
    """A klamm that runs."""

    def __init__(self, process: Process, port: int, admin: int) -> None:
        self.process, self.port, self.admin = process, port, admin

    def text(self) -> str:
        return self.process.log.read_text()

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """The logged lines, in JSON among other text."""
        found = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == kind]

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text of an answer of the admin API."""
        return await asyncio.to_thread(self._get, path)

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def announced(self) -> None:
        await eventually(lambda: "bootstrap.servers" in self.text() or not self.process.running)
        assert self.process.running, self.text()


@asynccontextmanager
async def run(
    log: Path,
    *bootstrap: str,
    options: tuple[str, ...] = (),
    room: int = 9,
    before: tuple[str, ...] = (),
) -> AsyncIterator[Run]:
    first, admin = free_ports(room + 1), free_ports()
    ports = ["--admin", f"127.0.0.1:{admin}"]
    if bootstrap:
        ports += [",".join(bootstrap), "--listen", f"127.0.0.1:{first}-{first + room}"]
    process = Process([*before, str(COMMAND), "run", *ports, *options], log)
    try:
        yield Run(process, first, admin)
    finally:
        process.kill()


@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGINT], [signal.SIGHUP], [signal.SIGTERM, signal.SIGTERM]],
    ids=["INT", "HUP", "TERM twice"],
)
@on_uvloop
async def test_a_signal_ends_it_with_0_in_two_seconds_whatever_is_open(
    numbers: list[signal.Signals], tmp_path: Path
) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        as_in_a_terminal = ("env", "--default-signal=HUP")  # where nohup is around the tests
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", before=as_in_a_terminal) as klamm:
            await klamm.announced()
            clients = [await connect("127.0.0.1", klamm.port + 2) for _ in range(5)]
            for client in clients:
                await client.ask("Heartbeat", 4, {})
            broker.answers["Fetch"] = lambda *_: (1 << 24).to_bytes(4, "big") + b"\0\0\0\2" + bytes(1 << 23)
            clients[0].transport.pause_reading()
            clients[0].send("Fetch", 4, ALL)
            del broker.answers["Heartbeat"]
            clients[1].send("Heartbeat", 4, {})
            await broker.asked("Fetch")
            await broker.asked("Heartbeat", 6)
            for number in numbers:
                os.kill(klamm.process.child.pid, number)
                await eventually(lambda: klamm.lines("stopping") + klamm.lines("draining"))
            assert await asyncio.to_thread(klamm.process.child.wait, 30) == 0
            assert "Traceback" not in klamm.text()
            assert "never awaited" not in klamm.text()
            [line] = klamm.lines("stopping")
            name = numbers[0].name
            assert line["message"].startswith(f"{name}: klamm stops; connections: ")
            assert line["connections"] == 5 or len(numbers) == 2  # the first of two has ended idle ones
            assert line["requests"] in (1, 2)  # the answer to Fetch may have begun
            clients[0].transport.resume_reading()
            for client in clients:
                assert await client.ended() in ("FIN", "RST")
                client.close()


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "cut off"])
@on_uvloop
async def test_sigterm_drains_and_the_exit_code_says_whether_requests_were_cut_off(
    answered: bool, tmp_path: Path
) -> None:
    file = tmp_path / "klamm.yaml"
    file.write_text(f"limits: {{drain_s: {20 if answered else 1}}}\n")
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(
            tmp_path / "log", f"127.0.0.1:{broker.port}", options=("--config", str(file))
        ) as klamm:
            await klamm.announced()
            waiting = Waiting(broker)
            client = await connect("127.0.0.1", klamm.port)
            client.send("Heartbeat", 4, {})
            await waiting.came()
            os.kill(klamm.process.child.pid, signal.SIGTERM)
            await eventually(lambda: klamm.lines("draining"))
            assert await klamm.get("/readyz") == (503, "draining\n")
            assert "klamm_draining 1.0" in (await klamm.get("/metrics"))[1]
            if answered:
                waiting.answer()
                await client.answer("Heartbeat", 4)
            assert await asyncio.to_thread(klamm.process.child.wait, 30) == (0 if answered else 3)
            [line] = klamm.lines("drained")
            assert ("cut off" in line["message"]) != answered
            client.transport.abort()


@on_uvloop
async def test_a_hangup_is_ignored_behind_nohup(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", before=("nohup",)) as klamm:
            await klamm.announced()
            file = Path(f"/proc/{klamm.process.child.pid}/status")
            status = await asyncio.to_thread(file.read_text)
            [ignored] = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")]
            assert int(ignored, 16) >> signal.SIGHUP - 1 & 1


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
@on_uvloop
async def test_signals_that_mean_nothing_are_said_and_end_nothing(number: int, tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}") as klamm:
            await klamm.announced()
            os.kill(klamm.process.child.pid, number)
            await eventually(lambda: "means nothing to klamm: it goes on" in klamm.text())
            client = await connect("127.0.0.1", klamm.port)
            await client.ask("Heartbeat", 4, {})
            client.transport.abort()


@on_uvloop
async def test_a_signal_ends_it_while_it_waits_for_its_cluster(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers.clear()
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}") as klamm:
            await broker.asked("ApiVersions")
            os.kill(klamm.process.child.pid, signal.SIGTERM)
            assert await asyncio.to_thread(klamm.process.child.wait, 30) == 0
            assert "Traceback" not in klamm.text()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@on_uvloop
async def test_closed_standard_streams_do_it_no_harm(closed: str, tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        first = free_ports(8)
        words = [
            str(COMMAND),
            "run",
            f"127.0.0.1:{broker.port}",
            "--listen",
            f"127.0.0.1:{first}-{first + 6}",
        ]
        words += ["--admin", f"127.0.0.1:{first + 7}", "--state", "none"]
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
        klamm = await asyncio.create_subprocess_exec(*shell, stdout=DEVNULL, stderr=DEVNULL)
        try:
            await eventually(lambda: klamm.returncode is not None or listens(first))
            client = await connect("127.0.0.1", first)
            assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0
            client.close()
            klamm.send_signal(signal.SIGTERM)
            assert await klamm.wait() == 0
        finally:
            if klamm.returncode is None:
                klamm.kill()
                await klamm.wait()


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@on_uvloop
async def test_it_is_not_ready_with_a_reason_until_its_cluster_answers(tmp_path: Path) -> None:
    port = free_ports()
    async with run(tmp_path / "log", f"127.0.0.1:{port}") as klamm:
        await eventually(lambda: klamm.lines("unreachable"))
        reason = f"kafka: no bootstrap server answers: 127.0.0.1:{port} refuses connections\n"
        assert await klamm.get("/readyz") == (503, reason)
        assert (await klamm.get("/healthz"))[0] == 200
        async with Broker(Cluster(), 1).listening(port=port):
            await klamm.announced()
            assert await klamm.get("/readyz") == (200, "ready\n")
            assert len(klamm.lines("unreachable")) == 1


@on_uvloop
async def test_bad_input_is_a_line_and_a_count_and_good_traffic_goes_on(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}") as klamm:
            await klamm.announced()
            good = await connect("127.0.0.1", klamm.port + 2)
            await good.ask("Heartbeat", 4, {})
            bad: list[Client] = []
            for sent in (
                b"\x16\3\1\0\xf5\1",
                b"\xff\xff\xff\xff",
                b"GET / HT",
                b"\xff\xff\xff\xfe",
            ):
                bad.append(await connect("127.0.0.1", klamm.port + 2))
                bad[-1].transport.write(sent + bytes(100))
                await bad[-1].ended()
                bad[-1].close()
                assert (await good.ask("Heartbeat", 4, {}))["error_code"] == 0
            good.close()
            rows = json.loads((await klamm.get("/v1/counters"))[1])["problems"]
            assert {row["kind"]: row["count"] for row in rows} == {"tls_from_client": 1, "bad_size": 3}
            await eventually(lambda: klamm.lines("bad_size"))
            [line] = klamm.lines("tls_from_client")
            assert (line["cluster"], line["broker"], line["level"]) == ("kafka", "1", "warning")
            assert line["connection"].startswith("127.0.0.1:")
            assert len(klamm.lines("bad_size")) == 1  # of a kind, once a minute


@on_uvloop
async def test_unknown_versions_have_a_line_for_each_api_and_version_and_negotiation_has_none(
    tmp_path: Path,
) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        del broker.answers["Heartbeat"]
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}") as klamm:
            await klamm.announced()
            for key, version in [(18, 99), (12, 99), (12, 99), (12, 98), (16, 99), (3, 99)]:
                client = await connect("127.0.0.1", klamm.port + 2)
                client.transport.write(request_frame(API[key], version, 1, "app", b""))
                if key == API["ApiVersions"].key:
                    await client.frame()  # klamm answers with its own range
                client.send_fin()
                await client.ended()
                client.close()
            await eventually(lambda: len(klamm.lines("unknown_version")) >= 4)
            versions = [(line["api"], line["version"]) for line in klamm.lines("unknown_version")]
            assert versions == [("Heartbeat", 99), ("Heartbeat", 98), ("ListGroups", 99), ("Metadata", 99)]
            rows = json.loads((await klamm.get("/v1/counters"))[1])["problems"]
            counts = {(row["api"], row["kind"]): row["count"] for row in rows}
            assert counts == {
                ("Heartbeat", "unknown_version"): 3,
                ("ListGroups", "unknown_version"): 1,
                ("Metadata", "unknown_version"): 1,
            }


@on_uvloop
async def test_the_ports_it_prints_are_the_same_after_a_restart(tmp_path: Path) -> None:
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as broker:
        nodes.nodes |= {2: ("kafka-2.invalid", 9092), 5: ("kafka-5.invalid", 9092)}
        first, seen = free_ports(10), []
        options = ("--listen", f"127.0.0.1:{first}-{first + 9}")
        for turn in range(2):
            async with run(tmp_path / str(turn), f"127.0.0.1:{broker.port}", options=options) as klamm:
                await klamm.announced()
                client = await connect("127.0.0.1", first)
                seen.append((await client.ask("Metadata", 12, ALL))["brokers"])
                client.close()
                assert klamm.process.stop() == 0
        assert seen[0] == seen[1]
        assert [row["port"] for row in seen[0]] == [first + 2, first + 3, first + 6]


@on_uvloop
async def test_a_taken_port_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        first = free_ports(10)
        with socket.create_server(("127.0.0.1", first)):
            options = ("--listen", f"127.0.0.1:{first}-{first + 9}")
            async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
                assert await asyncio.to_thread(klamm.process.child.wait, 10) == 1
                message = f"cannot listen on 127.0.0.1:{first}: address already in use"
                assert klamm.text().splitlines()[-1].startswith(f"klamm run: {message}; choose other ports")
                assert "Traceback" not in klamm.text()


async def served(port: int) -> Client | None:
    """A client that got an answer; None if it was reset."""
    try:
        client = await connect("127.0.0.1", port)
        await client.ask("Heartbeat", 4, {})
    except (ConnectionResetError, AssertionError, RuntimeError):  # connecting, waiting, or sending
        return None
    return client


@on_uvloop
async def test_all_connections_are_served_by_one_event_loop_of_one_process(tmp_path: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        as_in_a_terminal = ("env", "--default-signal=HUP")  # where nohup is around the tests
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", before=as_in_a_terminal) as klamm:
            await klamm.announced()
            clients = [await connect("127.0.0.1", klamm.port + 2) for _ in range(5)]
            for client in clients:
                await client.ask("Heartbeat", 4, {})
            process = Path(f"/proc/{klamm.process.child.pid}")
            opened = [os.readlink(each) for each in (process / "fd").iterdir()]
            assert opened.count("anon_inode:[eventpoll]") == 1
            children = [(each / "children").read_text() for each in (process / "task").iterdir()]
            assert "".join(children) == ""
            for client in clients:
                client.transport.abort()


@pytest.mark.parametrize(
    ("room", "options", "warned"),
    [
        (99, (), True),
        (100, (), False),
        (99, ("--config", "klamm.yaml"), False),
    ],
    ids=["few", "enough", "as many as were asked for"],
)
@on_uvloop
async def test_room_for_few_connections_is_said_at_the_start(
    room: int, options: tuple[str, ...], warned: bool, tmp_path: Path
) -> None:
    before = ("prlimit", f"--nofile={SPARE_FILES + 2 * room}")
    async with Broker(Cluster(), 1).listening() as broker:
        if options:
            path = tmp_path / options[1]
            path.write_text("limits: {connections: 50}\n")
            options = (options[0], str(path))
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options, before=before) as klamm:
            await klamm.announced()
            klamm.process.stop()
            messages = [line["message"] for line in klamm.lines("few_connections")]
            assert messages == warned * [
                "there is room for 99 connections at once; each takes two open files: "
                "raise the limit of the system (ulimit -n)"
            ]


@on_uvloop
async def test_too_many_connections_are_reset_with_a_line_and_klamm_recovers(tmp_path: Path) -> None:
    before = ("prlimit", f"--nofile={SPARE_FILES + 2 * 6}")
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", before=before) as klamm:
            await klamm.announced()
            clients = [client for _ in range(30) if (client := await served(klamm.port + 2))]
            assert len(clients) == 6
            await eventually(lambda: klamm.lines("too_many_connections"))
            [line] = klamm.lines("too_many_connections")
            assert line["message"].startswith("no room for more than 6 at once;")
            assert "ulimit -n" in line["message"]
            for client in clients:
                client.transport.abort()
            async with asyncio.timeout(PATIENCE_S):  # klamm hears of their end in its own time
                while (client := await served(klamm.port + 2)) is None:
                    continue
            client.close()
            assert klamm.process.stop() == 0


@on_uvloop
async def test_an_output_that_takes_no_announcement_ends_no_klamm(tmp_path: Path) -> None:
    """As in `klamm run ... | true`."""
    piped = ("bash", "-c", 'exec "$@" > >(exec true)', "bash")
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", before=piped) as klamm:
            await eventually(lambda: klamm.lines("topology"))
            async with asyncio.timeout(PATIENCE_S):  # the bootstrap port opens after that line
                while (await klamm.get("/readyz"))[0] != 200:
                    await asyncio.sleep(LOOK_S)
            client = await connect("127.0.0.1", klamm.port)
            for _ in range(200):  # it goes on behind the announcement too
                await client.ask("Heartbeat", 4, {})
                await asyncio.sleep(0.005)
            client.close()
            assert "Broken pipe" not in klamm.text()


def play(test: Callable[[Proxy, Lines], Coroutine[Any, Any, None]]) -> None:
    """klamm's loop in this process, in front of a broker; `test` runs once clients may come."""
    failed: list[BaseException] = []

    async def all_of_it() -> None:
        log = Lines()
        async with Broker(Cluster(), 1).listening() as broker:
            settings = config.Cluster((Address(broker.host, broker.port),), listen=ANY_PORT)
            proxy = Proxy(config.Config((settings,), config.Admin(None)), log)  # type: ignore[arg-type]

            async def inside() -> None:
                try:
                    await test(proxy, log)
                except BaseException as error:
                    failed.append(error)
                finally:
                    os.kill(os.getpid(), signal.SIGTERM)

            tasks: list[asyncio.Future[None]] = []
            await proxy.run(lambda *_: tasks.append(asyncio.ensure_future(inside())))

    before, switching = gc.get_threshold(), sys.getswitchinterval()
    try:
        uvloop.run(all_of_it())
    finally:  # klamm has set them for itself
        gc.unfreeze()
        gc.set_threshold(*before)
        sys.setswitchinterval(switching)
    if failed:
        raise failed[0]


def test_it_says_so_when_no_client_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeting, "LONELY_S", 0.01)

    async def test(proxy: Proxy, log: Lines) -> None:
        await eventually(lambda: log.of("lonely"))
        [line] = log.of("lonely")
        assert line.message.startswith(f"no client yet on 127.0.0.1:{proxy.proxied[0].bootstrap_port}: ")
        assert "bootstrap.servers" in line.message

    play(test)


def test_it_says_nothing_when_a_client_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeting, "LONELY_S", 0.05)

    async def test(proxy: Proxy, log: Lines) -> None:
        client = await connect("127.0.0.1", proxy.proxied[0].bootstrap_port)
        await client.ask("Heartbeat", 4, {})
        client.close()
        await asyncio.sleep(0.1)
        assert not log.of("lonely")

    play(test)


def test_labels_that_nobody_uses_are_forgotten_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "EACH_S", 0.01)
    monkeypatch.setattr(expiry, "CROWDED_S", 0.05)

    async def test(proxy: Proxy, log: Lines) -> None:
        for number in range(proxy.stats.max_clients + 1):
            proxy.stats.of_requests("kafka", "1", f"made-up-{number}", "Metadata", 1)
        assert OTHER in {each.client_id for each in proxy.stats.requests.values()}
        await eventually(lambda: not proxy.stats.clients)
        assert proxy.proxied[0].context.revision > 0

    play(test)


def test_what_nobody_catches_on_the_loop_is_said_and_klamm_goes_on() -> None:
    async def test(proxy: Proxy, log: Lines) -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await eventually(lambda: log.of("defect"))
        assert "ZeroDivisionError" in log.of("defect")[0].message
        client = await connect("127.0.0.1", proxy.proxied[0].bootstrap_port)
        await client.ask("Heartbeat", 4, {})
        client.close()

    play(test)


def test_tls_files_that_cannot_be_used_are_named() -> None:
    tls = config.Tls(ca=InputFile("/nowhere/ca.pem"))
    settings = config.Cluster((Address("127.0.0.1", 1),), tls=tls)
    with pytest.raises(CannotServe, match="cluster kafka: the TLS files cannot be used"):
        Proxy(config.Config((settings,), config.Admin(None)), Lines())  # type: ignore[arg-type]


def test_a_dial_that_was_given_up_is_no_defect() -> None:
    async def test(proxy: Proxy, log: Lines) -> None:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "never retrieved", "exception": socket.gaierror(-2, "")})
        assert not log.of("defect")

    play(test)

"""Planted secrets are nowhere in /proc and in no core dump: as another program of klamm's own user sees it.

klamm runs as a user of its own here, since root reads everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from klamm.proxy import own_memory
from tests.brokers.processes import Process, children, free_ports
from tests.e2e.klamm_process import COMMAND, get
from tests.fakes import tls
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client
from tests.fakes.guarded import Guarded
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.sasl_ground import PASSWORD, plain, write_users

USER = "54321"
CAPABLE = "-all,+dac_read_search"  # Python may be in a folder of root's
AS_USER = (
    f"setpriv --reuid={USER} --regid={USER} --clear-groups --inh-caps={CAPABLE} --ambient-caps={CAPABLE}"
)
CORES_IN_FOLDER = Path("/proc/sys/kernel/core_pattern").read_text().startswith("core")
DUMPS = 'ulimit -S -c $(ulimit -H -c) && exec "$@"'  # as large as they may be
UPSTREAM, ADMIN, VIEWER = (f"planted-{what}-of-klamm" for what in ("password", "token", "viewer"))
SETTINGS = """
clusters:
  - bootstrap: 127.0.0.1:{broker}
    listen: 127.0.0.1:{first}-{last}
    sasl: {{mechanism: PLAIN, username: alice, password_file: password}}
    listen_tls: {{cert: broker.crt, key: broker.key}}
    listen_sasl: {{mechanisms: [PLAIN], users: users}}
admin: {{listen: "127.0.0.1:{admin}", token_file: token, read_only_token_env: VIEWER}}
log: {{apis: [all]}}
state: none
"""
PROCESS = [f"process_{name}" for name in "cpu_seconds_total start_time_seconds open_fds max_fds".split()]
PROCESS += ["process_resident_memory_bytes", "process_virtual_memory_bytes"]
LOOK = """
import json, os, sys
found, refused = {}, []
for pid in sys.argv[1].split(","):
    for name in "cmdline environ auxv maps smaps status stat limits cgroup io mem".split():
        try:
            if name != "mem":
                data = [open(f"/proc/{pid}/{name}", "rb").read()]
            else:
                data, spans = [], [line.split() for line in open(f"/proc/{pid}/maps")]
                memory = open(f"/proc/{pid}/mem", "rb", 0)
                for span in spans:
                    if span[1].startswith("rw"):
                        begin, end = (int(each, 16) for each in span[0].split("-"))
                        memory.seek(begin)
                        data.append(memory.read(end - begin))
        except PermissionError:
            refused.append(name)
            continue
        found.setdefault(name, []).extend(
            what for what in sys.argv[2:] if any(what.encode() in each for each in data)
        )
print(json.dumps({"found": {name: what for name, what in found.items() if what}, "refused": refused}))
"""


class Seen(NamedTuple):
    """Files of /proc with the secrets in them, and files that could not be read."""

    found: dict[str, list[str]]
    refused: list[str]


class Run(NamedTuple):
    """A klamm that has been used. `key`: a line of its private key."""

    process: Process
    admin: int
    folder: Path
    key: str

    @property
    def secrets(self) -> list[str]:
        return [UPSTREAM, ADMIN, VIEWER, PASSWORD, self.key]

    def pids(self) -> list[str]:
        """Of klamm and its workers."""
        own = self.process.child.pid
        return [str(pid) for pid in (own, *children(own))]

    def seen(self) -> Seen:
        """By another program of the same user."""
        command = [*AS_USER.split(), sys.executable, "-c", LOOK, ",".join(self.pids()), *self.secrets]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        return Seen(**json.loads(done.stdout))

    def aborted(self) -> int:
        """How the kernel ended it."""
        self.process.child.send_signal(signal.SIGABRT)
        ended = os.waitid(os.P_PID, self.process.child.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_code

    def left_behind(self) -> dict[str, list[str]]:
        """Files in its working directory with secrets in them; and its log, if it has."""
        files = [*self.folder.joinpath("scratch").iterdir(), self.process.log]
        data = {file.name: file.read_bytes() for file in files}
        found = {name: [each for each in self.secrets if each.encode() in data[name]] for name in data}
        return {name: what for name, what in found.items() if what}


@asynccontextmanager
async def running(folder: Path, *options: str, **environment: str) -> AsyncIterator[Run]:
    """klamm with secrets wherever it takes one, after an authentication and a request of a client."""
    trusted = ssl.create_default_context(cafile=certified(folder))
    first, admin = free_ports(10), free_ports()
    async with Broker(Cluster(), 1).listening() as broker:
        Guarded(broker, token=f"\0alice\0{UPSTREAM}".encode())
        numbers = {"broker": broker.port, "first": first, "last": first + 9, "admin": admin}
        (folder / "klamm.yaml").write_text(SETTINGS.format(**numbers))
        as_user = ["sh", "-c", DUMPS, "sh", *AS_USER.split(), "--pdeathsig=KILL", "env", "-C", "scratch"]
        command = ["env", "-C", str(folder), *as_user, str(COMMAND), "run", "--config", "../klamm.yaml"]
        process = Process([*command, *options], folder / "log", {"VIEWER": VIEWER, **environment})
        try:
            await eventually(lambda: "bootstrap.servers" in process.log.read_text() or not process.running)
            assert process.running, process.tail()
            where = "127.0.0.1", first + 2
            loop = asyncio.get_running_loop()
            _, client = await loop.create_connection(Client, *where, ssl=trusted)
            assert (await client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"}))["error_code"] == 0
            assert (await client.ask("SaslAuthenticate", 2, {"auth_bytes": plain()}))["error_code"] == 0
            await client.ask("Heartbeat", 4, {"group_id": "g", "member_id": "m"})
            for token in (ADMIN, VIEWER):
                await asyncio.to_thread(get, f"http://127.0.0.1:{admin}/v1/clusters", f"Bearer {token}")
            yield Run(process, admin, folder, (folder / "broker.key").read_text().splitlines()[3])
            client.transport.abort()
        finally:
            process.kill()


def certified(folder: Path) -> Path:
    """The authority of klamm's certificate, beside which all secrets are."""
    tls.make(folder)
    write_users(folder)
    (folder / "password").write_text(UPSTREAM)
    (folder / "token").write_text(ADMIN)
    (folder / "scratch").mkdir()
    os.chown(folder / "scratch", int(USER), int(USER))
    return folder / "ca.pem"


@pytest.mark.parametrize("workers", [1, 2])
@on_uvloop
async def test_no_other_process_of_its_user_reads_its_memory(tmp_path: Path, workers: int) -> None:
    async with running(tmp_path, "--workers", str(workers)) as klamm:
        assert len(klamm.pids()) == (1 if workers == 1 else 1 + workers)
        seen = await asyncio.to_thread(klamm.seen)
        assert seen.found == {}
        for name in ("environ", "maps", "mem"):
            assert seen.refused.count(name) == len(klamm.pids())
        assert klamm.left_behind() == {}


@pytest.mark.parametrize("workers", [1, 2])
@on_uvloop
async def test_a_process_that_is_aborted_leaves_no_core(tmp_path: Path, workers: int) -> None:
    async with running(tmp_path, "--workers", str(workers)) as klamm:
        if workers > 1:
            os.kill(int(klamm.pids()[1]), signal.SIGABRT)
            await eventually(lambda: "worker_died" in klamm.process.log.read_text())
        assert await asyncio.to_thread(klamm.aborted) == os.CLD_KILLED
        assert klamm.left_behind() == {}
        assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("workers", [1, 2])
@on_uvloop
async def test_metrics_tell_of_processes_that_cannot_be_read(tmp_path: Path, workers: int) -> None:
    async with running(tmp_path, "--workers", str(workers)) as klamm:
        text = await asyncio.to_thread(get, f"http://127.0.0.1:{klamm.admin}/metrics")
        values = dict(line.split() for line in text.splitlines() if line.startswith("process_"))
        labels = [""] if workers == 1 else ["", '{worker="1"}', '{worker="2"}']
        assert set(values) == {f"{name}{label}" for name in PROCESS for label in labels}
        assert all(float(value) > 0 for value in values.values())


@on_uvloop
async def test_a_variable_of_the_environment_allows_debuggers_and_dumps(tmp_path: Path) -> None:
    """So the tests above look in the right places."""
    async with running(tmp_path, **{own_memory.ALLOWED: "1"}) as klamm:
        seen = await asyncio.to_thread(klamm.seen)
        assert seen.refused == []
        assert seen.found["environ"] == [VIEWER]
        assert VIEWER in seen.found["mem"]
        assert "cmdline" not in seen.found
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        ended = await asyncio.to_thread(klamm.aborted)
        if hard and CORES_IN_FOLDER:
            assert ended == os.CLD_DUMPED
            [core] = (tmp_path / "scratch").iterdir()
            assert core.name in klamm.left_behind()
            core.unlink()

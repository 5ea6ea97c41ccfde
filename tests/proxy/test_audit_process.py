"""The audit log of `klamm run` as a process: TLS of clients, files that change, rules that end, a drain."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

from klamm.client import Klamm
from tests.brokers import certificates as certificates_of
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.test_serve import run

BEAT = {"group_id": "g", "member_id": "m"}


def audited(file: Path, event: str, **fields: Any) -> list[dict[str, Any]]:
    """The lines of an event that have these fields."""
    lines = [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []
    return [
        line
        for line in lines
        if line["event"] == event and all(line.get(name) == value for name, value in fields.items())
    ]


async def connected(port: int, context: ssl.SSLContext) -> Client:
    made = Client()
    await asyncio.get_running_loop().create_connection(
        lambda: made, "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    return made


@on_uvloop
async def test_tls_of_clients_reloads_rules_by_hand_and_a_drain_are_audited(tmp_path: Path) -> None:
    certificates_of.make(tmp_path, ["localhost", "127.0.0.1"])
    certificates_of.of_client(tmp_path, "/O=Example/CN=orders")
    file = tmp_path / "audit.log"
    (tmp_path / "rules.yaml").write_text("rules: [{name: late, api: Heartbeat, delay: 1ms}]\n")
    cert, ca = str(tmp_path / "broker.pem"), str(tmp_path / "ca.pem")
    rules = str(tmp_path / "rules.yaml")
    options = ("--listen-tls-cert", cert, "--listen-tls-ca", ca, "--audit", str(file), "--rules", rules)
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            trusting = ssl.create_default_context(cafile=ca)
            trusting.load_cert_chain(tmp_path / "client.pem")
            client = await connected(klamm.port, trusting)
            await client.ask("Heartbeat", 4, BEAT)
            await eventually(lambda: audited(file, "rule_acted", rule="late"))
            [opened] = audited(file, "connected")
            assert opened["principal"] == "User:CN=orders,O=Example"
            assert audited(file, "rule_acted")[0]["principal"] == "User:CN=orders,O=Example"

            stranger = await connected(klamm.port, ssl.create_default_context(cafile=ca))
            await stranger.ended()
            await eventually(lambda: audited(file, "client_tls_failed", outcome="failure"))
            assert audited(file, "client_tls_failed")[0]["address"].startswith("127.0.0.1:")

            it = Klamm(f"127.0.0.1:{klamm.admin}", user="ada")
            await asyncio.to_thread(
                it.add_rule, {"name": "short", "api": "Fetch", "delay": "1ms", "for": "1ms"}
            )
            await eventually(lambda: audited(file, "rule_ended", rule="short"))
            await asyncio.to_thread(it.add_rule, {"name": "mine", "api": "Fetch", "delay": "1ms"})
            (tmp_path / "rules.yaml").write_text("rules: [{name: mine, api: Heartbeat, delay: 1ms}]\n")
            await eventually(lambda: audited(file, "rule_replaced", rule="mine"))
            (tmp_path / "broker.pem").write_text("nothing")
            await eventually(lambda: audited(file, "tls_rejected", outcome="failure"))
            shutil.copy(tmp_path / "broker.key", cert)
            with (tmp_path / "broker.pem").open("a") as pem:
                pem.write((tmp_path / "broker.crt").read_text())
            await eventually(lambda: audited(file, "tls_loaded", outcome="success"))

            file.rename(tmp_path / "audit.log.1")  # as logrotate does, without a signal
            await eventually(lambda: _told_in(file, it))
            os.kill(klamm.process.child.pid, signal.SIGTERM)
            assert await asyncio.to_thread(klamm.process.child.wait, 30) == 0
            assert audited(file, "draining")[0]["reason"].startswith("SIGTERM: klamm drains")
            assert audited(file, "drained")
            [closed] = audited(file, "disconnected", connection_id=opened["connection_id"])
            assert (closed["reason"], closed["rules"]) == ("drained", {"late": 1})
            assert audited(file, "stopped", outcome="success")
            client.transport.abort()


def _told_in(file: Path, it: Klamm) -> bool:
    """Has the new file the lines from now on?"""
    it.rules_off()
    return bool(audited(file, "admin_request"))


def test_an_audit_file_that_cannot_be_opened_is_named_and_klamm_does_not_start(tmp_path: Path) -> None:
    from tests.e2e.klamm_process import COMMAND

    (tmp_path / "audit.log").mkdir()
    command = [str(COMMAND), "run", "127.0.0.1:1", "--audit", str(tmp_path / "audit.log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"--audit: cannot write {tmp_path / 'audit.log'}: it is a folder")

"""klamm tells systemd when it is ready, reloads, stops, and that it is alive."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from klamm.proxy.control.process.notify import Notify
from tests.fakes.edge import Lines
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.test_reload import running


def told(by: socket.socket) -> list[str]:
    """The messages so far."""
    found = []
    while True:
        try:
            found.append(by.recv(4096).decode())
        except BlockingIOError:
            return found


@on_uvloop
async def test_systemd_is_told_how_klamm_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        async with running(tmp_path, "orders") as it:
            messages: list[str] = []

            def has(text: str) -> bool:
                messages.extend(told(systemd))
                return any(each.startswith(text) for each in messages)

            await eventually(lambda: has("READY=1"))
            assert "STATUS=looks for orders" in messages
            assert f"READY=1\nSTATUS=orders on 127.0.0.1:{it.ports['orders']}" in messages
            await eventually(lambda: has("WATCHDOG=1") and messages.count("WATCHDOG=1") > 2)
            messages.clear()
            await it.reload()
            await eventually(lambda: has("RELOADING=1\nMONOTONIC_USEC=") and has("READY=1"))
            it.process.child.send_signal(signal.SIGTERM)
            await eventually(lambda: has("STOPPING=1\nSTATUS=drains"))
            await asyncio.to_thread(it.process.child.wait, 30)
            it.ended = True


def test_names_of_the_abstract_namespace_are_understood() -> None:
    name = f"klamm-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}")
        systemd.setblocking(False)
        Notify({"NOTIFY_SOCKET": f"@{name}"}, Lines()).say("READY=1")
        assert told(systemd) == ["READY=1"]


def test_a_socket_that_is_gone_is_said_and_no_socket_is_nothing(tmp_path: Path) -> None:
    log = Lines()
    Notify({"NOTIFY_SOCKET": str(tmp_path / "gone")}, log).say("READY=1")
    [line] = log.of("notify_failed")
    assert line.message.startswith("systemd cannot be told READY=1: ")
    Notify({}, log).say("READY=1")
    assert len(log.lines) == 1

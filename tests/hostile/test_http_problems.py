"""Callers of the admin API who send no HTTP, or too much: the log stays one of lines, and in bounds."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from klamm.proxy.admin import health
from klamm.proxy.admin.api import exchanges
from klamm.proxy.config_types import Address
from klamm.proxy.control import conditions
from klamm.proxy.control.rule_files import RuleReload
from tests.dashboards.fake_state import FakeState
from tests.fakes.edge import Line, Lines
from tests.proxy.admin.admin_api import api

NO_HTTP = {
    "no method": b"\x00\x01\x02\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
    "two hosts": b"GET /v1/rules HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a terminal's commands": b"GET /\x1b[31m HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \x1b]0;title\x07\r\n\r\n",
    "a long path": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
}
QUIET = {NO_HTTP["no method"], NO_HTTP["TLS"]}  # aiohttp says nothing of these


async def refused(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    found = await reader.readline()
    writer.close()
    return found


@pytest.mark.parametrize("listener", ["admin", "metrics"])
@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_is_one_event_of_the_log(
    sent: bytes, listener: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def ask() -> Lines:
        if listener == "metrics":
            log = Lines()
            server = await health.start(FakeState(), Address("127.0.0.1", 0), log)
            answers = [await refused(server.address.port, sent) for _ in range(3)]
            await server.close()
        else:
            async with api() as it:
                port = int(it.klamm.admin.rpartition(":")[2])
                answers = [await refused(port, sent) for _ in range(3)]
                log = it.log
        assert all(b" 400 " in answer for answer in answers), answers
        return log

    found = asyncio.run(ask()).of("bad_http_request")
    assert bool(found) != (sent in QUIET)
    assert all(len(line.message) < 300 and line.message.isprintable() for line in found)
    assert capfd.readouterr().err == ""


def test_a_body_that_is_not_encoded_as_it_says_is_refused() -> None:
    async def ask() -> tuple[int, Any, list[Line]]:
        async with api() as it:
            sent = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
            status, problem = await it.send("POST", "/v1/rules", b"{}" * 50, **sent)
            return status, problem, it.edge.log.of("http_failed")

    status, problem, failed = asyncio.run(ask())
    assert status == 400, problem
    assert failed == []


def test_an_exchange_of_a_number_of_thousands_of_digits_is_not_kept() -> None:
    async def ask() -> list[int]:
        async with api() as it:
            return [(await it.send("GET", f"/v1/exchanges{path}"))[0] for path in ("", "/" + "9" * 5000)]

    assert asyncio.run(ask()) == [200, 404]


@pytest.mark.parametrize("folder", ["/", "CWD", "CWD/..", "LINK"])
def test_a_capture_never_goes_into_the_folder_that_klamm_runs_in_or_one_around_it(
    folder: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(os.getcwd())
    named = folder.replace("CWD", os.getcwd()).replace("LINK", str(tmp_path / "link"))

    async def ask() -> tuple[int, Any]:
        async with api() as it:
            sent = b'{"folder": "%s"}' % named.encode()
            return await it.send("POST", "/v1/capture", sent, Content_Type="application/json")

    status, problem = asyncio.run(ask())
    assert status == 422, problem


def test_expressions_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take turns of the loop from the traffic, each thread one."""
    together: list[int] = []
    running: list[str] = []
    read = conditions.checked

    def reading(text: str) -> Any:
        running.append(text)
        together.append(len(running))
        try:
            return read(text)
        finally:
            running.pop()

    monkeypatch.setattr(exchanges, "checked", reading)

    async def ask() -> None:
        async with api() as it:
            path = "/v1/exchanges?where=" + quote(" or ".join(['topic=="a"'] * 50))
            await asyncio.gather(*(it.send("GET", path) for _ in range(6)))

    asyncio.run(ask())
    assert together == [1] * 6


def test_rules_by_hand_end_though_reading_the_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Lines()
    reload = RuleReload(None, log)
    looks: list[int] = []

    async def broken() -> None:
        raise OverflowError("an error in klamm")

    monkeypatch.setattr("klamm.proxy.control.rule_files.LOOK_S", 0)
    monkeypatch.setattr(reload.watched, "changed", lambda: True)
    monkeypatch.setattr(reload, "reload", broken)
    monkeypatch.setattr(type(reload.book), "expire", lambda _: looks.append(1) or [])

    async def follow() -> None:
        task = asyncio.create_task(reload.follow())
        while len(looks) < 3 and not task.done():
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(follow())
    assert len(looks) >= 3
    assert "OverflowError" in log.of("rules_rejected")[0].message

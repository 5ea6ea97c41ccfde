"""Handshakes of TLS that come together: they have turns."""

from __future__ import annotations

import asyncio
import gc
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy.edge import rounds
from klamm.proxy.edge.accepting import followed_tls
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from tests.fakes.client import connect
from tests.fakes.edge import parts_of_links
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.edge.test_listen_tls import BEAT, client, secured, trusting


@on_uvloop
async def test_a_few_handshakes_begin_in_a_pass_of_the_loop() -> None:
    tls = FollowedTls("from the clients", [], lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None)
    waiting = [asyncio.create_task(tls.turn()) for _ in range(20)]
    most, before = 0, 0
    while before < len(waiting):
        await asyncio.sleep(0)
        now = sum(task.done() for task in waiting)
        most, before = max(most, now - before), now
    assert most == rounds.PASS_NS // followed_tls.HANDSHAKE_NS == 2


@on_uvloop
async def test_a_handshake_waits_for_its_turn(
    context: ssl.SSLContext, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def turn(_: Any) -> None:
        asked.set()
        await go_on.wait()

    async with secured(certificates) as klamm:
        monkeypatch.setattr(FollowedTls, "turn", turn)
        coming = asyncio.create_task(client(klamm, trusting(certificates)))
        await asked.wait()
        assert not coming.done()
        go_on.set()
        await (await coming).ask("Heartbeat", 4, BEAT)


def client_hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    begun = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return outgoing.read()


@on_uvloop
async def test_a_handshake_that_does_not_end_leaves_nothing_of_a_connection(certificates: Path) -> None:
    hello = client_hello(trusting(certificates))
    async with secured(certificates) as klamm:
        gc.collect()
        gc.disable()
        try:
            before = parts_of_links()
            for number in range(1, 6):
                one = await connect("127.0.0.1", klamm.port)
                one.transport.write(hello)
                await one.changed.until(lambda one=one: one.received)
                one.close()
                await eventually(lambda number=number: klamm.problems() == {"client_tls_failed": number})
            assert parts_of_links() == before
        finally:
            gc.enable()

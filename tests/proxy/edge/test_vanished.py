"""Clients that vanish without a word: no packet of theirs comes any more, and none reaches them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from klamm.proxy import config
from klamm.proxy.config_types import Seconds
from klamm.proxy.edge import sockets
from tests.fakes.client import connect
from tests.fakes.edge import Edge, cluster
from tests.fakes.redirect import own_network
from tests.fakes.waiting import eventually, on_uvloop

CLIENT = "10.78.0.1"  # an address of this machine until the client vanishes
BEAT = {"group_id": "g", "member_id": "m"}


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    with own_network():
        address("add")
        yield


def address(what: str) -> None:
    subprocess.run(["ip", "address", what, f"{CLIENT}/32", "dev", "lo"], check=True, timeout=10)


async def used(klamm: Edge) -> None:
    """A client has come, and was answered."""
    client = await connect("127.0.0.1", klamm.port_of(1), CLIENT)
    klamm.clients.append(client)
    await client.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_client_that_vanishes_while_nothing_happens_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for option in sockets.KEEP_ALIVE:
        monkeypatch.setitem(sockets.KEEP_ALIVE, option, 1)
    async with cluster() as (klamm, _):
        await used(klamm)
        address("delete")
        await eventually(lambda: klamm.closed() == {"client vanished": 1})
        [line] = await klamm.logged("vanished")
        assert line.fields["connection"].startswith(f"{CLIENT}:")


@on_uvloop
async def test_a_client_that_vanishes_with_answers_on_the_way_is_ended() -> None:
    async with cluster(limits=config.Limits(unread_s=Seconds(0.2))) as (klamm, _):
        await used(klamm)
        [link] = await klamm.links(1)
        address("delete")
        link.client.transport.write(bytes(100))
        await eventually(lambda: klamm.closed() == {"unread_answers": 1})
        [line] = await klamm.logged("unread_answers")
        assert line.fields["connection"].startswith(f"{CLIENT}:")

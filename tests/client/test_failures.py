"""The exceptions of the Python client of the admin API."""

import asyncio
import socket
import threading
from contextlib import ExitStack

import pytest

from klamm.client import AsyncKlamm, Klamm, NoAnswer
from tests.brokers.processes import free_ports
from tests.e2e.asking import asking
from tests.fakes.cut_stream import CUT, ending_behind


def test_where_no_klamm_is_there_both_clients_say_so() -> None:
    nowhere = f"127.0.0.1:{free_ports()}"
    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        Klamm(nowhere).rules()

    async def ask() -> None:
        async with AsyncKlamm(nowhere) as klamm:
            await klamm.rules()

    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        asyncio.run(ask())


@pytest.mark.parametrize("came", CUT.values(), ids=CUT)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stream_that_ends_is_told_behind_its_last_line(kind: str, came: bytes) -> None:
    read = threading.Event()
    with (
        ending_behind(came, read) as admin,
        asking(kind, admin) as asked,
        asked.live() as next_one,
    ):
        assert next_one() is None  # a line about one that was left out
        read.set()
        with pytest.raises(NoAnswer, match=f"klamm at {admin} has ended, or its stream was not read"):
            next_one()


def test_a_machine_that_takes_no_connection_is_no_klamm_for_a_stream_too() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # the kernel's queue is full then, and it answers no one more
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        admin = f"127.0.0.1:{full.getsockname()[1]}"

        async def follow() -> None:
            async with AsyncKlamm(admin, timeout_s=0.2) as klamm, klamm.live():
                pass

        with pytest.raises(NoAnswer, match=f"no klamm answers at {admin}"):
            asyncio.run(asyncio.wait_for(follow(), 20))

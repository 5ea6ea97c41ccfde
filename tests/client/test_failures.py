"""The exceptions of the Python client of the admin API."""

import asyncio
import socket
from contextlib import ExitStack

import pytest

from klamm.client import AsyncKlamm, Klamm, NoAnswer
from tests.brokers.processes import free_ports


def test_where_no_klamm_is_there_both_clients_say_so() -> None:
    nowhere = f"127.0.0.1:{free_ports()}"
    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        Klamm(nowhere).rules()

    async def ask() -> None:
        async with AsyncKlamm(nowhere) as klamm:
            await klamm.rules()

    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        asyncio.run(ask())


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

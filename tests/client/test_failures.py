"""The exceptions of the Python client of the admin API."""

import asyncio
import socket
import threading
from contextlib import ExitStack

import pytest

from klamm.client import AsyncKlamm, Klamm, NoAnswer
from tests.brokers.processes import free_ports
from tests.e2e.asking import asking


def test_where_no_klamm_is_there_both_clients_say_so() -> None:
    nowhere = f"127.0.0.1:{free_ports()}"
    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        Klamm(nowhere).rules()

    async def ask() -> None:
        async with AsyncKlamm(nowhere) as klamm:
            await klamm.rules()

    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        asyncio.run(ask())


STREAMS = {  # what came before the connection ended
    "after a line": b'Transfer-Encoding: chunked\r\n\r\ne\r\n{"dropped":1}\n\r\n',
    "in a chunk": b'Transfer-Encoding: chunked\r\n\r\n1c\r\n{"dropped":1}\n{"dro',
    "in a line": b'\r\n{"dropped":1}\n{"dro',
}


@pytest.mark.parametrize("came", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stream_that_ends_is_told_behind_its_last_line(kind: str, came: bytes) -> None:
    def answer() -> None:
        with server.accept()[0] as to:
            to.recv(1 << 16)
            to.sendall(b"HTTP/1.1 200 OK\r\n" + came)
            read.wait(20)

    read = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        admin = f"127.0.0.1:{server.getsockname()[1]}"
        with asking(kind, admin) as asked, asked.live() as next_one:
            assert next_one() is None  # a line about one that was left out
            read.set()
            with pytest.raises(NoAnswer, match=f"klamm at {admin} has ended, or its stream was not read"):
                next_one()
        thread.join(20)


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

"""A klamm that ends in the middle of a stream of its exchanges."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LINE = b'{"dropped":1}\n'  # about exchanges that were left out
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
CUT = {  # what comes before the connection ends
    "after a line": CHUNKS + b"e\r\n" + LINE + b"\r\n",
    "in a chunk": CHUNKS + b"1c\r\n" + LINE + LINE[:5],
    "in a line": b"\r\n" + LINE + LINE[:5],
}


@contextmanager
def ending_behind(came: bytes, read: threading.Event | None = None) -> Iterator[str]:
    """The address of an admin API that answers one request with this, and ends once it was `read`."""

    def answer() -> None:
        with server.accept()[0] as to:
            to.recv(1 << 16)
            to.sendall(b"HTTP/1.1 200 OK\r\n" + came)
            if read is not None:
                read.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)

"""The fake broker, answers ApiVersions and Metadata properly, and a blob's requests with slices of it."""

import contextlib
import gc
import multiprocessing
import os
import select
import signal
import socket
import ssl
import struct
import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

from benchmarks.traffic import frames
from benchmarks.traffic.flow import Flow, Renumbered, read_exactly
from benchmarks.traffic.tls import BrokerTls, negotiated
from benchmarks.traffic.workloads import Blobs, recognise

RANGES = {
    frames.PRODUCE: (0, 13),
    frames.FETCH: (4, 18),
    frames.METADATA: (12, 12),
    frames.API_VERSIONS: (0, 4),
}
_UNSUPPORTED_VERSION = struct.pack(">h", 35)
_HANDSHAKE_S = 5.0


@contextlib.contextmanager
def running(
    blobs: list[Blobs], cpus: set[int], tls: BrokerTls | None = None
) -> Iterator[tuple[BaseProcess, int]]:
    """The broker's process and port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port: int = listener.getsockname()[1]
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_serve, args=(listener, blobs, cpus, tls), daemon=True)
    process.start()
    listener.close()
    try:
        yield process, port
    finally:
        process.terminate()
        process.join()


def _serve(listener: socket.socket, blobs: list[Blobs], cpus: set[int], tls: BrokerTls | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setaffinity(0, cpus)
    gc.freeze()
    gc.disable()
    host, port = listener.getsockname()
    known = {entry.head: entry for entry in blobs}
    flows: dict[int, Flow | None] = {}
    socks: dict[int, socket.socket] = {}
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                sock = _accepted(listener, tls)
                if sock is not None:
                    poll.register(sock, select.EPOLLIN)
                    socks[sock.fileno()], flows[sock.fileno()] = sock, None
                continue
            try:
                if flow := flows[fd]:
                    ready = flow.receive()
                    if ready > 0:
                        flow.send(ready)
                else:
                    flows[fd] = _begin(socks[fd], known, host, port)
                    ready = 0
            except (ConnectionError, ssl.SSLError) as error:
                if str(error):
                    print(f"fake broker: {error}", file=sys.stderr)
                ready = -1
            if ready < 0:
                poll.unregister(fd)
                socks.pop(fd).close()
                del flows[fd]


def _accepted(listener: socket.socket, tls: BrokerTls | None) -> socket.socket | None:
    """None where the proxy gives the TLS handshake up."""
    sock, _ = listener.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return sock
    sock.settimeout(_HANDSHAKE_S)
    try:
        secure = tls.context.wrap_socket(sock, server_side=True)
    except OSError:
        sock.close()
        return None
    secure.settimeout(None)
    tls.last.value = negotiated(secure).encode()
    return secure


def _begin(sock: socket.socket, known: dict[bytes, Blobs], host: str, port: int) -> Flow | None:
    """Answer one frame; a flow when it is the first of a blob. Raises ConnectionError at the end."""
    first = sock.recv(4)
    if not first:
        raise ConnectionError
    size = first + read_exactly(sock, 4 - len(first))
    head = size + read_exactly(sock, min(56, int.from_bytes(size)))
    blobs = known.get(recognise(head))
    if blobs is None:
        rest = read_exactly(sock, int.from_bytes(size) + 4 - len(head))
        sock.sendall(_answer(head + rest, host, port))
        return None
    requests = memoryview(blobs.requests)
    flow = Flow(sock, blobs.request_bytes, memoryview(blobs.responses), blobs.response_bytes, blobs.cycle)
    correlation_id = head[8:12]
    if correlation_id != requests[8:12]:
        flow = Renumbered(flow, correlation_id, blobs.cycle)
    flow.expect(requests[len(head) : blobs.request_bytes])
    flow.send(1)
    if blobs.key == frames.PRODUCE:
        time.sleep(blobs.stall_s)
    return flow


def _answer(request: bytes, host: str, port: int) -> bytes:
    key, version, correlation_id = struct.unpack_from(">hhi", request, 4)
    low, high = RANGES.get(key, (0, -1))
    if key == frames.API_VERSIONS and low <= version <= high:
        return frames.api_versions_response(correlation_id, version, RANGES)
    if key == frames.API_VERSIONS:
        return frames.frame(struct.pack(">i", correlation_id) + _UNSUPPORTED_VERSION + struct.pack(">i", 0))
    if key == frames.METADATA and low <= version <= high:
        return frames.metadata_response(correlation_id, host, port)
    raise ConnectionError(f"API {key} version {version} of {len(request)} bytes is not answered here")

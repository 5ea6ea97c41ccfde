"""The fake client: keeps requests in flight for a while, and reads from the kernel what that cost."""

import select
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.traffic import frames
from benchmarks.traffic.flow import Flow, read_frame
from benchmarks.traffic.workloads import Workload

TIMEOUT_S = 30.0
PER_MILLE = (500, 990, 999)  # of latencies, in the order of Slice's fields


@dataclass(slots=True)
class Counters:
    """Requests and responses of one API, with the size fields of the frames."""

    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0

    def add(self, exchanges: int, request_bytes: int, response_bytes: int) -> None:
        self.requests += exchanges
        self.responses += exchanges
        self.request_bytes += exchanges * request_bytes
        self.response_bytes += exchanges * response_bytes


@dataclass(frozen=True, slots=True)
class Slice:
    """One stretch of one workload through one peer. Latencies of exchanges only where one is in flight."""

    frames: int
    reads: int
    wire_bytes: int
    wall_s: float
    proxy_cpu_s: float
    generator_cpu_s: float
    p50_s: float = 0.0
    p99_s: float = 0.0
    p999_s: float = 0.0


def cpu_s(pid: int) -> float:
    """CPU time of a process and of those that it has started, all threads, user and system; to the nanosecond
    where the kernel tells it.
    """
    total_ns, children = 0, list[str]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        total_ns += int((task / "schedstat").read_text().split()[0])
        children += (task / "children").read_text().split()
    return total_ns / 1e9 + sum(cpu_s(int(child)) for child in children)


def connect(address: tuple[str, int], tls: ssl.SSLContext | None = None) -> socket.socket:
    """A connection that begins as clients' do, with ApiVersions."""
    sock = socket.create_connection(address, timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is not None:
        sock = tls.wrap_socket(sock, server_hostname=address[0])
    exchange(sock, frames.API_VERSIONS, frames.api_versions_request(1))
    return sock


def learn(address: tuple[str, int], tls: ssl.SSLContext | None = None) -> tuple[str, int]:
    """The address of the only broker, as the Metadata response that comes through `address` has it."""
    with connect(address, tls) as sock:
        return frames.first_address(exchange(sock, frames.METADATA, frames.metadata_request(2)))


def exchange(sock: socket.socket, key: int, request: bytes) -> bytes:
    sock.sendall(request)
    response = read_frame(sock)
    if response[4:8] != request[8:12]:
        sent, came = struct.unpack(">i", request[8:12])[0], struct.unpack(">i", response[4:8])[0]
        raise ConnectionError(f"API {key}: correlation id {came} came back for {sent}")
    return response


def drive(
    workload: Workload,
    address: tuple[str, int],
    proxy_pid: int | None,
    broker_pid: int,
    seconds: float,
    counters: dict[tuple[int, int], Counters],
    tls: ssl.SSLContext | None = None,
) -> Slice:
    """Run a workload for `seconds`, after the first frame of each connection was compared byte for byte.

    Raises ConnectionError where the peer loses or changes something, TimeoutError after TIMEOUT_S of silence.
    """
    flows, blobs = [], workload.blobs
    for _ in range(workload.connections):
        requests = memoryview(blobs.requests)
        flow = Flow(connect(address, tls), blobs.response_bytes, requests, blobs.request_bytes, blobs.cycle)
        flow.send(1)
        flow.expect(memoryview(blobs.responses)[: blobs.response_bytes])
        flows.append(flow)
    proxy = cpu_s(proxy_pid) if proxy_pid else 0.0
    generator = cpu_s(broker_pid) + time.process_time()
    start = time.perf_counter()
    latencies_s: list[float] = []
    if workload.one_at_a_time:
        latencies_s = _one_at_a_time(flows[0], start + seconds, blobs.stall_s * (blobs.key == frames.FETCH))
    else:
        _pipelined(flows, workload.in_flight, start + seconds)
    wall_s = time.perf_counter() - start
    generator = cpu_s(broker_pid) + time.process_time() - generator
    proxy = cpu_s(proxy_pid) - proxy if proxy_pid else 0.0
    for flow in flows:
        flow.sock.close()
    sent = sum(flow.sent for flow in flows)
    counted = counters.setdefault((blobs.key, blobs.version), Counters())
    counted.add(sent, blobs.request_bytes, blobs.response_bytes)
    measured = sent - len(flows)
    wire_bytes = measured * (blobs.request_bytes + blobs.response_bytes)
    latencies_s.sort()
    percentiles = (latencies_s[len(latencies_s) * p // 1000] for p in PER_MILLE) if latencies_s else ()
    reads = sum(flow.reads for flow in flows)
    return Slice(measured, reads, wire_bytes, wall_s, proxy, generator, *percentiles)


def _one_at_a_time(flow: Flow, deadline: float, stall_s: float) -> list[float]:
    latencies_s = []
    now = time.perf_counter()
    while now < deadline:
        flow.send(1)
        if stall_s:
            time.sleep(stall_s)
        while not (done := flow.receive()):
            pass
        if done < 0:
            raise ConnectionError("closed with a request in flight")
        before, now = now, time.perf_counter()
        latencies_s.append(now - before)
    return latencies_s


def _pipelined(flows: list[Flow], in_flight: int, deadline: float) -> None:
    """Each response makes room for a request; after the deadline only answers are awaited."""
    poll = select.epoll()
    by_fd = {flow.sock.fileno(): flow for flow in flows}
    for fd, flow in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        flow.send(in_flight)
    waiting = len(flows) * in_flight
    while waiting:
        events = poll.poll(TIMEOUT_S)
        if not events:
            raise TimeoutError(f"{waiting} responses did not come within {TIMEOUT_S:.0f} s")
        more = time.perf_counter() < deadline
        for fd, _ in events:
            flow = by_fd[fd]
            done = flow.receive()
            if done < 0:
                raise ConnectionError(f"closed with {waiting} requests in flight")
            if done and more:
                flow.send(done)
            else:
                waiting -= done
    poll.close()

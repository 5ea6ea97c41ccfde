"""klamm beside HAProxy where both end TLS from the client and open it to the broker: what a request and a
handshake cost.
"""

import socket
import ssl
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import measure, peers, proxies
from benchmarks.others import HAPROXY
from benchmarks.peer import Lost, Peer
from benchmarks.report import Spread
from benchmarks.traffic import client, workloads
from benchmarks.traffic import tls as load_tls

SHAPES = ("200 B 4 x 16", "16 KiB")
AT_ONCE = 8  # threads, each with one connection
LEAST = 0.5  # of HAProxy's handshakes
WAYS = {False: "TLS in", True: "TLS in and out"}  # the second with an exchange, so that the broker is reached


@dataclass(frozen=True, slots=True)
class Handshakes:
    """New connections of one stretch."""

    count: int
    wall_s: float
    proxy_cpu_s: float


def _per_cpu_s(took: Handshakes) -> float:
    return took.count / took.proxy_cpu_s


def _per_s(took: Handshakes) -> float:
    return took.count / took.wall_s


def run(console: Console, only: str, pace: measure.Pace) -> tuple[dict[str, Any], bool]:
    """The results for JSON, and whether the run failed. Raises Lost."""
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as name:
        tls = load_tls.make(Path(name))
        rows = [row for shape in SHAPES for row in workloads.prepare(shape) if only in str(row)]
        result, failed = (
            proxies.run(console, list(peers.SECURE), rows, pace, tls=tls) if rows else ({}, False)
        )
        found = {}
        for upstream, way in WAYS.items():
            taken, comparable = _taken(console, tls._replace(upstream=upstream), pace)
            found[way] = {peer: [asdict(one) for one in rounds] for peer, rounds in taken.items()}
            console.print(_table(way, taken))
            failed = failed or not comparable
    return {**result, "openssl": ssl.OPENSSL_VERSION, "handshakes": found}, failed


def _taken(
    console: Console, tls: load_tls.Tls, pace: measure.Pace
) -> tuple[dict[str, list[Handshakes]], bool]:
    """By turns, in another order each round; and whether all are there, with the same TLS."""
    wanted = [name for name in peers.SECURE if name != peers.DIRECT]
    with proxies.started(console, wanted, [], proxies.cpus(), tls) as ground:
        lacking = any(name in ground.absent for name in peers.KLAMMS)
        comparable = proxies.one_tls(console, ground.negotiated) and not lacking
        taken: dict[str, list[Handshakes]] = {peer.name: [] for peer in ground.peers}
        for peer in ground.peers:
            _shaken(peer, tls.upstream, pace.seconds)
        for number in range(pace.rounds):
            turn = number % len(ground.peers)
            for peer in ground.peers[turn:] + ground.peers[:turn]:
                taken[peer.name].append(_shaken(peer, tls.upstream, pace.seconds))
    return taken, comparable


def _shaken(peer: Peer, exchange: bool, seconds: float) -> Handshakes:
    """Connections one after the other in each thread, none of which resumes a session."""
    assert peer.pid is not None
    cpu, start = client.cpu_s(peer.pid), time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        counts = list(threads.map(lambda _: _until(start + seconds, peer, exchange), range(AT_ONCE)))
    wall_s = time.perf_counter() - start
    return Handshakes(sum(counts), wall_s, client.cpu_s(peer.pid) - cpu)


def _until(deadline: float, peer: Peer, exchange: bool) -> int:
    count = 0
    while time.perf_counter() < deadline:
        try:
            _shake(peer, exchange)
        except OSError as error:
            raise Lost(f"{peer.name}, handshake {count + 1}: {error}\n{peer.log_tail()}") from error
        count += 1
    return count


def _shake(peer: Peer, exchange: bool) -> None:
    """Connect, and end when the proxy ends too: what it sends last, as tickets, is read."""
    assert peer.tls is not None
    if exchange:
        sock = client.connect(peer.address, peer.tls)
    else:
        plain = socket.create_connection(peer.address, timeout=client.TIMEOUT_S)
        sock = peer.tls.wrap_socket(plain, server_hostname=peer.address[0])
    with sock:
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 14):
            pass


def _table(way: str, taken: dict[str, list[Handshakes]]) -> Table:
    table = Table(title=f"Full handshakes, {way}: median, and x {HAPROXY} (least-greatest of the rounds)")
    for heading in ("proxy", "each CPU second of the proxy", "each second", "proxy busy"):
        table.add_column(heading, justify="left" if heading == "proxy" else "right")
    base = taken.get(HAPROXY, [])
    for name, rounds in taken.items():
        cells = [Text(name)]
        for take in (_per_cpu_s, _per_s):
            cell = Text(f"{median(map(take, rounds)):,.0f}")
            if base and name != HAPROXY:
                ratio = Spread.of([take(one) / take(of) for one, of in zip(rounds, base, strict=True)])
                met = ratio.median >= LEAST
                cell.append(f"  {ratio.median:.2f}x", style="bold")
                cell.append(f" ({ratio.low:.2f}-{ratio.high:.2f})", style="dim")
                cell.append(f" {'>=' if met else 'not >='} {LEAST}", style="green" if met else "red")
            cells.append(cell)
        busy = median(one.proxy_cpu_s / one.wall_s for one in rounds)
        table.add_row(*cells, Text(f"{busy:.0%}"))
    return table

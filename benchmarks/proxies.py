"""Starts the proxies of a run and measures the rows through each, for all kinds that compare proxies."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks import measure, peers, report, system_calls
from benchmarks.others import HAPROXY
from benchmarks.peer import HOST, Absent, Peer
from benchmarks.traffic import broker, client, workloads
from benchmarks.traffic import tls as load_tls
from benchmarks.traffic.tls import BrokerTls, Tls
from benchmarks.traffic.workloads import API_NAMES


class Cpus(NamedTuple):
    proxy: set[int]
    generator: set[int]


class Started(NamedTuple):
    """`absent`: why a peer is not measured. `negotiated`: version and cipher, to proxy and to broker."""

    peers: list[Peer]
    absent: dict[str, str]
    broker_pid: int
    folder: Path
    negotiated: dict[str, list[str]]


def cpus(pinned: bool = True) -> Cpus:
    """One CPU for the proxies, or all; the others for client and broker."""
    found = sorted(os.sched_getaffinity(0))
    return Cpus({found[-1]} if pinned else set(found), set(found[:-1]) or {found[-1]})


@contextlib.contextmanager
def started(
    console: Console, wanted: list[str], blobs: list[workloads.Blobs], on: Cpus, tls: Tls | None = None
) -> Iterator[Started]:
    """A fake broker, and each of the peers that can be started in front of it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="klamm-bench-")))
        of_broker = load_tls.of_broker(tls) if tls and tls.upstream else None
        process, port = stack.enter_context(broker.running(blobs, on.generator, of_broker))
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, on.generator)
        found, absent = list[Peer](), {}
        for name in wanted:
            try:
                found.append(peers.start(name, (HOST, port), folder, on.proxy, tls))
                stack.callback(peers.stop, found[-1])
            except Absent as reason:
                absent[name] = str(reason)
                console.print(f"not measured: {name}: {reason}", markup=False)
        assert process.pid is not None
        negotiated = {peer.name: _negotiated(peer, of_broker) for peer in found if peer.tls is not None}
        yield Started(found, absent, process.pid, folder, negotiated)


def run(
    console: Console,
    wanted: list[str],
    rows: list[workloads.Workload],
    pace: measure.Pace,
    base: str = HAPROXY,
    on: Cpus | None = None,
    tls: Tls | None = None,
    count_calls: bool = False,
) -> tuple[dict[str, Any], bool]:
    """The results for JSON, and whether the run failed. Raises Lost."""
    on = on or cpus()
    load_average = os.getloadavg()
    console.print(f"proxies on CPU {sorted(on.proxy)}, client and broker on {sorted(on.generator)}")
    blobs = list({id(row.blobs): row.blobs for row in rows}.values())
    with started(console, wanted, blobs, on, tls) as ground:
        alike = one_tls(console, ground.negotiated)
        slices, memory = measure.run(rows, ground.peers, ground.broker_pid, pace, console.print)
        calls, uncounted = _calls(rows, ground, pace.seconds) if count_calls else ([], "")
        compared = [peer for peer in ground.peers if peer.admin]
        differences = [line for peer in compared for line in peers.differences(peer)]
    targets = report.SECURE if tls else None if base == HAPROXY else report.BESIDE_KLAMM
    found, load = report.rows(slices, base, targets), report.loads(slices)
    if found[0].values:
        console.print(report.cpu_table(found, base))
        console.print(report.memory_table(memory))
    if calls:
        console.print(report.calls_table(calls))
    console.print(report.load_table(load))
    for line in differences:
        console.print(line, style="red")
    for peer in compared:
        if not differences:
            console.print(f"{peer.name}: the counters equal what the generator sent and got", style="green")
    result = {
        "pace": asdict(pace),
        "proxy_cpus": sorted(on.proxy),
        "generator_cpus": sorted(on.generator),
        "load_average_before": load_average,
        "absent": ground.absent,
        "rows": [asdict(row) for row in found],
        "memory_bytes": report.memory_rows(memory),
        "answers_after_s": {peer.name: peer.answers_after_s for peer in ground.peers},
        "load": load,
        "system_calls": calls,
        "system_calls_uncounted": uncounted,
        "sent": {
            peer.name: {
                f"{API_NAMES[key]} {version}": asdict(sent) for (key, version), sent in peer.counters.items()
            }
            for peer in ground.peers
        },
        "counter_differences": differences,
        "negotiated": ground.negotiated,
    }
    return result, bool(differences) or not alike or any(name in ground.absent for name in peers.KLAMMS)


def _calls(
    rows: list[workloads.Workload], ground: Started, seconds: float
) -> tuple[list[dict[str, Any]], str]:
    """System calls, and why there are none."""
    try:
        return system_calls.run(rows, ground.peers, ground.broker_pid, seconds, ground.folder), ""
    except system_calls.Uncounted as reason:
        return [], str(reason)


def one_tls(console: Console, negotiated: dict[str, list[str]]) -> bool:
    """Do all peers have the same TLS? It is printed."""
    if not negotiated:
        return True
    found = {" in, ".join(both) + " out" for both in negotiated.values()}
    for text in sorted(found):
        names = ", ".join(name for name, both in negotiated.items() if " in, ".join(both) + " out" == text)
        console.print(f"TLS of {names}: {text}", markup=False, style="green" if len(found) == 1 else "red")
    return len(found) == 1


def _negotiated(peer: Peer, of_broker: BrokerTls | None) -> list[str]:
    """As a client and the broker of one more connection see it."""
    if of_broker is not None:
        of_broker.last.value = b""
    with client.connect(peer.address, peer.tls) as sock:
        assert isinstance(sock, ssl.SSLSocket)
        inside = load_tls.negotiated(sock)
    return [inside, of_broker.last.value.decode() if of_broker is not None else "plain text"]

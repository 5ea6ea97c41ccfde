"""Many connections: what idle ones take of klamm's memory, and whether new ones, 1,000 a second, are lost or
hold up another client, beside HAProxy where it is there.
"""

import asyncio
import multiprocessing
import os
import socket
import tempfile
import time
from ctypes import c_double
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import peers
from benchmarks.hostile import broker, measuring
from benchmarks.hostile.attacks import ATTACKS, HOST, At, Attack, connected, frame
from benchmarks.measure import status_bytes
from benchmarks.others import start_haproxy
from benchmarks.peer import Absent
from benchmarks.traffic import client, frames
from klamm.proxy.edge.open_files import connections_possible

IDLE, A_SECOND, SECONDS = 5000, 1000, 60.0
MOST_MIB, MOST_KIB_EACH, MOST_SLOWER = 150, 30, 2.0
SETTLED_S = 1.0
ASK = frame("ApiVersions", 0, {})
OPENED, ANSWERED, LATE, REFUSED, ENDED, WRONG, TOOK_S = range(7)
LOST = {LATE: "no answer", REFUSED: "refused or reset", ENDED: "ended by klamm", WRONG: "another answer"}
AHEAD_S = 1  # they begin so long before the other client
REUSE = Path("/proc/sys/net/ipv4/tcp_tw_reuse")
QUIET = ATTACKS[0]


def run(console: Console, seconds: float) -> dict[str, Any]:
    """The results for JSON."""
    with broker.running() as ports:
        idle = _idle(ports[0])
        console.print(_idle_table(idle))
        if REUSE.read_text().strip() == "0":
            console.print(
                f"{REUSE} is 0: the kernel may run out of ports, which is no fault of klamm's", style="red"
            )
        rows = [_klamm(ports[0], seconds)]
        try:
            rows.append(_haproxy(ports, seconds))
        except Absent as reason:
            console.print(f"not measured: haproxy: {reason}", markup=False)
    console.print(_new_table(rows))
    for row in rows:
        for why, count in row["new"]["why"].items():
            console.print(f"{row['proxy']}: lost, {why}: {count:,}", style="red")
    return {"seconds": seconds, "idle": idle, "rows": rows}


def _klamm(broker_port: int, seconds: float) -> dict[str, Any]:
    """The other client's latencies without new connections and with them; and what became of these."""
    quiet = measuring.measured(QUIET, broker_port, seconds)
    attack, counts = _new(seconds)
    during = measuring.measured(attack, broker_port, seconds)
    return _row("klamm", quiet, during, counts)


def _haproxy(broker_ports: tuple[int, int], seconds: float) -> dict[str, Any]:
    """The same row. Raises Absent."""
    attack, counts = _new(seconds)
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder:
        every = os.sched_getaffinity(0)
        peer, (first, other) = start_haproxy([(HOST, port) for port in broker_ports], Path(folder), every)
        try:
            peers.wait_for(peer)
            found = []
            for each in (QUIET, attack):
                assert peer.pid is not None
                before = measuring.cpu_seconds(peer.pid)
                took = measuring.beaten(each, At(first, 0), other, seconds)
                used = measuring.cpu_seconds(peer.pid) - before
                found.append({**measuring.latencies(took), "cpu_s": used})
        finally:
            peers.stop(peer)
    return _row("haproxy", found[0], found[1], counts)


def _new(seconds: float) -> tuple[Attack, Any]:
    """The new connections, and the array in which they are counted."""
    counts = multiprocessing.RawArray(c_double, 7)
    name = f"{A_SECOND:,} new connections a second"
    return Attack(name, lambda at: _opened(at, seconds + AHEAD_S, counts), ends=True), counts


def _row(proxy: str, quiet: dict[str, Any], during: dict[str, Any], counts: Any) -> dict[str, Any]:
    opened = int(counts[OPENED])
    new = {
        "opened": opened,
        "lost": opened - int(counts[ANSWERED]),
        "why": {why: int(counts[index]) for index, why in LOST.items() if counts[index]},
        "a_second": opened / counts[TOOK_S],
        "cpu_us": (during["cpu_s"] - quiet["cpu_s"]) / opened * 1e6,
    }
    return {"proxy": proxy, "quiet": quiet, "during": during, "new": new}


def _idle(broker_port: int) -> dict[str, Any]:
    """Resident memory before any connection but one, with all of them, and after their end."""
    count = min(IDLE, connections_possible())
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder:
        with measuring.running(QUIET, broker_port, Path(folder)) as (process, at):
            client.connect((HOST, at.port)).close()
            before = status_bytes(process.pid, "VmRSS")
            socks = [client.connect((HOST, at.port)) for _ in range(count)]
            time.sleep(SETTLED_S)
            after = status_bytes(process.pid, "VmRSS")
            answered = sum(map(_answers, socks))
            for sock in socks:
                sock.close()
            time.sleep(SETTLED_S)
            closed = status_bytes(process.pid, "VmRSS")
    return {
        "connections": count,
        "still_answered": answered,
        "before_bytes": before,
        "after_bytes": after,
        "closed_bytes": closed,
        "each_bytes": (after - before) / count,
    }


def _answers(sock: socket.socket) -> bool:
    try:
        client.exchange(sock, frames.API_VERSIONS, frames.api_versions_request(2))
    except OSError:
        return False
    return True


async def _opened(at: At, seconds: float, counts: Any) -> None:
    """Open connections at an even pace, whatever becomes of those before."""
    began, total = time.monotonic(), int(A_SECOND * seconds)
    async with asyncio.TaskGroup() as group:
        while counts[OPENED] < total:
            due = min(total, int((time.monotonic() - began) * A_SECOND))
            for _ in range(int(counts[OPENED]), due):
                group.create_task(_one(at.port, counts))
            counts[OPENED] = due
            counts[TOOK_S] = time.monotonic() - began
            await asyncio.sleep(1 / A_SECOND)


async def _one(port: int, counts: Any) -> None:
    try:
        async with asyncio.timeout(measuring.LATE_S):
            reader, writer = await connected(port)
            writer.write(ASK)
            size = int.from_bytes(await reader.readexactly(4))
            answer = await reader.readexactly(size)
            writer.close()
    except TimeoutError:
        counts[LATE] += 1
    except OSError:
        counts[REFUSED] += 1
    except asyncio.IncompleteReadError:
        counts[ENDED] += 1
    else:
        counts[ANSWERED if answer[:4] == ASK[8:12] else WRONG] += 1


def _idle_table(found: dict[str, Any]) -> Table:
    table = Table(title=f"Resident memory with {found['connections']:,} idle connections")
    for heading in ("before", "with them", "each", "after their end", "that still answered"):
        table.add_column(heading, justify="right")
    mib = {name: found[f"{name}_bytes"] / (1 << 20) for name in ("before", "after", "closed")}
    table.add_row(
        f"{mib['before']:.1f} MiB",
        _beside(mib["after"], MOST_MIB, " MiB"),
        _beside(found["each_bytes"] / 1024, MOST_KIB_EACH, " KiB"),
        f"{mib['closed']:.1f} MiB",
        f"{found['still_answered']:,}",
    )
    return table


def _new_table(rows: list[dict[str, Any]]) -> Table:
    new = rows[0]["new"]
    table = Table(
        title=f"{new['opened']:,} new connections, {new['a_second']:,.0f} a second; a Heartbeat each 10 ms"
    )
    times = ("quiet", "during", "slower")
    for heading in ("proxy", "lost", *(f"{name} {each}" for name in ("p50", "p99") for each in times)):
        table.add_column(heading, justify="left" if heading == "proxy" else "right")
    table.add_column("its CPU, each", justify="right")
    for row in rows:
        quiet, during = row["quiet"], row["during"]
        cells = [Text(row["proxy"]), _beside(row["new"]["lost"], 0, "")]
        for name in ("p50_ms", "p99_ms"):
            cells += [Text(f"{each[name]:.2f} ms") for each in (quiet, during)]
            cells.append(_beside(during[name] / quiet[name], MOST_SLOWER, "x"))
        table.add_row(*cells, f"{row['new']['cpu_us']:.0f} us")
    return table


def _beside(value: float, most: float, unit: str) -> Text:
    met = value <= most
    style = "green" if met else "red"
    return Text(f"{value:.4g}{unit} {'<=' if met else 'not <='} {most:g}", style=style)

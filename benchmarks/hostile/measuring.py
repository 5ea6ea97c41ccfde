"""Runs each attack against a klamm of its own, while another client sends a Heartbeat each 10 ms."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.hostile import broker
from benchmarks.hostile.attacks import ATTACKS, HOST, At, Attack, frame
from benchmarks.peer import free_ports
from benchmarks.peers import COMPILED

SECONDS = 10.0
EACH_S = 0.01
LATE_S = 10.0  # an answer that takes longer ends the measurement of the other client
START_S = 30.0
BEAT = frame("Heartbeat", 4, {"group_id": "g", "member_id": "m"}, client_id="other")


def run(console: Console, only: str, seconds: float) -> dict[str, Any]:
    """Rows with latencies of the other client in ms, klamm's CPU seconds and its most memory in MiB."""
    rows: list[dict[str, Any]] = []
    with broker.running() as (port, _):
        for attack in ATTACKS:
            if only in attack.name:
                rows.append(measured(attack, port, seconds))
                console.print(_text(rows[-1]), markup=False)
    console.print(_table(rows))
    return {"seconds": seconds, "compiled": COMPILED.exists(), "hostile": rows}


def measured(attack: Attack, broker_port: int, seconds: float) -> dict[str, Any]:
    """One attack."""
    with tempfile.TemporaryDirectory(prefix="klamm-hostile-") as folder:
        with running(attack, broker_port, Path(folder)) as (process, at):
            took = beaten(attack, at, at.port - broker.ATTACKED + broker.OTHER, seconds)
            alive = process.poll() is None
            memory, cpu = _memory(process.pid), cpu_seconds(process.pid)
    return {"attack": attack.name, **latencies(took), "memory_mib": memory, "cpu_s": cpu, "alive": alive}


def beaten(attack: Attack, at: At, other_port: int, seconds: float) -> list[float]:
    """Seconds that each Heartbeat of the other client took, while the attack went on."""
    fork = multiprocessing.get_context("fork")
    there, here = fork.Pipe()
    other = fork.Process(target=_other, args=(other_port, seconds, here), daemon=True)
    attacker = fork.Process(target=_attack, args=(attack, at), daemon=True)
    attacker.start()
    time.sleep(1)
    other.start()
    took: list[float] = there.recv()
    if attack.ends:
        attacker.join()
    for each in (attacker, other):
        each.terminate()
        each.join()
    return took


def latencies(took: list[float]) -> dict[str, Any]:
    """Their number, and some of them in milliseconds."""
    took = sorted(took)
    return {
        "answers": len(took),
        "p50_ms": 1000 * statistics.median(took),
        "p99_ms": 1000 * took[min(len(took) - 1, int(len(took) * 0.99))],
        "max_ms": 1000 * took[-1],
    }


@contextlib.contextmanager
def running(attack: Attack, broker_port: int, folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", At]]:
    first = free_ports(6)
    admin = first + 5
    rules = folder / "rules.yaml"
    rules.write_text(f"rules:\n{attack.rules or '  []'}")
    command = [str(Path(sys.executable).with_name("klamm")), "run", f"{HOST}:{broker_port}"]
    command += [
        "--listen",
        f"{HOST}:{first}-{first + 4}",
        "--admin",
        f"{HOST}:{admin}",
        "--rules",
        str(rules),
    ]
    command += ["--capture", str(folder / "captured")] if attack.captured else []
    environment = {**os.environ, **({"PYTHONPATH": str(COMPILED)} if COMPILED.exists() else {})}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    try:
        _wait(process, f"http://{HOST}:{admin}/readyz", folder / "log")
        yield process, At(first + 1 + broker.ATTACKED, admin)
    finally:
        process.kill()
        process.wait()


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"klamm is not ready:\n{log.read_text()}")


def _memory(pid: int) -> float:
    """MiB, the most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _attack(attack: Attack, at: At) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # klamm closes connections that are written to
    asyncio.run(attack.run(at))  # type: ignore[arg-type]


def _other(port: int, seconds: float, to: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to.send(asyncio.run(_beats(port, seconds)))


async def _beats(port: int, seconds: float) -> list[float]:
    """Seconds that each Heartbeat took; one that came too late is the last."""
    took: list[float] = []
    began = time.monotonic()
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(HOST, port), LATE_S)
    except (TimeoutError, OSError):
        return [LATE_S]
    while time.monotonic() - began < seconds:
        sent = time.monotonic()
        writer.write(BEAT)
        try:
            size = await asyncio.wait_for(reader.readexactly(4), LATE_S)
            await reader.readexactly(int.from_bytes(size, "big"))
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            return [*took, LATE_S]
        took.append(time.monotonic() - sent)
        await asyncio.sleep(EACH_S)
    return took


def _text(row: dict[str, Any]) -> str:
    ends = "" if row["alive"] else ", klamm ended"
    return f"{row['attack']}: p99 {row['p99_ms']:.1f} ms, {row['memory_mib']:.0f} MiB{ends}"


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("attack", "answers", "p50", "p99", "most", "memory", "CPU")
    for row in rows:
        times = (f"{row[name]:.1f} ms" for name in ("p50_ms", "p99_ms", "max_ms"))
        table.add_row(
            row["attack"],
            str(row["answers"]),
            *times,
            f"{row['memory_mib']:.0f} MiB",
            f"{row['cpu_s']:.1f} s",
        )
    return table

"""How each proxy is started, and told from the others."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import client, frames, workloads
from benchmarks.client import Tally

START_S = 20.0
DIRECT, SPLICE, HAPROXY = "direct", "splice", "haproxy"
KLAMM_HEADER, KLAMM_FULL = "klamm-header", "klamm-full"
COMPILED_HEADER, COMPILED_FULL = "compiled-header", "compiled-full"
LEVELS = {KLAMM_HEADER: "header", KLAMM_FULL: "full", COMPILED_HEADER: "header", COMPILED_FULL: "full"}
COMPILED = Path(__file__).resolve().parent.parent / ".venv" / "compiled"  # made by `make .venv/compiled`
OTHER_RULES, HEADER_RULE = "klamm-1000-rules", "klamm-header-rule"
FEW_WATCHED, ALL_WATCHED, ALL_MATCH = "klamm-tail-few", "klamm-tail", "klamm-tail-all-match"
KLAMMS = tuple(LEVELS)
NAMES = (DIRECT, SPLICE, HAPROXY, *KLAMMS)
RULED = (DIRECT, KLAMM_FULL, OTHER_RULES, HEADER_RULE)
WATCHED = (DIRECT, KLAMM_FULL, FEW_WATCHED, ALL_WATCHED, ALL_MATCH)
FILTERS = {  # of `klamm tail`, on two fields of the body
    FEW_WATCHED: [f"acks == -1 and timeout_ms == {workloads.RARE_TIMEOUT_MS}"],
    ALL_WATCHED: [],
    ALL_MATCH: ["acks == -1 and timeout_ms > 0"],
}
CAPTURED, CAPTURED_WHOLE = "klamm-capture", "klamm-capture-keep"
CAPTURES = {CAPTURED: "blank", CAPTURED_WHOLE: "keep"}  # of records
CAPTURING = (DIRECT, KLAMM_FULL, *CAPTURES)
RULES = {
    OTHER_RULES: "".join(
        f"  - {{api: {api}, error: 41}}\n" for api in ("CreateTopics", "OffsetCommit") * 500
    ),
    HEADER_RULE: "  - {api: [Produce, Fetch], versions: 3+, chance: 0.000000001, delay: 1ms}\n",
}

Address = tuple[str, int]
HOST = "127.0.0.1"


class Absent(Exception):
    """A peer that cannot be measured here; the text says why."""


class Lost(Exception):
    """A peer that lost or changed what it was given."""


@dataclass(slots=True)
class Peer:
    """Where clients connect, what is charged for it, and what went through it."""

    name: str
    address: Address
    process: "subprocess.Popen[bytes] | None" = None
    admin: str = ""
    log: Path | None = None
    reader: "subprocess.Popen[bytes] | None" = None
    tally: dict[int, Tally] = field(default_factory=dict)

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def said(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").strip().splitlines()[-5:]) if self.log else ""


def free_ports(count: int) -> int:
    """The first of `count` adjacent ports that are free now."""
    while True:
        with socket.create_server((HOST, 0)) as probe:
            first: int = probe.getsockname()[1]
        held = []
        try:
            held = [socket.create_server((HOST, port)) for port in range(first, first + count)]
        except (OSError, OverflowError):
            continue
        finally:
            for sock in held:
                sock.close()
        return first


def _direct(broker: Address, folder: Path, cpus: set[int]) -> Peer:
    return Peer(DIRECT, broker)


def _splice(broker: Address, folder: Path, cpus: set[int]) -> Peer:
    port = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.splice", str(port), str(broker[1])]
    return _start(SPLICE, (HOST, port), command, folder, cpus)


_HAPROXY_CONFIG = """\
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen kafka
    bind {host}:{port}
    server broker {broker[0]}:{broker[1]}
"""


def _haproxy(broker: Address, folder: Path, cpus: set[int]) -> Peer:
    program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        raise Absent("haproxy is not installed (Debian package haproxy)")
    port = free_ports(1)
    config = folder / "haproxy.cfg"
    config.write_text(_HAPROXY_CONFIG.format(host=HOST, port=port, broker=broker))
    return _start(HAPROXY, (HOST, port), [program, "-db", "-f", str(config)], folder, cpus)


def _klamm(name: str, level: str, broker: Address, folder: Path, cpus: set[int]) -> Peer:
    program = Path(sys.executable).with_name("klamm")
    if not program.exists():
        raise Absent(f"{program.name} is not installed beside {Path(sys.executable).name} (pip install -e .)")
    compiled = name in (COMPILED_HEADER, COMPILED_FULL)
    if compiled and not COMPILED.exists():
        raise Absent("it is not compiled: make .venv/compiled")
    first, admin = free_ports(2), free_ports(1)
    config = folder / f"{name}.yaml"
    config.write_text(f"metrics:\n  level: {level}\n")
    rules = folder / f"{name}-rules.yaml"
    rules.write_text(f"rules:\n{RULES.get(name, '  []')}")
    command = [str(program), "run", f"{broker[0]}:{broker[1]}", "--listen", f"{HOST}:{first}"]
    command += ["--admin", f"{HOST}:{admin}", "--config", str(config)]
    command += ["--rules", str(rules), "--seed", "1"] if name in RULES else []
    if name in CAPTURES:
        command += ["--capture", str(folder / f"{name}-kept"), "--capture-records", CAPTURES[name]]
    peer = _start(
        name, (HOST, first), command, folder, cpus, {"PYTHONPATH": str(COMPILED)} if compiled else {}
    )
    peer.admin = f"http://{HOST}:{admin}"
    return peer


def _tailed(name: str, broker: Address, folder: Path, cpus: set[int]) -> Peer:
    """With a reader of its live stream, who takes all that comes."""
    peer = _klamm(name, "full", broker, folder, cpus)
    while not _ready(peer.admin) and peer.process is not None and peer.process.poll() is None:
        time.sleep(0.05)
    program = Path(sys.executable).with_name("klamm")
    admin = peer.admin.removeprefix("http://")
    with open(folder / f"{name}.lines", "wb") as lines:
        peer.reader = subprocess.Popen(
            [str(program), "tail", *FILTERS[name], "--json", "--admin", admin],
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
        )
    return peer


_STARTERS: dict[str, Callable[[Address, Path, set[int]], Peer]] = {
    DIRECT: _direct,
    SPLICE: _splice,
    HAPROXY: _haproxy,
    **{name: partial(_klamm, name, level) for name, level in LEVELS.items()},
    OTHER_RULES: lambda *where: _klamm(OTHER_RULES, "full", *where),
    HEADER_RULE: lambda *where: _klamm(HEADER_RULE, "full", *where),
    **{name: partial(_klamm, name, "full") for name in CAPTURES},
    **{name: partial(_tailed, name) for name in FILTERS},
}


def start(name: str, broker: Address, folder: Path, cpus: set[int]) -> Peer:
    """A peer that answers. Raises Absent where it is not installed or does not come up within START_S."""
    peer = _STARTERS[name](broker, folder, cpus)
    deadline = time.monotonic() + START_S
    while not (_ready(peer.admin) and _answers(peer.address)):
        ended = peer.process is not None and peer.process.poll() is not None
        if ended or time.monotonic() > deadline:
            stop(peer)
            raise Absent(f"{'ended' if ended else f'not ready after {START_S:.0f} s'}: {peer.said()}")
        time.sleep(0.05)
    if peer.admin:
        bootstrap, peer.address = peer.address, client.learn(peer.address)
        if peer.address == broker:
            stop(peer)
            raise Lost(f"{name}: Metadata through {bootstrap} names the broker's own address {broker}")
    return peer


def stop(peer: Peer) -> None:
    for process in filter(None, (peer.reader, peer.process)):
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def differences(peer: Peer) -> list[str]:
    """Where klamm's counters of Produce and Fetch differ from what was sent and came back."""
    with urllib.request.urlopen(f"{peer.admin}/v1/counters", timeout=5) as answer:
        lanes = json.load(answer)["lanes"]
    found = []
    for key, api in ((frames.PRODUCE, "Produce"), (frames.FETCH, "Fetch")):
        wanted = peer.tally.get(key, Tally())
        chosen = [lane for lane in lanes if lane["api"] == api and lane["client_id"] == frames.CLIENT_ID]
        for name in Tally.__slots__:
            counted, sent = sum(lane[name] for lane in chosen), getattr(wanted, name)
            if counted != sent:
                found.append(f"{peer.name}: {api} {name}: counted {counted}, generator {sent}")
        versions = {lane["version"] for lane in chosen}
        if wanted.requests and versions != {frames.VERSION[key]}:
            found.append(f"{peer.name}: {api} counted at versions {sorted(versions)}")
    return found


def _start(
    name: str,
    address: Address,
    command: list[str],
    folder: Path,
    cpus: set[int],
    environment: Mapping[str, str] = {},
) -> Peer:
    path = folder / f"{name}.log"
    with open(path, "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
    return Peer(name, address, process, log=path)


def _ready(url: str) -> bool:
    if not url:
        return True
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _answers(address: Address) -> bool:
    try:
        client.learn(address)
    except OSError:
        return False
    return True

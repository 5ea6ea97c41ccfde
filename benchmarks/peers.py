"""The proxies that are measured, by name, and how klamm is started."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import others
from benchmarks.others import (
    HAPROXY,
    HAPROXY_2,
    HAPROXY_SPLICE,
    KROXYLICIOUS,
    KROXYLICIOUS_READING,
    PUMP,
    SPLICE,
    TOXIPROXY,
)
from benchmarks.peer import HOST, Absent, Address, Lost, Peer, free_ports, launch
from benchmarks.traffic import client, frames, workloads
from benchmarks.traffic import tls as load_tls
from benchmarks.traffic.client import Counters
from benchmarks.traffic.tls import Tls

START_S = 20.0
DIRECT = "direct"
KLAMM_HEADER, KLAMM_FULL = "klamm-header", "klamm-full"
COMPILED_HEADER, COMPILED_FULL = "compiled-header", "compiled-full"
LEVELS = {KLAMM_HEADER: "header", KLAMM_FULL: "full", COMPILED_HEADER: "header", COMPILED_FULL: "full"}
COMPILED = Path(__file__).resolve().parent.parent / ".venv" / "compiled"  # made by `make .venv/compiled`
OTHER_RULES, HEADER_RULE = "klamm-1000-rules", "klamm-header-rule"
FEW_WATCHED, ALL_WATCHED, ALL_MATCH = "klamm-tail-few", "klamm-tail", "klamm-tail-all-match"
FEW_SHOWN, ALL_SHOWN = "klamm-web-few", "klamm-web"
KLAMMS = tuple(LEVELS)
NAMES = (DIRECT, SPLICE, HAPROXY, *KLAMMS)
BESIDE = (
    DIRECT, PUMP, HAPROXY_SPLICE, HAPROXY, TOXIPROXY, KROXYLICIOUS, KROXYLICIOUS_READING,
    KLAMM_FULL, COMPILED_HEADER, COMPILED_FULL,
)  # fmt: skip
RULED = (DIRECT, KLAMM_FULL, OTHER_RULES, HEADER_RULE)
WATCHED = (DIRECT, KLAMM_FULL, FEW_WATCHED, ALL_WATCHED, ALL_MATCH, FEW_SHOWN, ALL_SHOWN)
FILTERS = {  # of `klamm tail`, on two fields of the body
    FEW_WATCHED: [f"acks == -1 and timeout_ms == {workloads.RARE_TIMEOUT_MS}"],
    ALL_WATCHED: [],
    ALL_MATCH: ["acks == -1 and timeout_ms > 0"],
}
SHOWN = {FEW_SHOWN: FILTERS[FEW_WATCHED], ALL_SHOWN: []}  # of the page of `klamm web`
WORKERS = "klamm-workers-2"
LED = (DIRECT, HAPROXY, HAPROXY_2, KLAMM_FULL, WORKERS)
CAPTURED, CAPTURED_WHOLE = "klamm-capture", "klamm-capture-keep"
CAPTURES = {CAPTURED: "blank", CAPTURED_WHOLE: "keep"}  # of records
CAPTURING = (DIRECT, KLAMM_FULL, *CAPTURES)
SECURE = (DIRECT, HAPROXY, KLAMM_FULL, COMPILED_FULL)
RULES = {
    OTHER_RULES: "".join(
        f"  - {{api: {api}, error: 41}}\n" for api in ("CreateTopics", "OffsetCommit") * 500
    ),
    HEADER_RULE: "  - {api: [Produce, Fetch], versions: 3+, chance: 0.000000001, delay: 1ms}\n",
}


def _direct(broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    return Peer(DIRECT, broker)


def _klamm(name: str, level: str, broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    program = Path(sys.executable).with_name("klamm")
    if not program.exists():
        raise Absent(f"{program.name} is not installed beside {Path(sys.executable).name} (pip install -e .)")
    compiled = name in (COMPILED_HEADER, COMPILED_FULL)
    if compiled and not COMPILED.exists():
        raise Absent("it is not compiled: make .venv/compiled")
    first = free_ports(4)
    last, admin = first + 2, first + 3
    config = folder / f"{name}.yaml"
    config.write_text(f"metrics:\n  level: {level}\n")
    rules = folder / f"{name}-rules.yaml"
    rules.write_text(f"rules:\n{RULES.get(name, '  []')}")
    command = [str(program), "run", f"{broker[0]}:{broker[1]}", "--listen", f"{HOST}:{first}-{last}"]
    command += ["--admin", f"{HOST}:{admin}", "--config", str(config)]
    command += ["--rules", str(rules), "--seed", "1"] if name in RULES else []
    command += ["--workers", "2"] if name == WORKERS else []
    command += ["--listen-tls-cert", str(tls.identity)] if tls else []
    command += ["--upstream-ca", str(tls.authority)] if tls and tls.upstream else []
    if name in CAPTURES:
        command += ["--capture", str(folder / f"{name}-kept"), "--capture-records", CAPTURES[name]]
    peer = launch(
        name, (HOST, first), command, folder, cpus, {"PYTHONPATH": str(COMPILED)} if compiled else {}
    )
    peer.admin, peer.rewrites = f"http://{HOST}:{admin}", True
    return peer


def _tailed(name: str, broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    """With a reader of its live stream, which takes all exchanges."""
    peer = _klamm(name, "full", broker, folder, cpus, tls)
    while not _ready(peer.admin) and peer.process is not None and peer.process.poll() is None:
        time.sleep(0.05)
    program = Path(sys.executable).with_name("klamm")
    admin = peer.admin.removeprefix("http://")
    if name in SHOWN:
        command = [sys.executable, "-m", "benchmarks.traffic.live_reader", admin, *SHOWN[name]]
    else:
        command = [str(program), "tail", *FILTERS[name], "--json", "--admin", admin]
    with open(folder / f"{name}.lines", "wb") as lines:
        peer.reader = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=lines, stderr=lines)
    return peer


_STARTERS: dict[str, Callable[[Address, Path, set[int], Tls | None], Peer]] = {
    DIRECT: _direct,
    **others.STARTERS,
    **{name: partial(_klamm, name, level) for name, level in LEVELS.items()},
    OTHER_RULES: lambda *where: _klamm(OTHER_RULES, "full", *where),
    WORKERS: partial(_klamm, WORKERS, "full"),
    HEADER_RULE: lambda *where: _klamm(HEADER_RULE, "full", *where),
    **{name: partial(_klamm, name, "full") for name in CAPTURES},
    **{name: partial(_tailed, name) for name in (*FILTERS, *SHOWN)},
}


def start(name: str, broker: Address, folder: Path, cpus: set[int], tls: Tls | None = None) -> Peer:
    """A peer that answers. Raises Absent where it is not installed or does not come up within START_S."""
    peer = _STARTERS[name](broker, folder, cpus, tls)
    peer.tls = load_tls.of_client(tls) if tls else None
    begun = time.monotonic()
    wait_for(peer)
    peer.answers_after_s = time.monotonic() - begun
    if peer.rewrites:
        bootstrap, peer.address = peer.address, client.learn(peer.address, peer.tls)
        if peer.address == broker:
            stop(peer)
            raise Lost(f"{name}: Metadata through {bootstrap} names the broker's own address {broker}")
    return peer


def wait_for(peer: Peer) -> None:
    """Until it answers. Raises Absent if it does not within START_S."""
    deadline = time.monotonic() + START_S
    while not (_ready(peer.admin) and _answers(peer)):
        ended = peer.process is not None and peer.process.poll() is not None
        if ended or time.monotonic() > deadline:
            stop(peer)
            raise Absent(f"{'ended' if ended else f'not ready after {START_S:.0f} s'}: {peer.log_tail()}")
        time.sleep(0.05)


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
        rows = json.load(answer)["requests"]
    found = []
    apis = workloads.API_NAMES.values()
    ours = [row for row in rows if row["client_id"] == frames.CLIENT_ID and row["api"] in apis]
    counters = {(workloads.API_NAMES[key], version): sent for (key, version), sent in peer.counters.items()}
    for api, version in sorted(counters.keys() | {(row["api"], row["version"]) for row in ours}):
        wanted = counters.get((api, version), Counters())
        chosen = [row for row in ours if (row["api"], row["version"]) == (api, version)]
        for name in Counters.__slots__:
            counted, sent = sum(row[name] for row in chosen), getattr(wanted, name)
            if counted != sent:
                found.append(f"{peer.name}: {api} {version} {name}: counted {counted}, generator {sent}")
    return found


def _ready(url: str) -> bool:
    if not url:
        return True
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _answers(peer: Peer) -> bool:
    try:
        client.learn(peer.address, peer.tls)
    except OSError:
        return False
    return True

"""The ground on which detectors are judged: a cluster, klamm with a capture in front, clients side by side.

    python -m tests.pipeline.ground --out DIR [--seconds 20] [--healthy] [--roll] [--cured] NAME ...

NAME is a module in a folder of tests/pipeline/misbehaviour, or `all`. Such a module has

    CLIENT_ID = "tiny-batches"      what the client ids of its connections begin with
    EXPECTED = {"tiny_batches"}     the detectors that may name it
    def run(bootstrap, seconds)     misbehave for about so long, and return

and may have

    def cured(bootstrap, seconds)   do the same work as the detector's advice says
    SUBJECTS = ("broker 3",)        what findings without a client may be about, besides its topics and groups
    LISTENER = "SASL_PLAINTEXT"     its bootstrap address is of this listener, through klamm (kraft.USERS);
                                    UNORDERED: of PLAINTEXT, and klamm's brokers hold Fetch answers back
    DIRECT = True                   the environment variable KLAMM_DIRECT is the brokers' own address
    def environment(cluster, seconds)
        runs in a thread of the ground meanwhile; it may pause and continue a broker (SIGSTOP and SIGCONT to
        cluster.brokers[3].process.child), but start none: processes die with the thread that started them
"""

import argparse
import fcntl
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tests.brokers.jars import ROOT
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.captures.tcpdump import tcpdump
from tests.e2e.klamm_process import COMMAND, Klamm
from tests.pipeline import healthy
from tests.pipeline.facts import Facts, facts
from tests.strangers.changing import Asked, Body, Late, changing

LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT")
UNORDERED = "UNORDERED"  # PLAINTEXT behind a proxy by which other answers come before those to Fetch
NAMES = {"PLAINTEXT": "kafka", "SASL_PLAINTEXT": "kafka-sasl", UNORDERED: "kafka-unordered"}  # for klamm
FORESEEN = ("out_of_order",)  # problems that klamm is to meet
SETTINGS = {"auto.create.topics.enable": "true", "min.insync.replicas": "2"}
ZONES = {1: "zone-1", 2: "zone-2", 3: "zone-3"}  # of the brokers
FOLDER = Path(__file__).resolve().parent / "misbehaviour"
EACH_S = 0.8  # between the starts of two clients: all at once, they starve each other on a small machine
PATIENCE_S = 60.0  # for a client that is to end
HOST = "127.0.0.1"
BLOCK = 100  # ports of a klamm


class Ended(NamedTuple):
    """A client's process: its exit code, None where it had to be killed, and the end of its output."""

    code: int | None
    tail: str


class Played(NamedTuple):
    """A ground that is no more: its capture, and the reports of clients and Kafka."""

    capture: Path
    ended: dict[str, Ended]
    reports: dict[str, dict[str, Any]]  # by client id of the healthy clients
    facts: Facts  # of the healthy topics and groups
    problems: list[Any]  # that klamm met
    packets: Path  # the same traffic between clients and klamm as tcpdump saw it, where that was wanted
    brokers: dict[str, str]  # the addresses that clients know, and the names that klamm has for them


class Ground:
    """A running cluster, and a klamm with a bootstrap address for each of NAMES."""

    def __init__(self, folder: Path, cluster: Cluster, klamms: dict[str, Klamm]) -> None:
        self.folder, self.cluster, self.klamms = folder, cluster, klamms

    @property
    def capture(self) -> Path:
        return self.folder / "capture"

    @property
    def ports(self) -> str:
        """klamm's, in tcpdump's words."""
        blocks = (f"{klamm.port}-{klamm.port + BLOCK - 1}" for klamm in self.klamms.values())
        return " or tcp portrange ".join(blocks)

    def brokers(self) -> dict[str, str]:
        """The addresses that clients know, and klamm's names for these brokers."""
        nodes = json.loads(self.klamms["PLAINTEXT"].get("/v1/brokers"))
        return {node["listening"]: str(node["node_id"]) for node in nodes if node["kind"] == "broker"}

    def start(self, name: str, command: list[str], env: dict[str, str] | None = None) -> Process:
        """A client that logs to a file of its name."""
        return Process(command, self.folder / f"{name}.log", {"PYTHONPATH": str(ROOT), **(env or {})})

    def misbehave(self, name: str, seconds: float, cured: bool = False) -> Process:
        """The client of one module, which misbehaves, or is cured of it."""
        module = misbehaviour(name)
        bootstrap = self.klamms[getattr(module, "LISTENER", "PLAINTEXT")].bootstrap
        env = {"KLAMM_DIRECT": self.cluster.bootstrap()} if getattr(module, "DIRECT", False) else None
        command = [
            sys.executable,
            "-m",
            "tests.pipeline.misbehaviour",
            module.__name__,
            bootstrap,
            str(seconds),
            *["cured"] * cured,
        ]
        return self.start(name, command, env)

    def play(
        self,
        names: Sequence[str],
        seconds: float,
        with_healthy: bool = False,
        roll: bool = False,
        cured: bool = False,
    ) -> dict[str, Ended]:
        """Clients side by side, one begun after the other, until each has ended; how, by name.

        Those that need something done to the cluster come last: others are to be judged without it.
        """
        if with_healthy:
            healthy.create_topics(self.cluster)
        bootstrap = self.klamms["PLAINTEXT"].bootstrap
        commands = healthy.COMMANDS if with_healthy else {}
        all_s = seconds + EACH_S * (len(commands) + len(names))
        found = {name: getattr(misbehaviour(name), "environment", None) for name in names if not cured}
        hooks = {name: hook for name, hook in found.items() if hook}
        running: dict[str, Process] = {}
        for name, command in commands.items():
            running[name] = self.start(name, command(bootstrap, all_s - EACH_S * len(running)))
            time.sleep(EACH_S)
        for name in sorted(names, key=lambda name: name in hooks):
            running[name] = self.misbehave(name, seconds, cured)
            time.sleep(EACH_S)
        threads = [threading.Thread(target=hook, args=(self.cluster, seconds)) for hook in hooks.values()]
        for thread in threads:
            thread.start()
        if roll:
            time.sleep(seconds / 10)
            healthy.roll(self.cluster, pause_s=seconds / 20)
        for thread in threads:
            thread.join()
        deadline = time.monotonic() + seconds + PATIENCE_S
        return {name: self._ended(process, deadline) for name, process in running.items()}

    def _ended(self, process: Process, deadline: float) -> Ended:
        while process.running and time.monotonic() < deadline:
            time.sleep(0.05)
        code = process.child.poll()
        process.kill()
        return Ended(code, process.tail(15))


def played(
    folder: Path, names: Sequence[str], seconds: float, roll: bool = False, with_packets: bool = False
) -> Played:
    """Misbehaving clients beside the healthy load."""
    packets = folder / "packets.pcap"
    with ground(folder) as made:
        with tcpdump(packets, "lo", made.ports) if with_packets else nullcontext():
            ended = made.play(names, seconds, with_healthy=True, roll=roll)
        counts = {}
        for name in healthy.COMMANDS:
            counts |= healthy.reports_of(folder / f"{name}.log")
        kafka_facts = facts(made.cluster, healthy.CLIENT_ID)
        problems, brokers = made.klamms["PLAINTEXT"].problems(), made.brokers()
    return Played(made.capture, ended, counts, kafka_facts, problems, packets, brokers)


def misbehaviour(name: str) -> ModuleType:
    (file,) = FOLDER.glob(f"*/{name}.py")
    return import_module(f"tests.pipeline.misbehaviour.{file.parent.name}.{name}")


def names() -> list[str]:
    """The modules that are misbehaving clients."""
    stems = sorted(path.stem for path in FOLDER.glob("*/*.py"))
    return [stem for stem in stems if hasattr(misbehaviour(stem), "CLIENT_ID")]


def curable() -> list[str]:
    """The modules whose clients can do as their detector advises."""
    return [name for name in names() if hasattr(misbehaviour(name), "cured")]


def late_fetches(asked: Asked, body: bytes) -> Body:
    """Answers to Fetch come behind those to later requests."""
    return Late(body) if asked.api == "Fetch" else body


@contextmanager
def klamm_with_capture(
    folder: Path, cluster: Cluster, bootstraps: Mapping[str, str], records: str = "hash"
) -> Iterator[dict[str, Klamm]]:
    """One klamm, by listener, in front of `bootstraps`; it captures from its start to its end into
    `folder`/capture.
    """
    admin = f"{HOST}:{free_ports()}"
    ports = {listener: free_block() for listener in bootstraps}
    config = {
        "clusters": [
            {
                "name": NAMES[listener],
                "bootstrap": bootstraps[listener],
                "listen": f"{HOST}:{port}-{port + BLOCK - 1}",
            }
            for listener, port in ports.items()
        ],
        "admin": admin,
        "capture": {"folder": str(folder / "capture"), "records": records},
    }
    (folder / "klamm.yaml").write_text(json.dumps(config))
    process = Process([str(COMMAND), "run", "--config", str(folder / "klamm.yaml")], folder / "klamm.log")
    klamms = {listener: Klamm(process, HOST, port, admin, FORESEEN) for listener, port in ports.items()}

    def knows_all() -> bool:
        found = json.loads(klamms["PLAINTEXT"].get("/v1/brokers"))
        return sum(
            node["cluster"] == NAMES["PLAINTEXT"] and node["kind"] == "broker" for node in found
        ) == len(cluster.brokers)

    try:
        for klamm in klamms.values():
            klamm.wait_until_listening()
        wait_for(knows_all, "klamm", [process], timeout_s=60)
        yield klamms
    finally:
        process.stop(patience_s=30)


@contextmanager
def ground(folder: Path, records: str = "hash") -> Iterator[Ground]:
    """All of it in `folder`, and nothing left at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "brokers").mkdir()
    with ExitStack() as stack:
        cluster = stack.enter_context(
            kraft_cluster(folder / "brokers", listeners=LISTENERS, settings=SETTINGS, racks=ZONES)
        )
        healthy.settle(cluster)
        brokers = {node_id: cluster.address(node_id) for node_id in cluster.brokers}
        unordered = stack.enter_context(changing(brokers, late_fetches))
        bootstraps = {listener: cluster.bootstrap(listener) for listener in LISTENERS} | {
            UNORDERED: unordered
        }
        klamms = stack.enter_context(klamm_with_capture(folder, cluster, bootstraps, records))
        yield Ground(folder, cluster, klamms)


@contextmanager
def turn() -> Iterator[None]:
    """Wait until no other ground runs on this machine: two would starve each other."""
    with (Path(tempfile.gettempdir()) / "klamm-ground.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--healthy", action="store_true", help="a healthy load beside them")
    parser.add_argument("--roll", action="store_true", help="the brokers restart one by one meanwhile")
    parser.add_argument("--cured", action="store_true", help="they do as the detectors' advice says")
    parser.add_argument("--records", default="hash", choices=["blank", "keep", "hash"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if (options.out / "brokers").exists():
        parser.error(f"{options.out} has brokers of an earlier run: give --out a new folder")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    every = curable() if options.cured else names()
    chosen = every if options.names == ["all"] else options.names
    began = time.monotonic()
    with turn(), ground(options.out.resolve(), options.records) as made:
        print(f"up after {time.monotonic() - began:.1f} s", flush=True)
        ended = made.play(chosen, options.seconds, options.healthy, options.roll, options.cured)
        problems = made.klamms["PLAINTEXT"].problems()
    for client, (code, tail) in ended.items():
        print(f"{client}: exit {code}" + ("" if code == 0 else f"\n{tail}"))
    for problem in problems:
        print(f"klamm met a problem: {problem}")
    print(f"capture: {made.capture} after {time.monotonic() - began:.1f} s")
    return int(any(code != 0 for code, _ in ended.values()))


if __name__ == "__main__":
    sys.exit(main())

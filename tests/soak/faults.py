"""The faults of a run. Each begins and lasts in its function, and is over when that returns."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from tests.brokers.processes import wait_for
from tests.e2e import topics
from tests.soak.clients import COPIERS, ORDERS, PARTITIONS
from tests.soak.ground import Ground

LASTS_S = (2.0, 9.0)  # brokers of this run are given up after 5 s
TWO_AT_ONCE = 1 / 2  # of the faults of brokers have one of klamm or of a copier within them
FRAGILE = (2, 3)  # brokers; the first is the controller, too
RULES: tuple[Mapping[str, Any], ...] = (
    {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "chance": "20%"},
    {"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "chance": "20%"},
    {"api": "Produce", "delay": "200ms"},
    {"api": "Metadata", "delay": "500ms"},
    {"api": "Produce", "disconnect": True, "chance": "5%"},
    {"api": "Fetch", "disconnect": "mid frame", "chance": "5%"},
    {"api": "EndTxn", "error": "COORDINATOR_LOAD_IN_PROGRESS", "chance": "30%"},
    {"api": "Heartbeat", "error": "COORDINATOR_NOT_AVAILABLE", "chance": "30%"},
    {"throttle": "100ms", "api": "Produce"},
)

Fault = Callable[[Ground, Random], str]  # what it did, for the report


def _last(random: Random) -> float:
    """Let it last; for how long (s)."""
    seconds = random.uniform(*LASTS_S)
    time.sleep(seconds)
    return seconds


def _last_with_another(ground: Ground, random: Random) -> str:
    """Let it last; for how long, and what else happened meanwhile, every other time."""
    first, then = (random.uniform(*LASTS_S) / 2 for _ in range(2))
    time.sleep(first)
    told = random.choice(MEANWHILE)(ground, random) if random.random() < TWO_AT_ONCE else ""
    time.sleep(then)
    return f"{first + then:.1f} s" + (f"; meanwhile {told}" if told else "")


def kill_a_broker(ground: Ground, random: Random) -> str:
    node = random.choice(FRAGILE)
    ground.kafka.kill(node)
    lasted = _last_with_another(ground, random)
    ground.kafka.start([node])
    return f"broker {node} was killed, and started on another port after {lasted}"


def freeze_a_broker(ground: Ground, random: Random) -> str:
    node = random.choice(FRAGILE)
    child = ground.kafka.brokers[node].process.child
    child.send_signal(signal.SIGSTOP)
    try:
        lasted = _last_with_another(ground, random)
    finally:
        child.send_signal(signal.SIGCONT)
    ground.kafka.wait_until_ready()
    return f"broker {node} was frozen for {lasted}"


def cut_a_broker_off(ground: Ground, random: Random) -> str:
    node = random.choice(FRAGILE)
    _, port = ground.kafka.address(node)
    with _dropped(port):
        lasted = _last_with_another(ground, random)
    ground.kafka.wait_until_ready()
    return f"broker {node} got no packet for {lasted}"


@contextmanager
def _dropped(port: int) -> Iterator[None]:
    rule = ["INPUT", "-p", "tcp", "--dport", str(port), "-j", "DROP"]
    subprocess.run(["iptables", "-I", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-D", *rule], check=True)


def move_leaders(ground: Ground, random: Random) -> str:
    partition, nodes = random.randrange(PARTITIONS), random.sample((1, 2, 3), 3)
    topics.move(ground.kafka.bootstrap(), ORDERS, partition, nodes)
    return f"partition {partition} of {ORDERS} moved to broker {nodes[0]}"


def upgrade_klamm(ground: Ground, random: Random) -> str:
    ground.klamms.start()
    return "another klamm took the place of the one that ran (--handover)"


def kill_klamm(ground: Ground, random: Random) -> str:
    ground.klamms.kill()
    ground.klamms.start()
    return "klamm was killed, and started again"


def drain_klamm(ground: Ground, random: Random) -> str:
    code = ground.klamms.running.pop().stop(patience_s=60)
    ground.klamms.start()
    return f"klamm was drained by SIGTERM, ended with {code}, and was started again"


def kill_a_worker(ground: Ground, random: Random) -> str:
    worker = random.choice(ground.workers)
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: worker not in ground.workers and len(ground.workers) > 1, "another worker")
    return "a worker of klamm was killed"


def switch_rules(ground: Ground, random: Random) -> str:
    rule = {"name": "soak", **random.choice(RULES)}
    ground.admin.add_rule(rule)
    seconds = _last(random)
    ground.admin.remove_rule("soak")
    words = ", ".join(f"{name} {value}" for name, value in rule.items() if name != "name")
    return f"a rule for {seconds:.1f} s: {words}"


def capture(ground: Ground, random: Random) -> str:
    folder = ground.folder / f"capture-{random.getrandbits(32):08x}"
    ground.admin.begin_capture(str(folder))
    seconds = _last(random)
    ground.admin.end_capture()
    size = sum(file.stat().st_size for file in folder.iterdir())
    return f"klamm captured for {seconds:.1f} s, {size / 1e6:.1f} MB"


def kill_a_copier(ground: Ground, random: Random) -> str:
    name = random.choice(COPIERS)
    ground.clients.kill_copier(name)
    return f"{name} was killed in its transaction, and started again"


# A klamm that hands over while a broker is frozen ends with 3: requests to that broker are still under way.
MEANWHILE: tuple[Fault, ...] = (kill_klamm, drain_klamm, kill_a_worker, kill_a_copier)
FAULTS: tuple[Fault, ...] = (
    *(kill_a_broker, freeze_a_broker, cut_a_broker_off, move_leaders, switch_rules, capture),
    *(upgrade_klamm, *MEANWHILE),
)

"""Scenarios on the real cluster: a client at work through klamm, and `klamm scenario run` beside it.

The workloads are called PROGRAM BOOTSTRAP TOPIC KIND, with KIND plain, sasl or transactions. They produce 40
records a second to three partitions (or ten transactions), read them in a group, and go on until killed.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.jars import ROOT, compiled, java
from tests.brokers.kraft import VERSION, Cluster
from tests.brokers.processes import Process, wait_for
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of

FOLDER = Path(__file__).resolve().parent
KINDS = {"expired-sasl-session": "sasl", "fenced-producer": "transactions"}
WORKS = {"plain": "Produce", "sasl": "Produce", "transactions": "EndTxn"}
LEADERS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def _java() -> list[str]:
    logging = f"-Dlog4j2.configurationFile={ROOT}/tests/clients/java/reactions.properties"
    classes = compiled(VERSION, FOLDER / "Workload.java")
    return java(VERSION, "Workload", options=(logging,), heap_mb=128, classes=classes)


WORKLOADS: Mapping[str, Callable[[], list[str]]] = {
    "librdkafka": lambda: [sys.executable, str(FOLDER / "librdkafka_workload.py")],
    "java": _java,
}


class Outcome(NamedTuple):
    """A scenario that was played: exit code, what was printed, and the report."""

    code: int
    output: str
    report: dict[str, Any]

    @property
    def missed(self) -> dict[tuple[str, str], str]:
        """(phase, expectation) -> what was measured, of those that were not met."""
        parts = [*self.report["phases"], {"name": "all", "expectations": self.report["expectations"]}]
        return {
            (part["name"], each["text"]): each["measured"]
            for part in parts
            for each in part["expectations"]
            if not each["met"]
        }


def played(kafka: Cluster, client: str, scenario: str, speed: float, directory: Path) -> Outcome:
    """One ready scenario, or a file, against one client, with a klamm and a topic of its own."""
    kind = KINDS.get(scenario, "plain")
    topic = f"{Path(scenario).stem}-{client}"
    new = NewTopic(topic, len(LEADERS), replica_assignment=LEADERS)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap()})
    admin.create_topics([new])[topic].result(30)
    listener = "SASL_PLAINTEXT" if kind == "sasl" else "PLAINTEXT"
    log = directory / f"{topic}.klamm.log"
    with klamm_in_front_of(kafka.bootstrap(listener), "127.0.0.1", log, ready=kind != "sasl") as klamm:
        klamm.wait_until_listening()
        command = [*WORKLOADS[client](), klamm.bootstrap, topic, kind]
        work = Process(command, directory / f"{topic}.client.log")
        try:
            wait_for(lambda: _works(klamm, WORKS[kind]), f"{client} at work", [work], timeout_s=60)
            return run(klamm, scenario, speed, directory / f"{topic}.json")
        finally:
            work.kill()


def _works(klamm: Klamm, api: str) -> bool:
    """Whether it produces, reads, and has settled in its group."""
    counted: dict[str, int] = {}
    for row in klamm.counters()["requests"]:
        counted[row["api"]] = counted.get(row["api"], 0) + row["responses"]
    return all(counted.get(name, 0) > least for name, least in ((api, 20), ("Heartbeat", 3), ("Fetch", 3)))


def run(klamm: Klamm, scenario: str, speed: float, file: Path) -> Outcome:
    command = [str(COMMAND), "scenario", "run", scenario, "--admin", klamm.admin]
    done = subprocess.run(
        [*command, "--speed", str(speed), "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout, json.loads(file.read_text()))

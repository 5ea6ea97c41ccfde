"""klamm is drained and started again under real clients: no record is lost or doubled, no call fails."""

import signal
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT, PER_S, ROUNDS = 900, 60, 3
PRODUCED = 20  # requests, before a drain


def _work(klamm: Klamm) -> bool:
    """Do both clients? One that begins while klamm is away would give up."""
    rows = klamm.counters()["requests"]
    answered = {
        api: sum(row["responses"] for row in rows if row["api"] == api) for api in ("Produce", "Fetch")
    }
    return answered["Produce"] >= PRODUCED and answered["Fetch"] > 0


def ran(command: list[str]) -> str:
    """Its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def _ended(clients: list[Process]) -> bool:
    return not any(client.running for client in clients)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("client", ["librdkafka", "java", "aiokafka"])
def test_a_producer_and_a_consumer_go_on_over_drains(client: str, kafka: Cluster, tmp_path: Path) -> None:
    topic, first = f"drained-{client}", free_block("127.0.0.1")
    topics.create(kafka.bootstrap(), topic, topics.spread())
    produce = {"do": "produce", "topic": topic, "count": COUNT, "per_s": PER_S, "idempotent": True}
    consume = {"do": "consume", "topic": topic, "count": COUNT, "group": topic}
    whole = records.expected(topic, "seed", range(COUNT))
    grouped = consume | {"count": len(set(whole)), "unique": True, "list": True}
    options = ("--state", str(tmp_path / "state"))
    with ExitStack() as stack:
        clients: list[Process] = []
        for number in range(ROUNDS):
            log, last = tmp_path / f"klamm-{number}.log", number == ROUNDS - 1
            with klamm_in_front_of(
                kafka.bootstrap(), "127.0.0.1", log, *options, first=first, drains=not last
            ) as klamm:
                for action in () if clients else (grouped, produce):
                    command = programs.command(client, klamm.bootstrap, action)
                    clients.append(Process(command, tmp_path / f"{action['do']}.log"))
                    stack.callback(clients[-1].stop)
                if last:
                    wait_for(partial(_ended, clients), "the clients' end", [klamm.process], timeout_s=90)
                else:
                    wait_for(partial(_work, klamm), "both clients", [klamm.process, *clients])
                    klamm.process.child.send_signal(signal.SIGTERM)
            if not last:
                assert "every connection has ended" in log.read_text()
    [consumed], [produced] = (programs.results(each.log.read_text()) for each in clients)
    assert (produced["acknowledged"], produced["failed"]) == (COUNT, [])
    assert set(consumed["fingerprints"]) == set(whole)
    again = consume | {"group": f"{topic}-again"}
    [stored] = programs.results(ran(programs.command("librdkafka", kafka.bootstrap(), again)))
    assert (stored["count"], stored["digest"]) == (COUNT, records.digest(whole))

"""klamm's rate beside a quota of a real broker: the same client is held to the same rate by both."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers.kraft import Cluster
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import klamm_in_front_of

CLIENTS = ("librdkafka", "java", "franz-go")
LIMIT = 250  # bytes a second; requests of one small record have some 150 to 200
RECORDS = 25
TOPIC = "quotas"

pytestmark = pytest.mark.brokers


class Sent(NamedTuple):
    """How many records were acknowledged, and in how many seconds, from the first to the last."""

    records: int
    seconds: float


@contextmanager
def quota(kafka: Cluster, client_id: str) -> Iterator[None]:
    """A broker's own, on what this client id produces."""

    def alter(remove: bool) -> None:
        entry = {
            "entity": [{"entity_type": "client-id", "entity_name": client_id}],
            "ops": [{"key": "producer_byte_rate", "value": float(LIMIT), "remove": remove}],
        }
        answer = ask(kafka.address(1), "AlterClientQuotas", 1, {"entries": [entry]})
        assert answer["entries"][0]["error_code"] == 0

    alter(False)
    yield
    alter(True)


def sent(client: str, bootstrap: str, log: Path) -> Sent:
    began = time.monotonic()
    events = DRIVERS[client].run(bootstrap, "produce", TOPIC, log=log, n=RECORDS, timeout_ms=60_000)
    done = [event for event in events if event["event"] == "produced"]
    waited_ms = sum(event["ms"] for event in done)
    assert time.monotonic() - began >= waited_ms / 1000
    return Sent(len(done), waited_ms / 1000)


def test_a_rate_holds_a_client_back_as_a_broker_s_quota_does(kafka: Cluster, tmp_path: Path) -> None:
    topics.create(kafka.bootstrap(), TOPIC, [[1]])
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"rules:\n  - {{api: Produce, rate: {{bytes: {LIMIT}}}}}\n")
    logs = iter(range(100))

    def each(bootstrap: str) -> dict[str, Sent]:
        with ThreadPoolExecutor(len(CLIENTS)) as pool:
            runs = {
                client: pool.submit(sent, client, bootstrap, tmp_path / f"{next(logs)}.log")
                for client in CLIENTS
            }
            return {client: run.result() for client, run in runs.items()}

    with klamm_in_front_of(
        kafka.bootstrap(), "127.0.0.1", tmp_path / "klamm.log", "--rules", str(rules)
    ) as klamm:
        by_klamm = each(klamm.bootstrap)
    with (
        quota(kafka, "librdkafka-reactions"),
        quota(kafka, "java-reactions"),
        quota(kafka, "franz-go-reactions"),
    ):
        by_broker = each(kafka.bootstrap())
    print(f"{by_klamm=}\n{by_broker=}")
    for client in CLIENTS:
        ours, theirs = by_klamm[client], by_broker[client]
        assert ours.records == theirs.records == RECORDS, client
        assert ours.seconds == pytest.approx(theirs.seconds, rel=0.5), client
        assert theirs.seconds > 2, client

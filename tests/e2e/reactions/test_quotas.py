"""klamm's rate beside a quota of a real broker: the same client is told to wait by both alike."""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from klamm.captures.exchanges import exchanges
from klamm.captures.frames import Framing
from klamm.captures.storage.reading import read
from klamm.rules.actions.quota import Quota
from tests.brokers.kraft import Cluster
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import klamm_in_front_of

CLIENTS = ("librdkafka", "java", "franz-go")
LIMIT = 250  # bytes a second; requests of one small record have some 150 to 200
WINDOW_NS = 10_000_000_000  # of a broker, and of a rule
RECORDS = 25
TOPIC = "quotas"
PRODUCE = 0

pytestmark = pytest.mark.brokers


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


def produce(client: str, bootstrap: str, log: Path) -> int:
    """How many records were acknowledged."""
    events = DRIVERS[client].run(bootstrap, "produce", TOPIC, log=log, n=RECORDS, timeout_ms=60_000)
    return sum(event["event"] == "produced" for event in events)


def produced(kafka: Cluster, folder: Path, *options: str) -> Path:
    """The capture of all clients at once, each through a klamm with these options."""
    folder.mkdir()
    capture, log = folder / "capture", folder / "klamm.log"
    with (
        klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, "--capture", str(capture), *options) as klamm,
        ThreadPoolExecutor(len(CLIENTS)) as pool,
    ):
        runs = [pool.submit(produce, client, klamm.bootstrap, folder / f"{client}.log") for client in CLIENTS]
        assert [run.result() for run in runs] == [RECORDS] * len(CLIENTS)
    return capture


def waits(capture: Path, counted: Literal["request", "response"]) -> dict[str, tuple[float, float]]:
    """The seconds that each client was told to wait in all; and those that klamm computes from the sizes of
    its requests, which are `counted` when they come or when they are answered.
    """
    told: defaultdict[str, float] = defaultdict(float)
    computed: defaultdict[str, float] = defaultdict(float)
    quotas: defaultdict[str, Quota] = defaultdict(partial(Quota, LIMIT, WINDOW_NS))
    framing = Framing()
    for one in exchanges(read([capture])):
        request, response = one.request, one.response
        if request is None or response is None or request.frame is None or request.api_key != PRODUCE:
            continue
        answer = framing.exchange(one).response
        assert answer is not None
        client, when = request.client_id or "", request if counted == "request" else response
        told[client] += (answer.sent or answer).values["throttle_time_ms"] / 1e3
        computed[client] += quotas[client].take(len(request.frame), when.time_ns) / 1e9
    return {client: (told[client], computed[client]) for client in told}


def test_a_client_is_told_to_wait_as_by_a_broker_s_quota(kafka: Cluster, tmp_path: Path) -> None:
    """The times of two runs differ with what else the machine does: each is judged by the arithmetic."""
    topics.create(kafka.bootstrap(), TOPIC, [[1]])
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"rules:\n  - {{api: Produce, rate: {{bytes: {LIMIT}}}}}\n")
    by_klamm = waits(produced(kafka, tmp_path / "klamm", "--rules", str(rules)), "request")
    with ExitStack() as quotas:
        for client in CLIENTS:
            quotas.enter_context(quota(kafka, f"{client}-reactions"))
        by_broker = waits(produced(kafka, tmp_path / "broker"), "response")
    print(f"{by_klamm=}\n{by_broker=}")
    for found in (by_klamm, by_broker):
        assert found.keys() == {f"{client}-reactions" for client in CLIENTS}
        for client, (told, computed) in found.items():
            assert told > 1, client
            assert told == pytest.approx(computed, rel=0.2), client

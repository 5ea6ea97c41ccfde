"""One klamm takes the place of another under real clients: none is refused, no record is lost or doubled."""

import threading

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.clusters.handing_over import Klamms
from tests.e2e.clusters.steady_clients import SteadyClients
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm, get

pytestmark = pytest.mark.brokers

COUNT, ROUNDS = 900, 3


def _produces(klamm: Klamm, at_least: int) -> bool:
    rows = klamm.counters()["requests"]
    return sum(row["responses"] for row in rows if row["api"] == "Produce") >= at_least


@pytest.mark.sampled(1)
@pytest.mark.parametrize("client", ["librdkafka", "java", "aiokafka"])
def test_a_producer_and_a_consumer_go_on_over_upgrades(
    client: str, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("h")
    with Klamms(kafka, folder) as klamms:
        klamm = klamms.start()
        with SteadyClients(client, kafka, klamm.bootstrap, folder, f"handed-over-{client}", COUNT) as clients:
            for _ in range(ROUNDS - 1):
                wait_for(lambda: clients.work() and _produces(klamm, 20), "produce requests", [klamm.process])  # noqa: B023
                klamm = klamms.start()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_is_refused_and_klamm_is_ready_all_the_time(
    workers: int, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    over, failures, asked = threading.Event(), [], 0

    def ask_again_and_again(klamm: Klamm) -> None:
        nonlocal asked
        while not over.is_set():
            try:
                for port in (klamm.port, klamm.port + 2):
                    answer = ask((klamm.host, port), "Metadata", 12, {"topics": []})
                    assert len(answer["brokers"]) == 3, answer
                assert get(f"http://{klamm.admin}/readyz")
                asked += 1
            except (EOFError, ConnectionResetError):
                continue  # the drain of the one before has ended this connection: clients connect again
            except (OSError, AssertionError) as error:
                failures.append(error)

    with Klamms(kafka, tmp_path_factory.mktemp("h"), "--workers", str(workers)) as klamms:
        klamm = klamms.start()
        asking = threading.Thread(target=ask_again_and_again, args=[klamm])
        asking.start()
        try:
            for _ in range(ROUNDS):
                before = asked
                klamm = klamms.start()
                wait_for(lambda: asked >= before + 10 or bool(failures), "answers", [klamm.process])  # noqa: B023
        finally:
            over.set()
            asking.join()
        assert failures == []
        klamm.assert_no_problems()

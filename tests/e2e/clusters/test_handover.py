"""One klamm takes the place of another under real clients: none is refused, no record is lost or doubled."""

import threading
from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.clusters.steady_clients import SteadyClients
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import COMMAND, Klamm, get

pytestmark = pytest.mark.brokers

COUNT, ROUNDS = 900, 3


class Klamms:
    """Starts one klamm after the other, each in the place of the one before, all with the same settings."""

    def __init__(self, kafka: Cluster, folder: Path, *options: str) -> None:
        self.folder, self.first, self.admin = folder, free_block("127.0.0.1"), f"127.0.0.1:{free_ports()}"
        listen = f"127.0.0.1:{self.first}-{self.first + 99}"
        self.command = [str(COMMAND), "run", kafka.bootstrap(), "--listen", listen, "--admin", self.admin]
        self.command += ["--advertise", "127.0.0.1", "--state", str(folder / "state"), *options]
        self.command += ["--handover", str(folder / "handover")]
        self.running: list[Process] = []

    def __enter__(self) -> "Klamms":
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.running:
            each.stop()

    def start(self, *options: str) -> Klamm:
        """It serves the clients, and the one before has ended by itself."""
        log = self.folder / f"klamm-{len(self.running)}.log"
        process = Process([*self.command, *options], log)
        self.running.append(process)
        wait_for(
            lambda: "admin API:" in log.read_text() or "metrics and health" in log.read_text(),
            "klamm",
            [process],
        )
        for before in self.running[-2:-1]:
            assert before.child.wait(30) == 0, before.tail()
            assert "Traceback" not in before.log.read_text()
        return Klamm(process, "127.0.0.1", self.first, self.admin)


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

"""klamm reads its configuration again and again under real clients: no call fails, no record is lost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from klamm.client import Klamm as Api
from klamm.client import NoAnswer
from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.clusters.steady_clients import SteadyClients
from tests.e2e.klamm_process import COMMAND

pytestmark = pytest.mark.brokers

COUNT = 1800
RELOADS, MOVES = 100, 25  # each 25th reload gives the cluster other listeners: its connections end


def written(file: Path, bootstrap: str, first: int, admin: str, number: int) -> list[str]:
    """The file of one reload, and the keys that differ from the one before."""
    last = first + 90 + number // MOVES % 2
    file.with_suffix(".new").write_text(
        f"""
admin: {admin}
state: {file.parent / "state"}
log: {{apis: [{"Metadata" if number % 2 else "Heartbeat"}]}}
limits: {{drain_s: {5 + number % 2}s}}
clusters:
  - bootstrap: [{bootstrap}]
    advertise: 127.0.0.1
    listen: 127.0.0.1:{first}-{last}
    connect_timeout_s: {4 + number % 3}s
"""
    )
    file.with_suffix(".new").replace(file)
    moved = number and not number % MOVES
    changed = ["log.apis", "limits.drain_s", "clusters[kafka].connect_timeout_s"]
    return [*changed[:2], "clusters[kafka].listen", changed[2]] if moved else changed


def ready(api: Api) -> bool:
    try:
        return api.clusters()[0].ready
    except NoAnswer:
        return False


@contextmanager
def klamm_with(file: Path, admin: str, log: Path) -> Iterator[tuple[Process, Api]]:
    process = Process([str(COMMAND), "run", "--config", str(file)], log)
    try:
        api = Api(admin)
        wait_for(partial(ready, api), "klamm", [process])
        yield process, api
    finally:
        process.stop()
    assert "Traceback" not in log.read_text()


def produced(admin: str) -> int:
    """Answers to Produce so far."""
    with urlopen(f"http://{admin}/v1/counters", timeout=10) as answer:
        rows = json.load(answer)["requests"]
    return sum(row["responses"] for row in rows if row["api"] == "Produce")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("client", ["librdkafka", "java"])
def test_a_producer_and_a_consumer_go_on_over_a_hundred_reloads(
    client: str, kafka: Cluster, tmp_path: Path
) -> None:
    first, file, admin = free_block("127.0.0.1"), tmp_path / "klamm.yaml", f"127.0.0.1:{free_ports()}"
    written(file, kafka.bootstrap(), first, admin, 0)
    at, name = f"127.0.0.1:{first}", f"reloaded-{client}"
    with (
        klamm_with(file, admin, tmp_path / "klamm.log") as (klamm, api),
        SteadyClients(client, kafka, at, tmp_path, name, COUNT) as clients,
    ):
        for number in range(1, RELOADS + 1):
            before = produced(admin)
            wait_for(lambda: clients.work() and produced(admin) > before, "produce requests", [klamm])  # noqa: B023
            keys = written(file, kafka.bootstrap(), first, admin, number)
            assert sorted(api.reload_config().changed) == sorted(keys)

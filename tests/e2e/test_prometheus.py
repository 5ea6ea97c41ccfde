"""A real Prometheus scrapes klamm, and both of Prometheus' own parsers take what it serves."""

import json
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, free_ports, wait_for
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, get

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def metered(kafka: Cluster, klamm: Klamm, inside: Namespace) -> Klamm:
    """klamm after some traffic on a topic named metered."""
    topics.create(kafka.bootstrap(), "metered", topics.spread())
    actions = [
        {"do": "produce", "topic": "metered", "count": 50},
        {"do": "consume", "topic": "metered", "count": 50},
    ]
    inside.run(*programs.command("librdkafka", klamm.bootstrap, *actions))
    return klamm


@pytest.fixture(scope="module")
def prometheus(metered: Klamm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that scrapes klamm every second."""
    folder = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yml"
    scrape = f"[{{job_name: klamm, static_configs: [{{targets: ['{metered.admin}']}}]}}]"
    config.write_text(f"global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs: {scrape}\n")
    address = f"127.0.0.1:{free_ports()}"
    options = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
    ]
    program = shutil.which("prometheus")
    assert program, "the Debian package prometheus is not installed"
    process = Process([program, *options], folder / "prometheus.log")
    try:
        wait_for(lambda: _query(address, "up == 1"), "Prometheus", [process], timeout_s=30)
        yield address
    finally:
        process.kill()


def _query(address: str, expression: str) -> Any:
    return json.loads(get(f"http://{address}/api/v1/query?query={quote(expression)}"))["data"]["result"]


def test_prometheus_scrapes_klamm_without_an_error(prometheus: str) -> None:
    (target,) = json.loads(get(f"http://{prometheus}/api/v1/targets"))["data"]["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")


def test_promtool_finds_nothing_to_say_about_the_metrics(metered: Klamm) -> None:
    text = metered.get("/metrics")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_python_parser_reads_every_line_without_a_warning(metered: Klamm) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        families = list(text_string_to_metric_families(metered.get("/metrics")))
    assert all(family.documentation and family.type != "unknown" for family in families)
    assert {family.name.partition("_")[0] for family in families} <= {"klamm", "process", "python"}


def test_the_topic_of_a_produce_is_a_label_that_prometheus_stores(prometheus: str) -> None:
    wanted = '{topic="metered", api="Produce"}'
    wait_for(lambda: _query(prometheus, wanted), f"series {wanted}", timeout_s=10)

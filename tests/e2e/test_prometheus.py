"""A real Prometheus scrapes klamm, and both of Prometheus' own parsers take what it serves."""

import subprocess
import warnings
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm
from tests.e2e.prometheus import Prometheus, prometheus

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
def server(metered: Klamm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes klamm every second."""
    with prometheus(tmp_path_factory.mktemp("prometheus"), metered.admin) as running:
        yield running


def test_prometheus_scrapes_klamm_without_an_error(server: Prometheus) -> None:
    (target,) = server.get("targets")["activeTargets"]
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


def test_the_topic_of_a_produce_is_a_label_that_prometheus_stores(server: Prometheus) -> None:
    wanted = '{topic="metered", api="Produce"}'
    wait_for(lambda: server.query(wanted), f"series {wanted}")

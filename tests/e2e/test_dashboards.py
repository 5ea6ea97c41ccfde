"""Every query of every panel and rule gives data in a real Prometheus, while klamm has real traffic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from klamm.dashboards.files import RULES, text_of
from klamm.dashboards.grafana.boards import BOARDS
from tests.brokers.kraft import SOON_MISSED, kraft_cluster
from tests.brokers.processes import wait_for
from tests.dashboards.promql import Query, alerts, filled, queries, rules, selectors
from tests.e2e import topics
from tests.e2e.operated import QUIET, TOPIC, Operated, operated
from tests.e2e.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.brokers

FIRST, KILLED = 1, 2
REPLICAS = [[FIRST, KILLED], [KILLED, FIRST]]
SETTINGS = {
    **SOON_MISSED,
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}
TIMES = {"__range": "5m", "__rate_interval": "1m"}  # as Grafana fills them in, for a short history
LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")

# Panels that show 0, for nothing of their kind happens in these minutes. All others show something.
NOTHING = {
    "faults: Paused frames",
    "faults: Rule file rejected",
    "faults: Failures by rule {{rule}}",
    "klamm: Workers that died",
    "klamm: klamm.yaml rejected",
    "klamm: Draining",
    "klamm: Dropped log lines",
    "klamm: Dropped audit lines",
    "klamm: Dropped frames of a capture",
    "klamm: Bytes that wait for the disk {{instance}}",
    "overview: Clusters not ready",
}
# Brokers that break the protocol are made by hand elsewhere: other kinds of the metric have series here.
KIND_OF_BROKERS = "KlammFramesNotPassed"
TOLD = {  # what is going on here, so that an operator hears of it
    "KlammBrokerUnreachable",
    "KlammCertificateExpires",
    "KlammClientErrors",
    "KlammConnectionsRefused",
    "KlammFramesNotDecoded",
    "KlammRuleForgotten",
    "KlammTracesDropped",
}
UNTOLD = {
    "KlammCertificateExpired",
    "KlammFilesNearlyUsedUp",
    "KlammFramesNotPassed",
    "KlammSettingsRejected",
    "KlammWorkerDied",
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """klamm under traffic, in front of two brokers of which one was killed."""
    with kraft_cluster(tmp_path_factory.mktemp("watched"), (FIRST, KILLED), settings=SETTINGS) as cluster:
        for topic in (TOPIC, QUIET):
            topics.create(cluster.bootstrap(), topic, REPLICAS if topic == TOPIC else [[FIRST]])
        with operated(cluster, tmp_path_factory.mktemp("operated")) as running:
            wait_for(lambda: consumed(running), "records that billing consumes", [running.klamm.process])
            cluster.kill(KILLED)
            yield running


def consumed(running: Operated) -> bool:
    rows = running.klamm.counters()["requests"]
    return any(row["client_id"] == "billing" and row["api"] == "OffsetCommit" for row in rows)


@pytest.fixture(scope="module")
def server(watched: Operated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with klamm's rules."""
    folder = tmp_path_factory.mktemp("prometheus")
    files = [folder / f"{name}.yaml" for name in RULES]
    for file in files:
        file.write_text(text_of(f"prometheus/{file.name}"))
    with prometheus(folder, watched.klamm.admin, files) as running:
        yield running


@pytest.fixture(scope="module")
def chosen(server: Prometheus) -> dict[str, str]:
    """All that there is to choose, as Grafana writes it into queries."""
    values = dict(TIMES)
    for board in BOARDS.values():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query" and variable["name"] not in values:
                found = LABEL_VALUES.fullmatch(variable["query"]["query"])
                assert found
                series = filled(found[1], values)
                names = wait_for(lambda: server.values(series, found[2]), f"{series} by {found[2]}")  # noqa: B023
                values[variable["name"]] = variable.get("allValue", pattern(names))
    return values


def pattern(names: Sequence[str]) -> str:
    """Of one of these, within quotes: Grafana doubles each backslash for them."""
    return f"({'|'.join(re.escape(name) for name in names)})".replace("\\", "\\\\")


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_the_query_of_a_panel_gives_data(query: Query, server: Prometheus, chosen: dict[str, str]) -> None:
    expression = filled(query.expression, chosen)

    def shown() -> bool:
        numbers = server.numbers(expression)
        return bool(numbers) if query.where in NOTHING else any(number > 0 for number in numbers)

    wait_for(shown, f"data of {expression}", [server.process])


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_a_query_for_one_of_each_gives_series_with_the_labels_of_its_legend(
    query: Query, server: Prometheus, chosen: dict[str, str]
) -> None:
    one = {
        "cluster": "open",
        "client": "orders-app|lost|visitor|faulty|metrics-app",
        "api": "Produce|Metadata|Fetch",
    }
    expression = filled(query.expression, chosen | one | {"topic": f"{TOPIC}|no-such-topic"})
    if "klamm_client_auth" in expression or "klamm_principal" in expression:
        expression = expression.replace("'open'", "'guarded'")
    legend = set(re.findall(r"\{\{(\w+)\}\}", "" if "Open files" in query.where else query.where))
    wait_for(lambda: server.query(expression), f"series of {expression}", [server.process])
    for series in server.query(expression):
        assert legend - {"worker"} <= set(series["metric"])


def test_prometheus_takes_all_rules_and_none_fails(server: Prometheus) -> None:
    def evaluated() -> list[Any]:
        found = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    found = wait_for(evaluated, "the evaluation of the rules", [server.process])
    assert {(rule["name"], rule["health"]) for rule in found} == {
        (rule.get("record") or rule["alert"], "ok") for rule in rules()
    }


@pytest.mark.parametrize("record", [rule["record"] for rule in rules() if "record" in rule])
def test_a_recording_rule_gives_data(record: str, server: Prometheus) -> None:
    wait_for(lambda: any(number > 0 for number in server.numbers(record)), record, [server.process])


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_the_series_of_an_alert_are_there(alert: dict[str, Any], server: Prometheus) -> None:
    for selector in selectors(alert["expr"]):
        series = selector.partition("{")[0] if alert["alert"] == KIND_OF_BROKERS else selector
        wait_for(lambda: server.query(series), f"the series {series}", [server.process])  # noqa: B023


def test_what_goes_on_is_an_alert_and_what_does_not_is_none(server: Prometheus) -> None:
    def told() -> set[str]:
        return {alert["labels"]["alertname"] for alert in server.get("alerts")["alerts"]}

    wait_for(lambda: told() >= TOLD, f"alerts {TOLD}", [server.process])
    assert told() & UNTOLD == set()

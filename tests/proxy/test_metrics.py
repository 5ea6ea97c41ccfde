"""The exposition: names, values, both formats, and docs/metrics.md in step."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from klamm.client.types import Capture
from klamm.proxy.metrics.as_json import counters
from klamm.proxy.metrics.prometheus import render
from klamm.proxy.metrics.snapshot import STATES, TURN, Snapshot, take
from klamm.proxy.session.observing.counters import Histogram, RequestCounters, Stats, TopicCounters
from tests.dashboards.fake_state import FakeState

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"


CAPTURE = Capture("c", "capture", "blank", None, 9, 1, 300, 20, 3, 2, "No space left on device", True)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """With something in all that klamm counts."""
    state = FakeState()
    state.run(30)
    state.stats.of_requests("demo", "1", "legacy-importer", "Produce", 9).one_way = 5
    state.capture = CAPTURE
    return asyncio.run(take(state))


def samples(families: Iterable[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def value(snapshot: Snapshot, name: str, **labels: str) -> float:
    text = render(snapshot, "")[0].decode()
    return samples(parse_text(text))[name, tuple(sorted(labels.items()))]


def test_requests_are_counted_by_client_and_version(snapshot: Snapshot) -> None:
    labels = {
        "cluster": "demo",
        "broker": "1",
        "api": "Produce",
        "version": "11",
        "client_id": "orders-service",
    }
    assert value(snapshot, "klamm_requests_total", **labels) == 30 * 40
    assert value(snapshot, "klamm_request_bytes_total", **labels) == 30 * 40 * 4_200
    assert value(snapshot, "klamm_response_bytes_total", **labels) == 30 * 40 * 90


def test_latency_is_summed_over_clients_and_versions() -> None:
    state = FakeState()
    for client, version in (("a", 1), ("b", 2)):
        state.stats.of_requests("demo", "1", client, "Fetch", version).latency.add(3_000_000)
    snapshot = asyncio.run(take(state))
    fetch = {"cluster": "demo", "broker": "1", "api": "Fetch"}
    assert value(snapshot, "klamm_request_duration_seconds_count", **fetch) == 2
    assert value(snapshot, "klamm_request_duration_seconds_sum", **fetch) == pytest.approx(0.006)
    assert value(snapshot, "klamm_request_duration_seconds_bucket", **fetch, le="0.0025") == 0
    assert value(snapshot, "klamm_request_duration_seconds_bucket", **fetch, le="0.005") == 2
    assert value(snapshot, "klamm_request_duration_seconds_bucket", **fetch, le="+Inf") == 2


def test_errors_carry_kafkas_names(snapshot: Snapshot) -> None:
    errors = {"cluster": "demo", "api": "Metadata", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert value(snapshot, "klamm_errors_total", **errors, broker="1", origin="broker") == 30
    assert value(snapshot, "klamm_topic_errors_total", **errors, topic="no-such-topic") == 60


def test_errors_are_counted_by_client_over_all_brokers_and_versions() -> None:
    state = FakeState()
    for broker, version in (("1", 9), ("2", 10)):
        state.stats.of_requests("demo", broker, "orders-app", "Produce", version).errors.update([6, 6])
    state.stats.of_requests("demo", "1", "other-app", "Produce", 9).errors.update([6])
    state.stats.of_requests("demo", "1", "orders-app", "Produce", 9).own_errors.update([7])
    snapshot = asyncio.run(take(state))
    errors = {"cluster": "demo", "client_id": "orders-app", "api": "Produce"}
    name = "klamm_client_errors_total"
    assert value(snapshot, name, **errors, error="NOT_LEADER_OR_FOLLOWER", origin="broker") == 4
    assert value(snapshot, name, **errors, error="REQUEST_TIMED_OUT", origin="klamm") == 1


def test_what_rules_made_is_counted_apart() -> None:
    state = FakeState()
    counted = state.stats.of_requests("demo", "1", "a", "Produce", 9)
    counted.errors.update([6])
    counted.own_errors.update([6, 6, 7])
    counted.own_answers = 2
    snapshot = asyncio.run(take(state))
    produce = {"cluster": "demo", "broker": "1", "api": "Produce"}
    errors = {**produce, "error": "NOT_LEADER_OR_FOLLOWER"}
    assert value(snapshot, "klamm_errors_total", **errors, origin="klamm") == 2
    assert value(snapshot, "klamm_errors_total", **errors, origin="broker") == 1
    assert value(snapshot, "klamm_own_answers_total", **produce) == 2
    (row,) = counters(snapshot)["requests"]
    assert row["own_errors"] == {"NOT_LEADER_OR_FOLLOWER": 2, "REQUEST_TIMED_OUT": 1}
    assert row["own_answers"] == 2


def test_rules_are_counted_by_their_names() -> None:
    snapshot = asyncio.run(take(FakeState()))
    for kind, count in (("matches", 40), ("hits", 3), ("failures", 1)):
        assert value(snapshot, f"klamm_rule_{kind}_total", rule="refuse-orders") == count
    assert counters(snapshot)["rules"] == [{"name": "refuse-orders", "matches": 40, "hits": 3, "failures": 1}]


def test_requests_that_nobody_answered_are_told_from_those_that_expect_no_answer(snapshot: Snapshot) -> None:
    labels = {"cluster": "demo", "api": "Fetch", "broker": "3", "client_id": "billing-1"}
    assert value(snapshot, "klamm_requests_unanswered_total", **labels, reason="reset by broker") == 2
    labels = {"cluster": "demo", "api": "Produce", "broker": "1", "client_id": "legacy-importer"}
    assert value(snapshot, "klamm_requests_one_way_total", **labels, version="9") == 5


def test_sessions_of_klamm_that_were_renewed_are_counted(snapshot: Snapshot) -> None:
    assert value(snapshot, "klamm_reauthentications_total", cluster="demo", broker="1") == 7
    assert counters(snapshot)["reauthentications"] == [{"cluster": "demo", "broker": "1", "count": 7}]


def test_rules_that_act_and_frames_that_wait_are_gauges(snapshot: Snapshot) -> None:
    assert value(snapshot, "klamm_rules_active", origin="file") == 2
    assert value(snapshot, "klamm_rules_active", origin="hand") == 1
    assert value(snapshot, "klamm_rules_without_end") == 1
    assert value(snapshot, "klamm_rule_file_rejected") == 1
    assert value(snapshot, "klamm_frames_paused") == 4


def test_brokers_are_up_down_or_left_out_while_nobody_has_tried(snapshot: Snapshot) -> None:
    found = samples(parse_text(render(snapshot, "")[0].decode()))
    up = {dict(labels)["broker"]: v for (name, labels), v in found.items() if name == "klamm_broker_up"}
    assert up == {"1": 1, "2": 1, "3": 0}
    (cluster,) = snapshot.clusters
    untried = replace(cluster, nodes=(replace(cluster.nodes[0], up=None),))
    text = render(replace(snapshot, clusters=(untried,)), "")[0].decode()
    assert "klamm_broker_up{" not in text


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ready"),
        ({"found": False, "ready": False}, "starting"),
        ({"ready": False}, "degraded"),
        ({"nodes": {"up": False}}, "degraded"),
        ({"nodes": {"up": None}}, "ready"),
        ({"nodes": {"unbound": "port 19093: taken"}}, "degraded"),
        ({"draining": True, "ready": False}, "draining"),
    ],
)
def test_the_state_of_a_cluster(snapshot: Snapshot, changes: dict[str, Any], state: str) -> None:
    node = replace(snapshot.clusters[0].nodes[0], **changes.pop("nodes", {"up": True}))
    settings: dict[str, Any] = {"nodes": (node,), "found": True, "ready": True} | changes
    cluster = replace(snapshot.clusters[0], **settings)
    found = replace(snapshot, clusters=(cluster,))
    assert cluster.state == state
    for each in STATES:
        assert value(found, "klamm_cluster_state", cluster=cluster.name, state=each) == (each == state)


def test_series_of_several_labels_appear_when_there_is_something_to_count() -> None:
    state = FakeState()
    state.run(1)
    for client in range(50):
        state.stats.of_requests("demo", "1", f"idle-{client}", "Metadata", 9).requests = 1
        state.stats.of_topic("demo", f"topic-{client}", "Fetch")
    state.stats.connections["demo", "1"] = 0
    found = samples(parse_text(render(asyncio.run(take(state)), "")[0].decode()))
    zero = {name for (name, _), v in found.items() if v == 0 and name.startswith("klamm_")}
    buckets = {name for name in zero if name.endswith("_bucket")}
    once = {
        "klamm_broker_up",
        "klamm_cluster_state",
        "klamm_config_rejected",
        "klamm_connections_open",
        "klamm_draining",
        "klamm_log_lines_dropped_total",
    }
    assert zero - buckets == once
    for name, labels in found:
        if name in buckets:  # of a histogram in which something was counted
            without = tuple(label for label in labels if label[0] != "le")
            assert found[name.replace("_bucket", "_count"), without] > 0


def test_series_of_one_label_or_none_are_there_from_the_start() -> None:
    found = render(asyncio.run(take(FakeState())), "")[0].decode()
    named = re.findall(r"^\| `(klamm_\w+)` \| \w+ \| (`\w+`)? ?\|", DOCS.read_text(), re.MULTILINE)
    there = {name for name, _ in named if re.search(rf"^{name}(\{{.*\}})? ", found, re.MULTILINE)}
    assert {name for name, _ in named} - there == {name for name, _ in named if "_capture_" in name}
    assert len(there) > 5


def test_a_cluster_that_is_not_ready_says_so() -> None:
    state = FakeState()
    state.ready = False
    assert value(asyncio.run(take(state)), "klamm_cluster_ready", cluster="demo") == 0


def test_both_formats_hold_the_same_values(snapshot: Snapshot) -> None:
    text, text_type = render(snapshot, "text/plain")
    openmetrics, openmetrics_type = render(snapshot, OPENMETRICS)
    assert text_type.startswith("text/plain; version=0.0.4")
    assert openmetrics_type.startswith("application/openmetrics-text; version=1.0.0")
    ours = {key: v for key, v in samples(parse_text(text.decode())).items() if key[0].startswith("klamm_")}
    theirs = {
        key: v
        for key, v in samples(parse_openmetrics(openmetrics.decode())).items()
        if key[0] in {k[0] for k in ours}
    }
    assert len(ours) > 500
    assert ours == theirs


def test_names_from_clients_cannot_break_the_format() -> None:
    state = FakeState()
    hostile, label = 'a"b\\c\nd{e}="f"\r\u2028', 'a"b\\c\\nd{e}="f"\\r\\u2028'
    state.stats.of_requests("demo", "1", hostile, "Fetch", 1).requests = 7
    state.stats.of_topic("demo", hostile, "Fetch").requests = 7
    body, _ = render(asyncio.run(take(state)), "")
    found = samples(parse_text(body.decode()))
    counted = {"cluster": "demo", "broker": "1", "api": "Fetch", "version": "1", "client_id": label}
    assert found["klamm_requests_total", tuple(sorted(counted.items()))] == 7


def test_promtool_finds_nothing_to_say(snapshot: Snapshot) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: install the package prometheus"
    body, _ = render(snapshot, "")
    check = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, check=False)
    assert (check.returncode, check.stdout, check.stderr) == (0, b"", b"")


def test_the_documentation_lists_every_metric_with_its_type_and_labels(snapshot: Snapshot) -> None:
    exported = {}
    for family in parse_text(render(snapshot, "")[0].decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        exported[name] = (family.type, labels)
    row = re.compile(
        r"^\| `(?P<name>(?:klamm|process|python)_\w+)` \| (?P<type>\w+) \| (?P<labels>[^|]*)\|", re.MULTILINE
    )
    documented = {
        match["name"]: (match["type"], set(re.findall(r"`(\w+)`", match["labels"])))
        for match in row.finditer(DOCS.read_text())
    }
    assert documented == exported


def test_every_page_names_metrics_as_they_are(snapshot: Snapshot) -> None:
    families = list(parse_text(render(snapshot, "")[0].decode()))
    there = {sample.name for family in families for sample in family.samples} | {f.name for f in families}
    there -= {family.name for family in families if family.type == "counter"}  # their series end in _total
    pages = [*DOCS.parent.glob("*.md"), DOCS.parents[1] / "README.md"]
    for page in pages:
        named = set(re.findall(r"\b(klamm_[a-z]+_[a-z_]+)\b", page.read_text()))
        assert named <= there, page.name


def test_the_documentation_lists_every_field_of_the_counters(snapshot: Snapshot) -> None:
    page = DOCS.read_text().partition("## /v1/counters")[2]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", page, re.MULTILINE)
    documented = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    found = counters(snapshot)
    assert documented == set(found)
    described = {name: text for names, text in rows for name in re.findall(r"`(\w+)`", names)}
    for field in ("requests", "topics", "connections", "problems", "unanswered", "clusters", "rules"):
        assert set(found[field][0]) <= set(re.findall(r"`(\w+)`", described[field])), field


COPIED = "a counter is not in the snapshot: `copy()` in counters.py, or `_copy_of` in snapshot.py, forgets it"


def test_a_snapshot_holds_what_was_counted_and_nothing_that_comes_later() -> None:
    state = FakeState()
    state.run(3)
    snapshot = asyncio.run(take(state))
    expected = plain(state.stats)
    assert plain(snapshot.stats) == expected, COPIED
    state.run(1)
    assert plain(state.stats) != expected
    assert plain(snapshot.stats) == expected


def plain(counted: object) -> object:
    """Every attribute, down to numbers: one that the copy forgets is missed here. (Compiled: no dict.)"""
    if isinstance(counted, Stats | RequestCounters | TopicCounters | Histogram):
        names = (
            name
            for name in dir(counted)
            if name[0] != "_" and name not in ("clients", "instance_ids", "principal_names", "topic_names")
        )
        values = {name: getattr(counted, name) for name in names}
        return {name: plain(value) for name, value in values.items() if not callable(value)}
    if isinstance(counted, dict):
        return {key: plain(v) for key, v in counted.items()}
    return counted if not isinstance(counted, list) else list(counted)


def test_the_loop_gets_turns_while_many_counters_are_copied() -> None:
    state = FakeState()
    for number in range(5 * TURN):
        state.stats.of_requests("demo", "1", "a", "Fetch", number).requests = number
    turns = 0

    async def run() -> Snapshot:
        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        try:
            return await take(state)
        finally:
            counting.cancel()

    assert plain(asyncio.run(run()).stats) == plain(state.stats)
    assert turns >= 5

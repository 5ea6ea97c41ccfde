"""The exposition: names, values, both formats, and docs/metrics.md in step."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from klamm.proxy.counters import counters
from klamm.proxy.metrics import render
from klamm.proxy.snapshot import TURN, Snapshot, take
from klamm.proxy.stats import Histogram, Lane, Stats, TopicLane
from tests.dashboards.fake_state import FakeState

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    state = FakeState()
    state.run(30)
    return asyncio.run(take(state))


def samples(families: Iterable[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def value(snapshot: Snapshot, name: str, **labels: str) -> float:
    text = render(snapshot, "")[0].decode()
    return samples(parse_text(text))[name, tuple(sorted(labels.items()))]


def test_requests_are_counted_by_client_and_version(snapshot: Snapshot) -> None:
    lane = {
        "cluster": "demo",
        "broker": "1",
        "api": "Produce",
        "version": "11",
        "client_id": "orders-service",
    }
    assert value(snapshot, "klamm_requests_total", **lane) == 30 * 40
    assert value(snapshot, "klamm_request_bytes_total", **lane) == 30 * 40 * 4_200
    assert value(snapshot, "klamm_response_bytes_total", **lane) == 30 * 40 * 90


def test_latency_is_summed_over_clients_and_versions() -> None:
    state = FakeState()
    for client, version in (("a", 1), ("b", 2)):
        state.stats.lane("demo", "1", client, "Fetch", version).latency.add(3_000_000)
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


def test_what_rules_made_is_counted_apart() -> None:
    state = FakeState()
    lane = state.stats.lane("demo", "1", "a", "Produce", 9)
    lane.errors.update([6])
    lane.own_errors.update([6, 6, 7])
    lane.own_answers = 2
    snapshot = asyncio.run(take(state))
    produce = {"cluster": "demo", "broker": "1", "api": "Produce"}
    errors = {**produce, "error": "NOT_LEADER_OR_FOLLOWER"}
    assert value(snapshot, "klamm_errors_total", **errors, origin="klamm") == 2
    assert value(snapshot, "klamm_errors_total", **errors, origin="broker") == 1
    assert value(snapshot, "klamm_own_answers_total", **produce) == 2
    (row,) = counters(snapshot)["lanes"]
    assert row["own_errors"] == {"NOT_LEADER_OR_FOLLOWER": 2, "REQUEST_TIMED_OUT": 1}
    assert row["own_answers"] == 2


def test_rules_are_counted_by_their_names() -> None:
    snapshot = asyncio.run(take(FakeState()))
    for kind, count in (("matches", 40), ("hits", 3), ("failures", 1)):
        assert value(snapshot, f"klamm_rule_{kind}_total", rule="refuse-orders") == count
    assert counters(snapshot)["rules"] == [{"name": "refuse-orders", "matches": 40, "hits": 3, "failures": 1}]


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
    hostile = 'a"b\\c\nd{e}="f"\r\u2028'
    state.stats.lane("demo", "1", hostile, "Fetch", 1).requests = 7
    state.stats.topic("demo", hostile, "Fetch").requests = 7
    body, _ = render(asyncio.run(take(state)), "")
    found = samples(parse_text(body.decode()))
    lane = {"cluster": "demo", "broker": "1", "api": "Fetch", "version": "1", "client_id": hostile}
    assert found["klamm_requests_total", tuple(sorted(lane.items()))] == 7


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
        r"^\| `(?P<name>(?:klamm|process)_\w+)` \| (?P<type>\w+) \| (?P<labels>[^|]*)\|", re.MULTILINE
    )
    documented = {
        match["name"]: (match["type"], set(re.findall(r"`(\w+)`", match["labels"])))
        for match in row.finditer(DOCS.read_text())
    }
    assert documented == exported


def test_a_snapshot_holds_what_was_counted_and_nothing_that_comes_later() -> None:
    state = FakeState()
    state.run(3)
    snapshot = asyncio.run(take(state))
    expected = plain(state.stats)
    assert plain(snapshot.stats) == expected
    state.run(1)
    assert plain(state.stats) != expected
    assert plain(snapshot.stats) == expected


def plain(counted: object) -> object:
    """Every slot and attribute, down to numbers: a slot that the copy forgets is missed here."""
    if isinstance(counted, Stats):
        return {name: plain(v) for name, v in vars(counted).items() if name not in ("clients", "topic_names")}
    if isinstance(counted, Lane | TopicLane | Histogram):
        return {name: plain(getattr(counted, name)) for name in counted.__slots__}
    if isinstance(counted, dict):
        return {key: plain(v) for key, v in counted.items()}
    return counted if not isinstance(counted, list) else list(counted)


def test_the_loop_gets_turns_while_many_lanes_are_copied() -> None:
    state = FakeState()
    for number in range(5 * TURN):
        state.stats.lane("demo", "1", "a", "Fetch", number).requests = number
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

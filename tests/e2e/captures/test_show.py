"""Real traffic, captured by klamm: shown, followed, summed up, held against rules and another capture."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC, GROUP, COUNT = "shown", "shown-group", 100
RULES = f"""\
rules:
  - {{name: produce, api: Produce, topic: {TOPIC}, drop: true, dry: true}}
  - {{name: fetch, api: Fetch, topic: {TOPIC}, drop: true, dry: true}}
  - {{name: partition, api: Fetch, topic: {TOPIC}, partition: 1, drop: true, dry: true}}
  - {{name: other, topic: no-such-topic, drop: true, dry: true}}
  - {{name: group, api: [Heartbeat, JoinGroup, OffsetFetch], group: {GROUP}, drop: true, dry: true}}
  - {{name: fetched, api: Fetch, side: response, where: size > 500, delay: 1s, dry: true}}
  - {{name: half, api: Metadata, chance: 50%, drop: true, dry: true}}
  - {{name: opened, event: connect, refuse: true, dry: true}}
"""
SEED = "7"


class Seen(NamedTuple):
    """A capture, what /v1/rules said at its end, and what a `show -f` printed meanwhile."""

    capture: Path
    rules: dict[str, tuple[int, int]]
    followed: list[dict[str, Any]]


def klamm(*words: str | Path, code: int = 0) -> str:
    """Run a command, and give its output."""
    done = subprocess.run(
        [str(COMMAND), *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (code, ""), (words, done.stdout)
    return done.stdout


def rows(*words: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in klamm(*words, "--json").splitlines()]


def seen(kafka: Cluster, inside: Namespace, folder: Path, **produced: str) -> Seen:
    """A producer and a consumer, the producer with these settings."""
    folder.mkdir()
    (folder / "rules.yaml").write_text(RULES)
    capture, log = folder / "capture", folder / "klamm.log"
    options = ["--capture", str(capture), "--rules", str(folder / "rules.yaml"), "--seed", SEED]
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, *options) as running:
        watching = [str(COMMAND), "show", str(capture), "-f", "-n", "5", "--json"]
        with subprocess.Popen(watching, stdout=subprocess.PIPE, text=True) as follower:
            inside.run(
                *programs.command(
                    "librdkafka",
                    running.bootstrap,
                    {"do": "produce", "topic": TOPIC, "seed": "s", "count": COUNT, **produced},
                    {"do": "consume", "topic": TOPIC, "group": GROUP, "count": COUNT},
                )
            )
            printed, _ = follower.communicate(timeout=60)
        rules = {
            rule["name"]: (rule["matches"], rule["hits"]) for rule in json.loads(running.get("/v1/rules"))
        }
    return Seen(capture, rules, [json.loads(line) for line in printed.splitlines()])


@pytest.fixture(scope="module")
def before(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    topics.create(kafka.bootstrap(), TOPIC, topics.spread())
    return seen(kafka, inside, tmp_path_factory.mktemp("show") / "before", acks="all")


@pytest.fixture(scope="module")
def after(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory, before: Seen) -> Seen:
    return seen(kafka, inside, tmp_path_factory.mktemp("show") / "after", acks="1", compression="gzip")


def test_what_is_listed_is_what_is_summed_up(before: Seen) -> None:
    listed = rows("show", before.capture)
    [stats] = rows("show", before.capture, "--stats")
    wanted = Counter((one["api"], one["version"]) for one in listed)
    assert Counter({(one["api"], one["version"]): one["requests"] for one in stats["apis"]}) == wanted
    errors = Counter[str]()
    for one in listed:
        errors.update(one.get("errors", {}))
    summed = Counter[str]()
    for api in stats["apis"]:
        summed.update(api["errors"])
    assert summed == errors
    assert stats["connections"] == len({one["connection"] for one in listed})
    assert stats["lost"] == []


def test_expressions_choose_by_what_is_in_bodies(before: Seen) -> None:
    listed = rows("show", before.capture)
    chosen = rows("show", before.capture, f'api == Produce and topic == "{TOPIC}" and acks == -1')
    assert chosen == [one for one in listed if one["api"] == "Produce"]
    fetched = rows("show", before.capture, f'api == Fetch and topic == "{TOPIC}"')
    assert fetched
    assert all(TOPIC in one["topics"] for one in fetched)
    grouped = rows("show", before.capture, f'group == "{GROUP}"')
    assert {one["api"] for one in grouped} >= {"JoinGroup", "SyncGroup", "OffsetFetch"}


def test_every_exchange_can_be_shown_to_the_byte(before: Seen) -> None:
    out = klamm("show", before.capture, "-x")
    assert "cannot be read" not in out
    assert "checksum" not in out
    assert "records, blank" in out
    assert klamm("show", before.capture, "-v", f'topic == "{TOPIC}"').count("\n  request, ") > 0


def test_a_connection_is_followed_by_its_number_or_its_port(before: Seen) -> None:
    listed = rows("show", before.capture)
    one = next(one for one in listed if one["api"] == "Produce")
    wanted = [other for other in listed if other["connection_id"] == one["connection_id"]]
    port = one["connection"].rpartition(":")[2]
    assert rows("show", before.capture, f"connection == {one['connection_id']}") == wanted
    assert rows("show", before.capture, f"client_port == {port}") == wanted
    assert 0 < len(wanted) < len(listed)


def test_batches_are_told_though_their_records_are_blank(after: Seen) -> None:
    produced = rows("show", after.capture, "api == Produce", "-v")
    parts = [
        part
        for one in produced
        for topic in one["request"]["values"]["topic_data"]
        for part in topic["partition_data"]
    ]
    found = [batch for part in parts for batch in part["records"]["batches"]]
    assert sum(batch["records"] for batch in found) == COUNT
    assert {batch["codec"] for batch in found} == {"gzip"}
    assert all(batch["base_timestamp"] <= batch["max_timestamp"] for batch in found)
    assert all(batch["content"].startswith("blank") for batch in found)


def test_what_was_followed_is_what_was_captured(before: Seen) -> None:
    listed = rows("show", before.capture)
    assert len(before.followed) == 5
    assert all(one in listed for one in before.followed)


def test_a_cut_holds_what_was_chosen_and_nothing_else(before: Seen, tmp_path: Path) -> None:
    klamm("show", before.capture, "api == Produce", "-o", tmp_path / "cut")
    chosen = rows("show", before.capture, "api == Produce")
    assert rows("show", tmp_path / "cut") == chosen


def test_rules_test_finds_what_the_running_klamm_found(before: Seen) -> None:
    rules = before.capture.parent / "rules.yaml"
    found = rows("rules", "test", rules, before.capture, "--seed", SEED)
    assert {one["rule"]: (one["matches"], one["hits"]) for one in found} == before.rules
    assert before.rules["produce"][0] > 0
    assert before.rules["fetch"][0] > 0
    [other] = [one for one in found if one["rule"] == "other"]
    assert f"none about the topic no-such-topic; there were {TOPIC}" in other["instead"]


def test_diff_says_what_the_producer_was_told_otherwise(before: Seen, after: Seen) -> None:
    ignored = "counts,latency,sizes,connections,errors,apis"
    assert rows("diff", before.capture, before.capture) == []
    found = [
        json.loads(line)
        for line in klamm(
            "diff", before.capture, after.capture, "--ignore", ignored, "--json", code=1
        ).splitlines()
    ]
    differences = {one["what"]: (one["before"], one["after"]) for one in found}
    assert differences["Produce acks"] == ("-1 (all)", "1")
    assert differences["compression"] == ("none", "gzip")
    assert not {one["aspect"] for one in found} - {"settings", "batches"}

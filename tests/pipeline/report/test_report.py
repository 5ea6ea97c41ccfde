"""The report: what Spark gathers of a capture, its text and its JSON."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from klamm.cli.analyze import follow
from klamm.cli.analyze.summary import print_summary
from klamm.decoders.payloads import encode_payload
from klamm.pipeline.detectors.finding import Evidence, Findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering import (
    BUCKETS,
    PLOTTED,
    STEPS_S,
    Client,
    Latency,
    S,
    Traffic,
    evidence_exchanges,
    lean,
    step_us,
)
from klamm.pipeline.report.page import page
from klamm.pipeline.report.plots.by_name import latency_by_broker
from klamm.pipeline.report.plots.plotting import css, shaded
from klamm.pipeline.report.report import Report, as_object
from klamm.pipeline.report.reporting import reported
from klamm.pipeline.tables.narrowing import chosen, tables_of
from klamm.pipeline.tables.quick import quickly
from klamm.rules.expressions import parse
from tests.brokers.jars import ROOT
from tests.captures.rows import START_NS, TOPIC_ID, Talk, connection, in_time, lost, written
from tests.pipeline.report.reports import START_US, detector, finding, report, summed_up


@pytest.fixture(autouse=True)
def times_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "local", wording.utc)


def text_of(made: Report, width: int = 80) -> str:
    file = io.StringIO()
    print_summary(made, Console(file=file, width=width, highlight=False))
    return file.getvalue()


@pytest.mark.parametrize(
    ("client_id", "software", "versions", "message"),
    [
        ("billing", "librdkafka 2.6.0", {"ApiVersions": 3}, "librdkafka 2.6.0"),
        (
            "billing",
            None,
            {"ApiVersions": 0, "Fetch": 4, "Heartbeat": 1},
            "not told; ApiVersions v0, Fetch v4",
        ),
        ("aiokafka-0.14.0", None, {"ApiVersions": 0}, "aiokafka by its client id; ApiVersions v0"),
        (None, None, {"answer without its request": -1}, "not told"),
    ],
)
def test_the_software_of_a_client_is_told_as_far_as_it_is_known(
    client_id: str | None, software: str | None, versions: dict[str, int], message: str
) -> None:
    assert wording.software(Client(client_id, software, 1, 1, 1, 1, 0, {}, versions)) == message


def test_a_capture_without_exchanges_has_a_page_too(tmp_path: Path) -> None:
    empty = Report(["capture/"], Traffic(), Findings(), [detector("tiny_batches")])
    made = page(empty, "1.2")
    assert "no exchange" in made
    assert "1 detector looked for problems, and found nothing." in made
    assert "no exchange" in text_of(empty)


def test_the_summary_says_who_what_when_how_often_and_what_to_change() -> None:
    lines = text_of(report()).splitlines()
    assert lines[:3] == [
        "capture/",
        "2026-11-21 16:00:00 to 16:01:00 UTC (60 s)",
        "1,200 exchanges of 5 client ids in 6 connections to 2 brokers; 123.5 kB sent,",
    ]
    start = lines.index("medium  Title of tiny_batches  tiny_batches")
    assert lines[start + 1 : start + 5] == [
        "  billing",
        "    512 batches of one record",
        "    512 times, 16:00:05 to 16:00:50",
        "    klamm show capture/ 'client_id == \"<script>document.title = '\"'\"'broken in'\"'\"'</script>\" "
        "and api == Produce' --since 2026-11-21T16:00:05.004320Z --until 2026-11-21T16:00:05.004323Z -v",
    ]
    assert lines[lines.index("  change linger.ms, batch.size", start) + 1] == "    Advice of tiny_batches."
    assert "capture/a.arrow: damaged, 3 of 9 rows were read" in lines
    assert "12 frames are missing in the captures" in lines
    assert "the detector uneven_assignment failed: [DIVIDE_BY_ZERO] Division by zero" in lines
    assert lines[-1] == "5 detectors looked for problems; 1 found nothing."


def test_times_are_local_except_in_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # of times_in_utc
    monkeypatch.setenv("TZ", "XXX-9")
    time.tzset()
    try:
        lines = text_of(report()).splitlines()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert lines[1] == "2026-11-22 01:00:00 to 01:01:00 XXX (60 s)"
    assert "    512 times, 01:00:05 to 01:00:50" in lines
    commands = [line for line in lines if "klamm show" in line and "--since" in line]
    assert commands
    assert all("--since 2026-11-21T16:00" in line for line in commands)


def test_a_broker_that_is_slower_than_the_others_is_red() -> None:
    made = Traffic(brokers=[("kafka", str(number)) for number in (1, 2, 3)])
    for broker, ms in ((None, 4.0), ("1", 4.0), ("2", 4.0), ("3", 60.0)):
        cluster = None if broker is None else "kafka"
        made.latencies.append(Latency("Produce", cluster, broker, 300, (ms, ms, ms, ms), ms))
    boxes, texts = latency_by_broker(made).spec["layer"]
    cells = boxes["data"]["values"]
    assert [cell["colour"] for cell in cells] == [shaded(share, "cell-hot")["colour"] for share in (0, 0, 1)]
    assert [cell["ink"] for cell in cells] == [css("ink"), css("ink"), css("cell-ink")]
    assert [cell["text"] for cell in texts["data"]["values"]] == ["4.0 ms", "4.0 ms", "60.0 ms"]


@pytest.mark.parametrize("width", [80, 140])
def test_a_line_of_the_summary_is_as_wide_as_the_terminal_unless_it_is_to_be_copied(width: int) -> None:
    long = finding(what="many words " * 40)
    lines = text_of(report(findings=Findings([long])), width).splitlines()
    assert max(len(line) for line in lines if "klamm show" not in line and "capture" not in line) <= width
    assert not any(line.endswith(" ") for line in lines)


def test_only_few_findings_of_a_detector_are_in_the_summary() -> None:
    many = Findings([finding(client_id=f"client-{number}") for number in range(9)])
    assert "and 4 more: --json and --html have them" in text_of(report(findings=many))


def test_a_terminal_does_not_obey_names() -> None:
    assert "\x1b" not in text_of(report())
    assert "\u202e" not in text_of(report())


def test_with_follow_a_finding_is_an_object_of_a_line_with_the_same_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = finding(client_id=None, subject="topic orders")
    follow._Printed(["capture/"], [detector("tiny_batches")], True)._print(
        one, [wording.shown(one, one.evidence[0], None)]
    )
    [line] = capsys.readouterr().out.splitlines()
    document, whole = json.loads(line), json.loads(json.dumps(as_object(report(), "1.2")))["findings"][0]
    assert document.keys() == whole.keys()
    assert (document["client_id"], document["subject"]) == (None, "topic orders")
    assert document["evidence"][0].keys() == whole["evidence"][0].keys()


def test_json_has_all_of_it() -> None:
    found = json.loads(json.dumps(as_object(report(), "1.2")))
    assert list(found) == ["klamm", "captures", "where", "read", "detectors", "findings", "more", "failed"]
    assert found["read"]["exchanges"] == 1200
    assert found["read"]["lost_frames"] == 12
    assert [one["severity"] for one in found["findings"]] == ["high", "medium", "medium", "medium", "low"]
    one = found["findings"][1]
    assert (one["client_id"], one["count"], one["first"]) == ("billing", 512, START_US / S + 5)
    assert one["evidence"][0] == one["evidence"][0] | {"capture": "run", "connection": 3, "exchange": 7}
    evidence = one["evidence"][0]
    assert shlex.quote(evidence["where"]) in evidence["show"]
    assert evidence["since"] < evidence["until"]
    assert found["more"] == {"tiny_batches": 4}
    guide = (ROOT / "docs/analyze.md").read_text()
    for key, value in (("read", found["read"]), ("findings", one)):
        (row,) = re.findall(rf"^\| `{key}` \| (.+) \|$", guide, re.MULTILINE)
        assert [name for name in re.findall(r"`(\w+)`", row) if name in value] == list(value)


@pytest.mark.parametrize(
    ("first_us", "last_us", "message"),
    [
        (START_US, START_US, "at 16:00:00.000"),
        (START_US, START_US + 2 * S, "16:00:00.000 to 16:00:02.000"),
        (START_US, START_US + 60 * S, "16:00:00 to 16:01:00"),
        (START_US, START_US + 86_400 * S, "16:00:00 to 2026-11-22 16:00:00"),
        (START_US - 86_400 * S, START_US, "2026-11-20 16:00:00 to 2026-11-21 16:00:00"),
    ],
)
def test_times_are_as_exact_as_their_span_and_name_other_days(
    first_us: int, last_us: int, message: str
) -> None:
    assert wording.when(first_us, last_us, "2026-11-21") == message


@pytest.mark.parametrize("seconds", [0.0, 1.9, 59.0, 600.0, 86_400.0, 86_400.0 * 80])
def test_buckets_of_time_are_round_and_not_too_many(seconds: float) -> None:
    step = step_us(seconds)
    assert step / S in STEPS_S
    assert seconds * S / step < BUCKETS


# The figures that Spark gathers.


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clients, one without an id; an error, an unanswered request, an answer without its request, a gap;
    and a file that is none.
    """
    folder = tmp_path_factory.mktemp("report") / "capture"
    folder.mkdir()
    app = Talk(connection(1)).metadata().produce().heartbeat(27, took_ms=40.0).fetch()
    app.request("Heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})
    other = (
        Talk(connection(2, broker="2"), client_id=None, now_ms=1500.0)
        .fetch(took_ms=200.0)
        .fetch(took_ms=300.0)
        .answer_alone()
    )
    written(folder / "20231114T221320Z-a-000001.arrow", [*in_time(app, other), lost(3, at_ms=1900.0)])
    (folder / "20231114T221320Z-b-000001.arrow").write_bytes(b"no capture")
    return folder


@pytest.fixture(scope="module")
def gathered(spark: SparkSession, capture: Path) -> tuple[Traffic, dict[tuple[str, int, int | None], object]]:
    start = START_NS // 1000
    places = (Evidence(start, "a", 1, 2), Evidence(start, "a", 2, None), Evidence(start, "a", 7, 1))
    with quickly(spark):
        tables = tables_of(spark, [str(capture)], small=True)
        exchanges = lean(tables)
        found = summed_up(tables, exchanges)
        seen = evidence_exchanges(exchanges, Findings([finding(evidence=places)]))
    return found, dict(seen)


def test_each_step_is_told_until_all_are_done(
    spark: SparkSession, capture: Path, gathered: tuple[Traffic, object]
) -> None:
    told: list[tuple[str, int, int]] = []
    made = reported(spark, [str(capture)], DETECTORS[:6], on_step=lambda *step: told.append(step))
    start, *looking = told
    assert start == ("reading", 0, 0)
    assert {(what, of) for what, _, of in looking} == {("looking", 6 + len(PLOTTED) + 2)}
    done = [done for _, done, _ in looking]
    assert done == sorted(done)
    assert done[-1] == 6 + len(PLOTTED) + 2
    assert (made.traffic.exchanges, made.findings.failed) == (gathered[0].exchanges, {})


def test_what_was_read_is_counted(gathered: tuple[Traffic, object]) -> None:
    found, _ = gathered
    assert (found.exchanges, found.connections, found.clients, found.captures) == (8, 2, 2, 1)
    assert (found.unanswered, found.errors, found.lost) == (1, 1, 3)
    assert found.brokers == [("main", "1"), ("main", "2")]
    assert dict(found.problems) == {"the disk is slow": 1}
    assert len(found.damaged) == 1
    assert "20231114T221320Z-b-000001.arrow: " in found.damaged[0]
    assert found.first_us == START_NS // 1000


def test_what_is_plotted_adds_up_to_what_was_read(gathered: tuple[Traffic, object]) -> None:
    found, _ = gathered
    assert sum(one.count for one in found.series) == found.exchanges
    assert sum(one.request_bytes for one in found.series) == found.request_bytes
    assert [(one.error, one.count) for one in found.error_series] == [("REBALANCE_IN_PROGRESS", 1)]
    assert {one.client_id: one.apis for one in found.top_clients} == {
        "app": {"Metadata": 1, "Produce": 1, "Heartbeat": 2, "Fetch": 1},
        None: {"Fetch": 2, "answer without its request": 1},
    }
    assert sum(one.count for one in found.sizes if one.side == "request") == found.exchanges - 1
    of_all = {one.api: one for one in found.latencies if one.broker is None}
    assert of_all["Fetch"].count == 3
    assert of_all["Fetch"].most_ms == pytest.approx(300.0)
    assert {one.broker for one in found.latencies if one.api == "Fetch"} == {None, "1", "2"}


def test_the_command_of_evidence_shows_that_exchange_and_no_other(
    gathered: tuple[Traffic, dict[tuple[str, int, int | None], object]], capture: Path
) -> None:
    found, seen = gathered
    assert list(seen) == [("a", 1, 2)]
    one = finding(evidence=(Evidence(START_NS // 1000, "a", 1, 2),))
    made = Report([str(capture)], found, Findings([one]), [detector("tiny_batches")], evidence_exchanges=seen)  # type: ignore[arg-type]
    command = made.show(one, one.evidence[0])
    assert command.startswith("klamm show ")
    assert "api == Heartbeat" in command
    words = [sys.executable, "-m", "klamm.cli", *shlex.split(command)[1:], "--utc"]
    output = subprocess.run(words, capture_output=True, text=True, check=False)
    assert len([line for line in output.stdout.splitlines() if " client=app " in line]) == 1
    assert "Heartbeat v4" in output.stdout
    assert "REBALANCE_IN_PROGRESS" in output.stdout


def test_an_expression_leaves_its_exchanges_and_the_names_that_others_told(
    spark: SparkSession, capture: Path
) -> None:
    with quickly(spark):
        tables = chosen(spark, [str(capture)], True, parse('client_id == "app" and api == Fetch'))
        exchanges = lean(tables)
        found = summed_up(tables, exchanges, plots=False)
        topics = [row.topics for row in exchanges.select("topics").collect()]
    assert (found.exchanges, found.connections, found.clients, found.lost) == (1, 1, 1, 3)
    assert topics == [["orders"]]


TOPICS = b"\0\0\0\2" + b"\0\x08payments" + b"\0\6orders"


@pytest.fixture(scope="module")
def groups(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Traffic:
    """A classic member that joins as they do and never commits, and one of KIP-848 that commits."""
    folder = tmp_path_factory.mktemp("groups")
    classic = Talk(connection(1), client_id="old").opened().metadata()
    join = {
        "group_id": "classic-group",
        "session_timeout_ms": 45_000,
        "protocol_type": "consumer",
        "protocols": [
            {"name": "range", "metadata": b"\0\1" + TOPICS + bytes(4)}
        ],  # as kafkajs 2.2.1 writes it
    }
    classic.exchange("JoinGroup", 5, join, {"error_code": 79, "member_id": "old-1", "members": []})
    joined = {"generation_id": 3, "leader": "old-1", "member_id": "old-1", "members": []}
    classic.exchange("JoinGroup", 5, join | {"member_id": "old-1"}, joined)
    assigned = {"assigned_partitions": [{"topic": "orders", "partitions": [3, 1]}]}
    sync = {"group_id": "classic-group", "generation_id": 3, "member_id": "old-1", "assignments": []}
    data = encode_payload("ConsumerProtocolAssignment", assigned, 0)
    classic.exchange("SyncGroup", 3, sync, {"error_code": 0, "assignment": data})
    member = Talk(connection(2), client_id="new", now_ms=1000.0).opened()
    beat = {
        "group_id": "new-group",
        "member_id": "new-1",
        "member_epoch": 0,
        "subscribed_topic_names": ["orders"],
    }
    given = {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [3]}]}
    response = {"member_id": "new-1", "member_epoch": 5, "heartbeat_interval_ms": 5000, "assignment": given}
    member.exchange("ConsumerGroupHeartbeat", 0, beat, response)
    at = {"name": "orders", "partitions": [{"partition_index": 3, "committed_offset": 0}]}
    commit = {
        "group_id": "new-group",
        "generation_id_or_member_epoch": 5,
        "member_id": "new-1",
        "topics": [at],
    }
    done = {"topics": [{"name": "orders", "partitions": [{"partition_index": 3, "error_code": 0}]}]}
    member.exchange("OffsetCommit", 8, commit, done).fetch()
    written(folder / "20231114T221320Z-a-000001.arrow", in_time(classic, member))
    with quickly(spark):
        tables = tables_of(spark, [str(folder)], small=True)
        return summed_up(tables, lean(tables))


def test_groups_have_their_members_assignments_rebalances_and_lag(groups: Traffic) -> None:
    classic, new = groups.groups
    assert (classic.group, classic.protocol, classic.client_ids, classic.came) == (
        "classic-group",
        "classic",
        ("old",),
        1,
    )
    assert [(one.client_id, one.assigned, one.partitions) for one in classic.members] == [
        ("old", 2, ("orders-1", "orders-3"))
    ]
    assert [one.topics for one in classic.members] == [("orders", "payments")]
    assert (len(classic.rebalances), classic.lag) == (1, ())
    assert (new.group, new.protocol, len(new.rebalances)) == ("new-group", "consumer", 1)
    assert [(one.member_id, one.partitions) for one in new.members] == [("new-1", ("orders-3",))]
    assert [one.topics for one in new.members] == [("orders",)]
    assert [records for _, records in new.lag] == [1]


def test_an_answer_that_is_part_of_a_normal_join_is_no_error(groups: Traffic) -> None:
    assert (groups.errors, groups.error_series) == (0, [])
    assert {one.client_id: one.errors for one in groups.top_clients} == {"old": 0, "new": 0}

"""The report: what Spark gathers of a capture, its page in real Chromium, its text and its JSON."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from klamm.cli.analyze_summary import print_summary
from klamm.pipeline.finding import Evidence, Findings
from klamm.pipeline.narrowing import chosen, tables_of
from klamm.pipeline.quick import quickly
from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering import BUCKETS, STEPS_S, S, Traffic, gather, lean, shown, step_us
from klamm.pipeline.report.page import page
from klamm.pipeline.report.report import Report, as_object
from klamm.rules.expressions import parse
from tests.captures.rows import START_NS, Talk, connection, in_time, lost, written
from tests.pipeline.chromium import opened
from tests.pipeline.reports import IMAGE, LINK, SCRIPT, START_US, detector, finding, report

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@pytest.fixture(autouse=True)
def times_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "local", wording.utc)


def text_of(made: Report, width: int = 80) -> str:
    file = io.StringIO()
    print_summary(made, Console(file=file, width=width, highlight=False))
    return file.getvalue()


@pytest.mark.parametrize("guarded", [True, False], ids=["as it is", "without its policy"])
def test_the_page_draws_every_plot_runs_no_foreign_script_and_asks_for_nothing(
    tmp_path: Path, guarded: bool
) -> None:
    made, file = page(report(), "1.2"), tmp_path / "report.html"
    assert len(POLICY.findall(made)) == 1
    file.write_text(made if guarded else POLICY.sub("", made))
    found = opened(file, tmp_path)
    assert (found.console, found.wanted) == ([], [])
    assert '<html lang="en" data-plots="8">' in found.dom
    drawn = found.dom.split('id="plots"')[0]
    assert [
        len(re.findall(rf'id="plot-{name}" class="js-plotly-plot"', drawn)) for name in ("requests", "sizes")
    ] == [1, 1]
    assert drawn.count('class="main-svg"') >= 16
    assert "<title>klamm: capture/</title>" in found.dom
    assert "billing" in re.sub(r"<[^>]*>", "", drawn)


def test_the_page_shows_names_of_clients_as_the_text_that_they_are() -> None:
    made = page(report(), "1.2")
    assert SCRIPT not in made
    assert IMAGE not in made
    assert LINK not in made
    assert "\u202e" not in made
    assert "&lt;script&gt;document.title" in made
    assert "app\\u202egnp.exe\\x1b[31m" in made
    values = json.loads(re.findall(r'id="plots">(.*?)</script>', made)[0])
    ticks = values["clients"]["layout"]["yaxis"]["ticktext"]
    assert ticks[0] == "billing"
    assert ticks[1].startswith("&lt;script&gt;")
    assert ticks[-1] == "(no client id)"


def test_the_page_is_one_file_of_two_megabytes_at_most() -> None:
    made = page(report(), "1.2")
    assert len(made) < 2_500_000
    tags = re.findall(r"<\w[^>]*>", made.split('id="plots"')[0])
    assert len(tags) > 100
    assert [tag for tag in tags if re.search(r"\b(src|href|action|data)\s*=", tag)] == []


def test_a_capture_without_exchanges_has_a_page_too(tmp_path: Path) -> None:
    empty = Report(["capture/"], Traffic(), Findings(), [detector("tiny_batches")])
    made = page(empty, "1.2")
    assert "no exchange" in made
    assert "1 detector looked for what goes wrong, and found nothing." in made
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
    assert lines[-1] == "4 detectors looked for what goes wrong; 1 found nothing."


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


def test_json_has_all_of_it() -> None:
    found = json.loads(json.dumps(as_object(report(), "1.2")))
    assert list(found) == ["klamm", "captures", "where", "read", "detectors", "findings", "more", "failed"]
    assert found["read"]["exchanges"] == 1200
    assert found["read"]["lost_frames"] == 12
    assert [one["severity"] for one in found["findings"]] == ["high", "medium", "medium", "low"]
    one = found["findings"][1]
    assert (one["client_id"], one["count"], one["first"]) == ("billing", 512, START_US / S + 5)
    assert one["evidence"][0] == one["evidence"][0] | {"capture": "run", "connection": 3, "exchange": 7}
    assert found["more"] == {"tiny_batches": 4}


@pytest.mark.parametrize(
    ("first_us", "last_us", "said"),
    [
        (START_US, START_US, "at 16:00:00.000"),
        (START_US, START_US + 2 * S, "16:00:00.000 to 16:00:02.000"),
        (START_US, START_US + 60 * S, "16:00:00 to 16:01:00"),
        (START_US, START_US + 86_400 * S, "16:00:00 to 2026-11-22 16:00:00"),
        (START_US - 86_400 * S, START_US, "2026-11-20 16:00:00 to 2026-11-21 16:00:00"),
    ],
)
def test_times_are_as_exact_as_their_span_and_name_other_days(first_us: int, last_us: int, said: str) -> None:
    assert wording.when(first_us, last_us, "2026-11-21") == said


@pytest.mark.parametrize("seconds", [0.0, 1.9, 59.0, 600.0, 86_400.0, 86_400.0 * 80])
def test_buckets_of_time_are_round_and_not_too_many(seconds: float) -> None:
    step = step_us(seconds)
    assert step / S in STEPS_S
    assert seconds * S / step < BUCKETS


# What Spark gathers.


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clients, one without an id; an error, an unanswered request, a gap; and a file that is none."""
    folder = tmp_path_factory.mktemp("report") / "capture"
    folder.mkdir()
    app = Talk(connection(1)).metadata().produce().heartbeat(27, took_ms=40.0).fetch()
    app.request("Heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})
    other = (
        Talk(connection(2, broker="2"), client_id=None, now_ms=1500.0)
        .fetch(took_ms=200.0)
        .fetch(took_ms=300.0)
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
        found = gather(tables, exchanges, True, lambda: None)
        seen = shown(exchanges, Findings([finding(evidence=places)]))
    return found, dict(seen)


def test_what_was_read_is_counted(gathered: tuple[Traffic, object]) -> None:
    found, _ = gathered
    assert (found.exchanges, found.connections, found.clients, found.captures) == (7, 2, 2, 1)
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
        None: {"Fetch": 2},
    }
    assert sum(one.count for one in found.sizes if one.side == "request") == found.exchanges
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
    made = Report([str(capture)], found, Findings([one]), [detector("tiny_batches")], shown=seen)  # type: ignore[arg-type]
    command = made.show(one, one.evidence[0])
    assert command.startswith("klamm show ")
    assert "api == Heartbeat" in command
    words = [sys.executable, "-m", "klamm.cli", *shlex.split(command)[1:], "--utc"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert len([line for line in said.stdout.splitlines() if " client=app " in line]) == 1
    assert "Heartbeat v4" in said.stdout
    assert "REBALANCE_IN_PROGRESS" in said.stdout


def test_an_expression_leaves_its_exchanges_and_the_names_that_others_told(
    spark: SparkSession, capture: Path
) -> None:
    with quickly(spark):
        tables = chosen(spark, [str(capture)], True, parse('client_id == "app" and api == Fetch'))
        exchanges = lean(tables)
        found = gather(tables, exchanges, False, lambda: None)
        topics = [row.topics for row in exchanges.select("topics").collect()]
    assert (found.exchanges, found.connections, found.clients, found.lost) == (1, 1, 1, 3)
    assert topics == [["orders"]]

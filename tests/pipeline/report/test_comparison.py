"""Two reports side by side: what is gone, new and still there, and what cannot be known."""

import io
import json
from collections import Counter

from rich.console import Console

from klamm.cli.analyze.summary import print_summary
from klamm.pipeline.detectors.finding import Finding, Findings
from klamm.pipeline.report.comparison import as_object, compared
from klamm.pipeline.report.page import page
from klamm.pipeline.report.report import Report
from tests.pipeline.report.reports import SCRIPT, detector, finding, traffic

DETECTORS = [detector("tiny_batches"), detector("metadata_storm", severity="low")]
STORM = finding("metadata_storm", severity="low", client_id="web", count=80)


def report(*found: Finding, present: tuple[str, ...] = (), **of_findings: object) -> Report:
    findings = Findings(sorted(found, key=lambda one: one.severity), **of_findings)  # type: ignore[arg-type]
    made = Report(["capture/"], traffic(), findings, DETECTORS)
    made.traffic.lost, made.traffic.damaged, made.traffic.problems = 0, [], Counter()
    made.present = frozenset(present)
    return made


def test_findings_are_gone_new_or_still_there() -> None:
    before = report(finding(count=12), STORM)
    now = report(finding(count=3), finding(subject="topic orders", count=1), present=("billing", "web"))
    found = compared(before, now)
    assert [(one.state, one.finding.client_id, one.often()) for one in found.pairs] == [
        ("gone", "web", "was 80 times"),
        ("new", "billing", "1 time"),
        ("still there", "billing", "3 times, was 12"),
    ]
    assert [one.subject for one in found.maybe_new()] == ["topic orders"]
    assert found.counts() == "1 gone, 1 new, 1 still there"
    assert found.notes() == []


def test_a_finding_of_a_client_that_made_no_exchange_any_more_is_not_called_gone() -> None:
    about_a_broker = finding("metadata_storm", client_id=None, subject="broker 2")
    found = compared(report(STORM, about_a_broker), report(present=("billing",)))
    assert {one.finding.subject: one.state for one in found.pairs} == {"broker 2": "gone", None: "absent"}
    assert found.notes() == ["absent: the client made no exchange here, so that nothing is known of it"]


def test_of_a_detector_whose_findings_are_not_all_known_none_is_called_gone_or_new() -> None:
    several = report(finding(), STORM, more=Counter(tiny_batches=7))
    failed = report(finding(client_id="other"), present=("billing", "web"), failed={"metadata_storm": "no"})
    found = compared(several, failed)
    assert found.pairs == []
    assert found.maybe_new() == found.now.findings.found
    assert found.counts() == "no findings to compare"
    assert found.notes() == [
        "tiny_batches: what is gone or new is not known: 7 more findings before than are listed",
        "metadata_storm: what is gone or new is not known: it failed now",
    ]


def test_the_gaps_of_the_earlier_capture_are_told() -> None:
    before = report(STORM)
    before.traffic.lost, before.traffic.damaged = 3, ["before/2.klamm: cut short"]
    found = compared(before, report(STORM, present=("web",)))
    assert found.notes() == [
        "before: before/2.klamm: cut short",
        "before: 3 frames are missing in the captures",
    ]


def test_findings_of_one_key_are_taken_one_by_one() -> None:
    found = compared(report(finding(), finding()), report(finding(), present=("billing",)))
    assert [one.state for one in found.pairs] == ["gone", "still there"]


def test_the_text_has_a_line_for_each_and_shows_what_clients_are_called_as_text() -> None:
    before = report(finding(client_id="x\x1b[31m", count=12), STORM)
    now = report(STORM, present=("x\x1b[31m", "web"))
    printed = io.StringIO()
    print_summary(now, Console(width=120, file=printed), compared(before, now))
    lines = printed.getvalue().splitlines()
    assert "compared with capture/, 2026-11-21" in "\n".join(lines)
    assert "  gone        medium  tiny_batches  x\\x1b[31m  was 12 times" in lines
    assert "  still there low     metadata_storm  web  80 times, was 80" in lines


def test_the_page_has_a_row_for_each_and_a_link_to_what_is_there() -> None:
    before = report(finding(client_id=SCRIPT), STORM)
    now = report(STORM, present=(SCRIPT, "web"))
    html = page(now, "1", compared(before, now))
    assert "Compared with an earlier capture" in html
    assert '<td class="state">gone</td><td><span class="badge medium">Title of tiny_batches</span>' in html
    assert '<td class="state">still there</td><td><a class="badge low" href="#finding-0">' in html
    assert SCRIPT not in html
    assert "Compared with" not in page(now, "1")


def test_json_has_the_findings_that_are_gone_whole_and_the_keys_of_the_others() -> None:
    before = report(finding(count=12), STORM)
    now = report(finding(count=3), finding(subject="topic orders"), present=("billing", "web"))
    found = json.loads(json.dumps(as_object(compared(before, now))))
    assert found["captures"] == ["capture/"]
    assert found["read"]["exchanges"] == 1200
    assert [one["evidence"][0]["show"].split()[:2] for one in found["gone"]] == [["klamm", "show"]]
    assert found["absent"] == []
    names = {"detector": "tiny_batches", "severity": "medium", "cluster": "kafka", "client_id": "billing"}
    assert found["new"] == [{**names, "subject": "topic orders"}]
    assert found["still"] == [{**names, "subject": None, "count": 3, "was": 12}]
    assert found["untold"] == {}

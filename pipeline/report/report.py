"""The contents of a report: traffic, findings, and the exchanges that are their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from klamm.pipeline.detectors.detector import Detector, Severity
from klamm.pipeline.detectors.finding import Evidence, Finding, Findings
from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering import EvidenceExchange, Place, Traffic, place

S = 1_000_000  # us


class Group(NamedTuple):
    """Findings of one detector and severity."""

    detector: Detector
    severity: Severity
    findings: list[Finding]


@dataclass
class Report:
    """`where`: the expression that chose the exchanges. `present`: of the client ids that were asked for,
    those with exchanges.
    """

    captures: Sequence[str]
    traffic: Traffic
    findings: Findings
    detectors: Sequence[Detector]
    where: str | None = None
    evidence_exchanges: Mapping[Place, EvidenceExchange] = field(default_factory=dict)
    present: frozenset[str] = frozenset()

    def groups(self) -> Iterator[Group]:
        """The gravest first."""
        by_name = {one.name: one for one in self.detectors}
        for (severity, name), found in groupby(self.findings.found, lambda one: (one.severity, one.detector)):
            yield Group(by_name[name], severity, list(found))

    def seen(self, one: Evidence) -> EvidenceExchange | None:
        return self.evidence_exchanges.get(place(one))

    def shown(self, of: Finding, one: Evidence) -> wording.Shown:
        return wording.shown(of, one, self.seen(one))

    def show(self, of: Finding, one: Evidence) -> str:
        """The command that prints it."""
        return wording.show(self.captures, self.shown(of, one))

    def span(self) -> str:
        """The first and the last time, and how long it is between them."""
        traffic = self.traffic
        if not traffic.exchanges:
            return "no exchange"
        first, last = traffic.first_us, traffic.last_us
        zone = wording.local(first).strftime("%Z")
        return f"{wording.when(first, last)} {zone} ({wording.duration((last - first) / 1000)})"

    def looked(self) -> str:
        """The detectors that ran, and those that could not."""
        done = len(self.detectors) - len(self.findings.failed)
        text = f"{wording.count(done, 'detector')} looked for problems"
        quiet = done - len({one.detector for one in self.findings.found})
        return (
            f"{text}; {quiet} found nothing."
            if 0 < quiet < done
            else f"{text}{', and found nothing' * (quiet > 0)}."
        )

    def gaps(self) -> list[str]:
        """Parts that are missing in the captures, or cannot be read."""
        traffic = self.traffic
        lines = [wording.plain(line) for line in traffic.damaged]
        if traffic.lost:
            lines.append(f"{wording.count(traffic.lost, 'frame is', 'frames are')} missing in the captures")
        for text, times in traffic.problems.most_common():
            if text:
                lines.append(f"{wording.plain(text)}{f' ({times:,} times)' if times > 1 else ''}")
        return lines

    def notes(self) -> list[str]:
        """The gaps, and the detectors that failed."""
        failed = self.findings.failed.items()
        return [
            *self.gaps(),
            *(f"the detector {name} failed: {wording.plain(why)}" for name, why in failed),
        ]


def as_object(report: Report, version: str) -> dict[str, Any]:
    """The report for programs. Times are seconds since 1970; docs/analyze.md lists the keys."""
    return {
        "klamm": version,
        "captures": list(report.captures),
        "where": report.where,
        "read": as_read(report.traffic),
        "detectors": [one.name for one in report.detectors],
        "findings": finding_objects(report, report.findings.found),
        "more": dict(report.findings.more),
        "failed": report.findings.failed,
    }


def as_read(traffic: Traffic) -> dict[str, Any]:
    """What was read. Times are seconds since 1970."""
    return {
        "first": traffic.first_us / S if traffic.exchanges else None,
        "last": traffic.last_us / S if traffic.exchanges else None,
        "captures": traffic.captures,
        "exchanges": traffic.exchanges,
        "connections": traffic.connections,
        "client_ids": traffic.clients,
        "brokers": [{"cluster": cluster, "broker": broker} for cluster, broker in traffic.brokers],
        "request_bytes": traffic.request_bytes,
        "response_bytes": traffic.response_bytes,
        "errors": traffic.errors,
        "unanswered": traffic.unanswered,
        "lost_frames": traffic.lost,
        "gaps": [{"text": text, "count": count} for text, count in traffic.problems.most_common()],
        "damaged": traffic.damaged,
    }


def finding_objects(report: Report, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """These findings of the report."""
    by_name = {one.name: one for one in report.detectors}
    return [
        finding_object(
            one,
            by_name[one.detector],
            [(each, report.shown(one, each), report.show(one, each)) for each in one.evidence],
        )
        for one in findings
    ]


def finding_object(
    one: Finding, detector: Detector, evidence: Sequence[tuple[Evidence, wording.Shown, str]]
) -> dict[str, Any]:
    """One finding, and of each evidence the exchanges that show it, and the command that prints them."""
    return {
        "detector": one.detector,
        "title": detector.title,
        "severity": one.severity,
        "cluster": one.cluster,
        "client_id": one.client_id,
        "subject": one.subject,
        "first": one.first_us / S,
        "last": one.last_us / S,
        "count": one.count,
        "what": one.what,
        "advice": detector.advice,
        "settings": list(detector.settings),
        "evidence": [
            {
                "time": each.time_us / S,
                "capture": each.capture,
                "connection": each.connection,
                "exchange": each.exchange,
                "where": what.where,
                "since": what.since_us / S,
                "until": None if what.until_us is None else what.until_us / S,
                "show": show,
            }
            for each, what, show in evidence
        ],
    }

"""What is reported of captures: their traffic, the findings, and the exchanges that show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from klamm.pipeline.detectors.detector import Detector, Severity
from klamm.pipeline.detectors.finding import Evidence, Finding, Findings
from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering import Place, Shown, Traffic, place

S = 1_000_000  # us


class Group(NamedTuple):
    """Findings of one detector and severity."""

    detector: Detector
    severity: Severity
    findings: list[Finding]


@dataclass
class Report:
    """`where`: the expression that chose the exchanges."""

    captures: Sequence[str]
    traffic: Traffic
    findings: Findings
    detectors: Sequence[Detector]
    where: str | None = None
    shown: Mapping[Place, Shown] = field(default_factory=dict)

    def groups(self) -> Iterator[Group]:
        """The gravest first."""
        by_name = {one.name: one for one in self.detectors}
        for (severity, name), found in groupby(self.findings.found, lambda one: (one.severity, one.detector)):
            yield Group(by_name[name], severity, list(found))

    def seen(self, one: Evidence) -> Shown | None:
        return self.shown.get(place(one))

    def show(self, of: Finding, one: Evidence) -> str:
        """The command that prints it."""
        return wording.show(self.captures, of, one, self.seen(one))

    def span(self) -> str:
        """From when to when, and how long."""
        traffic = self.traffic
        if not traffic.exchanges:
            return "no exchange"
        first, last = traffic.first_us, traffic.last_us
        zone = wording.local(first).strftime("%Z")
        return f"{wording.when(first, last)} {zone} ({wording.duration((last - first) / 1000)})"

    def looked(self) -> str:
        """What was looked for, and what of it could not be."""
        done = len(self.detectors) - len(self.findings.failed)
        text = f"{wording.count(done, 'detector')} looked for what goes wrong"
        quiet = done - len({one.detector for one in self.findings.found})
        return (
            f"{text}; {quiet} found nothing."
            if 0 < quiet < done
            else f"{text}{', and found nothing' * (quiet > 0)}."
        )

    def notes(self) -> list[str]:
        """What is missing in all of this."""
        traffic = self.traffic
        lines = [wording.plain(line) for line in traffic.damaged]
        if traffic.lost:
            lines.append(f"{wording.count(traffic.lost, 'frame is', 'frames are')} missing in the captures")
        for text, times in traffic.problems.most_common():
            if text:
                lines.append(f"{wording.plain(text)}{f' ({times:,} times)' if times > 1 else ''}")
        for name, why in self.findings.failed.items():
            lines.append(f"the detector {name} failed: {wording.plain(why)}")
        return lines


def as_object(report: Report, version: str) -> dict[str, Any]:
    """All of it for programs. Times are seconds since 1970; docs/analyze.md lists the keys."""
    traffic = report.traffic
    return {
        "klamm": version,
        "captures": list(report.captures),
        "where": report.where,
        "read": {
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
        },
        "detectors": [one.name for one in report.detectors],
        "findings": [
            finding_object(one, group.detector, [(each, report.show(one, each)) for each in one.evidence])
            for group in report.groups()
            for one in group.findings
        ],
        "more": dict(report.findings.more),
        "failed": report.findings.failed,
    }


def finding_object(
    one: Finding, detector: Detector, evidence: Sequence[tuple[Evidence, str]]
) -> dict[str, Any]:
    """One finding, and commands that show its evidence."""
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
                "show": show,
            }
            for each, show in evidence
        ],
    }

"""The first part of a report: findings by severity, by client and by consumer group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from klamm.pipeline.detectors.detector import Severity
from klamm.pipeline.detectors.finding import SEVERITIES, Finding
from klamm.pipeline.report import wording
from klamm.pipeline.report.report import Report

GROUP = "group "  # the prefix of a subject that is a group


class Linked(NamedTuple):
    """A finding, and where in the page it stands."""

    anchor: str
    title: str
    severity: Severity
    finding: Finding


class Named(NamedTuple):
    """Findings of one client, group, broker or topic; the gravest first."""

    name: str
    findings: list[Linked]


def linked(report: Report) -> list[Linked]:
    """All findings, in their order."""
    titles = {one.name: one.title for one in report.detectors}
    found = enumerate(report.findings.found)
    return [Linked(f"finding-{at}", titles[one.detector], one.severity, one) for at, one in found]


def by_severity(findings: Iterable[Linked]) -> dict[Severity, list[Linked]]:
    """The first finding of each detector, by severity; a severity without findings is left out."""
    chosen: dict[Severity, dict[str, Linked]] = {}
    for one in findings:
        chosen.setdefault(one.severity, {}).setdefault(one.finding.detector, one)
    return {severity: list(chosen[severity].values()) for severity in SEVERITIES if severity in chosen}


def by_client(findings: Iterable[Linked]) -> list[Named]:
    """Findings without a client stand under their subject."""
    return _by_name((_client(one.finding), one) for one in findings)


def by_group(report: Report, findings: Iterable[Linked]) -> dict[tuple[str, str], list[Linked]]:
    """By cluster and group: findings about the group, and about clients that are its members."""
    groups = report.traffic.groups
    found: dict[tuple[str, str], list[Linked]] = {(one.cluster, one.group): [] for one in groups}
    for one in findings:
        cluster, subject = one.finding.cluster, one.finding.subject or ""
        if subject.startswith(GROUP):
            found.setdefault((cluster, subject.removeprefix(GROUP)), []).append(one)
            continue
        for group in groups:
            if group.cluster == cluster and one.finding.client_id in group.client_ids:
                found[cluster, group.group].append(one)
    return found


def _client(one: Finding) -> str:
    if one.client_id is None and one.subject is not None:
        return wording.plain(one.subject)
    return wording.client(one.client_id)


def _by_name(pairs: Iterable[tuple[str, Linked]]) -> list[Named]:
    found: dict[str, list[Linked]] = {}
    for name, one in pairs:
        found.setdefault(name, []).append(one)
    return by_gravity(Named(name, of) for name, of in found.items())


def by_gravity(named: Iterable[Named]) -> list[Named]:
    """The gravest findings first, then the most frequent."""
    return sorted(named, key=_rank)


def _rank(one: Named) -> tuple[int, int, str]:
    return SEVERITIES.index(one.findings[0].severity), -len(one.findings), one.name

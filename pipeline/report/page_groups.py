"""Consumer groups as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from klamm.pipeline.report import wording
from klamm.pipeline.report.gathering_groups import ConsumerGroup, Member
from klamm.pipeline.report.plots.timeline import timeline
from klamm.pipeline.report.report import Report
from klamm.pipeline.report.summary import Linked

PROTOCOLS = {"classic": "classic", "consumer": "KIP-848"}


def group_rows(report: Report, found: Mapping[tuple[str, str], Sequence[Linked]]) -> list[dict[str, Any]]:
    """A row for each consumer group: first the groups that have findings, then the others, by name."""
    groups = sorted(report.traffic.groups, key=lambda one: (not found[one.cluster, one.group], one))
    return [_row(report, one, found[one.cluster, one.group]) for one in groups]


def _row(report: Report, one: ConsumerGroup, findings: Sequence[Linked]) -> dict[str, Any]:
    from markupsafe import Markup

    traffic = report.traffic
    return {
        "name": wording.plain(one.group),
        "cluster": wording.plain(one.cluster),
        "protocol": PROTOCOLS[one.protocol],
        "came": f"{one.came:,}",
        "rebalances": f"{len(one.rebalances):,}",
        "lag": _lag(one),
        "timeline": Markup(timeline(traffic.first_us, traffic.last_us, one.rebalances, one.lag)),
        "findings": findings,
        "members": [_member(each, wording.day(traffic.first_us)) for each in one.members],
        "more": one.came - len(one.members),
    }


def _lag(one: ConsumerGroup) -> str:
    """First, highest and last, in records."""
    if not one.lag:
        return "no commit seen"
    records = [records for _, records in one.lag]
    first, most, last = records[0], max(records), records[-1]
    text = f"{first:,} \u2192 {last:,}"
    return text if most in (first, last) else f"{text}, up to {most:,}"


def _member(one: Member, day: str) -> dict[str, str]:
    names = ", ".join(map(wording.plain, one.partitions))
    more = (one.assigned or 0) - len(one.partitions)
    return {
        "name": wording.client(one.client_id),
        "id": wording.plain(one.member_id),
        "when": wording.when(one.first_us, one.last_us, day),
        "assigned": "not seen" if one.assigned is None else f"{one.assigned:,}",
        "partitions": f"{names} and {more:,} more" if more > 0 else names,
        "topics": ", ".join(map(wording.plain, one.topics)),
    }

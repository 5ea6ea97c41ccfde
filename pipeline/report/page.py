"""A report as one HTML page that needs nothing but itself: style, script, Vega and values stand in it.

What clients made up (client ids, topics, versions) is escaped by jinja2, in the values by \\u003c, and in
the plots by Vega, which makes no HTML of it. Should anything slip through, the page's policy lets only its
own two scripts run, and no request leave.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Any

from klamm.captures.captured import WITHOUT_REQUEST
from klamm.pipeline.detectors.finding import Finding
from klamm.pipeline.report import wording
from klamm.pipeline.report.comparison import Comparison
from klamm.pipeline.report.gathering import Client, EvidenceExchange
from klamm.pipeline.report.gathering_bodies import MOST, OddBodies
from klamm.pipeline.report.page_groups import group_rows
from klamm.pipeline.report.plots.plots import plots
from klamm.pipeline.report.report import Group, Report
from klamm.pipeline.report.summary import Linked, Named, by_client, by_gravity, by_group, by_severity, linked

INSPECTOR = "http://127.0.0.1:19090/"  # of klamm web
FEW = 12  # clients of the summary that are shown at once
PLACE = files(__package__ or "klamm.pipeline.report")


def page(
    report: Report, version: str, comparison: Comparison | None = None, inspector: str = INSPECTOR
) -> str:
    """`inspector`: the address to which the links of evidence lead. Raises ModuleNotFoundError without jinja2
    or vl_convert.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    library, script = _vega(), (PLACE / "page.js").read_text()
    drawn = plots(report.traffic)
    values = {one.name: one.spec for one in drawn if not one.empty}
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["plain"] = wording.plain
    template = environment.from_string((PLACE / "page.html").read_text())
    traffic = report.traffic
    several = len({cluster for cluster, _ in traffic.brokers}) > 1
    findings = linked(report)
    of_groups = by_group(report, findings)
    named_groups = by_gravity(Named(wording.plain(group), of) for (_, group), of in of_groups.items() if of)
    clients = [_client(one, findings) for one in traffic.top_clients]
    return template.render(
        title=", ".join(map(wording.plain, report.captures)),
        span=report.span(),
        where=None if report.where is None else wording.plain(report.where),
        tiles=list(_tiles(report)),
        notes=report.notes(),
        comparison=None if comparison is None else _comparison(comparison, findings),
        severities=by_severity(findings),
        counts=Counter(one.severity for one in findings),
        times=Counter((one.severity, one.title) for one in findings),
        by_client=by_client(findings),
        few=FEW,
        inspector=inspector,
        web=wording.web(report.captures),
        by_group=named_groups,
        quiet_groups=len(of_groups) - len(named_groups),
        groups=list(_groups(report, findings, several)),
        groups_seen=group_rows(report, of_groups),
        several_clusters=several,
        looked=report.looked(),
        plots=drawn if traffic.exchanges else [],
        clients=clients,
        more_clients=traffic.clients - len(clients),
        odd_bodies=[_odd_bodies(one) for one in traffic.odd_bodies[:MOST]],
        more_bodies=len(traffic.odd_bodies) > MOST,
        made=f"Made by klamm {version}, with times as they are where it ran. Plots: Vega-Lite (BSD).",
        style=Markup((PLACE / "page.css").read_text()),
        script=Markup(script),
        allowed=[_hash(script), _hash(library)],
        values=Markup(
            json.dumps(values if traffic.exchanges else {}, separators=(",", ":")).replace("<", "\\u003c")
        ),
        vega=Markup(b64encode(gzip.compress(library.encode(), 9, mtime=0)).decode()),
    )


def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    from vl_convert import javascript_bundle

    return javascript_bundle("window.vegaEmbed = vegaEmbed;")


def _hash(script: str) -> str:
    """The hash that a browser computes."""
    return b64encode(sha256(script.encode()).digest()).decode()


def _tiles(report: Report) -> Iterator[dict[str, Any]]:
    traffic = report.traffic
    rate = traffic.exchanges / traffic.seconds if traffic.seconds else 0.0
    yield _tile(f"{traffic.exchanges:,}", "exchanges")
    yield _tile(f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}", "a second")
    yield _tile(f"{traffic.clients:,}", "client ids")
    yield _tile(f"{traffic.connections:,}", "connections")
    yield _tile(f"{traffic.nodes:,}", "brokers")
    yield _tile(wording.size(traffic.request_bytes), "sent by clients")
    yield _tile(wording.size(traffic.response_bytes), "sent by brokers")
    yield _tile(f"{traffic.errors:,}", "errors answered")
    yield _tile(f"{traffic.unanswered:,}", "unanswered")
    if traffic.lost:
        yield _tile(f"{traffic.lost:,}", "frames missing", True)


def _tile(value: str, what: str, bad: bool = False) -> dict[str, Any]:
    return {"value": value, "what": what, "bad": bad}


def _comparison(comparison: Comparison, findings: Sequence[Linked]) -> dict[str, Any]:
    """Findings of before have no place of their own in the page."""
    anchors = {id(one.finding): one.anchor for one in findings}
    titles = {one.name: one.title for one in comparison.before.detectors}
    return {
        "about": comparison.about(),
        "counts": comparison.counts(),
        "notes": comparison.notes(),
        "rows": [
            {
                "state": pair.state,
                "severity": pair.finding.severity,
                "title": titles[pair.finding.detector],
                "anchor": anchors.get(id(pair.finding)),
                "who": wording.who(pair.finding),
                "what": wording.plain(pair.finding.what),
                "often": pair.often(),
            }
            for pair in comparison.pairs
        ],
    }


def _groups(report: Report, findings: Sequence[Linked], several: bool) -> Iterator[dict[str, Any]]:
    """Findings by detector and severity, in their order."""
    anchors = (one.anchor for one in findings)
    for group in report.groups():
        yield _group(report, group, list(islice(anchors, len(group.findings))), several)


def _group(report: Report, group: Group, anchors: Sequence[str], several: bool) -> dict[str, Any]:
    detector, day = group.detector, wording.day(report.traffic.first_us)
    rows = zip(group.findings, anchors, strict=True)
    return {
        "name": detector.name,
        "title": detector.title,
        "severity": group.severity,
        "advice": detector.advice,
        "settings": detector.settings,
        "rows": [{"anchor": anchor, **_row(report, one, day, several)} for one, anchor in rows],
        "more": report.findings.more[detector.name]
        if group.findings[-1] is _last(report, detector.name)
        else 0,
    }


def _last(report: Report, name: str) -> Finding:
    return next(one for one in reversed(report.findings.found) if one.detector == name)


def _row(report: Report, one: Finding, day: str, several: bool) -> dict[str, Any]:
    return {
        "who": wording.who(one),
        "cluster": wording.plain(one.cluster) if several else "",
        "what": wording.plain(one.what),
        "count": f"{one.count:,}",
        "when": wording.when(one.first_us, one.last_us, day),
        "evidence": [
            {
                "text": _evidence(report.seen(each), each.time_us),
                "show": report.show(one, each),
                "place": wording.place(report.shown(one, each)),
            }
            for each in one.evidence
        ],
    }


def _evidence(seen: EvidenceExchange | None, time_us: int) -> str:
    """One exchange in the words of `klamm show`."""
    if seen is None:
        return f"{wording.clock(time_us)} from here on"
    parts = [
        wording.clock(time_us),
        f"{seen.api or 'an unknown API'} v{seen.version}" if seen.version is not None else WITHOUT_REQUEST,
    ]
    parts += [f"broker={wording.plain(seen.broker)}", *(wording.plain(topic) for topic in seen.topics[:3])]
    parts += [f"+{len(seen.topics) - 3} topics"] * (len(seen.topics) > 3)
    sizes = [
        ("?" if size is None else wording.size(size)) for size in (seen.request_bytes, seen.response_bytes)
    ]
    parts.append(" \u2192 ".join(sizes))
    parts += [wording.duration(seen.latency_ms)] if seen.latency_ms is not None else ["no answer"]
    return " ".join([*parts, *seen.errors])


def _client(one: Client, findings: Sequence[Linked]) -> dict[str, Any]:
    return {
        "name": wording.client(one.client_id),
        "software": wording.software(one),
        "findings": [each for each in findings if _is_about(each.finding, one.client_id)],
        "connections": f"{one.connections:,}",
        "exchanges": f"{one.exchanges:,}",
        "sent": wording.size(one.request_bytes),
        "received": wording.size(one.response_bytes),
        "errors": f"{one.errors:,}" if one.errors else "",
    }


def _odd_bodies(one: OddBodies) -> dict[str, str]:
    return {
        "layout": f"{one.api} v{one.version} {one.side}",
        "client": wording.client(one.client_id),
        "broker": wording.plain(one.broker),
        "cluster": wording.plain(one.cluster),
        "count": f"{one.count:,}",
        "reason": wording.plain(one.reason),
    }


def _is_about(one: Finding, client_id: str | None) -> bool:
    """Whether the finding is about this client. One with a subject and no client id is about its subject,
    such as a broker, and not about a client without an id.
    """
    return one.client_id == client_id and (client_id is not None or one.subject is None)

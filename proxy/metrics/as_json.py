"""The JSON of /v1/counters: every counter of a snapshot. docs/metrics.md describes the fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from klamm.decoders.error_codes import error_name
from klamm.proxy.metrics.snapshot import Snapshot
from klamm.proxy.session.observing.counters import (
    BOUNDS_NS,
    OWN_BOUNDS_NS,
    Histogram,
    RequestCounters,
    TopicCounters,
)

NS = 1_000_000_000

Key = TypeVar("Key", bound=tuple[str, ...])


def counters(snapshot: Snapshot) -> dict[str, Any]:
    """Lists of flat rows, counted from the start. Durations are seconds, sizes bytes, times epoch seconds."""
    stats = snapshot.stats
    return {
        "version": snapshot.version,
        "pid": snapshot.pid,
        "started_at": snapshot.started_at,
        "now": snapshot.now,
        "metering": snapshot.metering,
        "bounds_s": [bound / NS for bound in BOUNDS_NS],
        "own_bounds_s": [bound / NS for bound in OWN_BOUNDS_NS],
        "clusters": [asdict(cluster) | {"state": cluster.state} for cluster in snapshot.clusters],
        "connections": [
            {
                "cluster": cluster,
                "broker": broker,
                "open": stats.connections[cluster, broker],
                "opened": opened,
            }
            for (cluster, broker), opened in stats.opened.items()
        ],
        "closed": _rows(stats.closed, "cluster", "reason"),
        "reauthentications": _rows(stats.reauthentications, "cluster", "broker"),
        "requests": [_requests(each) for each in stats.requests.values()],
        "topics": [_topic(each) for each in stats.topics.values()],
        "principals": _rows(stats.principals, "cluster", "principal"),
        "software": _rows(stats.software, "cluster", "name", "version"),
        "client_authentications": _rows(stats.logins, "cluster", "mechanism", "outcome"),
        "client_instances": _rows(stats.instances, "cluster", "client_id"),
        "problems": _rows(stats.problems, "cluster", "broker", "api", "kind"),
        "opaque": _rows(stats.opaque, "cluster", "broker", "sender"),
        "unanswered": _rows(stats.unanswered, "cluster", "broker", "api", "client_id", "reason"),
        "traced": _rows(stats.traced, "outcome"),
        "in_flight": _rows(snapshot.in_flight, "cluster", "broker"),
        "rules": [asdict(rule) for rule in snapshot.rules],
        "rule_counts": asdict(snapshot.rule_counts),
        "workers": {"serving": snapshot.workers.serving, "died": snapshot.workers.died},
        "frames_paused": snapshot.frames_paused,
        "draining": snapshot.draining,
        "config_rejected": snapshot.config_rejected,
        "certificates": [each._asdict() for each in snapshot.certificates],
        "log_dropped": snapshot.log_dropped,
        "audit_dropped": snapshot.audit_dropped,
        "capture": snapshot.capture,
    }


def _rows(counts: Mapping[Key, int], *names: str) -> list[dict[str, Any]]:
    return [dict(zip(names, key, strict=True), count=count) for key, count in counts.items()]


def _requests(each: RequestCounters) -> dict[str, Any]:
    return {
        "cluster": each.cluster,
        "broker": each.broker,
        "api": each.api,
        "version": each.version,
        "client_id": each.client_id,
        "requests": each.requests,
        "responses": each.responses,
        "one_way": each.one_way,
        "request_bytes": each.request_bytes,
        "response_bytes": each.response_bytes,
        "errors": _errors(each.errors),
        "own_answers": each.own_answers,
        "own_errors": _errors(each.own_errors),
        "latency": _histogram(each.latency),
        "own": _histogram(each.own),
    }


def _topic(each: TopicCounters) -> dict[str, Any]:
    return {
        "cluster": each.cluster,
        "topic": each.topic,
        "api": each.api,
        "requests": each.requests,
        "errors": _errors(each.errors),
        "latency": _histogram(each.latency),
    }


def _errors(codes: Mapping[int, int]) -> dict[str, int]:
    return {error_name(code): times for code, times in codes.items()}


def _histogram(histogram: Histogram) -> dict[str, Any]:
    return {"buckets": histogram.buckets, "sum_s": histogram.total_ns / NS}

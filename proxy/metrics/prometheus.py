"""A snapshot as Prometheus text or OpenMetrics. docs/metrics.md lists the metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import PROCESS_COLLECTOR
from prometheus_client.core import CollectorRegistry, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from klamm.client.types import Capture
from klamm.proxy.metrics import traffic_families
from klamm.proxy.metrics.families import BROKER, counter, gauge
from klamm.proxy.metrics.snapshot import STATES, Snapshot
from klamm.proxy.session.rewriting.topology import NodeKey, broker_label


def render(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """The body and its content type, as an Accept header asks for it. Safe in any thread; takes half a second
    if every label is at its bound."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(snapshot))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Families(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield from _process(self.snapshot)
        yield from _clusters(self.snapshot)
        yield from traffic_families.requests(self.snapshot.stats)
        yield from traffic_families.answers(self.snapshot.stats)
        yield from traffic_families.topics(self.snapshot.stats)
        yield from traffic_families.connections(self.snapshot)
        yield from _rules(self.snapshot)


def _process(snapshot: Snapshot) -> Iterator[Metric]:
    yield InfoMetricFamily("klamm_build", "The version of klamm.", {"version": snapshot.version})
    for family in PROCESS_COLLECTOR.collect():
        for worker, usage in snapshot.workers.usage.items():
            name = family.samples[0].name
            if name in usage:
                family.add_sample(name, {"worker": str(worker)}, usage[name])
        yield family
    yield gauge(
        "klamm_workers", "Processes that serve connections now.", (), [((), snapshot.workers.serving)]
    )
    yield counter(
        "klamm_workers_died",
        "Processes that served connections and died; another one was started for each.",
        (),
        [((), snapshot.workers.died)],
    )
    yield gauge(
        "klamm_config_rejected",
        "1 while klamm.yaml on the disk cannot be used and the settings before it stay in force, else 0.",
        (),
        [] if snapshot.config_rejected is None else [((), snapshot.config_rejected)],
    )
    yield gauge(
        "klamm_certificate_valid_until_timestamp_seconds",
        "The end of the validity of a certificate of klamm's own, in seconds since the epoch, by whom it is "
        "shown to: clients, brokers, or callers of the admin API.",
        ("cluster", "shown_to"),
        (((each.cluster, each.shown_to), each.valid_until) for each in snapshot.certificates),
    )
    yield gauge(
        "klamm_draining",
        "1 while klamm ends its connections one by one and takes no new ones, else 0.",
        (),
        [((), snapshot.draining)],
    )
    yield counter(
        "klamm_log_lines_dropped",
        "Log lines dropped: they came faster than they could be written, or the output took none.",
        (),
        [((), snapshot.log_dropped)],
    )
    yield counter(
        "klamm_audit_lines_dropped",
        "Lines of the audit log dropped: they came faster than they could be written, or the file took none.",
        (),
        [((), snapshot.audit_dropped)],
    )
    if snapshot.stats.traced:
        yield counter(
            "klamm_traced_exchanges",
            "Exchanges taken for traces: exported, failed (not taken by the collector), or dropped.",
            ("outcome",),
            snapshot.stats.traced.items(),
        )
    if snapshot.capture is not None:
        yield from _capture(snapshot.capture)


def _clusters(snapshot: Snapshot) -> Iterator[Metric]:
    yield gauge(
        "klamm_cluster_ready",
        "1 when the cluster is found, its port is open, and it answered klamm last, else 0.",
        ("cluster",),
        (((cluster.name,), cluster.ready) for cluster in snapshot.clusters),
    )
    yield gauge(
        "klamm_cluster_state",
        "1 for the state of a cluster (starting, ready, degraded or draining), 0 for the others.",
        ("cluster", "state"),
        (
            ((cluster.name, state), cluster.state == state)
            for cluster in snapshot.clusters
            for state in STATES
        ),
    )
    yield gauge(
        "klamm_broker_up",
        "1 when the last attempt to connect to the broker succeeded, a client's or klamm's own, else 0.",
        BROKER,
        (
            ((cluster.name, broker_label(NodeKey(node.kind, node.node_id))), node.up)
            for cluster in snapshot.clusters
            for node in cluster.nodes
            if node.up is not None
        ),
    )


def _capture(capture: Capture) -> Iterator[Metric]:
    for name, description, slot in (
        ("klamm_capture_rows", "Frames and events given to the capture that runs.", "rows"),
        ("klamm_capture_segments", "Whole segments of the capture that runs.", "segments"),
        (
            "klamm_capture_dropped_bytes",
            "Bytes that its queue had no room for.",
            "dropped_bytes",
        ),
        ("klamm_capture_lost_frames", "Frames that are known to be missing in the capture.", "lost_frames"),
        ("klamm_capture_failures", "Failures of the disk to which the capture is written.", "failures"),
    ):
        yield counter(name, description, (), [((), getattr(capture, slot))])
    for name, description, value in (
        ("klamm_capture_waiting_bytes", "Bytes of it that wait to be written.", capture.waiting_bytes),
        (
            "klamm_capture_failing",
            "1 from a failure of the disk until it has taken rows for 5 s, else 0.",
            capture.failing,
        ),
    ):
        yield gauge(name, description, (), [((), value)])


def _rules(snapshot: Snapshot) -> Iterator[Metric]:
    counts = snapshot.rule_counts
    yield gauge(
        "klamm_rules_active",
        "Rules that act now, of the file and by hand: switched on, not dry, and not over.",
        ("origin",),
        [(("file",), counts.file), (("hand",), counts.hand)],
    )
    yield gauge(
        "klamm_rules_without_end",
        "Active rules made by hand that end only when somebody removes them.",
        (),
        [((), counts.without_end)],
    )
    yield gauge(
        "klamm_rule_file_rejected",
        "1 while the rule file on disk has mistakes and the rules before it stay in force, else 0.",
        (),
        [] if counts.file_rejected is None else [((), counts.file_rejected)],
    )
    yield gauge(
        "klamm_frames_paused",
        "Frames that rules have paused, and that wait for somebody's decision.",
        (),
        [((), snapshot.frames_paused)],
    )
    for name, description, slot in (
        ("klamm_rule_matches", "Frames or connections that a rule selects.", "matches"),
        ("klamm_rule_hits", "Matches on which the rule acted, or would have if it were not dry.", "hits"),
        ("klamm_rule_failures", "Actions of the rule that failed: the frame went on as it was.", "failures"),
    ):
        rows = (((row.name,), getattr(row, slot)) for row in snapshot.rules)
        yield counter(name, description, ("rule",), rows)

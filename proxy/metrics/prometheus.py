"""A snapshot as Prometheus text or OpenMetrics. docs/metrics.md lists the metrics.

Latency histograms are summed over clients and versions: a client costs a number and not twenty.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import PROCESS_COLLECTOR
from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from klamm.client.types import Capture
from klamm.decoders.error_codes import error_name
from klamm.proxy.metrics.snapshot import Snapshot
from klamm.proxy.session.counters import BOUNDS_NS, OWN_BOUNDS_NS, Histogram, Stats
from klamm.proxy.session.topology import NodeKey, broker_label

NS = 1_000_000_000

BROKER = ("cluster", "broker")
API = ("cluster", "broker", "api")
REQUESTS = ("cluster", "broker", "api", "version", "client_id")
TOPIC = ("cluster", "topic", "api")

Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]


def render(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """The body and its content type, as an Accept header asks for it. Safe in any thread; takes half a second
    where every label is at its bound."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(snapshot))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Families(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield from _process(self.snapshot)
        yield from _requests(self.snapshot.stats)
        yield from _topics(self.snapshot.stats)
        yield from _connections(self.snapshot)
        yield from _rules(self.snapshot)


def _process(snapshot: Snapshot) -> Iterator[Metric]:
    yield InfoMetricFamily("klamm_build", "The version of klamm.", {"version": snapshot.version})
    yield from PROCESS_COLLECTOR.collect()
    yield _gauge(
        "klamm_cluster_ready",
        "1 when klamm has found the cluster, its port is open, and its last look was answered, else 0.",
        ("cluster",),
        (((cluster.name,), cluster.ready) for cluster in snapshot.clusters),
    )
    yield _gauge(
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
    yield _counter(
        "klamm_log_lines_dropped",
        "Log lines dropped: they came faster than they could be written, or the output took none.",
        (),
        [((), snapshot.log_dropped)],
    )
    if snapshot.capture is not None:
        yield from _capture(snapshot.capture)


def _capture(capture: Capture) -> Iterator[Metric]:
    for name, description, slot in (
        ("klamm_capture_rows", "Frames and events given to the capture that runs.", "rows"),
        ("klamm_capture_segments", "Segments of it that are whole.", "segments"),
        ("klamm_capture_dropped_bytes", "Bytes that its queue had no room for.", "dropped_bytes"),
        ("klamm_capture_lost_frames", "Frames that are known to be missing in it.", "lost_frames"),
        ("klamm_capture_failures", "Failures of the disk that it is written to.", "failures"),
    ):
        yield _counter(name, description, (), [((), getattr(capture, slot))])
    for name, description, value in (
        ("klamm_capture_waiting_bytes", "Bytes that wait to be written.", capture.waiting_bytes),
        (
            "klamm_capture_failing",
            "1 from a failure of the disk until it has taken rows for 5 s, else 0.",
            capture.failing,
        ),
    ):
        yield _gauge(name, description, (), [((), value)])


def _requests(stats: Stats) -> Iterator[Metric]:
    counters = [
        ((n.cluster, n.broker, n.api, str(n.version), n.client_id), n) for n in stats.requests.values()
    ]
    for name, description, slot in (
        ("klamm_requests", "Requests from clients.", "requests"),
        ("klamm_responses", "Responses from brokers.", "responses"),
        ("klamm_request_bytes", "Bytes of requests, sizes and headers included.", "request_bytes"),
        ("klamm_response_bytes", "Bytes of responses, sizes and headers included.", "response_bytes"),
    ):
        yield _counter(
            name, description, REQUESTS, ((labels, getattr(each, slot)) for labels, each in counters)
        )
    yield _counter(
        "klamm_requests_one_way",
        "Requests that expect no response: Produce with acks=0.",
        REQUESTS,
        ((labels, each.one_way) for labels, each in counters),
    )
    yield _counter(
        "klamm_requests_unanswered",
        "Requests whose connection ended before their response came, and why it ended.",
        (*API, "client_id", "reason"),
        stats.unanswered.items(),
    )

    errors: Counter[Labels] = Counter()
    own_answers: Counter[Labels] = Counter()
    latency: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(BOUNDS_NS))
    own: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(OWN_BOUNDS_NS))
    for each in stats.requests.values():
        api = (each.cluster, each.broker, each.api)
        _add(latency[api], each.latency)
        _add(own[api], each.own)
        for origin, codes in (("broker", each.errors), ("klamm", each.own_errors)):
            for code, times in codes.items():
                errors[*api, error_name(code), origin] += times
        if each.own_answers:
            own_answers[api] += each.own_answers
    yield _counter(
        "klamm_errors",
        "Kafka errors in responses, one for each place that carries one, and whose they are.",
        (*API, "error", "origin"),
        errors.items(),
    )
    yield _counter(
        "klamm_own_answers",
        "Requests that klamm answered itself, as rules say: the broker did not see them.",
        API,
        own_answers.items(),
    )
    yield _histograms(
        "klamm_request_duration_seconds",
        "From a request's arrival to its response's: the broker's time and that of the network behind klamm.",
        API,
        latency,
    )
    yield _histograms(
        "klamm_own_duration_seconds",
        "klamm's own time to read and pass on: a sample of what passes, and every frame that it holds.",
        API,
        own,
    )


def _topics(stats: Stats) -> Iterator[Metric]:
    counters = {(n.cluster, n.topic, n.api): n for n in stats.topics.values()}
    yield _counter(
        "klamm_topic_requests",
        "Requests that name the topic; a request with two topics counts for both.",
        TOPIC,
        ((labels, each.requests) for labels, each in counters.items()),
    )
    yield _counter(
        "klamm_topic_errors",
        "Kafka errors in responses, for the topic that they are about.",
        (*TOPIC, "error"),
        (
            ((*labels, error_name(code)), times)
            for labels, each in counters.items()
            for code, times in each.errors.items()
        ),
    )
    yield _histograms(
        "klamm_topic_request_duration_seconds",
        "As klamm_request_duration_seconds, for the requests that name the topic.",
        TOPIC,
        {labels: each.latency for labels, each in counters.items()},
    )


def _connections(snapshot: Snapshot) -> Iterator[Metric]:
    stats = snapshot.stats
    yield _gauge(
        "klamm_requests_in_flight",
        "Requests that wait for their response.",
        BROKER,
        snapshot.in_flight.items(),
    )
    yield _gauge("klamm_connections_open", "Client connections open now.", BROKER, stats.connections.items())
    yield _counter("klamm_connections_opened", "Client connections accepted.", BROKER, stats.opened.items())
    yield _counter(
        "klamm_connections_closed",
        "Client connections ended, by reason.",
        ("cluster", "reason"),
        stats.closed.items(),
    )
    yield _counter(
        "klamm_client_software_connections",
        "Connections by the software that the client names in ApiVersions.",
        ("cluster", "name", "version"),
        stats.software.items(),
    )
    yield _counter(
        "klamm_problems",
        "What klamm could not read or would not pass, by kind; api is empty where it is unknown.",
        ("cluster", "broker", "api", "kind"),
        stats.problems.items(),
    )


def _rules(snapshot: Snapshot) -> Iterator[Metric]:
    counts = snapshot.rule_counts
    yield _gauge(
        "klamm_rules_active",
        "Rules that act now, of the file and by hand: switched on, not dry, and not over.",
        ("origin",),
        [(("file",), counts.file), (("hand",), counts.hand)],
    )
    yield _gauge(
        "klamm_rules_without_end",
        "Rules by hand among them that end only when somebody removes them.",
        (),
        [((), counts.without_end)],
    )
    yield _gauge(
        "klamm_rule_file_rejected",
        "1 while the rule file on disk has mistakes, and the rules of before stay in force, else 0.",
        (),
        [] if counts.file_rejected is None else [((), counts.file_rejected)],
    )
    yield _gauge(
        "klamm_frames_paused",
        "Frames that rules have paused, and that wait for somebody's decision.",
        (),
        [((), snapshot.frames_paused)],
    )
    for name, description, slot in (
        ("klamm_rule_matches", "Frames or connections that a rule selects.", "matches"),
        ("klamm_rule_hits", "Matches on which the rule acted, or would have, were it not dry.", "hits"),
        ("klamm_rule_failures", "Actions of the rule that failed: the frame went on as it was.", "failures"),
    ):
        rows = (((row.name,), getattr(row, slot)) for row in snapshot.rules)
        yield _counter(name, description, ("rule",), rows)


def _counter(name: str, description: str, labels: Sequence[str], rows: Rows) -> Metric:
    """A series of several labels appears when there is something to count; the few others from the start."""
    family = CounterMetricFamily(name, description, labels=labels)
    for values, count in rows:
        if count or len(labels) < 2:
            family.add_metric(values, count)
    return family


def _gauge(name: str, description: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = GaugeMetricFamily(name, description, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family


def _histograms(
    name: str, description: str, labels: Sequence[str], rows: Mapping[Labels, Histogram]
) -> Metric:
    family = HistogramMetricFamily(name, description, labels=labels)
    for values, histogram in rows.items():
        if not any(histogram.buckets):  # twenty series that say nothing
            continue
        bounds = [*(repr(bound / NS) for bound in histogram.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(histogram.buckets), strict=True))
        family.add_metric(values, buckets, histogram.total_ns / NS)
    return family


def _add(total: Histogram, part: Histogram) -> None:
    total.total_ns += part.total_ns
    total.buckets = [a + b for a, b in zip(total.buckets, part.buckets, strict=True)]

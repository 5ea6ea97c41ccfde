"""A snapshot as Prometheus text or OpenMetrics. docs/metrics.md lists the metrics.

Latency histograms are summed over clients and versions: each client would add twenty series.
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
from klamm.proxy.metrics.snapshot import STATES, Snapshot
from klamm.proxy.session.observing.counters import BOUNDS_NS, OWN_BOUNDS_NS, Histogram, Stats
from klamm.proxy.session.rewriting.topology import NodeKey, broker_label

NS = 1_000_000_000

BROKER = ("cluster", "broker")
API = ("cluster", "broker", "api")
REQUESTS = ("cluster", "broker", "api", "version", "client_id")
TOPIC = ("cluster", "topic", "api")

Labels = tuple[str, ...]
Rows = Iterable[tuple[Labels, float]]


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
        yield from _requests(self.snapshot.stats)
        yield from _answers(self.snapshot.stats)
        yield from _topics(self.snapshot.stats)
        yield from _connections(self.snapshot)
        yield from _rules(self.snapshot)


def _process(snapshot: Snapshot) -> Iterator[Metric]:
    yield InfoMetricFamily("klamm_build", "The version of klamm.", {"version": snapshot.version})
    for family in PROCESS_COLLECTOR.collect():
        for worker, usage in snapshot.workers.usage.items():
            name = family.samples[0].name
            if name in usage:
                family.add_sample(name, {"worker": str(worker)}, usage[name])
        yield family
    yield _gauge(
        "klamm_workers", "Processes that serve connections now.", (), [((), snapshot.workers.serving)]
    )
    yield _counter(
        "klamm_workers_died",
        "Processes that served connections and died; another one was started for each.",
        (),
        [((), snapshot.workers.died)],
    )
    yield _gauge(
        "klamm_config_rejected",
        "1 while klamm.yaml on the disk cannot be used and the settings before it stay in force, else 0.",
        (),
        [] if snapshot.config_rejected is None else [((), snapshot.config_rejected)],
    )
    yield _gauge(
        "klamm_certificate_valid_until_timestamp_seconds",
        "The end of the validity of a certificate of klamm's own, in seconds since the epoch, by whom it is "
        "shown to: clients, brokers, or callers of the admin API.",
        ("cluster", "shown_to"),
        (((each.cluster, each.shown_to), each.valid_until) for each in snapshot.certificates),
    )
    yield _gauge(
        "klamm_draining",
        "1 while klamm ends its connections one by one and takes no new ones, else 0.",
        (),
        [((), snapshot.draining)],
    )
    yield _counter(
        "klamm_log_lines_dropped",
        "Log lines dropped: they came faster than they could be written, or the output took none.",
        (),
        [((), snapshot.log_dropped)],
    )
    yield _counter(
        "klamm_audit_lines_dropped",
        "Lines of the audit log dropped: they came faster than they could be written, or the file took none.",
        (),
        [((), snapshot.audit_dropped)],
    )
    if snapshot.stats.traced:
        yield _counter(
            "klamm_traced_exchanges",
            "Exchanges taken for traces: exported, failed (not taken by the collector), or dropped.",
            ("outcome",),
            snapshot.stats.traced.items(),
        )
    if snapshot.capture is not None:
        yield from _capture(snapshot.capture)


def _clusters(snapshot: Snapshot) -> Iterator[Metric]:
    yield _gauge(
        "klamm_cluster_ready",
        "1 when the cluster is found, its port is open, and it answered klamm last, else 0.",
        ("cluster",),
        (((cluster.name,), cluster.ready) for cluster in snapshot.clusters),
    )
    yield _gauge(
        "klamm_cluster_state",
        "1 for the state of a cluster (starting, ready, degraded or draining), 0 for the others.",
        ("cluster", "state"),
        (
            ((cluster.name, state), cluster.state == state)
            for cluster in snapshot.clusters
            for state in STATES
        ),
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
        yield _counter(name, description, (), [((), getattr(capture, slot))])
    for name, description, value in (
        ("klamm_capture_waiting_bytes", "Bytes of it that wait to be written.", capture.waiting_bytes),
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


def _answers(stats: Stats) -> Iterator[Metric]:
    errors: Counter[Labels] = Counter()
    client_errors: Counter[Labels] = Counter()
    own_answers: Counter[Labels] = Counter()
    latency: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(BOUNDS_NS))
    own: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(OWN_BOUNDS_NS))
    for each in stats.requests.values():
        api = (each.cluster, each.broker, each.api)
        latency[api].merge(each.latency)
        own[api].merge(each.own)
        for origin, codes in (("broker", each.errors), ("klamm", each.own_errors)):
            for code, times in codes.items():
                error = (each.api, error_name(code), origin)
                errors[each.cluster, each.broker, *error] += times
                client_errors[each.cluster, each.client_id, *error] += times
        if each.own_answers:
            own_answers[api] += each.own_answers
    yield _counter(
        "klamm_errors",
        "Kafka errors in responses, one for each field with an error code; origin: broker or klamm.",
        (*API, "error", "origin"),
        errors.items(),
    )
    yield _counter(
        "klamm_client_errors",
        "As klamm_errors, by the client that the responses are for.",
        ("cluster", "client_id", "api", "error", "origin"),
        client_errors.items(),
    )
    yield _counter(
        "klamm_own_answers",
        "Requests that klamm answered itself because of a rule; the broker did not see them.",
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
        "klamm's own time: of a sample of the reads, and of every frame that it holds.",
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
        "Requests that wait for their response; one whose response a rule holds waits too.",
        BROKER,
        snapshot.in_flight.items(),
    )
    yield _gauge("klamm_connections_open", "Client connections open now.", BROKER, stats.connections.items())
    yield _gauge(
        "klamm_principal_connections_open",
        "Client connections open now, by the principal of the client's certificate or SASL with klamm.",
        ("cluster", "principal"),
        stats.principals.items(),
    )
    yield _counter("klamm_connections_opened", "Client connections accepted.", BROKER, stats.opened.items())
    yield _counter(
        "klamm_connections_closed",
        "Client connections ended, by reason.",
        ("cluster", "reason"),
        stats.closed.items(),
    )
    yield _counter(
        "klamm_reauthentications",
        "Times that klamm authenticated itself again on a connection in use.",
        BROKER,
        stats.reauthentications.items(),
    )
    yield _counter(
        "klamm_opaque_bytes",
        "Bytes that klamm passed on unread, such as TLS for which it has no certificate.",
        (*BROKER, "sender"),
        stats.opaque.items(),
    )
    yield _counter(
        "klamm_client_software_connections",
        "Connections by the software that the client names in ApiVersions.",
        ("cluster", "name", "version"),
        stats.software.items(),
    )
    yield _counter(
        "klamm_client_authentications",
        "Authentications of clients with klamm, by SASL mechanism and outcome.",
        ("cluster", "mechanism", "outcome"),
        stats.logins.items(),
    )
    yield _counter(
        "klamm_client_instances",
        "Different client instance ids seen, by client id.",
        ("cluster", "client_id"),
        stats.instances.items(),
    )
    yield _counter(
        "klamm_problems",
        "Problems: bytes that klamm could not read or did not pass on, by kind; api is empty if unknown.",
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
        "Active rules made by hand that end only when somebody removes them.",
        (),
        [((), counts.without_end)],
    )
    yield _gauge(
        "klamm_rule_file_rejected",
        "1 while the rule file on disk has mistakes and the rules before it stay in force, else 0.",
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
        ("klamm_rule_hits", "Matches on which the rule acted, or would have if it were not dry.", "hits"),
        ("klamm_rule_failures", "Actions of the rule that failed: the frame went on as it was.", "failures"),
    ):
        rows = (((row.name,), getattr(row, slot)) for row in snapshot.rules)
        yield _counter(name, description, ("rule",), rows)


def _counter(name: str, description: str, labels: Sequence[str], rows: Rows) -> Metric:
    """A counter. With two labels or more, a series appears with its first count; others are there at once."""
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
        if not any(histogram.buckets):  # do not write twenty zeros
            continue
        bounds = [*(repr(bound / NS) for bound in histogram.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(histogram.buckets), strict=True))
        family.add_metric(values, buckets, histogram.total_ns / NS)
    return family

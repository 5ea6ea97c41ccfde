"""Metrics of requests, answers, topics and connections.

Latency histograms are summed over clients and versions: each client would add twenty series.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from prometheus_client.core import Metric

from klamm.decoders.error_codes import error_name
from klamm.proxy.metrics.families import BROKER, Labels, counter, gauge, histograms
from klamm.proxy.metrics.snapshot import Snapshot
from klamm.proxy.session.observing.counters import BOUNDS_NS, OWN_BOUNDS_NS, Histogram, Stats

API = (*BROKER, "api")
REQUESTS = (*API, "version", "client_id")
TOPIC = ("cluster", "topic", "api")


def requests(stats: Stats) -> Iterator[Metric]:
    counters = [
        ((n.cluster, n.broker, n.api, str(n.version), n.client_id), n) for n in stats.requests.values()
    ]
    for name, description, slot in (
        ("klamm_requests", "Requests from clients.", "requests"),
        ("klamm_responses", "Responses from brokers.", "responses"),
        ("klamm_request_bytes", "Bytes of requests, sizes and headers included.", "request_bytes"),
        ("klamm_response_bytes", "Bytes of responses, sizes and headers included.", "response_bytes"),
    ):
        yield counter(
            name, description, REQUESTS, ((labels, getattr(each, slot)) for labels, each in counters)
        )
    yield counter(
        "klamm_requests_one_way",
        "Requests that expect no response: Produce with acks=0.",
        REQUESTS,
        ((labels, each.one_way) for labels, each in counters),
    )
    yield counter(
        "klamm_requests_unanswered",
        "Requests whose connection ended before their response came, and why it ended.",
        (*API, "client_id", "reason"),
        stats.unanswered.items(),
    )


def answers(stats: Stats) -> Iterator[Metric]:
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
    yield counter(
        "klamm_errors",
        "Kafka errors in responses, one for each field with an error code; origin: broker or klamm.",
        (*API, "error", "origin"),
        errors.items(),
    )
    yield counter(
        "klamm_client_errors",
        "As klamm_errors, by the client that the responses are for.",
        ("cluster", "client_id", "api", "error", "origin"),
        client_errors.items(),
    )
    yield counter(
        "klamm_own_answers",
        "Requests that klamm answered itself because of a rule; the broker did not see them.",
        API,
        own_answers.items(),
    )
    yield histograms(
        "klamm_request_duration_seconds",
        "From a request's arrival to its response's: the broker's time and that of the network behind klamm.",
        API,
        latency,
    )
    yield histograms(
        "klamm_own_duration_seconds",
        "klamm's own time: of a sample of the reads, and of every frame that it holds.",
        API,
        own,
    )


def topics(stats: Stats) -> Iterator[Metric]:
    counters = {(n.cluster, n.topic, n.api): n for n in stats.topics.values()}
    yield counter(
        "klamm_topic_requests",
        "Requests that name the topic; a request with two topics counts for both.",
        TOPIC,
        ((labels, each.requests) for labels, each in counters.items()),
    )
    yield counter(
        "klamm_topic_errors",
        "Kafka errors in responses, for the topic that they are about.",
        (*TOPIC, "error"),
        (
            ((*labels, error_name(code)), times)
            for labels, each in counters.items()
            for code, times in each.errors.items()
        ),
    )
    yield histograms(
        "klamm_topic_request_duration_seconds",
        "As klamm_request_duration_seconds, for the requests that name the topic.",
        TOPIC,
        {labels: each.latency for labels, each in counters.items()},
    )


def connections(snapshot: Snapshot) -> Iterator[Metric]:
    stats = snapshot.stats
    yield gauge(
        "klamm_requests_in_flight",
        "Requests that wait for their response; one whose response a rule holds waits too.",
        BROKER,
        snapshot.in_flight.items(),
    )
    yield gauge("klamm_connections_open", "Client connections open now.", BROKER, stats.connections.items())
    yield gauge(
        "klamm_principal_connections_open",
        "Client connections open now, by the principal of the client's certificate or SASL with klamm.",
        ("cluster", "principal"),
        stats.principals.items(),
    )
    for name, description, labels, counted in (
        ("klamm_connections_opened", "Client connections accepted.", BROKER, stats.opened),
        (
            "klamm_connections_closed",
            "Client connections ended, by reason.",
            ("cluster", "reason"),
            stats.closed,
        ),
        (
            "klamm_reauthentications",
            "Times that klamm authenticated itself again on a connection in use.",
            BROKER,
            stats.reauthentications,
        ),
        (
            "klamm_opaque_bytes",
            "Bytes that klamm passed on unread, such as TLS for which it has no certificate.",
            (*BROKER, "sender"),
            stats.opaque,
        ),
        (
            "klamm_client_software_connections",
            "Connections by the software that the client names in ApiVersions.",
            ("cluster", "name", "version"),
            stats.software,
        ),
        (
            "klamm_client_authentications",
            "Authentications of clients with klamm, by SASL mechanism and outcome.",
            ("cluster", "mechanism", "outcome"),
            stats.logins,
        ),
        (
            "klamm_client_instances",
            "Different client instance ids seen, by client id.",
            ("cluster", "client_id"),
            stats.instances,
        ),
        (
            "klamm_problems",
            "Problems: bytes that klamm could not read or did not pass on, by kind; api is empty if unknown.",
            ("cluster", "broker", "api", "kind"),
            stats.problems,
        ),
    ):
        yield counter(name, description, labels, counted.items())

"""Counters of several processes: taken apart into plain values, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from klamm.proxy.session.observing.counters import Histogram, RequestCounters, Stats, TopicCounters

NOW = ("connections", "principals")  # Counters of Stats that go down when a process ends
EVER = (
    "opened",
    "closed",
    "software",
    "instances",
    "problems",
    "opaque",
    "traced",
    "unanswered",
    "logins",
    "reauthentications",
)
SUMS = ("requests", "responses", "one_way", "request_bytes", "response_bytes", "own_answers")
SUMS_OF_TOPIC = ("requests",)
Apart = tuple[list[int], int]  # of a histogram: its buckets, and its sum (ns)


Errors = dict[int, int]  # error code -> times


class OfRequests(NamedTuple):
    """`labels`: cluster, broker, client, API, version. `sums`: the values of SUMS."""

    labels: tuple[str, str, str, str, int]
    sums: list[int]
    latency: Apart
    own: Apart
    errors: Errors
    own_errors: Errors


class OfTopic(NamedTuple):
    """`labels`: cluster, topic, API. `sums`: the values of SUMS_OF_TOPIC."""

    labels: tuple[str, str, str]
    sums: list[int]
    latency: Apart
    errors: Errors


class Taken(NamedTuple):
    """The counters of one process."""

    counters: dict[str, dict[Any, int]]
    requests: list[OfRequests]
    topics: list[OfTopic]


def taken(stats: Stats) -> Taken:
    """Plain values of all counters, for a process that adds them up."""
    return Taken(
        {name: dict(getattr(stats, name)) for name in (*NOW, *EVER)},
        [
            OfRequests(
                (each.cluster, each.broker, each.client_id, each.api, each.version),
                [getattr(each, name) for name in SUMS],
                _apart(each.latency),
                _apart(each.own),
                dict(each.errors),
                dict(each.own_errors),
            )
            for each in stats.requests.values()
        ],
        [
            OfTopic(
                (each.cluster, each.topic, each.api),
                [getattr(each, name) for name in SUMS_OF_TOPIC],
                _apart(each.latency),
                dict(each.errors),
            )
            for each in stats.topics.values()
        ],
    )


def add(to: Stats, other: Taken, ended: bool = False) -> None:
    """Add the counters of a process. Its labels count with those of `to`, whose bounds hold: beyond them a
    client or topic is `other`. `ended`: nothing is open in it any more.
    """
    for name in EVER if ended else (*NOW, *EVER):
        getattr(to, name).update(other.counters[name])
    for labels, sums, latency, own, errors, own_errors in other.requests:
        each = to.of_requests(*labels)
        _add_up(each, SUMS, sums)
        _add(each.latency, latency)
        _add(each.own, own)
        each.errors.update(errors)
        each.own_errors.update(own_errors)
    for topic, sums, latency, errors in other.topics:
        found = to.of_topic(*topic)
        _add_up(found, SUMS_OF_TOPIC, sums)
        _add(found.latency, latency)
        found.errors.update(errors)


def _add_up(to: RequestCounters | TopicCounters, names: Sequence[str], values: Sequence[int]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(to, name, getattr(to, name) + value)


def _apart(histogram: Histogram) -> Apart:
    return list(histogram.buckets), histogram.total_ns


def _add(to: Histogram, other: Apart) -> None:
    buckets, total_ns = other
    if any(buckets):
        to.add_all(buckets, total_ns)

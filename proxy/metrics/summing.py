"""Counters of several processes: taken apart into plain values, and added up."""

from __future__ import annotations

from typing import Any, NamedTuple

from klamm.proxy.session.observing.counters import Histogram, Stats

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
    """`labels`: cluster, topic, API."""

    labels: tuple[str, str, str]
    requests: int
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
                (each.cluster, each.topic, each.api), each.requests, _apart(each.latency), dict(each.errors)
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
        for name, value in zip(SUMS, sums, strict=True):
            setattr(each, name, getattr(each, name) + value)
        _add(each.latency, latency)
        _add(each.own, own)
        each.errors.update(errors)
        each.own_errors.update(own_errors)
    for topic, requests, latency, errors in other.topics:
        found = to.of_topic(*topic)
        found.requests += requests
        _add(found.latency, latency)
        found.errors.update(errors)


def _apart(histogram: Histogram) -> Apart:
    return list(histogram.buckets), histogram.total_ns


def _add(to: Histogram, other: Apart) -> None:
    buckets, total_ns = other
    if any(buckets):
        to.add_all(buckets, total_ns)

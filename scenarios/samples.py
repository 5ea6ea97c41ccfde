"""A moment of klamm's counters (/v1/counters), as far as expectations look at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

CounterKey = tuple[str, str, str, str]  # API, client id, broker, cluster


class Counters(NamedTuple):
    """Counts of requests. `slower` are (upper bound in s, answers of the broker in its bucket)."""

    requests: int = 0
    answers: int = 0
    errors: int = 0
    silent: int = 0
    """Requests that expect no answer."""
    slower: tuple[tuple[float, int], ...] = ()

    @property
    def due(self) -> int:
        """Requests that expect an answer."""
        return self.requests - self.silent

    @property
    def good(self) -> int:
        """Answers without an error, at least."""
        return self.answers - self.errors

    def plus(self, other: Counters, sign: int = 1) -> Counters:
        slower = dict(self.slower)
        for bound, count in other.slower:
            slower[bound] = slower.get(bound, 0) + sign * count
        return Counters(
            self.requests + sign * other.requests,
            self.answers + sign * other.answers,
            self.errors + sign * other.errors,
            self.silent + sign * other.silent,
            tuple(sorted(slower.items())),
        )

    def __sub__(self, other: Counters) -> Counters:
        return self.plus(other, -1)


@dataclass(frozen=True)
class Sample:
    """Counted until `at_s`, in seconds since the run began."""

    at_s: float
    counters: Mapping[CounterKey, Counters] = field(default_factory=dict)
    opened: Mapping[str, int] = field(default_factory=dict)
    """Connections, by cluster."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """By the names of rules, those that are gone included."""


def sample(
    counters: Mapping[str, Any], at_s: float, before: Mapping[str, int], since: Mapping[str, int]
) -> Sample:
    """A sample from /v1/counters. `before` are the hits of the last sample: removed rules keep theirs;
    `since` those from which a rule that came back counts on.
    """
    bounds = (*counters["bounds_s"], inf)
    by_key: dict[CounterKey, Counters] = {}
    for row in counters["requests"]:
        key = row["api"], row["client_id"], row["broker"], row["cluster"]
        buckets = zip(bounds, row["latency"]["buckets"], strict=True)
        counted = Counters(
            row["requests"],
            row["responses"] + row["own_answers"],
            sum(row["errors"].values()) + sum(row["own_errors"].values()),
            row["one_way"],
            tuple((bound, count) for bound, count in buckets if count),
        )
        by_key[key] = by_key[key].plus(counted) if key in by_key else counted
    opened: Counter[str] = Counter()
    for row in counters["connections"]:
        opened[row["cluster"]] += row["opened"]
    return Sample(
        at_s,
        by_key,
        opened,
        {**before, **{row["name"]: row["hits"] + since.get(row["name"], 0) for row in counters["rules"]}},
    )


def total(all_counters: Iterable[Counters]) -> Counters:
    """Their sum."""
    found = Counters()
    for counters in all_counters:
        found = found.plus(counters)
    return found

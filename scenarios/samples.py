"""A moment of klamm's counters (/v1/counters), as far as expectations look at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

Lane = tuple[str, str, str, str]  # API, client id, broker, cluster


class Tally(NamedTuple):
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

    def plus(self, other: Tally, sign: int = 1) -> Tally:
        slower = dict(self.slower)
        for bound, count in other.slower:
            slower[bound] = slower.get(bound, 0) + sign * count
        return Tally(
            self.requests + sign * other.requests,
            self.answers + sign * other.answers,
            self.errors + sign * other.errors,
            self.silent + sign * other.silent,
            tuple(sorted(slower.items())),
        )

    def __sub__(self, other: Tally) -> Tally:
        return self.plus(other, -1)


@dataclass(frozen=True)
class Sample:
    """Counted until `at_s`, in seconds since the run began."""

    at_s: float
    lanes: Mapping[Lane, Tally] = field(default_factory=dict)
    opened: Mapping[str, int] = field(default_factory=dict)
    """Connections, by cluster."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """By the names of rules, those that are gone included."""


def sample(
    counters: Mapping[str, Any], at_s: float, before: Mapping[str, int], since: Mapping[str, int]
) -> Sample:
    """From /v1/counters. `before` are the hits of the last sample: rules that are gone keep theirs; `since`
    those from which a rule counts on that came again.
    """
    bounds = (*counters["bounds_s"], inf)
    lanes: dict[Lane, Tally] = {}
    for row in counters["lanes"]:
        key = row["api"], row["client_id"], row["broker"], row["cluster"]
        buckets = zip(bounds, row["latency"]["buckets"], strict=True)
        counted = Tally(
            row["requests"],
            row["responses"] + row["own_answers"],
            sum(row["errors"].values()) + sum(row["own_errors"].values()),
            row["one_way"],
            tuple((bound, count) for bound, count in buckets if count),
        )
        lanes[key] = lanes[key].plus(counted) if key in lanes else counted
    opened: Counter[str] = Counter()
    for row in counters["connections"]:
        opened[row["cluster"]] += row["opened"]
    return Sample(
        at_s,
        lanes,
        opened,
        {**before, **{row["name"]: row["hits"] + since.get(row["name"], 0) for row in counters["rules"]}},
    )


def total(tallies: Iterable[Tally]) -> Tally:
    """Their sum."""
    found = Tally()
    for tally in tallies:
        found = found.plus(tally)
    return found

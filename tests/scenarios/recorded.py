"""Samples for the tests: a moment of klamm's counters, written down in one line."""

from typing import Any

from klamm.scenarios.samples import CounterKey, Counters, Sample

PRODUCE: CounterKey = ("Produce", "billing", "2", "kafka")
BOUNDS_S = [0.1, 1.0, 5.0, 10.0]


def at(
    at_s: float,
    requests: int = 0,
    answers: int = 0,
    errors: int = 0,
    *,
    key: CounterKey = PRODUCE,
    slow: int = 0,
    opened: int = 0,
    hits: int = 0,
) -> Sample:
    """Counts since the beginning; `slow` answers took more than 5 s, `hits` are of the rule "moved"."""
    buckets = ((0.1, answers - slow), (10.0, slow))
    counters = Counters(requests, answers, errors, 0, buckets)
    return Sample(at_s, {key: counters}, {"kafka": opened}, {"moved": hits})


def counters(
    requests: int = 0, responses: int = 0, hits: dict[str, int] | None = None, opened: int = 0
) -> dict[str, Any]:
    """/v1/counters, as far as scenarios read it."""
    row = {
        "api": "Produce",
        "client_id": "billing",
        "broker": "2",
        "cluster": "kafka",
        "requests": requests,
        "responses": responses,
        "one_way": 0,
        "errors": {},
        "own_answers": 0,
        "own_errors": {},
        "latency": {"buckets": [responses, 0, 0, 0, 0], "sum_s": 0.0},
    }
    return {
        "bounds_s": BOUNDS_S,
        "requests": [row],
        "connections": [{"cluster": "kafka", "broker": "2", "open": 1, "opened": opened}],
        "rules": [{"name": name, "matches": count, "hits": count} for name, count in (hits or {}).items()],
    }

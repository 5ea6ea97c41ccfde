"""Messages about rules by hand: how each is written, when it ends, and the requests that came in place of
hits.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from klamm.cli.live.by_hand import ending, sum_of
from klamm.client.types import Rule

QUIET: dict[str, Any] = {"requests": [], "topics": []}


def counted(*seen: tuple[str, str, str, int]) -> dict[str, Any]:
    """/v1/counters, as far as it is read, of (API, client id, topic, requests)."""
    place = {"cluster": "kafka"}
    topics: Counter[tuple[str, str]] = Counter()
    for api, _, topic, count in seen:
        topics[api, topic] += count
    return {
        "requests": [
            {"api": api, "client_id": client, "version": 9, "broker": "1", "requests": count, **place}
            for api, client, _, count in seen
        ],
        "topics": [
            {"api": api, "topic": topic, "requests": count, **place}
            for (api, topic), count in topics.items()
            if topic
        ],
    }


SHOPS = (("Produce", "shop-1", "orders-v2", 7), ("Produce", "shop-2", "orders-v2", 5))
OTHERS = tuple((api, "x", "", 1) for api in "ABCDEFGH")
TOPICS = tuple(("Produce", "shop", f"t{number}", 1) for number in range(5))


@pytest.mark.parametrize(
    ("before", "after", "api", "message"),
    [
        (QUIET, counted(*SHOPS), "Produce", "Produce seen on orders-v2 from 2 clients"),
        (counted(SHOPS[0]), counted(*SHOPS), "Produce", "Produce seen on orders-v2 from 1 client"),
        (counted(*SHOPS), counted(*SHOPS), "Produce", "no Produce seen"),
        (QUIET, counted(*SHOPS), "Fetch", "no Fetch seen, but Produce"),
        (QUIET, counted(*OTHERS), "Fetch", "no Fetch seen, but A, B, C, D, E, F"),
        (
            QUIET,
            counted(("Fetch", "x", "", 1), *SHOPS),
            None,
            "Fetch, Produce seen on orders-v2 from 3 clients",
        ),
        (QUIET, QUIET, None, "no request seen"),
        (QUIET, counted(*TOPICS), "Produce", "Produce seen on t0, t1, t2 and 2 more from 1 client"),
    ],
)
def test_what_came_instead_is_told_with_its_topics_and_how_many_clients(
    before: dict[str, Any], after: dict[str, Any], api: str | None, message: str
) -> None:
    assert sum_of(before, after, api) == message


@pytest.mark.parametrize(
    ("written", "minutes", "message"),
    [
        ({"api": "Produce", "delay": "1s"}, 10, "   ends in 10 minutes"),
        ({"api": "Produce", "delay": "1s", "for": "10m"}, 10, ""),  # it says so itself
        ({"api": "Produce", "delay": "1s", "for": "forever"}, None, ""),
        ({"api": "Produce", "delay": "1s"}, -1, "   ends in 0 minutes"),
    ],
)
def test_a_rule_that_does_not_say_when_it_ends_is_told_with_that(
    written: dict[str, Any], minutes: int | None, message: str
) -> None:
    expires = None if minutes is None else time.time() + 60 * minutes
    rule = Rule("x", "hand", written, True, False, 0, 0, 0, False, expires)
    assert ending(rule) == message

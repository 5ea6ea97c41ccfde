"""Messages about rules by hand: how each is written, when it ends, and the requests that came in place of
hits.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from klamm.cli.live.by_hand import ending, instead
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
    assert instead(before, after, {} if api is None else {"api": api}) == message


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        ({"topic": "ordrs-v2"}, "; no topic ordrs-v2, but orders-v2; did you mean orders-v2?"),
        ({"topic": "orders-*"}, ""),
        ({"topic": "!orders-v2"}, "; no topic !orders-v2, but orders-v2"),
        (
            {"client": "shop_1, billing"},
            "; no client shop_1 or billing, but shop-1, shop-2; did you mean shop-1?",
        ),
        ({"client": "10.1.*"}, ""),  # client ids say nothing of addresses
        ({"group": "ordres"}, "; no group ordres, but billing, orders; did you mean orders?"),
        ({"group": "x", "topic": "x"}, "; no topic x, but orders-v2; no group x, but billing, orders"),
        ({"group": "orders,x"}, ""),
    ],
)
def test_a_selector_that_fits_no_name_that_came_is_told_with_those_that_did(
    selectors: dict[str, str], message: str
) -> None:
    said = instead(QUIET, counted(*SHOPS), {"api": "Produce", **selectors}, {"orders", "billing"})
    assert said == f"Produce seen on orders-v2 from 2 clients{message}"


def test_where_no_request_names_a_group_that_is_told() -> None:
    said = instead(QUIET, counted(*SHOPS), {"api": "Produce", "group": "orders"})
    assert said == "Produce seen on orders-v2 from 2 clients; no group at all"


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

"""The parts of a fault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from klamm.client.faults import Selectors, down, rule
from tests.brokers.jars import ROOT

FRAME, CONNECT = {"event": "frame", "down": True}, {"event": "connect", "down": True}


def test_a_keyword_is_a_key_of_a_rule_and_for_and_from_have_an_underscore() -> None:
    selectors = {"for_": 60, "from_": "1s", "until": 0.5, "topic": ("a", "b"), "nth": None}
    written = rule({"block": True}, selectors)
    assert written == {"for": "60000ms", "from": "1s", "until": "500ms", "topic": ["a", "b"], "block": True}
    page = (ROOT / "docs" / "rules.md").read_text().partition("### Actions")[0]
    keys = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    there = {name.removesuffix("_") for name in Selectors.__annotations__}
    assert there == keys - {"api", "event", "enabled"}  # which faults choose themselves


@pytest.mark.parametrize(
    ("client", "on_connect"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("10.0.*,10.1.0.1", "10.0.*,10.1.0.1"),
        ("!10.0.0.7", "!10.0.0.7"),
        ("orders-*, 10.0.0.7", ["10.0.0.7"]),
        (["orders-*", "10.0.0.7"], ["10.0.0.7"]),
        ("orders-*", None),
        ("orders-*,!10.0.0.7", None),  # clients of this name, but for those of an address
        ("!orders-*", None),  # a connection that opens may be one of these
        ("10.0.*,!orders-*", None),
    ],
)
def test_a_broker_is_down_on_connect_for_addresses_and_at_the_first_request_for_client_ids(
    client: Any, on_connect: Any
) -> None:
    selectors = {"broker": "2", "client": client}
    opening = [] if on_connect is None else [{**selectors, "client": on_connect, **CONNECT}]
    assert down(selectors) == [*opening, {**selectors, **FRAME}]


def test_a_broker_that_is_down_for_all_is_down_on_connect_too() -> None:
    assert down({"broker": 2, "cluster": "a"}) == [
        {"broker": 2, "cluster": "a", **CONNECT},
        {"broker": 2, "cluster": "a", **FRAME},
    ]

"""What a fault is made of."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.client.faults import down

FRAME, CONNECT = {"event": "frame", "down": True}, {"event": "connect", "down": True}


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
    said = {"broker": "2", "client": client}
    opening = [] if on_connect is None else [{**said, "client": on_connect, **CONNECT}]
    assert down(said) == [*opening, {**said, **FRAME}]


def test_a_broker_that_is_down_for_all_is_down_on_connect_too() -> None:
    assert down({"broker": 2, "cluster": "a"}) == [
        {"broker": 2, "cluster": "a", **CONNECT},
        {"broker": 2, "cluster": "a", **FRAME},
    ]

"""Clients that klamm refuses again and again are read more and more slowly."""

from typing import Any

import pytest

from klamm.rules.actions import ACTIONS
from klamm.rules.actions.refusals import CLIENTS_KEPT, FORGOTTEN_NS, FREE, LONGEST_NS
from klamm.rules.verdict import Answer, MuteChannel
from tests.rules.acting import MS, S, asks, produces

GROUP = {"group_id": "g"}
REFUSING: list[dict[str, Any]] = [{"block": {}}, {"deny": {}}, {"require": {"client_id": ("team-*",)}}]


def waits(action: Any, *times: int, client: str = "app") -> list[int]:
    """ms that the next request waits, after refusals at these times (ms)."""
    found = []
    for now in times:
        orders = list(action.act(asks("Heartbeat", 4, GROUP, client_id=client, now=now * MS), float))
        assert any(isinstance(order, Answer) for order in orders)
        found.append(sum(order.ns // MS for order in orders if isinstance(order, MuteChannel)))
    return found


@pytest.mark.parametrize("one", REFUSING, ids=lambda one: next(iter(one)))
def test_the_first_refusals_cost_nothing_and_then_the_wait_doubles(one: dict[str, Any]) -> None:
    ((name, fields),) = one.items()
    action = ACTIONS[name](**fields)
    found = waits(action, *range(FREE + 20))
    assert found[:FREE] == [0] * FREE
    assert found[FREE : FREE + 4] == [10, 20, 40, 80]
    assert found[-1] == LONGEST_NS // MS


def test_each_client_is_counted_by_itself_and_forgotten_when_it_has_stopped() -> None:
    block = ACTIONS["block"]()
    waits(block, *range(FREE))
    assert waits(block, 10, client="other") == [0]
    assert waits(block, 20) == [10]
    assert waits(block, 20 + FORGOTTEN_NS // MS + 1) == [0]


def test_no_more_clients_are_remembered_than_the_limit() -> None:
    block = ACTIONS["block"]()
    for number in range(CLIENTS_KEPT + 1):
        waits(block, 0, client=f"made-up-{number}")
    assert len(block.refusals.clients) <= CLIENTS_KEPT  # type: ignore[attr-defined]


def test_a_request_of_which_only_a_part_is_refused_costs_nothing() -> None:
    block = ACTIONS["block"]()
    request = produces(9, b"x", b"y", only=lambda part: part.get("partition") == 0)
    for _ in range(FREE + 3):
        orders = list(block.act(request, float))
        assert orders
        assert not any(isinstance(order, MuteChannel | Answer) for order in orders)


def test_a_refusal_s_wait_is_bounded_however_many_there_are() -> None:
    assert waits(ACTIONS["block"](), *range(100))[-1] * MS == LONGEST_NS == 5 * S

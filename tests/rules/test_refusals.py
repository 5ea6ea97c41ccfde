"""Clients that klamm refuses again and again are read more and more slowly."""

from typing import Any

import pytest

from klamm.rules.actions import ACTIONS
from klamm.rules.actions.refusals import CLIENTS_KEPT, FORGOTTEN_NS, FREE, LONGEST_NS
from klamm.rules.orders import Answer, Edit, MuteChannel
from tests.rules.acting import MS, S, answers, asks, edit, on_answer, produces

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
    assert found[:9] == [0, 0, 0, 0, 0, 10, 20, 40, 80]
    assert found[-1] == 5000


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


@pytest.mark.parametrize("version", [1, 8, 12, 13])
def test_blocked_clients_hear_of_the_brokers_and_that_their_topics_are_not_theirs(version: int) -> None:
    request = asks("Metadata", version, {"topics": [{"name": "orders"}]})
    orders = list(ACTIONS["block"]().act(request, float))
    assert edit(orders, request)["topics"] == []
    brokers = [{"node_id": 1, "host": "b", "port": 9092}]
    answer = answers(request, {"brokers": brokers})
    values = edit(on_answer(orders, answer), answer)
    assert [broker["node_id"] for broker in values["brokers"]] == [1]
    assert [(topic["name"], topic["error_code"]) for topic in values["topics"]] == [("orders", 29)]
    assert values.get("error_code", 0) == 0


def test_a_blocked_client_that_asks_for_all_topics_hears_of_none_and_for_none_as_always() -> None:
    block = ACTIONS["block"]()
    every = asks("Metadata", 12, {"topics": None})
    (order,) = block.act(every, float)
    assert isinstance(order, Edit)
    assert order.values["topics"] == []
    assert list(block.act(asks("Metadata", 12, {"topics": []}), float)) == []


def test_clients_that_ask_for_forbidden_topics_again_and_again_are_slowed_down() -> None:
    block, request = ACTIONS["block"](), asks("Metadata", 12, {"topics": [{"name": "orders"}]})
    found = [isinstance(next(iter(block.act(request, float))), MuteChannel) for _ in range(FREE + 1)]
    assert found == [False] * FREE + [True]


def test_a_refusal_s_wait_is_bounded_however_many_there_are() -> None:
    assert waits(ACTIONS["block"](), *range(100))[-1] * MS == LONGEST_NS == 5 * S

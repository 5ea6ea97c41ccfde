"""The conditions by which one follows an exchange; each holds for the exchange that it was made of."""

from __future__ import annotations

import pytest

from klamm.client.types import Exchange
from klamm.dashboards.web.chosen.following import alike, conditions
from klamm.dashboards.web.frames import frames_of
from klamm.rules.expressions import parse
from tests.dashboards.web.exchanges import exchange, fetch, heartbeat, produce

MEMBER = {"member_id": "shop-1", "group_instance_id": None}
TRANSACTION = {"transactional_id": "tx-1", "producer_id": 5, "producer_epoch": 0, "committed": True}


def of(one: Exchange) -> dict[str, str]:
    return {condition.name: condition.where for condition in conditions(one)}


def test_from_the_connection_to_the_group_member() -> None:
    assert of(heartbeat()) == {
        "connection": "connection == 3",
        "client": 'client_id == "shop"',
        "API": "api == Heartbeat",
        "group": 'group == "billing"',
        "member": 'member_id == "shop-1"',
    }


def test_a_transactional_id_is_followed() -> None:
    assert of(exchange("EndTxn", 3, TRANSACTION))["transactional id"] == 'transactional_id == "tx-1"'


def test_what_an_exchange_does_not_have_is_not_offered() -> None:
    assert [*of(produce())] == ["connection", "client", "API", "topic"]
    assert "client" not in of(produce(client_id=None))


def test_a_member_that_stands_deeper_in_a_body_is_found() -> None:
    leaving = exchange("LeaveGroup", 4, {"group_id": "billing", "members": [MEMBER]})
    assert of(leaving)["member"] == 'member_id == "shop-1"'


def test_a_member_is_followed_where_the_field_is_at_the_top_of_the_body() -> None:
    member = parse('member_id == "shop-1"')
    older = exchange("LeaveGroup", 2, {"group_id": "billing", "member_id": "shop-1"})
    newer = exchange("LeaveGroup", 4, {"group_id": "billing", "members": [MEMBER]})
    assert [member.holds(*frames_of(one)) for one in (heartbeat(), older, newer)] == [True, True, False]


@pytest.mark.parametrize("one", [produce(topic='or"ders\\'), heartbeat(), fetch(None)])
def test_each_condition_holds_for_its_exchange(one: Exchange) -> None:
    for condition in [*of(one).values(), alike(one)]:
        assert parse(condition).holds(*frames_of(one)), condition

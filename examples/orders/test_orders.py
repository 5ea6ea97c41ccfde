"""The promises to customers while the cluster has a bad day.

    pytest examples/orders --klamm-bootstrap localhost:9092

Of a cluster that has the topic `orders`, or makes topics by itself.
"""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from consumer import Billing
from producer import Shop

from klamm.client.front import Front


@pytest.fixture
def shop(klamm: Front) -> Shop:
    return Shop(klamm.bootstrap)


@pytest.fixture
def billing(klamm: Front) -> Iterator[Billing]:
    service = Billing(klamm.bootstrap, f"billing-{uuid.uuid4().hex[:8]}")
    yield service
    service.close()


def test_an_order_survives_a_leader_that_moves(klamm: Front, shop: Shop) -> None:
    fault = klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2)
    shop.place(1, "tea")
    assert fault.hits == 2


def test_an_order_is_written_once_though_its_answer_is_lost(klamm: Front, shop: Shop) -> None:
    before = shop.place(1, "tea")
    with klamm.disconnect("Produce", when="after", times=1) as fault:
        assert shop.place(1, "tea") == before + 1
    assert (fault.hits, fault.matches) == (1, 2)


def test_a_shop_without_rights_is_told_and_does_not_try_again(klamm: Front, shop: Shop) -> None:
    klamm.block("Produce", client="shop")
    with pytest.raises(KafkaException) as refused:
        shop.place(1, "tea")
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert len(klamm.exchanges("Produce", client_id="shop")) == 1


def test_orders_are_billed_while_the_brokers_are_slow(klamm: Front, shop: Shop, billing: Billing) -> None:
    number = int(uuid.uuid4().hex[:8], 16)
    with (
        klamm.delay("Fetch", "200ms", client="billing"),
        klamm.inject("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", client="billing", times=1),
    ):
        shop.place(number, "tea")
        billing.bill(1)
    klamm.wait_for("OffsetCommit", client_id="billing", where="any(t.name == 'orders' for t in topics)")


def test_every_order_asks_for_all_replicas(klamm: Front, shop: Shop) -> None:
    shop.place(1, "tea")
    klamm.wait_for("Produce", where="acks == -1")
    klamm.assert_no("Produce", where="acks != -1")

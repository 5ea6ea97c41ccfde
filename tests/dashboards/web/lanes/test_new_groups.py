"""Groups of consumers (KIP-848), of share consumers (KIP-932) and of Streams (KIP-1071)."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.lanes.groups import Groups
from klamm.decoders import API, encode
from klamm.proxy.control.exchange import body
from klamm.rules.frame import Frame, Peer
from tests.dashboards.web.lanes.made import Client, Sheet, at

A, B = Client("app-a", 1), Client("app-b", 2)
ORDERS, PAYMENTS = bytes([1] * 16), bytes([2] * 16)
UNKNOWN, FENCED, UNRELEASED = 25, 110, 111


def beat(
    who: Client, when: float, member: str, sent: int, epoch: int, error: int = 0, *,
    assigned: dict[bytes, list[int]] | None = None, topics: dict[str, list[int]] | None = None,
    **request: Any,
) -> Exchange:  # fmt: skip
    parts = [{"topic_id": one, "partitions": numbers} for one, numbers in (assigned or {}).items()]
    answer = {
        "member_id": member, "member_epoch": epoch, "error_code": error, "heartbeat_interval_ms": 3000,
        "assignment": None if assigned is None else {"topic_partitions": parts},
    }  # fmt: skip
    sent_values = {"group_id": "new", "member_id": member, "member_epoch": sent, **request}
    return who.asks(when, "ConsumerGroupHeartbeat", 1, sent_values, answer, topics=topics)


def began() -> list[Exchange]:
    """Epoch 1 of a."""
    return [
        beat(
            A, 0.0, "a", 0, 1, assigned={ORDERS: [0, 1]}, topics={"orders": [0, 1]}, rack_id="r1",
            subscribed_topic_names=["orders"], server_assignor="uniform", rebalance_timeout_ms=300_000,
        ),
        beat(A, 3.0, "a", 1, 1),
    ]  # fmt: skip


def test_a_member_joins_is_assigned_beats_and_leaves() -> None:
    sheet = Sheet(Groups(), [*began(), beat(A, 6.0, "a", -1, -1)])
    assert sorted(sheet.on("a")) == ["assignment", "epoch", "heartbeat", "join", "leave"]
    joined = "joined; epoch 1; subscribes to orders; rebalance timeout 300 s; assignor uniform; rack r1"
    assert sheet.one("join").text == joined
    assert sheet.one("assignment").text == "assigned orders [0-1]"
    assert (sheet.one("epoch").open, sheet.one("epoch").end) == (False, at(6.0))
    about = sheet.lanes["kafka/new", "a"].about
    assert (about["rack"], sheet.lanes["kafka/new", ""].about["protocol"]) == ("r1", "consumer")


def test_each_epoch_has_its_causes_and_the_members_that_reached_it() -> None:
    sheet = Sheet(
        Groups(),
        [
            *began(),
            beat(B, 10.0, "b", 0, 2, assigned={}, subscribed_topic_names=["orders"]),
            beat(A, 12.0, "a", 1, 2, assigned={ORDERS: [0]}),
            beat(B, 13.0, "b", 2, 2, assigned={ORDERS: [1]}),
        ],
    )
    assert sheet.texts("rebalance") == [
        "epoch 1: app-a (a) joined; 1 member after 0 ms",
        "epoch 2: app-b (b) joined; 2 members after 2.0 s",
    ]
    assert sheet.texts("assignment")[1:] == [
        "assigned nothing", "assigned orders [0]; gone: orders [1]", "assigned orders [1]; new: orders [1]",
    ]  # fmt: skip


def test_a_subscription_that_changes_sets_off_an_epoch() -> None:
    more = beat(A, 9.0, "a", 1, 2, subscribed_topic_names=["orders", "payments"])
    sheet = Sheet(Groups(), [*began(), more])
    assert "app-a (a) now subscribes to orders, payments" in sheet.texts("rebalance")[1]


def test_a_silent_member_is_the_cause_of_the_next_epoch() -> None:
    others = [beat(B, 2.0, "b", 0, 2), *(beat(B, float(when), "b", 2, 2) for when in range(5, 50, 3))]
    sheet = Sheet(Groups(), [*began(), *others, beat(B, 49.0, "b", 2, 3)])
    why = "no heartbeat for 46 s, the default of group.consumer.session.timeout.ms is 45 s"
    assert (sheet.one("out").member, sheet.one("out").text) == ("a", f"out: {why}")
    assert sheet.texts("rebalance")[-1] == f"epoch 3: app-a (a): {why}; 1 member after 1.0 s"


def test_an_epoch_for_no_reason_that_was_seen_says_so() -> None:
    sheet = Sheet(Groups(), [*began(), beat(A, 6.0, "a", 1, 2)])
    assert "nothing that was seen tells why" in sheet.texts("rebalance")[1]


@pytest.mark.parametrize("error", [UNKNOWN, FENCED])
def test_a_fenced_member_hears_that_it_was_silent(error: int) -> None:
    sheet = Sheet(Groups(), [*began(), beat(A, 60.0, "a", 1, 0, error)])
    assert sheet.one("out").begin == at(48.0)
    assert (
        "no heartbeat for 57 s, the default of the session timeout is 45 s" in sheet.of("heartbeat")[1].text
    )
    assert sheet.of("heartbeat")[1].error


def test_an_instance_id_that_is_still_held_names_its_holder() -> None:
    sheet = Sheet(
        Groups(),
        [beat(A, 0.0, "a", 0, 1, instance_id="i1"), beat(B, 1.0, "b", 0, 0, UNRELEASED, instance_id="i1")],
    )
    assert sheet.of("join")[1].text == (
        "join, while app-a (a) has the instance id i1: UNRELEASED_INSTANCE_ID"
    )


def test_a_static_member_that_leaves_for_now_says_so() -> None:
    sheet = Sheet(Groups(), [beat(A, 0.0, "a", 0, 1, instance_id="i1"), beat(A, 1.0, "a", -2, -2)])
    assert sheet.one("leave").text == "left for now, and keeps its partitions by its instance id"


def test_names_of_topic_ids_come_from_metadata_or_from_the_only_name_that_fits() -> None:
    topics = [{"name": "payments", "topic_id": PAYMENTS, "error_code": 0, "partitions": []}]
    metadata = A.asks(0.0, "Metadata", 12, {"topics": None}, {"brokers": [], "topics": topics})
    ids = {ORDERS: [0], PAYMENTS: [0]}
    sheet = Sheet(Groups(), [metadata, *began(), beat(A, 6.0, "a", 1, 2, assigned=ids)])
    assert (
        sheet.texts("assignment")[1]
        == "assigned orders [0], payments [0]; new: payments [0]; gone: orders [1]"
    )
    unknown = Sheet(
        Groups(), [beat(A, 6.0, "a", 1, 2, assigned=ids, topics={"orders": [0], "x": [0], "y": []})]
    )
    assert unknown.texts("assignment") == ["assigned AQEBAQEBAQEBAQEBAQEBAQ [0], AgICAgICAgICAgICAgICAg [0]"]


def test_share_groups_are_read_too() -> None:
    request = {"group_id": "queue", "member_id": "s", "member_epoch": 0, "subscribed_topic_names": ["orders"]}
    parts = {"topic_partitions": [{"topic_id": ORDERS, "partitions": [0, 1]}]}
    answer = {"member_id": "s", "member_epoch": 1, "heartbeat_interval_ms": 5000, "assignment": parts}
    one = A.asks(0.0, "ShareGroupHeartbeat", 1, request, answer, topics={"orders": [0, 1]})
    sheet = Sheet(Groups(), [one])
    assert sheet.one("join").text == "joined; epoch 1; subscribes to orders"
    assert sheet.one("assignment").text == "assigned orders [0-1]"
    assert sheet.lanes["kafka/queue", ""].about["protocol"] == "share"


def test_streams_groups_are_read_from_values_since_their_bodies_carry_secrets() -> None:
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["orders"]}]}
    request = {
        "group_id": "streams", "member_id": "t", "member_epoch": 0, "rack_id": "r1", "instance_id": None,
        "rebalance_timeout_ms": 60_000, "topology": topology,
    }  # fmt: skip
    answer = {
        "error_code": 0, "member_id": "t", "member_epoch": 1,
        "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}],
        "standby_tasks": [{"subtopology_id": "0", "partitions": [2]}], "warmup_tasks": None,
        "status": [{"status_code": 1, "status_detail": {"bytes": 3}}],
    }  # fmt: skip
    sent, told = Body(9, request, reason="secrets"), Body(9, answer, reason="secrets")
    one = Exchange(
        at(0.0), "kafka", "1", "10.0.0.7:5", "StreamsGroupHeartbeat", 0, "app", "broker", 9, 9, 1.0,
        request=sent, response=told,
    )  # fmt: skip
    sheet = Sheet(Groups(), [one])
    assert (
        sheet.one("join").text
        == "joined; epoch 1; subscribes to orders; rebalance timeout 60 s; rack r1; status 1"
    )
    assert sheet.one("assignment").text == "assigned 0 [0-1], standby 0 [2]"


def test_a_body_that_could_have_secrets_comes_as_values_without_them() -> None:
    peer = Peer("kafka", "1", "10.0.0.7:5", "")
    values = {"group_id": "streams", "member_id": "t", "member_epoch": 1}
    topics = [{"name": "x", "partitions": 1, "topic_configs": [{"key": "k", "value": "hidden"}]}]
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "repartition_source_topics": topics}]}
    data = encode({**values, "topology": topology}, "StreamsGroupHeartbeat", 0, "request")
    api = API["StreamsGroupHeartbeat"]
    found = body(Frame(api, 0, "request", data, "app", peer, 0), raw=True)
    assert (found.raw, found.reason) == (None, "a StreamsGroupHeartbeat request carries secrets")
    assert found.values is not None
    assert found.values["member_id"] == "t"
    assert "hidden" not in str(found)

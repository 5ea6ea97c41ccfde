"""The record that a real broker keeps of a classic group, with what its member wrote."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from klamm.cli import main
from klamm.decoders.payloads import coordinator_record
from klamm.decoders.shown.payloads import payload_object
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e import topics

pytestmark = pytest.mark.brokers

OFFSETS = "__consumer_offsets"


def test_the_record_of_a_group_has_the_subscription_and_the_assignment(
    kafka: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = group = f"group-record-{uuid.uuid4().hex[:8]}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap(), "enable.auto.commit": False}
    member, reader = Consumer({**settings, "group.id": group}), Consumer({**settings, "group.id": "reader"})
    try:
        member.subscribe([topic])
        wait_for(lambda: member.poll(0.1) or member.assignment(), "an assignment")
        partitions = reader.list_topics(OFFSETS, timeout=30).topics[OFFSETS].partitions
        reader.assign([TopicPartition(OFFSETS, number, OFFSET_BEGINNING) for number in partitions])
        one, data = wait_for(lambda: member_of(group, reader, member), "the record of the group")
    finally:
        member.close()
        reader.close()
    assert one["subscription_of"]["name"] == "ConsumerProtocolSubscription"
    assert one["subscription_of"]["values"]["topics"] == [topic]
    assert one["assignment_of"]["values"]["assigned_partitions"] == [
        {"topic": topic, "partitions": [0, 1, 2]}
    ]
    assert main(["decode", "--payload", "GroupMetadataValue", data.hex()]) == 0
    lines = [line[36:] for line in capsys.readouterr().out.splitlines()]
    assert f'          topics: ["{topic}"]' in lines
    assert "          assigned_partitions: 1 element" in lines


def member_of(group: str, reader: Consumer, member: Consumer) -> tuple[dict[str, Any], bytes] | None:
    """The member, and the record's value, once the next record that is read has it with its assignment."""
    member.poll(0)
    message = reader.poll(0.1)
    if message is None or message.error() or message.value() is None:
        return None
    key, value = coordinator_record(OFFSETS, message.key(), message.value())
    if value is None or key.name != "GroupMetadataKey" or key.values["group"] != group:
        return None
    members = payload_object(value, message.value())["values"]["members"]
    data = message.value() or b""
    return next(((one, data) for one in members if "assignment_of" in one), None)

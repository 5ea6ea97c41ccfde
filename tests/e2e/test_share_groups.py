"""The endpoints that ShareFetch and ShareAcknowledge name, asked for by hand as a group's member would."""

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from klamm.decoders import decode, encode
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.conversation import Conversation, ask, coordinator
from tests.e2e.paths import LEADER, OTHER, TOPIC, Address, Paths, addresses, one_record

pytestmark = pytest.mark.brokers

LIMITS = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
VERSIONS = (1, 2)


def _check(api: str, version: int, bodies: Sequence[bytes], paths: Paths) -> str:
    """The answer through klamm is the broker's own but for the address; a line that says so."""
    sent, received = bodies
    values = decode(sent, api, version, "response")
    endpoints = set(addresses(values))
    assert endpoints == {paths.direct["broker", LEADER]}, values
    assert received == encode(paths.replace(values), api, version, "response")
    return f"{api} {version}: node_endpoints[]: {paths.arrows(endpoints)}"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_endpoints_of_a_share_fetch_from_the_wrong_broker_are_rewritten(
    version: int, paths: Paths, seen_rewritten: list[str]
) -> None:
    member = {"group_id": "nobody", "member_id": str(uuid.uuid4()), "share_session_epoch": 0}
    wanted = {"topics": [{"topic_id": paths.topic_id, "partitions": [{"partition_index": 0}]}]}
    bodies = []
    for way in (paths.direct, paths.through):
        with Conversation(way["broker", OTHER]) as conversation:
            bodies.append(conversation.ask_bytes("ShareFetch", version, {**member, **LIMITS, **wanted}))
    seen_rewritten.append(_check("ShareFetch", version, bodies, paths))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_endpoints_of_a_share_acknowledgement_to_a_deposed_leader_are_rewritten(
    version: int, paths: Paths, kafka: Cluster, seen_rewritten: list[str]
) -> None:
    bodies = []
    for name, way in (("direct", paths.direct), ("through", paths.through)):
        group = f"acknowledges-{name}-{version}"
        bodies.append(_acknowledge(kafka.address(1), way["broker", LEADER], group, version, paths.topic_id))
    seen_rewritten.append(_check("ShareAcknowledge", version, bodies, paths))


def _acknowledge(any_broker: Address, leader: Address, group: str, version: int, topic_id: Any) -> bytes:
    """Join, acquire a record from `leader`, let the share coordinator hear of a later leader, acknowledge."""
    member = {"group_id": group, "member_id": str(uuid.uuid4())}
    _join(any_broker, member)
    partition = {"partition_index": 0}
    produced = {"topic_id": topic_id, "partition_data": [{"index": 0, "records": one_record()}]}
    with Conversation(leader) as conversation:
        wanted = {"topics": [{"topic_id": topic_id, "partitions": [partition]}]}
        opened = conversation.ask(
            "ShareFetch", version, {**member, **LIMITS, **wanted, "share_session_epoch": 0}
        )
        assert opened["error_code"] == 0
        conversation.ask("Produce", 13, {"acks": -1, "timeout_ms": 5000, "topic_data": [produced]})
        acquired: list[dict[str, Any]] = []
        epoch = 0
        while not acquired:
            epoch += 1
            fetched = conversation.ask(
                "ShareFetch", version, {**member, **LIMITS, "share_session_epoch": epoch}
            )
            acquired = [
                each for topic in fetched["responses"] for each in topic["partitions"][0]["acquired_records"]
            ]
        _depose(any_broker, group, topic_id)
        batch = {
            "acknowledge_types": [1],
            **{name: acquired[0][name] for name in ("first_offset", "last_offset")},
        }
        done = {
            "topics": [
                {"topic_id": topic_id, "partitions": [{**partition, "acknowledgement_batches": [batch]}]}
            ]
        }
        return conversation.ask_bytes(
            "ShareAcknowledge", version, {**member, **done, "share_session_epoch": epoch + 1}
        )


def _join(any_broker: Address, member: dict[str, Any]) -> None:
    """Heartbeat until the group coordinator assigns the topic, which makes the group's state too."""
    address = wait_for(lambda: coordinator(any_broker, 0, member["group_id"]), "the group coordinator")
    epoch = 0

    def assigned() -> bool:
        nonlocal epoch
        beat = {**member, "member_epoch": epoch, "subscribed_topic_names": None if epoch else [TOPIC]}
        answer = ask(address, "ShareGroupHeartbeat", 1, beat)
        epoch = epoch if answer["error_code"] else answer["member_epoch"]
        return bool(answer["assignment"] and answer["assignment"]["topic_partitions"])

    wait_for(assigned, f"an assignment in {member['group_id']}", timeout_s=30)


def _depose(any_broker: Address, group: str, topic_id: Any) -> None:
    """Read the group's state as a later leader does: the share coordinator then refuses the earlier one."""
    partition = {"partition": 0, "leader_epoch": 1000}
    question = {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": [partition]}]}
    for node in ask(any_broker, "Metadata", 12, {"topics": []})["brokers"]:
        answer = ask((node["host"], node["port"]), "ReadShareGroupState", 0, question)
        if answer["results"][0]["partitions"][0]["error_code"] == 0:
            return
    raise AssertionError(f"no share coordinator for {group}")

"""The played coordinator of classic groups, and that of the new protocol."""

from __future__ import annotations

import asyncio
from typing import Any

from klamm.replay.serving.groups import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Groups,
)
from klamm.replay.serving.members import FENCED_MEMBER_EPOCH, ConsumerGroups
from tests.fakes.waiting import on_uvloop, turns

Values = dict[str, Any]
PLACES = [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
IDS = {"t": bytes(15) + b"\1", "u": bytes(15) + b"\2"}


class Client:
    """A member of group g, as a client of a group has it."""

    def __init__(self, groups: Groups, *protocols: str, instance_id: str | None = None) -> None:
        self.groups, self.instance_id = groups, instance_id
        self.protocols = [{"name": name, "metadata": name.encode()} for name in protocols or ("range",)]
        self.here, self.member_id, self.generation = True, "", -1

    async def join(self, version: int = 3) -> Values:
        asked = {
            "group_id": "g",
            "session_timeout_ms": 50_000,
            "rebalance_timeout_ms": 50_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": self.protocols,
        }
        answer = await self.groups.join(version, asked, "app", lambda: self.here)
        self.member_id = answer["member_id"]
        self.generation = answer.get("generation_id", -1)
        return answer

    async def sync(self, **assignments: bytes) -> Values:
        given = [{"member_id": name, "assignment": data} for name, data in assignments.items()]
        return await self.groups.sync({**self.asked, "assignments": given})

    @property
    def asked(self) -> Values:
        return {"group_id": "g", "member_id": self.member_id, "generation_id": self.generation}

    def heartbeat(self) -> int:
        return int(self.groups.heartbeat(self.asked, lambda: self.here)["error_code"])

    def leave(self) -> Values:
        members = [{"member_id": self.member_id, "group_instance_id": None}]
        return self.groups.leave({"group_id": "g", "members": members})


@on_uvloop
async def test_a_member_alone_leads_and_gets_what_it_assigned() -> None:
    client = Client(Groups({"g": ["recorded-1", "recorded-2"]}))
    joined = await client.join()
    assert (joined["member_id"], joined["leader"], joined["generation_id"]) == ("recorded-1", "recorded-1", 1)
    assert joined["members"] == [{"member_id": "recorded-1", "group_instance_id": None, "metadata": b"range"}]
    assert (await client.sync(**{client.member_id: b"mine"}))["assignment"] == b"mine"
    assert client.heartbeat() == 0


@on_uvloop
async def test_newer_clients_are_told_their_id_first_unless_they_are_static() -> None:
    groups = Groups({})
    client = Client(groups)
    assert (await client.join(version=5))["error_code"] == MEMBER_ID_REQUIRED
    assert (await client.join(version=5))["error_code"] == 0
    static = Client(Groups({}), instance_id="i")
    first = await static.join(version=5)
    assert first["error_code"] == 0
    static.member_id = ""
    assert (await static.join(version=5))["member_id"] == first["member_id"]


@on_uvloop
async def test_a_second_member_makes_the_first_join_again_and_both_get_their_part() -> None:
    groups = Groups({})
    first, second = Client(groups, "sticky", "range"), Client(groups, "range")
    await first.join()
    await first.sync(**{first.member_id: b"all"})
    joining = asyncio.ensure_future(second.join())
    await turns()
    assert first.heartbeat() == REBALANCE_IN_PROGRESS
    leader, follower = await asyncio.gather(first.join(), joining)
    assert leader["protocol_name"] == follower["protocol_name"] == "range"
    assert [member["member_id"] for member in leader["members"]] == [first.member_id, second.member_id]
    assert (follower["members"], follower["leader"]) == ([], first.member_id)
    waiting = asyncio.ensure_future(second.sync())
    await turns()
    assert not waiting.done()
    assert (await first.sync(**{first.member_id: b"a", second.member_id: b"b"}))["assignment"] == b"a"
    assert (await waiting)["assignment"] == b"b"
    assert first.heartbeat() == second.heartbeat() == 0


@on_uvloop
async def test_who_leaves_or_vanishes_makes_room_for_the_others() -> None:
    groups = Groups({})
    first, second = Client(groups), Client(groups)
    await first.join()
    joining = asyncio.ensure_future(second.join())
    await turns()
    await asyncio.gather(first.join(), joining)
    assert first.leave()["members"][0]["error_code"] == 0
    assert first.leave()["members"][0]["error_code"] == UNKNOWN_MEMBER_ID
    assert second.heartbeat() == REBALANCE_IN_PROGRESS
    assert (await second.join())["leader"] == second.member_id
    second.here = False
    third = Client(groups)
    assert [member["member_id"] for member in (await third.join())["members"]] == [third.member_id]


@on_uvloop
async def test_strangers_and_old_generations_are_refused() -> None:
    groups = Groups({})
    client = Client(groups)
    await client.join()
    other = Client(groups, "roundrobin")
    assert (await other.join())["error_code"] == INCONSISTENT_GROUP_PROTOCOL
    assert groups.commits("g", "stranger", 1) == UNKNOWN_MEMBER_ID
    assert groups.commits("g", client.member_id, 7) == ILLEGAL_GENERATION
    assert groups.commits("g", client.member_id, 1) == groups.commits("g", "", -1) == 0
    assert (await client.sync(**{client.member_id: b""}))["error_code"] == 0
    client.generation = 7
    assert client.heartbeat() == ILLEGAL_GENERATION
    assert (await client.sync())["error_code"] == ILLEGAL_GENERATION


class Consumer:
    """A member of group g of the new protocol."""

    def __init__(self, groups: ConsumerGroups, name: str, *topics: str, regex: str | None = None) -> None:
        self.groups, self.name, self.epoch, self.here = groups, name, 0, True
        self.subscription: Values = {"subscribed_topic_names": list(topics) or None}
        self.subscription["subscribed_topic_regex"] = regex

    def beat(self, epoch: int | None = None, **asked: Any) -> Values:
        at = self.epoch if epoch is None else epoch
        subscription_sent = self.subscription if at == 0 else {}
        values = {"group_id": "g", "member_id": self.name, "member_epoch": at, **subscription_sent, **asked}
        answer = self.groups.heartbeat(values, "app", lambda: self.here)
        self.epoch = answer.get("member_epoch", self.epoch)
        return answer

    def owns(self, *indexes: int) -> Values:
        return self.beat(topic_partitions=[{"topic_id": IDS["t"], "partitions": list(indexes)}])


def consumer_groups() -> ConsumerGroups:
    names = {topic_id: name for name, topic_id in IDS.items()}
    return ConsumerGroups(lambda: PLACES, IDS.__getitem__, names.get, lambda group, client: "made")


def given(answer: Values) -> dict[bytes, list[int]] | None:
    if answer["assignment"] is None:
        return None
    return {row["topic_id"]: row["partitions"] for row in answer["assignment"]["topic_partitions"]}


def test_a_consumer_alone_gets_every_partition_of_its_topics_once() -> None:
    consumer = Consumer(consumer_groups(), "one", "t")
    assert given(consumer.beat()) == {IDS["t"]: [0, 1, 2]}
    assert given(consumer.owns(0, 1, 2)) is None
    assert consumer.epoch == 1


def test_a_subscription_by_pattern_is_one_to_each_topic_that_it_matches_whole() -> None:
    consumer = Consumer(consumer_groups(), "one", regex="t|x.*")
    assert given(consumer.beat()) == {IDS["t"]: [0, 1, 2]}


def test_a_partition_goes_to_another_consumer_when_the_first_has_let_it_go() -> None:
    groups = consumer_groups()
    first, second = Consumer(groups, "one", "t"), Consumer(groups, "two", "t")
    first.beat()
    first.owns(0, 1, 2)
    assert given(second.beat()) == {}
    kept = given(first.beat())
    assert kept == {IDS["t"]: [0, 2]}
    assert given(second.beat()) is None
    first.owns(0, 2)
    assert given(second.beat()) == {IDS["t"]: [1]}


def test_a_consumer_that_leaves_or_vanishes_frees_what_it_read() -> None:
    groups = consumer_groups()
    first, second = Consumer(groups, "one", "t"), Consumer(groups, "two", "t")
    first.beat()
    assert first.beat(epoch=-1)["member_epoch"] == -1
    assert given(second.beat()) == {IDS["t"]: [0, 1, 2]}
    second.here = False
    assert given(Consumer(groups, "three", "t").beat()) == {IDS["t"]: [0, 1, 2]}


def test_a_stranger_or_one_from_the_future_is_fenced_and_one_without_an_id_gets_one() -> None:
    groups = consumer_groups()
    assert Consumer(groups, "stranger").beat(epoch=3)["error_code"] == UNKNOWN_MEMBER_ID
    consumer = Consumer(groups, "", "u")
    assert consumer.beat()["member_id"] == "made"
    consumer.name = "made"
    assert consumer.beat(epoch=9)["error_code"] == FENCED_MEMBER_EPOCH

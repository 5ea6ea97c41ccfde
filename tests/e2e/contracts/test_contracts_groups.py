"""Kafka's promises to groups, through klamm: joining, generations, committed offsets."""

from collections.abc import Iterator

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e import topics
from tests.e2e.contracts.contracts import Address, Talk, Values, ask
from tests.e2e.conversation import coordinator
from tests.e2e.paths import Paths

pytestmark = pytest.mark.brokers

TOPIC = "contracts-groups"
NONE, METADATA_TOO_LARGE, NOT_COORDINATOR, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL = 0, 12, 16, 22, 23
INVALID_GROUP, UNKNOWN_MEMBER, INVALID_TIMEOUT, REBALANCE, MEMBER_ID_REQUIRED = 24, 25, 26, 27, 79
NOT_READY = (14, 15, NOT_COORDINATOR)
SHARE, OTHER_SHARE = b"the first half", b"the second half"
KIND = "by-hand"  # of a type that brokers know ("consumer") they read the subscriptions too


class Member:
    """One member of a group, on a connection of its own to the coordinator."""

    def __init__(self, group: str, address: Address) -> None:
        self.group, self.talk = group, Talk(address)
        self.member_id, self.generation = "", -1

    def joining(self, **more: object) -> Values:
        protocol = {"name": "range", "metadata": b"subscription"}
        values = {"group_id": self.group, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
        return {
            **values,
            "member_id": self.member_id,
            "protocol_type": KIND,
            "protocols": [protocol],
            **more,
        }

    def joined(self, answer: Values) -> Values:
        assert answer["error_code"] == NONE
        self.member_id, self.generation = answer["member_id"], answer["generation_id"]
        return answer

    def join(self) -> Values:
        """Ask for a member id, then join with it."""
        self.introduce()
        return self.joined(self.talk.ask("JoinGroup", 9, self.joining()))

    def introduce(self) -> None:
        answer = self.talk.ask("JoinGroup", 9, self.joining())
        assert answer["error_code"] == MEMBER_ID_REQUIRED
        self.member_id = answer["member_id"]

    def of(self, **more: object) -> Values:
        return {
            "group_id": self.group,
            "member_id": self.member_id,
            "generation_id": self.generation,
            **more,
        }

    def syncing(self, *shares: tuple["Member", bytes]) -> Values:
        assigned = [{"member_id": member.member_id, "assignment": share} for member, share in shares]
        return self.of(protocol_type=KIND, protocol_name="range", assignments=assigned)

    def heartbeat(self, **more: object) -> int:
        return int(self.talk.ask("Heartbeat", 4, self.of(**more))["error_code"])


@pytest.fixture
def member(request: pytest.FixtureRequest, kafka: Cluster, paths: Paths) -> Iterator[Member]:
    """The leader, and only member, of a stable group of its own."""
    group, first = f"group-{request.node.name}", paths.through["broker", 1]
    address = wait_for(lambda: coordinator(first, 0, group), "the group coordinator")
    assert address in paths.through.values()
    made = Member(group, address)
    with made.talk:
        wait_for(lambda: made.heartbeat() not in NOT_READY, "the coordinator to have loaded its state")
        assert made.join()["leader"] == made.member_id
        assert made.talk.ask("SyncGroup", 5, made.syncing((made, SHARE)))["assignment"] == SHARE
        yield made


def test_a_member_gets_an_id_first_then_a_generation_then_its_share(member: Member) -> None:
    assert (member.generation, member.heartbeat()) == (1, NONE)


def test_a_new_member_makes_the_others_join_again(member: Member) -> None:
    second = Member(member.group, member.talk.socket.getpeername()[:2])
    with second.talk:
        second.introduce()
        second.talk.send("JoinGroup", 9, second.joining())
        wait_for(lambda: member.heartbeat() == REBALANCE, "the rebalance", timeout_s=10)
        led = member.joined(member.talk.ask("JoinGroup", 9, member.joining()))
        second.joined(second.talk.answer("JoinGroup", 9))
        assert {one["member_id"] for one in led["members"]} == {member.member_id, second.member_id}
        assert (member.generation, second.generation) == (2, 2)
        second.talk.send("SyncGroup", 5, second.syncing())
        shares = member.syncing((member, SHARE), (second, OTHER_SHARE))
        assert member.talk.ask("SyncGroup", 5, shares)["assignment"] == SHARE
        assert second.talk.answer("SyncGroup", 5)["assignment"] == OTHER_SHARE
        assert member.heartbeat(generation_id=1) == ILLEGAL_GENERATION
        leaving = {"group_id": member.group, "members": [{"member_id": second.member_id}]}
        assert second.talk.ask("LeaveGroup", 5, leaving)["members"][0]["error_code"] == NONE
        assert second.heartbeat() == UNKNOWN_MEMBER
        assert member.heartbeat() == REBALANCE


def test_heartbeats_of_strangers_and_of_other_generations_are_refused(member: Member) -> None:
    assert member.heartbeat(member_id="a stranger") == UNKNOWN_MEMBER
    assert member.heartbeat(generation_id=7) == ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"protocols": [{"name": "other", "metadata": b""}], "member_id": ""}, INCONSISTENT_PROTOCOL),
        ({"session_timeout_ms": 1}, INVALID_TIMEOUT),
        ({"group_id": ""}, INVALID_GROUP),
        ({"member_id": "a stranger"}, UNKNOWN_MEMBER),
    ],
)
def test_who_does_not_fit_may_not_join(more: Values, error: int, member: Member) -> None:
    with Talk(member.talk.socket.getpeername()[:2]) as talk:
        assert talk.ask("JoinGroup", 3, member.joining(**more))["error_code"] == error


def test_another_broker_than_the_coordinator_refuses(member: Member, paths: Paths) -> None:
    asked = member.talk.socket.getpeername()[:2]
    others = [address for end, address in paths.through.items() if end[0] == "broker" and address != asked]
    for other in others:
        assert ask(other, "Heartbeat", 4, member.of())["error_code"] == NOT_COORDINATOR


def test_groups_are_described_and_listed(member: Member) -> None:
    (group,) = member.talk.ask("DescribeGroups", 5, {"groups": [member.group]})["groups"]
    assert (group["group_state"], group["protocol_type"], group["protocol_data"]) == ("Stable", KIND, "range")
    (described,) = group["members"]
    assert (described["member_id"], described["client_id"]) == (member.member_id, "by-hand")
    assert (described["member_metadata"], described["member_assignment"]) == (b"subscription", SHARE)
    listed = {one["group_id"] for one in member.talk.ask("ListGroups", 4)["groups"]}
    assert member.group in listed


def test_committed_offsets_are_found_again_and_others_are_minus_1(member: Member, kafka: Cluster) -> None:
    topics.create(kafka.bootstrap(), TOPIC, [[1]])

    def commit(metadata: str, **more: object) -> int:
        partition = {"partition_index": 0, "committed_offset": 42, "committed_metadata": metadata}
        wanted = {"topics": [{"name": TOPIC, "partitions": [partition]}], **more}
        values = {"group_id": member.group, "member_id": member.member_id, **wanted}
        values.setdefault("generation_id_or_member_epoch", member.generation)
        return int(member.talk.ask("OffsetCommit", 8, values)["topics"][0]["partitions"][0]["error_code"])

    wait_for(lambda: commit("a note") == NONE, "the coordinator to know the topic", timeout_s=10)
    assert commit("x" * 5000) == METADATA_TOO_LARGE
    assert commit("", generation_id_or_member_epoch=9) == ILLEGAL_GENERATION
    wanted = {"group_id": member.group, "topics": [{"name": TOPIC, "partition_indexes": [0, 1]}]}
    first, second = member.talk.ask("OffsetFetch", 5, wanted)["topics"][0]["partitions"]
    assert (first["committed_offset"], first["metadata"]) == (42, "a note")
    assert second["committed_offset"] == -1
    everything = member.talk.ask("OffsetFetch", 5, {"group_id": member.group, "topics": None})["topics"]
    assert [topic["name"] for topic in everything] == [TOPIC]

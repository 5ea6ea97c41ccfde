"""Consumer groups of the new protocol (KIP-848): the broker deals the partitions out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import re2  # type: ignore[import-untyped]

from klamm.replay.serving.groups import Alive
from klamm.replay.serving.matching import Values

UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION = 25, 110, 128
HEARTBEAT_INTERVAL_MS = 1000
Place = tuple[str, int]


@dataclass(slots=True, eq=False)
class Consumer:
    """`owned` is what it says it reads, `assigned` what it was given last."""

    member_id: str
    alive: Alive
    topics: frozenset[str] = frozenset()
    owned: set[Place] = field(default_factory=set)
    target: set[Place] = field(default_factory=set)
    assigned: set[Place] | None = None


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """Its epoch grows with each change of its members or their subscriptions."""

    epoch: int = 0
    members: dict[str, Consumer] = field(default_factory=dict)

    def deal(self, places: Iterable[Place]) -> None:
        """Each partition goes to one of those who subscribe to its topic, in turn."""
        self.epoch += 1
        for member in self.members.values():
            member.target = set()
        for number, place in enumerate(sorted(places)):
            takers = [member for member in self.members.values() if place[0] in member.topics]
            if takers:
                takers[number % len(takers)].target.add(place)


class ConsumerGroups:
    """`topics` gives the partitions that there are, `topic_id` and `name` go between ids and names."""

    def __init__(
        self,
        places: Callable[[], Iterable[Place]],
        id_of: Callable[[str], bytes],
        name_of: Callable[[bytes], str | None],
        new_member_id: Callable[[str, str | None], str],
    ) -> None:
        self.places, self.id_of, self.name_of, self.new_member_id = places, id_of, name_of, new_member_id
        self.groups: dict[str, ConsumerGroup] = defaultdict(ConsumerGroup)

    def heartbeat(self, asked: Values, client_id: str | None, alive: Alive) -> Values:
        """The answer to ConsumerGroupHeartbeat."""
        group, epoch = self.groups[asked["group_id"]], asked["member_epoch"]
        member_id = asked["member_id"] or self.new_member_id(asked["group_id"], client_id)
        member = group.members.get(member_id)
        if epoch < 0:
            if member is not None:
                del group.members[member_id]
                group.deal(self.places())
            return {"member_id": member_id, "member_epoch": epoch}
        if member is None and epoch > 0:
            return {"error_code": UNKNOWN_MEMBER_ID, "error_message": f"{member_id} is no member"}
        if epoch > group.epoch:
            return {"error_code": FENCED_MEMBER_EPOCH, "error_message": f"the group is at {group.epoch}"}
        changed = [gone for gone in group.members.values() if not gone.alive() and gone is not member]
        for gone in changed:
            del group.members[gone.member_id]
        if member is None:
            member = group.members[member_id] = Consumer(member_id, alive)
        member.alive = alive
        try:
            topics = self._topics(asked, member.topics)
        except re2.error as wrong:
            return {"error_code": INVALID_REGULAR_EXPRESSION, "error_message": str(wrong)}
        if epoch == 0:
            member.owned, member.assigned = set(), None
        if topics != member.topics or epoch == 0 or changed:
            member.topics = topics
            group.deal(self.places())
        if asked.get("topic_partitions") is not None:
            member.owned = {
                (self.name_of(row["topic_id"]) or "", index)
                for row in asked["topic_partitions"]
                for index in row["partitions"]
            }
        return self._answer(group, member)

    def _topics(self, asked: Values, before: frozenset[str]) -> frozenset[str]:
        """The topics that a member subscribes to now; null means: as before."""
        names, regex = asked.get("subscribed_topic_names"), asked.get("subscribed_topic_regex")
        if names is None and regex is None:
            return before
        found = set(names or ())
        if regex:
            found |= {topic for topic, _ in self.places() if re2.fullmatch(regex, topic)}
        return frozenset(found)

    def _answer(self, group: ConsumerGroup, member: Consumer) -> Values:
        """A partition that another member still reads is assigned once that member has given it up."""
        elsewhere: set[Place] = set()
        for other in group.members.values():
            if other is not member:
                elsewhere |= other.owned | (other.assigned or set())
        now = member.target - elsewhere
        answer = {
            "member_id": member.member_id,
            "member_epoch": group.epoch,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
            "assignment": None,
        }
        if now != member.assigned:
            member.assigned = now
            by_topic: dict[str, list[int]] = defaultdict(list)
            for topic, index in sorted(now):
                by_topic[topic].append(index)
            rows = [{"topic_id": self.id_of(name), "partitions": found} for name, found in by_topic.items()]
            answer["assignment"] = {"topic_partitions": rows}
        return answer

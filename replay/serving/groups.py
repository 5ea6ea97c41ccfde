"""Classic consumer groups, coordinated among the members that are really there."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from klamm.replay.serving.matching import Values

ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID = 22, 23, 25
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
MEMBER_ID_FIRST = (
    4  # the JoinGroup version from which a new member gets its id first and asks again (KIP-394)
)

Alive = Callable[[], bool]  # is the connection that a member spoke on last still there?


@dataclass(slots=True, eq=False)
class Member:
    """`joined` and `synced` are there while it waits for the others."""

    member_id: str
    instance_id: str | None
    alive: Alive
    protocols: list[tuple[str, bytes]] = field(default_factory=list)
    joined: asyncio.Future[Values] | None = None
    synced: asyncio.Future[Values] | None = None
    assignment: bytes = b""


@dataclass(slots=True, eq=False)
class Group:
    """Rebalancing until all members have joined again; then a generation, led by the first of them."""

    protocol_type: str = ""
    protocol: str = ""
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    rebalancing: bool = False
    assigned: bool = False

    @property
    def leader(self) -> str:
        return next(iter(self.members), "")


class Groups:
    """`recorded` has the member ids that the recording's groups gave out: they are given out first."""

    def __init__(self, recorded: dict[str, list[str]]) -> None:
        self.unused = {group: list(ids) for group, ids in recorded.items()}
        self.groups: dict[str, Group] = defaultdict(Group)

    def new_member_id(self, group_id: str, client_id: str | None) -> str:
        """An id that no member of the group has."""
        unused = self.unused.get(group_id)
        return unused.pop(0) if unused else f"{client_id or 'member'}-{uuid.uuid4()}"

    async def join(self, version: int, asked: Values, client_id: str | None, alive: Alive) -> Values:
        """The answer to JoinGroup, when all members are there."""
        group = self.groups[asked["group_id"]]
        member_id, instance_id = asked["member_id"], asked.get("group_instance_id")
        if not member_id and instance_id is not None:  # a static member that comes back (KIP-345)
            static = [m.member_id for m in group.members.values() if m.instance_id == instance_id]
            member_id = static[0] if static else ""
        if not member_id:
            member_id = self.new_member_id(asked["group_id"], client_id)
            if version >= MEMBER_ID_FIRST and instance_id is None:
                return _refused_join(MEMBER_ID_REQUIRED, member_id)
        for gone in [m for m in group.members.values() if not m.alive() and m.joined is None]:
            del group.members[gone.member_id]
        member = group.members.setdefault(member_id, Member(member_id, instance_id, alive))
        member.alive = alive
        member.protocols = [(offer["name"], offer["metadata"]) for offer in asked["protocols"]]
        if not _shared(group):
            del group.members[member_id]
            return _refused_join(INCONSISTENT_GROUP_PROTOCOL, member_id)
        group.protocol_type, group.rebalancing = asked["protocol_type"], True
        joined: asyncio.Future[Values] = asyncio.get_running_loop().create_future()
        member.joined = joined
        for other in group.members.values():  # members that wait for an assignment join again
            _resolve(other.synced, {"error_code": REBALANCE_IN_PROGRESS})
        if not _complete(group):
            patience_ms = max(asked.get("rebalance_timeout_ms", -1), asked["session_timeout_ms"])
            await asyncio.wait([joined], timeout=patience_ms / 1000)
            if not joined.done():
                for late in [m for m in group.members.values() if m.joined is None]:
                    del group.members[late.member_id]
                _complete(group)
        return await joined

    async def sync(self, asked: Values) -> Values:
        """The answer to SyncGroup, when the leader has assigned."""
        group = self.groups[asked["group_id"]]
        wrong = self._wrong(group, asked["member_id"], asked["generation_id"])
        if wrong:
            return {"error_code": wrong}
        member = group.members[asked["member_id"]]
        if member.member_id == group.leader and not group.assigned:
            given = {one["member_id"]: one["assignment"] for one in asked["assignments"]}
            group.assigned = True
            for other in group.members.values():
                other.assignment = given.get(other.member_id, b"")
                _resolve(other.synced, _synced(group, other))
        if not group.assigned:
            synced: asyncio.Future[Values] = asyncio.get_running_loop().create_future()
            member.synced = synced
            return await synced
        return _synced(group, member)

    def heartbeat(self, asked: Values, alive: Alive) -> Values:
        """The answer to Heartbeat."""
        group = self.groups[asked["group_id"]]
        member = group.members.get(asked["member_id"])
        if member is not None:
            member.alive = alive
        return {"error_code": self._wrong(group, asked["member_id"], asked["generation_id"])}

    def leave(self, asked: Values) -> Values:
        """The answer to LeaveGroup of any version."""
        group = self.groups[asked["group_id"]]
        answers = []
        for one in asked.get("members") or [{"member_id": asked.get("member_id", "")}]:
            member_id, instance_id = one["member_id"], one.get("group_instance_id")
            named = [m for m in group.members.values() if _is(m, member_id, instance_id)]
            for member in named:
                del group.members[member.member_id]
                group.rebalancing = True
            code = 0 if named else UNKNOWN_MEMBER_ID
            answers.append({"member_id": member_id, "group_instance_id": instance_id, "error_code": code})
        _complete(group)
        first = answers[0]["error_code"]
        return {"error_code": 0 if "members" in asked else first, "members": answers}

    def commits(self, group_id: str, member_id: str, generation: int) -> int:
        """May a member commit offsets? An error code."""
        group = self.groups.get(group_id)
        if generation < 0 or group is None:
            return 0
        wrong = self._wrong(group, member_id, generation)
        return 0 if wrong == REBALANCE_IN_PROGRESS else wrong

    def _wrong(self, group: Group, member_id: str, generation: int) -> int:
        if member_id not in group.members:
            return UNKNOWN_MEMBER_ID
        if generation != group.generation:
            return ILLEGAL_GENERATION
        return REBALANCE_IN_PROGRESS if group.rebalancing else 0


def _is(member: Member, member_id: str, instance_id: str | None) -> bool:
    return member.member_id == member_id or (instance_id is not None and member.instance_id == instance_id)


def _shared(group: Group) -> list[str]:
    """The protocols that all members know, as the first of them prefers."""
    offers = [[name for name, _ in member.protocols] for member in group.members.values()]
    return [name for name in offers[0] if all(name in others for others in offers)]


def _complete(group: Group) -> bool:
    """A new generation, if everybody has joined."""
    if not group.members or any(member.joined is None for member in group.members.values()):
        return False
    group.generation += 1
    group.protocol, group.rebalancing, group.assigned = _shared(group)[0], False, False
    everybody = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "metadata": dict(member.protocols)[group.protocol],
        }
        for member in group.members.values()
    ]
    for member in group.members.values():
        answer = {
            "error_code": 0,
            "generation_id": group.generation,
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "member_id": member.member_id,
            "members": everybody if member.member_id == group.leader else [],
        }
        _resolve(member.joined, answer)
        member.joined = member.synced = None
        member.assignment = b""
    return True


def _resolve(waiting: asyncio.Future[Values] | None, answer: Values) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(answer)


def _synced(group: Group, member: Member) -> Values:
    return {
        "error_code": 0,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": member.assignment,
    }


def _refused_join(code: int, member_id: str) -> Values:
    return {"error_code": code, "protocol_name": "", "leader": "", "member_id": member_id, "members": []}

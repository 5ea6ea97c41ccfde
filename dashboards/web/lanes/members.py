"""Groups and their members, as the exchanges until now have told them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from klamm.dashboards.web.lanes.marks import Board, Span, Track
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told
from klamm.dashboards.web.lanes.topics import Listed, Topics
from klamm.dashboards.web.lanes.words import condition, identity, partitions, short, shown

GROUPS, MEMBERS = 2_000, 20_000  # that are remembered
CONNECTIONS = 4  # of a member
COMMITS = 1_000  # partitions of a member
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


class Cause(NamedTuple):
    """Something that sets off a rebalance, at its time."""

    time: float
    text: str


@dataclass(slots=True, eq=False)
class Member:
    """`id`: "" where none was given yet. `epoch`: its generation or epoch, -1 for none.
    `seen`: the end of the last exchange that the coordinator took for a sign of life. `asked`: since when it
    is to join again. `invited`: it has an id, and has not joined with it. `shares`: it has joined in the
    newest rebalance, and waits for its assignment. `gone`: why it is no member. `has`: its partitions, for
    people; "" where they are not known. `commits`: those that it has committed in its epoch, by topic.
    """

    group: Group
    id: str
    track: Track
    client: str = ""
    epoch: int = -1
    seen: float = 0.0
    session_ms: int = 0
    rebalance_ms: int = 0
    instance: str = ""
    subscribed: str | None = None
    assigned: Listed | None = None
    has: str = ""
    commits: dict[str, set[int]] = field(default_factory=dict)
    asked: float | None = None
    invited: bool = False
    shares: bool = False
    gone: str = ""
    span: Span | None = None
    about: dict[str, str] = field(default_factory=dict)
    connections: list[int] = field(default_factory=list)

    def facts(self) -> dict[str, str]:
        """What it is and has now, for people."""
        if self.gone:
            return {"no member": self.gone}
        known = {self.group.noun: str(self.epoch)} if self.epoch >= 0 else {}
        known |= {"subscribes to": self.subscribed or "", "partitions": self.has}
        return known if self.has or not self.commits else known | {"commits": partitions(self.commits)}

    def committed(self, topics: Listed) -> None:
        for topic, numbers in topics.items():
            if sum(map(len, self.commits.values())) < COMMITS:
                self.commits.setdefault(topic, set()).update(numbers)

    @property
    def name(self) -> str:
        """For texts."""
        name = short(self.id) if self.id else "without a member id"
        return name if not self.client or name.startswith(self.client) else f"{self.client} ({name})"


@dataclass(slots=True, eq=False)
class Group:
    """`epoch`: the newest generation or epoch that was seen; `span`: the rebalance that led to it, with its
    `causes`; `pending`: those that came since. `size`: its members, where they were told; `entered`: those
    that were seen in it. `checked`: it is known who is in it no more. `followed`: members of before are in it
    too. `where`: the filter of its exchanges. `changed`: members, by the exchange that is read now.
    """

    where: str
    track: Track
    label: str
    cluster: str
    protocol: str = CLASSIC
    epoch: int = -1
    size: int = 0
    entered: int = 0
    checked: bool = False
    followed: bool = False
    span: Span | None = None
    causes: list[Cause] = field(default_factory=list)
    pending: list[Cause] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    changed: list[Member] = field(default_factory=list)

    @property
    def noun(self) -> str:
        """The name of its epochs."""
        return "generation" if self.protocol == CLASSIC else "epoch"

    def facts(self) -> dict[str, str]:
        """For people."""
        size, epoch = self.size or self.entered, str(self.epoch) if self.epoch >= 0 else ""
        known = {"cluster": self.cluster, "protocol": self.protocol, self.noun: epoch}
        return known | {"members": f"{size:,}" if size else ""}

    def present(self) -> Iterator[Member]:
        """The members that have an id and have not left or been removed, as far as the traffic shows it."""
        return (one for one in self.members.values() if not one.gone and one.id)

    def holder(self, instance: str, but: Member | None = None) -> Member | None:
        """The member with this instance id that was seen last, and is not `but`."""
        same = [one for one in self.members.values() if one.instance == instance and one is not but]
        return max(same, key=lambda one: one.seen, default=None) if instance else None


class Membership:
    """Finds groups and members by what an exchange tells, and tells their lanes."""

    def __init__(self) -> None:
        self.board, self.topics = Board(), Topics()
        self.groups: Recent[str, Group] = Recent(GROUPS, self._without_group)
        self.members: Recent[tuple[str, str], Member] = Recent(MEMBERS, self._without_member)
        self.met: Group | None = None  # in the exchange that is read now

    def key(self, told: Told, name: str) -> str:
        """Groups of one name are others in another cluster."""
        return f"{told.one.cluster}/{identity(name)}"

    def group(self, told: Told, name: str, protocol: str) -> Group:
        key = self.key(told, name)
        where, cluster = condition(group=name), told.one.cluster
        group = self.groups.made(key, lambda: Group(where, Track(key), shown(name), cluster))
        group.protocol, self.met = protocol, group
        self._tell(group)
        return group

    def member(self, group: Group, told: Told, asked_as: str, answered_as: str = "") -> Member:
        """The member that a request is of. One without an id is known by its connection until it has one."""
        known = identity(answered_as or asked_as)
        nameless = f"{told.one.connection}/{told.one.connection_id}"
        key = known or nameless
        member = self._get(group, key)
        if member is None and known and not asked_as and (member := self._get(group, nameless)) is not None:
            self.members.pop((group.track.group, nameless))
            del group.members[nameless]
            self._put(group, key, member)
        if member is None:
            name = known or f"{shown(told.one.client_id or 'a client')} at {nameless}"
            member = self._put(group, key, Member(group, known, Track(group.track.group, name)))
        member.id = known
        if told.one.connection_id not in member.connections:
            member.connections = [*member.connections[-CONNECTIONS + 1 :], told.one.connection_id]
        member.client = shown(told.one.client_id or "")
        group.changed.append(member)
        self.describe(member, **{"client id": member.client, "host": told.host})
        return member

    def found(self, group: Group, wire: str) -> Member | None:
        """The member with this id, if one was seen."""
        return self._get(group, identity(wire)) if wire else None

    def describe(self, member: Member, **facts: str) -> None:
        """Tells the lane with these facts too."""
        member.about.update(facts)
        about = {"member id": shown(member.id, 200), **member.about, **member.facts()}
        where, numbers = member.group.where, member.connections
        if where:
            where += f" and connection {f'== {numbers[0]}' if len(numbers) == 1 else f'in {numbers}'}"
        label = shown(member.instance) or (member.name if member.id else shown(member.track.member))
        self.board.lane(member.track, label, about, where)

    def settle(self) -> None:
        """Tells the lanes of the group that was met, and of its members that changed, as they are now."""
        group, self.met = self.met, None
        if group is None:
            return
        changed, group.changed = group.changed, []
        self._tell(group)
        for member in dict.fromkeys(changed):
            self.describe(member)

    def _tell(self, group: Group) -> None:
        self.board.lane(group.track, group.label, group.facts(), group.where)

    def forget(self, at: float) -> None:
        """Members were not looked at until now: their silence begins at this time, in seconds since 1970."""
        for group in self.groups.kept.values():
            group.span, group.causes, group.pending = None, [], []
        for member in self.members.kept.values():
            member.span = member.asked = None
            member.seen, member.invited, member.shares = at if member.seen else 0.0, False, False

    def _get(self, group: Group, key: str) -> Member | None:
        return self.members.get((group.track.group, key))

    def _put(self, group: Group, key: str, member: Member) -> Member:
        group.members[key] = member
        return self.members.put((group.track.group, key), member)

    def _without_member(self, key: tuple[str, str], member: Member) -> None:
        member.group.members.pop(key[1], None)

    def _without_group(self, key: str, group: Group) -> None:
        for member in list(group.members):
            self.members.pop((key, member))

"""A recorded connection in the cluster of a replay: one connection, and more where other brokers have to
answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from klamm.captures.captured import CapturedConnection
from klamm.decoders.schema import Api
from klamm.proxy.cluster.conversation import Unanswered
from klamm.replay.channel import Channel
from klamm.replay.cluster import GROUP, TRANSACTION, Cluster
from klamm.replay.dividing import GROUPS, LEADERS, answering, divided, transactional_id
from klamm.replay.meanings import NIL, Values
from klamm.replay.renaming import About
from klamm.replay.sessions import Sessions, in_session

Node = int | None
Parts = dict[Node, Values]
Answer = asyncio.Future[bytes]


class Part(NamedTuple):
    """The part of a request that went to one broker. `values` None: bytes that klamm does not know. `answer`
    None: none is expected.
    """

    node: Node
    values: Values | None
    answer: Answer | None


class ReplayedConnection:
    """`home` is the broker in the place of the recorded one; None is the bootstrap server. `users`: the
    recorded connections that are played here; only a member of a share group has several.
    """

    def __init__(self, cluster: Cluster, home: Node) -> None:
        self.cluster, self.home = cluster, home
        self.users: set[CapturedConnection] = set()
        self.channels: dict[Node, Channel] = {}
        self.sessions = Sessions()

    async def parts(self, api: Api, version: int, values: Values, by: CapturedConnection) -> Parts:
        """Divides a request among the brokers that have to answer."""
        what = answering(api, version) if len(self.cluster.nodes) > 1 else "any"
        owner: Callable[[About], Node] = self._at_home
        try:
            if what == "transaction" and (name := transactional_id(values)):
                node = await self.cluster.coordinator(TRANSACTION, name)
                return {self.home if node is None else node: values}
            if what == "group":
                named = divided(api.request, version, values, GROUPS, _group)
                nodes = {name: await self.cluster.coordinator(GROUP, name) for name in named}
                owner = lambda about: self._or_home(nodes[_group(about)])  # noqa: E731
                return divided(api.request, version, values, GROUPS, owner) or {self.home: values}
            if what == "leader":
                await self.cluster.look_for_leaders(self._partitions(api, version, values))
                owner = self._leader
        except Unanswered:
            pass  # whoever stands here says that it is not the one to ask
        if in_session(api, values):
            return self.sessions.requests(api, version, values, owner, self.home, by)
        if what != "leader":
            return {self.home: values}
        return divided(api.request, version, values, LEADERS, owner) or {self.home: values}

    def _partitions(self, api: Api, version: int, values: Values) -> set[tuple[str | bytes, int]]:
        asked = set(divided(api.request, version, values, LEADERS, _part))
        return asked | set(self.sessions.partitions) if in_session(api, values) else asked

    def _at_home(self, about: About) -> Node:
        return self.home

    def _or_home(self, node: Node) -> Node:
        return self.home if node is None else node

    async def send(self, node: Node, frame: bytes, correlation_id: int, awaits: bool) -> Answer | None:
        """Raises Unanswered, and ConnectionError where the connection has just ended."""
        channel = self.channels.get(node)
        if channel is None or channel.ended is not None:
            channel = self.channels[node] = await self.cluster.connect(node)
        return await channel.send(frame, correlation_id, awaits)

    async def give_up(self, node: Node) -> None:
        """The broker does not answer: the next request takes another connection."""
        if node in self.channels:
            await self.channels.pop(node).close()

    async def leave(self, user: CapturedConnection) -> bool:
        """A recorded connection has ended. Returns whether it was the last one."""
        self.users.discard(user)
        self.sessions.leave(user)
        if not self.users:
            await self.close()
        return not self.users

    async def close(self) -> None:
        for channel in self.channels.values():
            await channel.close()
        self.channels.clear()

    def _leader(self, about: About) -> Node:
        return self.cluster.leaders.get(_part(about), self.home)


def _part(about: About) -> tuple[str | bytes, int]:
    topic_id = about.get("topic_id", NIL)
    return about.get("topic") or topic_id, about["partition"]


def _group(about: About) -> str:
    return str(about["group"])

"""The timeline of consumer groups: a lane for each member of each group."""

from __future__ import annotations

from typing import Any

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.classic import Classic
from klamm.dashboards.web.lanes.commits import Commits
from klamm.dashboards.web.lanes.heartbeats import PROTOCOLS, Heartbeats
from klamm.dashboards.web.lanes.members import Membership
from klamm.dashboards.web.lanes.reading import Timeline

CLASSIC = "JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, TxnOffsetCommit"
WHERE = f"api in ({CLASSIC}, {', '.join(PROTOCOLS)})"


class Groups(Timeline):
    """Marks of members, and of the rebalances of their groups."""

    def __init__(self) -> None:
        self.known = known = Membership()
        classic, beats, commits = Classic(known), Heartbeats(known), Commits(known)
        readers = {
            "JoinGroup": classic.join,
            "SyncGroup": classic.sync,
            "Heartbeat": classic.heartbeat,
            "LeaveGroup": classic.leave,
            "OffsetCommit": commits.read,
            "TxnOffsetCommit": commits.read,
            "Metadata": known.topics.read,
        }
        super().__init__(known.board, {**readers, **dict.fromkeys(PROTOCOLS, beats.read)})

    def read(self, key: str, one: Exchange) -> list[Any]:
        marks = super().read(key, one)
        self.known.settle()
        return [*marks, *self.board.taken()]

    def forget(self, at: float) -> None:
        self.known.forget(at)

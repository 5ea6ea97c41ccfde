"""The frame of a timeline: each exchange goes to the reader of its API, and gives marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.marks import Board, Track
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told, Unread, told
from klamm.dashboards.web.lanes.words import identity, shown
from klamm.dashboards.web.source import Cut

UNREAD = "unread"
MOST = 1_000  # clients whose exchanges cannot be read


class Timeline:
    """Nothing that clients or brokers send ends it: an exchange that cannot be read has a mark that says so,
    on a lane of its client.
    """

    name = "marks"

    def __init__(self, board: Board, readers: Mapping[str, Callable[[Told], object]]) -> None:
        self.board, self.readers = board, readers
        self.clients: Recent[str, Track] = Recent(MOST)

    def read(self, key: str, one: Exchange) -> list[Any]:
        """Lanes and marks of an exchange."""
        reader = self.readers.get(one.api)
        if reader is None:
            return []
        try:
            reader(told(key, one))
        except Unread as why:
            self._unread(key, one, str(why))
        return self.board.taken()

    def cut(self, cut: Cut) -> list[Any]:
        """Exchanges are missing before those that come next: nothing follows for these from those of before,
        neither a silence nor a gap between numbers. Marks that go on end.
        """
        self.board.cut(cut.known)
        self.forget(cut.at)
        return self.board.taken()

    def forget(self, at: float) -> None:
        """Lanes stay, and the names of what is on them."""
        raise NotImplementedError

    def _unread(self, key: str, one: Exchange, why: str) -> None:
        client = identity(one.client_id or "no client id")
        track = self.clients.made(client, lambda: Track(UNREAD, client))
        self.board.header(UNREAD, "cannot be read", {})
        self.board.lane(track, shown(client), {})
        self.board.mark(track, UNREAD, one.time, one.time, f"{one.api}: {shown(why, 300)}", key)

"""The timeline of fetch sessions and share sessions."""

from __future__ import annotations

from klamm.dashboards.web.lanes.fetches import Fetches
from klamm.dashboards.web.lanes.marks import Board
from klamm.dashboards.web.lanes.reading import Timeline
from klamm.dashboards.web.lanes.shares import Shares

WHERE = "(api == Fetch and version >= 7) or api in (ShareFetch, ShareAcknowledge)"


def where(asked: str) -> str:
    """With the condition that is asked for, "" for none."""
    return f"({WHERE}) and ({asked})" if asked else WHERE


class Sessions(Timeline):
    """Marks of fetchers, and of members of share groups at each broker."""

    def __init__(self) -> None:
        board = Board()
        self.fetches, self.shares = Fetches(board), Shares(board)
        sharing = dict.fromkeys(("ShareFetch", "ShareAcknowledge"), self.shares.read)
        readers = {"Fetch": self.fetches.read, **sharing}
        super().__init__(board, readers)

    def forget(self, at: float) -> None:
        self.fetches.forget()
        self.shares.forget()

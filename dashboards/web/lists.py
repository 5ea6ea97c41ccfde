"""The exchanges that the list of a page has got, by their keys: with them it begins after the page was loaded
again, or with another filter. Beside them, the filters with which it got them.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from klamm.dashboards.web.history import History
from klamm.dashboards.web.source import ROWS

MOST = 16  # lists; the one that was opened least recently is forgotten first


class Lists:
    """The keys of each list, oldest first."""

    def __init__(self, most: int = MOST, rows: int = ROWS) -> None:
        self.most, self.rows = most, rows
        self.got: OrderedDict[str, deque[str]] = OrderedDict()
        self.histories: dict[str, History] = {}

    def open(self, name: str) -> deque[str]:
        """The keys that it has got; the caller appends those that it gets from now on. An earlier reader of
        the list goes on with keys of its own.
        """
        keys = deque(self.got.pop(name, ()), self.rows)
        self.got[name] = keys
        if len(self.got) > self.most:
            gone, _ = self.got.popitem(last=False)
            self.histories.pop(gone, None)
        return keys

    def history(self, name: str) -> History:
        """Of a list that was opened."""
        return self.histories.setdefault(name, History())

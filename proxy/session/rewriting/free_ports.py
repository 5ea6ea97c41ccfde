"""The ports of a range that are free, in order."""

from __future__ import annotations

from bisect import bisect_left


class FreePorts:
    """Of `first` to `last`, both included."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self._free = list(range(first, last + 1))

    def take(self, port: int) -> None:
        at = bisect_left(self._free, port)
        if at < len(self._free) and self._free[at] == port:
            del self._free[at]

    def give_back(self, port: int) -> None:
        at = bisect_left(self._free, port)
        if self.first <= port <= self.last and self._free[at : at + 1] != [port]:
            self._free.insert(at, port)

    def up_from(self, port: int) -> int | None:
        """The port, or the next free one above it; behind the last comes the first."""
        if not self._free:
            return None
        at = bisect_left(self._free, port)
        return self._free[at if at < len(self._free) else 0]

    def down_from(self, port: int) -> int | None:
        """The port, or the next free one below it; behind the first comes the last."""
        return self._free[bisect_left(self._free, port + 1) - 1] if self._free else None

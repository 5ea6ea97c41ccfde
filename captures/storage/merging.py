"""Rows that are in several places, as one sequence in time."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from klamm.captures.captured import TIME, Captured

Place = tuple[int, ...]

END = 1 << 63
PLACE: Callable[[tuple[Place, list[Captured]]], Place] = itemgetter(0)


class Later(NamedTuple):
    """A part of a capture that is read when its time comes: nothing in it is before `first_ns`. `place` is
    unique and orders rows of equal times. Reading it gives rows, or further parts.
    """

    first_ns: int
    place: Place
    read: Callable[[], Found]


Found = tuple[list[Later], list[Captured]]


def merged(places: Iterable[Later]) -> Iterator[Captured]:
    """Gives rows in the order of time. It holds only rows whose parts overlap in time."""
    waiting = list(places)
    heapq.heapify(waiting)
    held: list[tuple[Place, list[Captured]]] = []
    while waiting or held:
        until = waiting[0].first_ns if waiting else END
        ready = []
        for _, rows in held:
            count = bisect_left(rows, until, key=TIME)
            if count:
                ready.append(rows[:count])
                del rows[:count]
        held = [one for one in held if one[1]]
        yield from ready[0] if len(ready) == 1 else sorted(chain.from_iterable(ready), key=TIME)
        if waiting:
            place = heapq.heappop(waiting)
            later, found = place.read()
            for one in later:
                heapq.heappush(waiting, one)
            insort(held, (place.place, sorted(found, key=TIME)), key=PLACE)

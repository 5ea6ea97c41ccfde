"""Rows that are in several places, as one sequence in time."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter, itemgetter
from typing import NamedTuple

from klamm.captures.captured import Captured

Place = tuple[int, ...]

END = 1 << 63
TIME: Callable[[Captured], int] = attrgetter("time_ns")
PLACE: Callable[[tuple[Place, list[Captured]]], Place] = itemgetter(0)


class Later(NamedTuple):
    """What is to be read when it is its time: nothing in it is before `first_ns`. `place`, unlike any other,
    orders rows of equal times. It gives rows, or what is to be read in its stead.
    """

    first_ns: int
    place: Place
    read: Callable[[], Found]


Found = tuple[list[Later], list[Captured]]


def merged(places: Iterable[Later]) -> Iterator[Captured]:
    """In the order of time. Holds no more than what overlaps in time."""
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

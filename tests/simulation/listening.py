"""Listeners of all exchanges, with bodies and without: they count what they get, and what they miss."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.rules.plan import ListenerWish
from tests.simulation.judge import Broken
from tests.simulation.pair import Pair
from tests.simulation.peers import Asked


class Heard:
    """`count`: exchanges that it got, or that klamm says it missed. Of ten it misses the last three."""

    def __init__(self, bodies: bool) -> None:
        self.bodies = bodies
        self.count = 0

    @property
    def full(self) -> bool:
        return self.count % 10 > 6

    def missed(self, count: int) -> None:
        self.count += count

    def judge(self, pairs: Iterable[Pair]) -> None:
        """It heard of each request that has its answer, and of each that the broker has and whose answer is
        not due: acks=0, or a connection that is over.
        """
        least = most = 0
        for pair in pairs:
            begun = [each for each in pair.client.asked if _begun(each, pair)]
            least += sum(_is_over(each, pair) for each in begun)
            most += len(begun)
        if not least <= self.count <= most:
            raise Broken("a listener hears of each exchange", f"{self.count}, not {least} to {most}")


def _is_over(asked: Asked, pair: Pair) -> bool:
    return asked.answered or (asked.arrived and (pair.over or not asked.awaited))


def _begun(asked: Asked, pair: Pair) -> bool:
    return asked.start < pair.client.given and not asked.token


HEARD = (Heard(False), Heard(True))  # of whichever world plays
WISHED = [(ListenerWish(None, heard),) for heard in HEARD]

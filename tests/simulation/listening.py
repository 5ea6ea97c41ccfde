"""Listeners of all exchanges, with bodies and without: they count what they get."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.rules.plan import ListenerWish
from tests.simulation.judge import Broken
from tests.simulation.pair import Pair
from tests.simulation.peers import Asked


class Heard:
    """`count`: exchanges that it got, or that klamm says it missed."""

    full = False

    def __init__(self, bodies: bool) -> None:
        self.bodies = bodies
        self.count = 0

    def missed(self, count: int) -> None:
        self.count += count

    def judge(self, pairs: Iterable[Pair]) -> None:
        """It heard of each request that has its answer, and of each with acks=0 that the broker has."""
        asked = [each for pair in pairs for each in pair.client.asked if _begun(each, pair)]
        least = sum(each.answered or (each.arrived and not each.awaited) for each in asked)
        if not least <= self.count <= len(asked):
            raise Broken("a listener hears of each exchange", f"{self.count}, not {least} to {len(asked)}")


def _begun(asked: Asked, pair: Pair) -> bool:
    return asked.start < pair.client.given and not asked.token


HEARD = (Heard(False), Heard(True))  # of whichever world plays
WISHED = [(ListenerWish(None, heard),) for heard in HEARD]

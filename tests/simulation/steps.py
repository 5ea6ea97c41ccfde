"""The steps of a simulation: what happens, on which connection, and a number from which its details follow.

A step decides by its own number alone, so that a history without some of its steps is a history too.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

CONNECTIONS = 6  # at most, at a time
LENGTHS = (20, 60, 150, 300)  # steps of a history
CAST: dict[str, int] = {  # the kinds of steps, and how often each comes
    "open": 4,
    "ask": 20,
    "ask_again": 10,
    "up": 40,
    "answer": 30,
    "down": 40,
    "wait": 10,
    "move": 2,
    "rules": 4,
    "resolve": 3,
    "drain": 1,
    "answer_wrongly": 8,
    "client_ends": 1,
    "broker_ends": 1,
    "client_resets": 1,
    "broker_resets": 1,
}
WORST = ("answer_wrongly", "client_ends", "broker_ends", "client_resets", "broker_resets", "drain")


class Step(NamedTuple):
    kind: str
    connection: int
    draw: int

    def __str__(self) -> str:
        return f"{self.kind}({self.connection}, {self.draw})"


History = Sequence[Step]


def history(seed: int) -> list[Step]:
    """The steps of a seed. In a third of the histories no rule comes, in another nothing goes wrong."""
    random = Random(seed)
    cast = dict(CAST)
    if random.random() < 1 / 3:
        cast["rules"] = 0
    if random.random() < 1 / 3:
        cast |= dict.fromkeys(WORST, 0)
    kinds, weights = list(cast), list(cast.values())
    connections = random.randint(1, CONNECTIONS)
    steps = [Step("open", number, random.getrandbits(32)) for number in range(connections)]
    for kind in random.choices(kinds, weights, k=random.choice(LENGTHS)):
        steps.append(Step(kind, random.randrange(connections), random.getrandbits(32)))
    return steps

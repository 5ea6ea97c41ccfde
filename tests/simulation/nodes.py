"""The brokers of a simulated cluster, their addresses, and klamm's addresses for them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

ADVERTISE = "klamm.example"
FIRST, LAST = 20000, 20100  # klamm's ports
NODES = (0, 1, 2, 7, 42)
DOMAIN = ".internal"  # ends the host of every broker, and stands nowhere else
UNMOVED = (0,) * len(NODES)
NOWHERE = ("", -1)  # as Kafka writes that there is no coordinator

Address = tuple[str, int]
Places = tuple[int, ...]
Addresses = Callable[[str, int], Address]  # of the node of this kind ("broker", "controller") and id


class Nodes:
    """Where each broker is now. `moves` counts how often each has moved."""

    def __init__(self) -> None:
        self.moves = dict.fromkeys(NODES, 0)

    def move(self, random: Random) -> None:
        """One broker gets another host, whose name may be longer."""
        self.moves[random.choice(NODES)] += random.choice([1, 1, 1000])

    def now(self) -> Places:
        """How often each of `NODES` has moved until now."""
        return tuple(self.moves.values())


def of_brokers(places: Places) -> Addresses:
    """The addresses that brokers write while they are there."""
    moves = dict(zip(NODES, places, strict=True))
    return lambda kind, node: (f"{kind}-{node}-{moves[node]}{DOMAIN}", 9092 + moves[node] % 10)


def of_klamm(kind: str, node: int) -> Address:
    """The address that a client has to get in place of a broker's: ports follow from the id."""
    return ADVERTISE, FIRST + 1 + node if kind == "broker" else LAST - node

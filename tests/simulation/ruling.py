"""The rules that come and go in a simulation, and what each may do to a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from klamm.decoders import API
from klamm.decoders.schema import Side
from klamm.rules.rule import Action, Rule
from tests.proxy.ruling.ruled import act

CODE = 41  # NOT_CONTROLLER, which no simulated broker answers
DELAY_NS = 40_000_000
Sets = tuple[str, int]  # a field at the top of a request, and its value
RULED = ("Produce", "Fetch", "Metadata", "FindCoordinator", "Heartbeat", "OffsetCommit", "JoinGroup")
MOST = 3  # rules at a time


@dataclass(frozen=True)
class Fault:
    """`may`: what can become of a frame that the rule meets; `must`: what does.

    late request, late answer   it goes on DELAY_NS after it came, or later
    answered                    the client hears CODE: from klamm, or in the broker's answer
    dropped                     no answer comes, and none to later requests
    cut                         the connection ends
    changed                     it goes on with this value of this field (`sets`), where its version has it
    none                        nothing happens to this frame
    """

    make: Callable[[], Action]
    side: Side
    may: frozenset[str]
    must: frozenset[str] = frozenset()
    sets: Sets | None = None


def _fault(make: Callable[[], Action], side: Side, may: str, must: str = "") -> Fault:
    return Fault(make, side, frozenset(may.split(", ")), frozenset(filter(None, must.split(", "))))


FAULTS = (
    _fault(lambda: act("delay", DELAY_NS, of="request"), "request", "late request", "late request"),
    _fault(lambda: act("delay", DELAY_NS), "response", "late answer", "late answer"),
    _fault(lambda: act("error", CODE), "request", "answered", "answered"),
    _fault(lambda: act("error", CODE), "response", "answered", "answered"),
    _fault(lambda: act("drop"), "request", "dropped", "dropped"),
    _fault(lambda: act("drop"), "response", "dropped", "dropped"),
    _fault(lambda: act("disconnect", "before"), "request", "cut", "cut"),
    _fault(lambda: act("disconnect", "answered"), "request", "answered, cut"),
    _fault(lambda: act("pause"), "request", "answered, dropped"),
    _fault(lambda: act("pause"), "response", "answered, dropped"),
    _fault(lambda: act("throttle", DELAY_NS), "request", "answered"),
    _fault(lambda: act("count"), "request", "none"),
)

SETS: dict[str, tuple[Sets, ...]] = {  # of an API, in all its versions
    "Produce": (("acks", 0), ("acks", 1), ("timeout_ms", 77)),
    "Fetch": (("max_wait_ms", 77),),
    "Heartbeat": (("generation_id", 77),),
    "JoinGroup": (("session_timeout_ms", 77),),
}
ANSWER_SETS: dict[str, tuple[Sets, ...]] = {  # of its answers, in some of its versions
    "Produce": (("throttle_time_ms", 77),),
    "Fetch": (("throttle_time_ms", 77), ("session_id", 77)),
    "Metadata": (("controller_id", 7),),
    "FindCoordinator": (("throttle_time_ms", 77),),
    "Heartbeat": (("throttle_time_ms", 77),),
    "OffsetCommit": (("throttle_time_ms", 77),),
    "JoinGroup": (("generation_id", 77),),
}


def _setting(sets: Sets, side: Side) -> Fault:
    of = {sets[0]: str(sets[1])}
    return Fault(lambda: act("set", of), side, CHANGED, CHANGED, sets)


OWN = 0.6  # of the faults of these APIs, so many set a field
CHANGED = frozenset({"changed"})
OF_ONE = {
    name: (
        *(_setting(sets, "request") for sets in SETS.get(name, ())),
        *(_setting(sets, "response") for sets in ANSWER_SETS[name]),
    )
    for name in ANSWER_SETS
}


def _fault_of(name: str, random: Random) -> Fault:
    of_one = OF_ONE.get(name)
    return random.choice(of_one if of_one and random.random() < OWN else FAULTS)


class Ruling:
    """The rules that are loaded, each for an API of its own."""

    def __init__(self) -> None:
        self.by_api: dict[str, Fault] = {}

    def draw(self, random: Random) -> list[Rule]:
        """Other rules from now on; often none."""
        names = random.sample(RULED, random.choice([0, 0, 1, 2, MOST]))
        self.by_api = {name: _fault_of(name, random) for name in names}
        return [
            Rule(f"{name} {number}", (fault.make(),), keys=frozenset({API[name].key}), side=fault.side)
            for number, (name, fault) in enumerate(self.by_api.items())
        ]

    def fault(self, name: str) -> Fault | None:
        """The fault that meets the frames of this API."""
        return self.by_api.get(name)

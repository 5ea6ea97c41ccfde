"""Which frames a rule hits does not depend on how many come in one read, nor on other connections."""

from dataclasses import replace

import pytest

from klamm.proxy.session.effects import Send, Turn
from klamm.proxy.session.session import Session
from klamm.rules.actions import ACTIONS
from klamm.rules.chance import Draws, stream
from klamm.rules.engine import Engine
from klamm.rules.rule import Rule, When
from tests.proxy.traffic import ADVERTISE, ground, produce

FRAMES = 200
WHENS = [When(chance=0.1), When(chance=0.5), When(every=7), When(times=3), When(nth=(2, 5)), When(chance=0)]


def refused(when: When, batch: int, beside: int = 0) -> list[int]:
    """The positions of the requests that a rule answers, when they come `batch` at a time."""
    engine = Engine(seed=7)
    rule = Rule("r", (ACTIONS["error"](6),), keys=frozenset({0}), when=when)  # type: ignore[call-arg]
    engine.load([rule], 0)
    at = replace(ground(), engine=engine)
    others = [Session(at, "2", ADVERTISE, f"10.0.0.{n}:1") for n in range(beside)]
    session = Session(at, "1", ADVERTISE, "1.2.3.4:5")
    hit: list[int] = []
    for start in range(0, FRAMES, batch):
        exchanges = [produce(9, number) for number in range(start, min(start + batch, FRAMES))]
        for other in others:
            other.from_client(exchanges[0].request, 0)
        data = b"".join(one.request for one in exchanges)
        effects = session.from_client(data, 0)
        while not isinstance(effects, bytes) and any(isinstance(each, Turn) for each in effects[-1:]):
            effects = [*effects[:-1], *session.unmute(0)]
        sent = (
            data
            if effects is data
            else b"".join(
                effect.data for effect in effects if isinstance(effect, Send) and effect.to == "broker"
            )
        )
        passed = [one for one in exchanges if one.request in sent]
        assert sent == b"".join(one.request for one in passed)
        hit += [number for number, one in enumerate(exchanges, start) if one not in passed]
        session.from_broker(b"".join(one.answer or b"" for one in passed), 0)
    assert engine.by_name["r"].hits >= len(hit)
    return hit


@pytest.mark.parametrize("when", WHENS, ids=str)
def test_what_is_hit_does_not_depend_on_how_frames_come(when: When) -> None:
    alone = refused(when, 1)
    assert [refused(when, batch) for batch in (2, 5, 16, FRAMES)] == [alone] * 4
    assert bool(alone) == (when.chance > 0)


def test_chance_is_not_changed_by_other_connections() -> None:
    assert refused(When(chance=0.2), 4, beside=3) == refused(When(chance=0.2), 4)


def test_a_match_draws_numbers_of_its_own_that_seed_rule_connection_and_match_decide() -> None:
    def drawn(seed: int = 7, rule: str = "r", connection: str = "c", match: int = 0) -> list[float]:
        draw = Draws(stream(seed, rule, connection), match)
        return [draw() for _ in range(100)]

    numbers = drawn()
    assert all(0 <= number < 1 for number in numbers)
    assert len(set(numbers)) == 100
    assert drawn() == numbers
    for other in (drawn(seed=8), drawn(rule="s"), drawn(connection="d"), drawn(match=1)):
        assert not set(other) & set(numbers)

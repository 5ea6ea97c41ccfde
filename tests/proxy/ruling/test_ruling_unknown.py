"""Rules on a version that klamm does not know: those that need its header only act, the others say that they
cannot.
"""

from typing import Any

import pytest

from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Hold
from klamm.rules.actions import ACTIONS
from klamm.rules.glob import Glob
from klamm.rules.rule import Rule
from tests.proxy.ruling.ruled import Talk, act, engine_of, rule, ruled

TXN_OFFSET_COMMIT, NEWER = 28, 99
MS = 1_000_000


def frame(*head: tuple[int, int], rest: bytes) -> bytes:
    data = b"".join(value.to_bytes(size, "big") for value, size in head) + rest
    return len(data).to_bytes(4, "big") + data


REQUEST = frame((TXN_OFFSET_COMMIT, 2), (NEWER, 2), (1, 4), (3, 2), rest=b"app\0whatever it says")
ANSWER = frame((1, 4), rest=b"\0whatever it answers")


def on(*rules: Rule) -> ClusterContext:
    return ruled(*rules)


def of_txn(name: str, /, *fields: object, **more: Any) -> Rule:
    return rule(act(name, *fields), api="TxnOffsetCommit", **more)


def test_a_delay_acts_and_not_a_byte_is_changed() -> None:
    at = on(of_txn("delay", 300 * MS))
    talk = Talk(at)
    assert talk.client(REQUEST).broker == REQUEST
    answered = talk.broker(ANSWER)
    assert answered.client == ANSWER
    assert Hold("client", 300 * MS) in answered.events
    assert engine_of(at).by_name["delay"].hits == 1
    assert engine_of(at).failed == []


@pytest.mark.parametrize("name", ["drop", "down", "blackhole", "count", "duplicate", "capture", "log"])
def test_what_needs_the_header_only_acts(name: str) -> None:
    at = on(of_txn(name))
    Talk(at).client(REQUEST)
    assert engine_of(at).by_name[name].hits == 1
    assert engine_of(at).failed == []


@pytest.mark.parametrize("selector", [{"group": Glob("g")}, {"topic": Glob("orders")}])
def test_a_rule_that_asks_for_something_in_the_body_says_once_that_it_cannot(
    selector: dict[str, Glob],
) -> None:
    at = on(of_txn("delay", 300 * MS, **selector))
    for _ in range(3):
        talk = Talk(at)
        assert talk.client(REQUEST, REQUEST).broker == REQUEST * 2
    ((name, why),) = engine_of(at).failed
    assert name == "delay"
    assert why == (
        "klamm does not know TxnOffsetCommit v99, only 0-6, and the rule asks for something in its body"
    )
    assert engine_of(at).by_name["delay"].failures == 1


def test_an_action_that_reads_the_body_says_that_it_cannot_and_the_frame_goes_on() -> None:
    at = on(of_txn("error", 27))
    talk = Talk(at)
    assert talk.client(REQUEST).broker == REQUEST
    assert talk.broker(ANSWER).client == ANSWER
    ((name, why),) = engine_of(at).failed
    assert (name, why) == ("error", "TxnOffsetCommit has versions 0-6, not 99; the action needs to read it")


def test_a_rule_for_everything_acts_on_it_too() -> None:
    at = on(Rule("all", (ACTIONS["count"](),)))
    Talk(at).client(REQUEST)
    assert engine_of(at).by_name["all"].hits == 1

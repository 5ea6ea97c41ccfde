"""Several rules on one frame: the table of docs/rules-order.md, each line of it played."""

import re
from pathlib import Path

import pytest

from klamm.decoders import decode
from klamm.proxy.session.effects import Cut, Hold
from klamm.rules.rule import Action, Rule
from tests.proxy.ruling.ruled import Talk, act, engine_of, frames, rule, ruled
from tests.proxy.traffic import byte_by_byte, produce, whole

GUIDE = Path(__file__).parents[3] / "docs" / "rules-order.md"
MS = 1_000_000
VERSION, HEADER = 9, 15  # bytes of a request's header with the client id app
RULES = {
    "count": rule(act("count")),
    "log": rule(act("log")),
    "error": rule(act("error", 6)),
    "other error": rule(act("error", 9)),
    "applied error": rule(act("error", 6, applied=True)),
    "other applied error": rule(act("error", 9, applied=True)),
    "error of a response": rule(act("error", 9), side="response"),
    "delay": rule(act("delay", 5 * MS)),
    "delay request": rule(act("delay", 5 * MS, of="request")),
    "set acks": rule(act("set", {"acks": "1"})),
    "set timeout": rule(act("set", {"timeout_ms": "77"})),
    "duplicate": rule(act("duplicate")),
    "drop": rule(act("drop")),
    "drop answer": rule(act("drop", sent=True)),
    "throttle": rule(act("throttle", 3 * MS)),
    "disconnect before": rule(act("disconnect", "before")),
    "disconnect after": rule(act("disconnect", "after")),
}


def table() -> list[list[str]]:
    lines = re.findall(r"^\| (`.*) \|$", GUIDE.read_text(), re.M)
    return [line.split(" | ") for line in lines]


def rules_of(text: str) -> list[Rule]:
    named = re.findall(r"`([^`]+)`", text)
    return [
        Rule(f"{number}", RULES[name].do, keys=frozenset({0}), side=RULES[name].side)
        for number, name in enumerate(named, 1)
    ]


def got(sent: bytes, request: bytes) -> str:
    """The requests that the broker got, in the words of the table."""
    if not sent:
        return "nothing"
    first, *more = frames(sent)
    before, after = (decode(frame[4 + HEADER - 1 :], 0, VERSION, "request") for frame in (request, first))
    edits = sum(before[name] != after[name] for name in before)
    assert (edits == 0) == (first == request)
    words = "the request" + ("", ", edited", ", edited twice")[edits]
    assert more in ([], [first])
    return words + ", twice" * len(more)


def answer_bytes(talk: Talk, answer: bytes) -> str:
    """The answer that the client got."""
    late = ", late" if Hold("client", 5 * MS) in talk.outcome.events else ""
    if any(isinstance(event, Cut) for event in talk.outcome.events):
        assert not talk.outcome.client
        return "a reset" + late
    if not talk.outcome.client:
        return "nothing"
    (frame,) = frames(talk.outcome.client)
    if frame == answer:
        return "the answer" + late
    values = decode(frame[9:], 0, VERSION, "response")
    code = values["responses"][0]["partition_responses"][0]["error_code"]
    throttled = ", throttled" if values["throttle_time_ms"] == 3 else ""
    return {6: "the error", 9: "the other error"}[code] + late + throttled


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
@pytest.mark.parametrize("line", table(), ids=lambda line: line[0])
def test_rules_come_to_what_the_table_says(line: list[str], cut: object) -> None:
    rules, broker, client, hits = line
    at = ruled(*rules_of(rules))
    talk, asked = Talk(at), produce(VERSION, 7)
    sent = talk.client(asked, cut=cut).broker  # type: ignore[arg-type]
    for _ in frames(sent):
        talk.broker(asked, cut=cut)  # type: ignore[arg-type]
    assert asked.answer is not None
    assert got(sent, asked.request) == broker
    assert answer_bytes(talk, asked.answer) == client
    counted_rules = engine_of(at).counted_rules
    assert ", ".join(counted.rule.name for counted in counted_rules if counted.hits) == hits
    assert engine_of(at).failed == []


def test_every_kind_of_rule_is_in_the_table() -> None:
    assert {name for line in table() for name in re.findall(r"`([^`]+)`", line[0])} == set(RULES)


def test_a_rule_behind_an_end_keeps_its_times() -> None:
    from klamm.rules.rule import When

    first = Rule("first", (act("error", 6),), when=When(times=2))
    second = Rule("second", (act("error", 9),), when=When(times=2))
    talk, asked = Talk(ruled(first, second)), produce(VERSION, 7)
    codes = []
    for _ in range(5):
        found = talk.client(asked)
        (frame,) = frames(found.client) if found.client else frames(talk.broker(asked).client)
        codes.append(
            decode(frame[9:], 0, VERSION, "response")["responses"][0]["partition_responses"][0]["error_code"]
        )
    assert codes == [6, 6, 9, 9, 0]


def test_what_a_rule_does_after_its_end_is_looking_only() -> None:
    talk = Talk(ruled(rule(act("log", "before"), act("error", 6), act("delay", MS), act("log", "behind"))))
    events = talk.client(produce(VERSION, 7)).events
    assert [event.message for event in events] == ["before", "behind"]


@pytest.mark.parametrize(
    "end",
    [
        act("error", 6),
        act("drop"),
        act("disconnect", "before"),
        act("blackhole"),
        act("block"),
        act("deny"),
    ],
    ids=lambda action: action.name,
)
def test_a_verdict_that_ends_a_frame_is_the_last_but_for_what_only_looks(end: Action) -> None:
    first, second = Rule("first", (end,)), Rule("second", (act("set", {"acks": "1"}), act("error", 9)))
    at = ruled(first, second, Rule("seen", (act("count"),)))
    found = Talk(at).client(produce(VERSION, 7))
    assert found.broker == b""
    assert [(counted.rule.name, counted.hits) for counted in engine_of(at).counted_rules] == [
        ("first", 1),
        ("second", 0),
        ("seen", 1),
    ]

"""Frames that rules ask for and that klamm cannot read: with `limits.unruled: close` none gets past them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.session.effects import Close, Effect, Send
from klamm.proxy.session.session import Session
from klamm.rules.expressions import parse
from klamm.rules.glob import Glob
from tests.proxy.ruling.ruled import act, rule, ruled
from tests.proxy.traffic import exchange

MINUS_1 = b"\xff\xff\xff\xff\x0f"
REFUSED = act("error", 29)


def session(*rules: Any, **settings: Any) -> Session:
    return Session(ruled(*rules, **settings), "1", "klamm.example", "10.0.0.7:50000")


def create(topic: bytes, tags: bytes = b"\0", header: bytes = b"\0", end: bytes = b"\0") -> bytes:
    """A CreateTopics 5 request for one topic, with these tagged sections."""
    row = bytes([len(topic) + 1]) + topic + struct.pack(">ih", 1, 1) + b"\1\1" + tags
    frame = (
        struct.pack(">hhih", 19, 5, 1, 3) + b"app" + header + b"\2" + row + struct.pack(">ib", 5000, 0) + end
    )
    return struct.pack(">i", len(frame)) + frame


def sent(effects: bytes | list[Effect], to: str) -> bytes:
    if isinstance(effects, bytes):
        return effects if to == "broker" else b""
    return b"".join(bytes(each.data) for each in effects if isinstance(each, Send) and each.to == to)


def closed(effects: bytes | list[Effect]) -> list[Close]:
    return [] if isinstance(effects, bytes) else [each for each in effects if isinstance(each, Close)]


@pytest.mark.parametrize("unruled", ["pass", "close"])
@pytest.mark.parametrize("place", ["tags", "header", "end"])
def test_a_count_of_minus_1_tags_hides_nothing_from_rules(place: str, unruled: str) -> None:
    one = session(rule(REFUSED, api="CreateTopics", topic=Glob("secret")), unruled=unruled)
    effects = one.from_client(create(b"secret", **{place: MINUS_1}), 1)
    assert sent(effects, "broker") == b""
    assert sent(effects, "client")[4:8] == b"\0\0\0\1"


TOPIC = rule(REFUSED, api="CreateTopics", topic=Glob("secret"))
WHERE = rule(REFUSED, api="CreateTopics", where=parse('any(t.name == "secret" for t in topics)'))
ALL = rule(REFUSED, api="CreateTopics")
ENDS_EARLY = b"\1\0\x7f"  # one tag, of more bytes than there are
LONG = b"\1\x88\x27\xf0\xa2\4" + bytes(70_000)  # one unknown tag, longer than klamm looks for a header's end
MANY = [rule(REFUSED, api="CreateTopics", name=f"r{n}", topic=Glob(f"secret-{n}")) for n in range(40)]


@pytest.mark.parametrize(
    ("rules", "frame"),
    [
        ([TOPIC], create(b"secret", tags=ENDS_EARLY)),
        ([WHERE], create(b"secret", tags=ENDS_EARLY)),
        ([ALL], create(b"secret", end=ENDS_EARLY)),
        (MANY, create(b"secret-7", tags=ENDS_EARLY)),
        ([ALL], create(b"secret", header=LONG)),
        ([TOPIC], create(b"secret", header=b"\x81\x80\x80\x80\x80\x80")),
        ([TOPIC], struct.pack(">ihhihB", 11, 19, 99, 1, -1, 0)),
    ],
)
def test_a_request_that_a_rule_cannot_read_closes_its_connection_where_the_settings_say_so(
    rules: list[Any], frame: bytes
) -> None:
    one = session(*rules, unruled="close")
    effects = one.from_client(frame, 1)
    assert sent(effects, "broker") == b""
    [end] = closed(effects)
    assert (end.kind, end.api) == ("unreadable_for_rules", "CreateTopics")
    assert one.connection.context.stats.problems["test", "1", "CreateTopics", "unreadable_for_rules"] == 1
    passing = session(*rules, unruled="pass")
    effects = passing.from_client(frame, 1)
    assert not closed(effects)
    assert sent(effects, "broker") == frame


def test_rules_that_only_look_and_rules_on_other_apis_close_nothing() -> None:
    frame = create(b"secret", tags=ENDS_EARLY)
    for other in (
        rule(act("log", "seen"), api="CreateTopics", topic=Glob("secret")),
        rule(REFUSED, api="CreateTopics", topic=Glob("secret"), dry=True),
        rule(REFUSED, api="Produce", topic=Glob("secret")),
    ):
        one = session(other, unruled="close")
        assert sent(one.from_client(frame, 1), "broker") == frame
        one = session(rule(REFUSED, api="Produce"), unruled="close")
        assert not closed(one.from_client(create(b"secret", header=LONG), 1))


def test_an_answer_that_a_rule_cannot_read_closes_its_connection_too() -> None:
    asked = exchange("ListGroups", 3, {}, {"groups": []})
    one = session(rule(act("error", 29), api="ListGroups", side="response"), unruled="close")
    assert sent(one.from_client(asked.request, 1), "broker") == asked.request
    answer = asked.answer or b""
    broken = struct.pack(">i", len(answer) - 5) + answer[4:-1]
    effects = one.from_broker(broken, 2)
    assert sent(effects, "client") == b""
    assert [end.kind for end in closed(effects)] == ["unreadable_for_rules"]


class Fails:
    """A plugin with a mistake."""

    name: ClassVar[str] = "fails"
    sides: ClassVar[Sequence[str]] = ("request",)

    def act(self, frame: Any, draw: Any) -> Any:
        raise ValueError("not of this kind")


def test_an_action_that_fails_closes_the_connection() -> None:
    beat = request_frame(API[12], 4, 1, "app", encode({"group_id": "g"}, 12, 4, "request"))
    one = session(rule(Fails(), api="Heartbeat"), unruled="close")
    assert [end.kind for end in closed(one.from_client(beat, 1))] == ["unreadable_for_rules"]
    assert sent(session(rule(Fails(), api="Heartbeat")).from_client(beat, 1), "broker") == beat

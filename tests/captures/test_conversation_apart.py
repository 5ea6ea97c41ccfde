"""What klamm changed: frames that came beside what went on instead."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams import apart
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.conversation import Conversation
from klamm.captures.streams.cutting import filled
from klamm.decoders.schema import Side
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Piece, To
from tests.captures.streams import CONNECTION, Said, contents, of_any_api, play, said, take
from tests.proxy import test_ruling_properties as rulings
from tests.proxy.ruled import Talk, frames
from tests.proxy.traffic import (
    Exchanged,
    at_random,
    byte_by_byte,
    exchange,
    metadata,
    produce,
    whole,
)

SIDES: tuple[Side, Side] = ("request", "response")
CUTS = [whole, byte_by_byte, at_random(Random(1), 300)]


def heartbeat(correlation_id: int, error_code: int = 0) -> Exchanged:
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    return exchange("Heartbeat", 4, asked, {"error_code": error_code}, correlation_id)


def asks(one: Exchanged, *sent: bytes | None) -> Said:
    return Said("request", one.request, [("request", data) for data in sent if data is not None])


def answers(one: Exchanged, *sent: bytes | None) -> Said:
    return Said("response", one.answer or b"", [("response", data) for data in sent if data is not None])


def told(rows: list[Captured]) -> list[tuple[Any, ...]]:
    return [(row.side, row.exchange, row.fate) for row in rows if row.kind == "frame"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kept", ["blank", "keep", "hash"])
def test_what_went_on_as_it_came_gives_the_same_rows_whether_told_apart_or_not(kept: Any, seed: int) -> None:
    random = Random(seed)
    steps = of_any_api(random, 30)
    rows = play(steps, keeping=Keeping(kept, b"key"))
    forked = [step._replace(sent=[(step.side, step.data)]) for step in steps]
    mixed = [random.choice(pair) for pair in zip(steps, forked, strict=True)]
    for cut in CUTS:
        assert play(forked, cut, Keeping(kept, b"key")) == rows
        assert play(mixed, cut, Keeping(kept, b"key")) == rows


@pytest.mark.parametrize("cut", CUTS)
def test_another_frame_is_a_rewritten_one(cut: Any) -> None:
    one, changed = metadata(1, 1, topics=1), metadata(1, 1, topics=2)
    steps = [asks(one, changed.request + b""), answers(one, changed.answer), *said(heartbeat(2))]
    rows = play(steps, cut)
    assert told(rows) == [
        ("request", 0, "passed"), ("response", 0, "rewritten"),
        ("request", 1, "passed"), ("response", 1, "passed"),
    ]  # fmt: skip
    assert (rows[1].frame, rows[1].forwarded) == ((one.answer or b"")[4:], (changed.answer or b"")[4:])


@pytest.mark.parametrize("cut", CUTS)
def test_a_request_that_klamm_answers_is_withheld_and_its_answer_made(cut: Any) -> None:
    own = heartbeat(1, error_code=27)
    steps = [
        Said("request", own.request, [("response", own.answer or b"")]),
        *said(heartbeat(2)),
    ]
    rows = play(steps, cut)
    assert told(rows) == [
        ("request", 0, "withheld"), ("response", 0, "made"),
        ("request", 1, "passed"), ("response", 1, "passed"),
    ]  # fmt: skip
    assert rows[1].frame == (own.answer or b"")[4:]
    assert (rows[1].api_key, rows[1].client_id) == (12, "app")


def test_a_made_answer_finds_its_request_though_all_ids_are_the_same() -> None:
    first, second = heartbeat(0, error_code=27), metadata(1, 0)
    both = Said("request", first.request + second.request, [("request", second.request)])
    answered = Said(
        "response", second.answer or b"", [("response", (first.answer or b"") + (second.answer or b""))]
    )
    assert sorted(told(play([both, answered]))) == [
        ("request", 0, "withheld"), ("request", 1, "passed"),
        ("response", 0, "made"), ("response", 1, "passed"),
    ]  # fmt: skip


def test_a_frame_that_never_goes_on_is_withheld_when_a_later_one_does_or_the_connection_ends() -> None:
    first, second, third = (heartbeat(number) for number in (1, 2, 3))
    conversation = Conversation(CONNECTION, Keeping("keep"))
    assert take(conversation, asks(first)) == []
    assert told(take(conversation, asks(second, second.request))) == [
        ("request", 0, "withheld"), ("request", 1, "passed"),
    ]  # fmt: skip
    assert take(conversation, asks(third)) == []
    assert told(conversation.end(0, "")) == [("request", 2, "withheld")]
    assert conversation.keeping.held == 0


@pytest.mark.parametrize("cut", CUTS)
def test_a_request_sent_twice_is_one_that_klamm_made_and_so_is_its_answer_withheld(cut: Any) -> None:
    one = heartbeat(1)
    steps = [
        asks(one, one.request, one.request),
        Said("response", (one.answer or b"") * 2, [("response", one.answer or b"")]),
        *said(heartbeat(2)),
    ]
    rows = play(steps, cut)
    assert told(rows) == [
        ("request", 0, "passed"), ("request", 1, "made"),
        ("response", 0, "passed"), ("response", 1, "withheld"),
        ("request", 2, "passed"), ("response", 2, "passed"),
    ]  # fmt: skip


def test_a_request_whose_acks_were_taken_away_gets_its_answer_from_klamm() -> None:
    asked, without = produce(9, 1), produce(9, 1, acks=0)
    conversation = Conversation(CONNECTION, Keeping("keep"))
    (request,) = take(conversation, asks(asked, without.request))
    assert (request.fate, request.awaits) == ("rewritten", True)
    (answer,) = conversation.sent("response", asked.answer or b"", 0)
    assert (answer.fate, answer.exchange, answer.api_key) == ("made", 0, 0)
    assert told(take(conversation, asks(heartbeat(2), heartbeat(2).request))) == [("request", 1, "passed")]


@pytest.mark.parametrize("cut", CUTS)
def test_the_streams_are_one_again_when_nothing_is_pending(cut: Any) -> None:
    conversation = Conversation(CONNECTION, Keeping("keep"))
    one = heartbeat(1)
    take(conversation, asks(one, heartbeat(1, 5).request), cut)
    take(conversation, answers(one, heartbeat(1, 5).answer), cut)
    assert conversation.apart is None
    assert conversation.keeping.held == 0


def test_the_streams_are_one_again_in_the_middle_of_the_same_frame() -> None:
    conversation = Conversation(CONNECTION, Keeping("keep"))
    one = heartbeat(1)
    data = one.request * 3
    rows = conversation.feed("request", data[:60], 0, forwarded=False)
    rows += conversation.sent("request", data[:50], 0)
    assert conversation.apart is not None
    rows += conversation.feed("request", data[60:100], 0, forwarded=False)
    rows += conversation.sent("request", data[50:100], 0)
    assert conversation.apart is None
    rows += conversation.feed("request", data[100:], 0)
    assert told(rows) == [("request", number, "passed") for number in range(3)]


def test_a_response_of_which_only_a_part_went_on_says_how_much() -> None:
    one = metadata(1, 1)
    rows = play([*said(one)[:1], answers(one, (one.answer or b"")[:30])])
    assert told(rows) == [("request", 0, "passed"), ("response", 0, "rewritten")]
    assert (rows[1].forwarded, rows[1].text) == (None, "of it, 30 bytes went on")


def test_what_klamm_puts_in_is_blanked_too() -> None:
    answered = {"results": [{"configs": [{"name": "n", "value": "hush-hush", "is_sensitive": True}]}]}
    one = exchange("DescribeConfigs", 4, {}, {}, 1)
    changed = exchange("DescribeConfigs", 4, {}, answered, 1)
    made = exchange("DescribeConfigs", 4, {}, answered, 2)
    steps = [
        *said(one)[:1], answers(one, changed.answer),
        Said("request", made.request, [("response", made.answer or b"")]),
    ]  # fmt: skip
    rows = play(steps)
    assert [row.fate for row in rows[:-1]] == ["passed", "rewritten", "withheld", "made"]
    assert b"hush" not in contents(rows)
    assert filled(rows[1].forwarded or b"", rows[1].forwarded_blanks) == (changed.answer or b"")[4:].replace(
        b"hush-hush", bytes(9)
    )


def test_frames_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_PENDING", 5)
    conversation = Conversation(CONNECTION, Keeping("keep"))
    rows = [row for number in range(20) for row in take(conversation, asks(heartbeat(number)))]
    assert [(row.exchange, row.text) for row in rows] == [(number, apart.UNSEEN) for number in range(15)]


def test_bytes_that_wait_to_be_compared_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_HELD", 5_000)
    conversation = Conversation(CONNECTION, Keeping("keep"))
    large = [produce(9, number, size=1_000) for number in range(100)]
    for one in large:
        take(conversation, asks(one))
    assert conversation.keeping.held < 7_000
    rows = conversation.sent("request", b"".join(one.request for one in large), 0)
    assert told(rows) == [("request", number, "passed") for number in range(100)]


class Tapped(Talk):
    """A session, and what is captured of it."""

    def __init__(self, at: ClusterContext) -> None:
        self.conversation = Conversation(CONNECTION, Keeping("keep"))
        self.rows: list[Captured] = []
        self.said: dict[Side, bytes] = {"request": b"", "response": b""}
        self.went: dict[Side, bytes] = {"request": b"", "response": b""}
        self.lockstep = False
        super().__init__(at)
        self.session.from_client = self._tap("request", self.session.from_client)
        self.session.from_broker = self._tap("response", self.session.from_broker)

    def _tap(self, side: Side, receive: Any) -> Any:
        def tapped(data: bytes, now: int) -> Any:
            effects = receive(data, now)
            self.lockstep = effects is data
            self.said[side] += data
            self.rows += self.conversation.feed(side, data, now, self.lockstep)
            return effects

        return tapped

    def send(self, to: To, data: Piece) -> None:
        side: Side = "request" if to == "broker" else "response"
        self.went[side] += data
        if not self.lockstep:
            self.rows += self.conversation.sent(side, bytes(data), 0)
        self.lockstep = False
        super().send(to, data)


def tapped(seed: int, monkeypatch: pytest.MonkeyPatch, cut: Any = None) -> Tapped:
    monkeypatch.setattr(rulings, "Talk", Tapped)
    talk = rulings.play(seed, cut).talk
    assert isinstance(talk, Tapped)
    talk.rows += talk.conversation.end(0, "over")
    assert talk.conversation.keeping.held == 0
    return talk


def split(data: bytes) -> list[bytes]:
    """Whole frames, without their sizes; the last may be cut short."""
    whole, pos = b"", 0
    while pos + 4 <= len(data) and (end := pos + 4 + int.from_bytes(data[pos : pos + 4], "big")) <= len(data):
        whole, pos = data[:end], end
    return [frame[4:] for frame in frames(whole)]


@pytest.mark.parametrize("seed", range(120))
def test_under_any_rules_the_rows_are_what_came_and_what_went_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = tapped(seed, monkeypatch)
    for side in SIDES:
        rows = [row for row in talk.rows if row.kind == "frame" and row.side == side]
        came = [filled(row.frame or b"", row.blanks) for row in rows if row.fate != "made"]
        assert came == split(talk.said[side])
        went = [
            row.forwarded if row.fate == "rewritten" else row.frame
            for row in rows
            if row.fate != "withheld" and not row.text
        ]
        assert went == split(talk.went[side])
    asked = {row.exchange: row for row in talk.rows if row.kind == "frame" and row.side == "request"}
    for row in talk.rows:
        if row.kind == "frame" and row.side == "response":
            assert row.correlation_id == asked[row.exchange].correlation_id
            assert row.api_key == asked[row.exchange].api_key


@pytest.mark.parametrize("seed", range(40))
def test_under_any_rules_the_rows_are_the_same_however_the_bytes_are_cut(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, again = tapped(seed, monkeypatch, whole), tapped(seed, monkeypatch)
    numbers = -1 if any(row.fate == "made" and row.side == "request" for row in once.rows) else None
    for side in SIDES:
        if once.said == again.said:
            rows, others = ([row for row in each.rows if row.side == side] for each in (once, again))
            if numbers is not None:
                rows, others = ([row._replace(exchange=numbers) for row in each] for each in (rows, others))
            assert others == rows

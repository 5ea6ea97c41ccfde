"""Traffic that klamm changed: the frames that came beside those that were sent in their place."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams import forwarding
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.captures.streams.cutting import filled
from klamm.decoders.schema import Side
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Piece, To
from tests.captures.made_traffic import CONNECTION, Step, contents, exchange_steps, of_any_api, play, take
from tests.proxy.ruling import test_ruling_properties as rulings
from tests.proxy.ruling.ruled import Talk, frames
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


def asks(one: Exchanged, *sent: bytes | None) -> Step:
    return Step("request", one.request, [("request", data) for data in sent if data is not None])


def answers(one: Exchanged, *sent: bytes | None) -> Step:
    return Step("response", one.answer or b"", [("response", data) for data in sent if data is not None])


def cells(rows: list[Captured]) -> list[tuple[Any, ...]]:
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
    steps = [asks(one, changed.request + b""), answers(one, changed.answer), *exchange_steps(heartbeat(2))]
    rows = play(steps, cut)
    assert cells(rows) == [
        ("request", 0, "passed"), ("response", 0, "rewritten"),
        ("request", 1, "passed"), ("response", 1, "passed"),
    ]  # fmt: skip
    assert (rows[1].frame, rows[1].forwarded) == ((one.answer or b"")[4:], (changed.answer or b"")[4:])


@pytest.mark.parametrize("cut", CUTS)
def test_a_request_that_klamm_answers_is_withheld_and_its_answer_made(cut: Any) -> None:
    own = heartbeat(1, error_code=27)
    steps = [
        Step("request", own.request, [("response", own.answer or b"")]),
        *exchange_steps(heartbeat(2)),
    ]
    rows = play(steps, cut)
    assert cells(rows) == [
        ("request", 0, "withheld"), ("response", 0, "made"),
        ("request", 1, "passed"), ("response", 1, "passed"),
    ]  # fmt: skip
    assert rows[1].frame == (own.answer or b"")[4:]
    assert (rows[1].api_key, rows[1].client_id) == (12, "app")


@pytest.mark.parametrize("cut", CUTS)
def test_answers_out_of_order_pass_and_one_that_the_client_does_not_get_is_withheld(cut: Any) -> None:
    first, second, third = (heartbeat(number) for number in (1, 2, 3))
    steps = [
        *(asks(one, one.request) for one in (first, second, third)),
        answers(third, third.answer),
        answers(first, first.answer),
        answers(second),
        *exchange_steps(heartbeat(4)),
    ]
    rows = play(steps, cut)
    assert [cell for cell in cells(rows) if cell[0] == "response"] == [
        ("response", 2, "passed"), ("response", 0, "passed"), ("response", 1, "withheld"),
        ("response", 3, "passed"),
    ]  # fmt: skip


def test_a_made_answer_finds_its_request_though_all_ids_are_the_same() -> None:
    first, second = heartbeat(0, error_code=27), metadata(1, 0)
    both = Step("request", first.request + second.request, [("request", second.request)])
    answered = Step(
        "response", second.answer or b"", [("response", (first.answer or b"") + (second.answer or b""))]
    )
    assert sorted(cells(play([both, answered]))) == [
        ("request", 0, "withheld"), ("request", 1, "passed"),
        ("response", 0, "made"), ("response", 1, "passed"),
    ]  # fmt: skip


def test_a_frame_that_never_goes_on_is_withheld_when_a_later_one_does_or_the_connection_ends() -> None:
    first, second, third = (heartbeat(number) for number in (1, 2, 3))
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    assert take(reader, asks(first)) == []
    assert cells(take(reader, asks(second, second.request))) == [
        ("request", 0, "withheld"), ("request", 1, "passed"),
    ]  # fmt: skip
    assert take(reader, asks(third)) == []
    assert cells(reader.end(0, "")) == [("request", 2, "withheld")]
    assert (reader.keeping.buffered_bytes, reader.keeping.unmatched) == (0, 0)


@pytest.mark.parametrize("cut", CUTS)
def test_a_request_sent_twice_is_one_that_klamm_made_and_so_is_its_answer_withheld(cut: Any) -> None:
    one = heartbeat(1)
    steps = [
        asks(one, one.request, one.request),
        Step("response", (one.answer or b"") * 2, [("response", one.answer or b"")]),
        *exchange_steps(heartbeat(2)),
    ]
    rows = play(steps, cut)
    assert cells(rows) == [
        ("request", 0, "passed"), ("request", 1, "made"),
        ("response", 0, "passed"), ("response", 1, "withheld"),
        ("request", 2, "passed"), ("response", 2, "passed"),
    ]  # fmt: skip


def test_a_request_whose_acks_were_taken_away_gets_its_answer_from_klamm() -> None:
    asked, without = produce(9, 1), produce(9, 1, acks=0)
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    (request,) = take(reader, asks(asked, without.request))
    assert (request.fate, request.awaits) == ("rewritten", True)
    (answer,) = reader.sent("response", asked.answer or b"", 0)
    assert (answer.fate, answer.exchange, answer.api_key) == ("made", 0, 0)
    assert cells(take(reader, asks(heartbeat(2), heartbeat(2).request))) == [("request", 1, "passed")]


@pytest.mark.parametrize("cut", CUTS)
def test_the_streams_are_one_again_when_nothing_is_pending(cut: Any) -> None:
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    one = heartbeat(1)
    take(reader, asks(one, heartbeat(1, 5).request), cut)
    take(reader, answers(one, heartbeat(1, 5).answer), cut)
    assert reader.forwarding is None
    assert (reader.keeping.buffered_bytes, reader.keeping.unmatched) == (0, 0)


def test_the_streams_are_one_again_in_the_middle_of_the_same_frame() -> None:
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    one = heartbeat(1)
    data = one.request * 3
    rows = reader.feed("request", data[:60], 0, forwarded=False)
    rows += reader.sent("request", data[:50], 0)
    assert reader.forwarding is not None
    rows += reader.feed("request", data[60:100], 0, forwarded=False)
    rows += reader.sent("request", data[50:100], 0)
    assert reader.forwarding is None
    rows += reader.feed("request", data[100:], 0)
    assert cells(rows) == [("request", number, "passed") for number in range(3)]


def test_a_response_of_which_only_a_part_went_on_says_how_much() -> None:
    one = metadata(1, 1)
    rows = play([*exchange_steps(one)[:1], answers(one, (one.answer or b"")[:30])])
    assert cells(rows) == [("request", 0, "passed"), ("response", 0, "rewritten")]
    assert (rows[1].forwarded, rows[1].text) == (None, "of it, 30 bytes went on")


def test_what_klamm_puts_in_is_blanked_too() -> None:
    answered = {"results": [{"configs": [{"name": "n", "value": "hush-hush", "is_sensitive": True}]}]}
    one = exchange("DescribeConfigs", 4, {}, {}, 1)
    changed = exchange("DescribeConfigs", 4, {}, answered, 1)
    made = exchange("DescribeConfigs", 4, {}, answered, 2)
    steps = [
        *exchange_steps(one)[:1], answers(one, changed.answer),
        Step("request", made.request, [("response", made.answer or b"")]),
    ]  # fmt: skip
    rows = play(steps)
    assert [row.fate for row in rows[:-1]] == ["passed", "rewritten", "withheld", "made"]
    assert b"hush" not in contents(rows)
    assert filled(rows[1].forwarded or b"", rows[1].forwarded_blanks) == (changed.answer or b"")[4:].replace(
        b"hush-hush", bytes(9)
    )


def test_frames_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST_UNMATCHED", 5)
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    rows = [row for number in range(20) for row in take(reader, asks(heartbeat(number)))]
    assert [(row.exchange, row.text) for row in rows] == [(number, forwarding.UNSEEN) for number in range(15)]


def test_frames_of_all_connections_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "ALL_UNMATCHED", 30)
    monkeypatch.setattr(forwarding, "LEAST_UNMATCHED", 4)
    keeping = Keeping("keep")
    readers = [ConnectionReader(CONNECTION._replace(number=number), keeping) for number in range(20)]
    taken = [
        [row for number in range(10) for row in take(reader, asks(heartbeat(number)))] for reader in readers
    ]
    assert [len(rows) for rows in taken] == [0] * 3 + [6] * 17, "those that came first keep their places"
    assert keeping.unmatched == 3 * 10 + 17 * 4
    assert {row.text for rows in taken for row in rows} == {forwarding.UNSEEN}
    for reader in readers:
        reader.end(0, "over")
    assert (keeping.unmatched, keeping.buffered_bytes) == (0, 0)


def test_bytes_that_wait_to_be_compared_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST_BUFFERED", 5_000)
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    large = [produce(9, number, size=1_000) for number in range(100)]
    for one in large:
        take(reader, asks(one))
    assert reader.keeping.buffered_bytes < 7_000
    rows = reader.sent("request", b"".join(one.request for one in large), 0)
    assert cells(rows) == [("request", number, "passed") for number in range(100)]


class Tapped(Talk):
    """A session, and what is captured of it."""

    def __init__(self, at: ClusterContext) -> None:
        self.reader = ConnectionReader(CONNECTION, Keeping("keep"))
        self.rows: list[Captured] = []
        self.streams: dict[Side, bytes] = {"request": b"", "response": b""}
        self.went: dict[Side, bytes] = {"request": b"", "response": b""}
        self.lockstep = False
        super().__init__(at)
        self.session.from_client = self._tap("request", self.session.from_client)
        self.session.from_broker = self._tap("response", self.session.from_broker)

    def _tap(self, side: Side, receive: Any) -> Any:
        def tapped(data: bytes, now: int) -> Any:
            effects = receive(data, now)
            self.lockstep = effects is data
            self.streams[side] += data
            self.rows += self.reader.feed(side, data, now, self.lockstep)
            return effects

        return tapped

    def send(self, to: To, data: Piece) -> None:
        side: Side = "request" if to == "broker" else "response"
        self.went[side] += data
        if not self.lockstep:
            self.rows += self.reader.sent(side, bytes(data), 0)
        self.lockstep = False
        super().send(to, data)


def tapped(seed: int, monkeypatch: pytest.MonkeyPatch, cut: Any = None) -> Tapped:
    monkeypatch.setattr(rulings, "Talk", Tapped)
    talk = rulings.play(seed, cut).talk
    assert isinstance(talk, Tapped)
    talk.rows += talk.reader.end(0, "over")
    assert (talk.reader.keeping.buffered_bytes, talk.reader.keeping.unmatched) == (0, 0)
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
        assert came == split(talk.streams[side])
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
        if once.streams == again.streams:
            rows, others = ([row for row in each.rows if row.side == side] for each in (once, again))
            if numbers is not None:
                rows, others = ([row._replace(exchange=numbers) for row in each] for each in (rows, others))
            assert others == rows

"""Connections that began before the capture, and bytes that were not seen."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams import framing
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders.schema import Side
from tests.captures.made_traffic import CONNECTION, Step, batch, exchange_steps, of_any_api, play, take
from tests.proxy.traffic import Exchanged, at_random, byte_by_byte, exchange, fetch, metadata, produce, whole

CUTS = [whole, byte_by_byte, at_random(Random(1), 300)]
cuts = pytest.mark.parametrize("cut", CUTS)


def heartbeat(correlation_id: int) -> Exchanged:
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    return exchange("Heartbeat", 4, asked, {}, correlation_id)


def produced(correlation_id: int) -> Exchanged:
    rows = [{"index": 0, "records": batch(count=9)}]
    asked = {"acks": -1, "topic_data": [{"name": "orders", "partition_data": rows}]}
    return exchange("Produce", 9, asked, {"responses": []}, correlation_id)


def cells(rows: list[Captured]) -> list[tuple[Any, ...]]:
    return [
        (row.side, row.api_key, row.correlation_id, row.frame is not None)
        if row.kind == "frame"
        else (row.side, row.kind, row.size, row.lost)
        for row in rows
        if row.kind != "closed"
    ]


BOTH = exchange_steps(metadata(9, 7), produced(8), heartbeat(9), metadata(12, 10))
TOLD = cells(play(BOTH))


@cuts
def test_a_connection_that_is_joined_between_two_frames_is_as_if_it_began_there(cut: Any) -> None:
    assert cells(play(BOTH, cut, mid_stream=True)) == TOLD


@cuts
@pytest.mark.parametrize("of", [produced(1), metadata(12, 1)])
def test_a_connection_that_is_joined_in_a_frame_begins_with_the_next(of: Exchanged, cut: Any) -> None:
    for start in range(1, len(of.request), 23):
        cut_off = of.request[start:]
        rows = cells(play([Step("request", cut_off), *BOTH], cut, mid_stream=True))
        assert rows == [("request", "lost", len(cut_off), 0), *TOLD]


@cuts
def test_answers_to_requests_before_the_capture_are_their_sizes(cut: Any) -> None:
    before = [heartbeat(1).answer or b"", metadata(9, 2).answer or b""]
    steps = [Step("response", data) for data in before] + BOTH
    rows = play(steps, cut, mid_stream=True)
    assert [(row.api_key, row.exchange, row.size) for row in rows if row.side == "response"][:2] == [
        (-1, -1, len(data) - 4) for data in before
    ]
    assert [one for one in cells(rows) if one[1] != -1] == TOLD


@cuts
def test_an_answer_of_which_the_beginning_was_not_seen_is_lost_bytes(cut: Any) -> None:
    cut_off = (metadata(12, 3).answer or b"")[9:]
    rows = cells(play([Step("response", cut_off), *BOTH], cut, mid_stream=True))
    assert sorted(map(str, rows)) == sorted(map(str, [("response", "lost", len(cut_off), 0), *TOLD]))


def test_answers_alone_are_their_sizes_too() -> None:
    data = (heartbeat(1).answer or b"") + (metadata(9, 2).answer or b"")
    rows = play([Step("response", data)], mid_stream=True)
    assert [row.size for row in rows if row.kind == "frame"] == [12, len(data) - 16 - 4]


def test_bytes_in_which_nothing_is_found_are_counted_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MOST_LOOSE", 1000)
    reader = ConnectionReader(CONNECTION, Keeping("keep"), mid_stream=True)
    noise = Random(1).randbytes(100_000)
    for start in range(0, len(noise), 500):
        for side in ("request", "response"):
            assert reader.feed(side, noise[start : start + 500], 0) == []
            search = reader.streams[side].search
            assert search is not None
            assert len(search.data) < 2000
    rows = reader.end(0, "over")
    assert cells(rows) == [("request", "lost", len(noise), 0), ("response", "lost", len(noise), 0)]


def without(data: bytes, start: int, size: int) -> tuple[bytes, int, bytes]:
    """The bytes before a gap, its size, and the bytes behind."""
    return data[:start], size, data[start + size :]


def play_gap(
    side: Any, before: bytes, size: int | None, after: bytes, steps: list[Step], cut: Any
) -> list[Captured]:
    """Bytes of one side with a gap, behind those steps of the other."""
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    rows = [row for step in steps for row in take(reader, step, cut)]
    rows += take(reader, Step(side, before), cut)
    rows += reader.gap(side, size, 0)
    rows += take(reader, Step(side, after), cut)
    rows += reader.end(0, "over")
    assert reader.keeping.buffered_bytes == 0
    return [row for row in rows if row.side == side]


@cuts
@pytest.mark.parametrize("side", ["request", "response"])
def test_a_gap_within_a_frame_costs_its_bytes_and_no_other_frame(side: Any, cut: Any) -> None:
    three = (
        [produced(1), produced(2), produced(3)]
        if side == "request"
        else [fetch(9, n, 300) for n in (1, 2, 3)]
    )
    data = [(one.request if side == "request" else one.answer) or b"" for one in three]
    asked = [] if side == "request" else [Step("request", one.request) for one in three]
    first, second = len(data[0]), len(data[1])
    for start, size in ((first + 14, 50), (first + 60, 200), (first + 30, second - 30)):
        rows = cells(play_gap(side, *without(b"".join(data), start, size), asked, cut))
        key = 0 if side == "request" else 1
        frames = [(side, key, 1, True), (side, key, 2, False), (side, key, 3, True)]
        gap = (side, "lost", size, 0)
        assert rows == [frames[0], gap, *frames[1:]]


@cuts
@pytest.mark.parametrize("known", [True, False])
def test_behind_a_gap_over_frames_the_next_request_is_found(cut: Any, known: bool) -> None:
    data = b"".join(produced(number).request for number in range(6))
    one = len(produced(0).request)
    before, size, after = without(data, one + 50, 2 * one + 30)
    rows = cells(play_gap("request", before, size if known else None, after, [], cut))
    gap = ("request", "lost", size if known else 0, 1)
    tail = ("request", "lost", one - 80, 0)
    assert rows == [("request", 0, 0, True), gap, tail, ("request", 0, 4, True), ("request", 0, 5, True)]


@cuts
def test_behind_a_gap_over_frames_the_next_answer_is_found_by_its_request(cut: Any) -> None:
    all_of_it = [fetch(9, number, 300) for number in range(6)]
    data = b"".join(one.answer or b"" for one in all_of_it)
    one = len(all_of_it[0].answer or b"")
    steps = [Step("request", each.request) for each in all_of_it]
    before, _, after = without(data, one + 50, 2 * one + 30)
    rows = play_gap("response", before, None, after, steps, cut)
    assert [(row.exchange, row.correlation_id) for row in rows if row.kind == "frame"] == [
        (0, 0),
        (4, 4),
        (5, 5),
    ]


def test_answers_to_requests_in_a_gap_are_their_sizes() -> None:
    one, two, three = heartbeat(1), metadata(9, 2), heartbeat(3)
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    reader.feed("request", one.request, 0)
    reader.gap("request", len(two.request), 0)
    reader.feed("request", three.request, 0)
    answers = b"".join(each.answer or b"" for each in (one, two, three))
    rows = reader.feed("response", answers, 0)
    assert [(row.exchange, row.correlation_id, row.frame is None) for row in rows] == [
        (0, 1, False), (-1, 2, True), (1, 3, False),
    ]  # fmt: skip


def test_answers_in_another_order_belong_to_the_requests_with_their_ids() -> None:
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    for number in (1, 2, 3):
        reader.feed("request", heartbeat(number).request, 0)
    rows = [row for number in (3, 1) for row in reader.feed("response", heartbeat(number).answer or b"", 0)]
    assert [(row.exchange, row.correlation_id) for row in rows] == [(2, 3), (0, 1)]
    assert len(reader.pending) == 1


def test_find_coordinator_0_may_be_answered_with_id_0() -> None:
    """As Kafka 0.8.2 does while it has no topic."""
    request = exchange("FindCoordinator", 0, {"key": "app"}, {}, 7).request
    answer = bytes.fromhex("0000001000000000000fffffffff0000ffffffff")
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    reader.feed("request", request, 0)
    (row,) = reader.feed("response", answer, 0)
    assert (row.exchange, row.correlation_id, row.api_key, row.frame) == (0, 0, 10, answer[4:])


@cuts
@pytest.mark.parametrize("seed", range(6))
def test_a_gap_while_what_went_on_is_followed_leaves_every_other_frame(seed: int, cut: Any) -> None:
    random = Random(seed)
    reader = ConnectionReader(CONNECTION, Keeping("keep"))
    rows: list[Captured] = []
    for number in range(20):
        one = produced(number)
        if random.random() < 0.3:
            rows += reader.gap("request", len(one.request), 0)
            continue
        sent: list[tuple[Side, bytes]] | None = [("request", one.request)] if random.random() < 0.5 else None
        rows += take(reader, Step("request", one.request, sent), cut)
    rows += reader.end(0, "over")
    assert reader.keeping.buffered_bytes == 0
    gaps = [row for row in rows if row.kind == "lost"]
    there = [row for row in rows if row.kind == "frame"]
    assert len(there) + len(gaps) == 20
    assert {row.fate for row in there} == {"passed"}


@pytest.mark.parametrize("seed", range(10))
def test_any_stream_joined_anywhere_loses_no_more_than_its_beginning(seed: int) -> None:
    random = Random(seed)
    steps = of_any_api(random, 20)
    requests = b"".join(step.data for step in steps if step.side == "request")
    whole_rows = [row for row in play(steps) if row.side == "request"]
    start = random.randrange(1, len(requests) // 2)
    rows = play([Step("request", requests[start:])], at_random(random), mid_stream=True)
    found = [row.correlation_id for row in rows if row.kind == "frame"]
    assert found == [row.correlation_id for row in whole_rows][-len(found) :]
    lost = sum(row.size for row in rows if row.kind == "lost")
    assert lost + sum(row.size + 4 for row in rows if row.kind == "frame") == len(requests) - start
    assert lost < max(row.size for row in whole_rows) + 4


def test_a_produce_of_zeros_is_no_false_beginning() -> None:
    cut_off = produce(9, 1, size=100_000).request[5000:]
    rows = cells(play([Step("request", cut_off), *BOTH], mid_stream=True))
    assert rows == [("request", "lost", len(cut_off), 0), *TOLD]

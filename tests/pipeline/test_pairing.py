"""Frames of a part as exchanges: wherever a capture is cut into parts, the same come out of it."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.pipeline.reading.pairing import KEYS, NEVER, NONE, pairs_of

CODES = ("capture", "side", "fate")


class Frame(NamedTuple):
    capture: str
    connection: int
    exchange: int
    side: str
    fate: str
    awaits: bool
    time_ns: int


class Turn(NamedTuple):
    """An exchange, with the time at which it had its turn."""

    request: Frame | None
    response: Frame | None
    turn_ns: int | None


def batch(frames: Sequence[Frame]) -> pa.RecordBatch:
    columns = {name: pa.array([getattr(frame, name) for frame in frames]) for name in KEYS}
    return pa.RecordBatch.from_pydict(
        {name: column.dictionary_encode() if name in CODES else column for name, column in columns.items()}
    )


def place(frame: Frame) -> tuple[Any, ...]:
    return (
        frame.capture, frame.connection, frame.exchange,
        frame.side == "response", frame.fate == "withheld", frame.time_ns,
    )  # fmt: skip


def turn_of(request: Frame | None, response: Frame | None, last_response_ns: int) -> Turn:
    if request is None or response is None:
        return Turn(request, response, None)
    return Turn(request, response, max(request.time_ns, min(last_response_ns, response.time_ns)))


def by_hand(frames: Sequence[Frame], last_response_ns: dict[Frame, int]) -> set[Turn]:
    """As `exchanges` has Spark do it. `last_response_ns`: what is known of it beforehand."""
    found = set()
    for _, on_one in groupby(sorted(frames, key=place), key=lambda frame: frame[:2]):
        latest = NEVER
        for number, group in groupby(on_one, key=lambda frame: frame.exchange):
            rows = list(group)
            for one in [[row] for row in rows] if number < 0 else [rows]:
                first, *more = one
                last_ns = max(latest, last_response_ns.get(first, NEVER))
                if first.side == "request":
                    found.add(turn_of(first, more[0] if more else None, last_ns))
                else:
                    found.add(turn_of(None, first, last_ns))
            came = [row.time_ns for row in rows if row.side == "response" and number >= 0]
            latest = max([latest, *came])
    return found


@st.composite
def conversations(draw: st.DrawFn) -> list[Frame]:
    """Of some connections, in order of time, as a broker answers: in turn, and klamm now and then for it."""
    frames, now = [], 0
    waiting: dict[tuple[str, int], list[tuple[int, str]]] = {}
    numbers: dict[tuple[str, int], int] = {}
    for _ in range(draw(st.integers(1, 30))):
        now += draw(st.integers(1, 3))
        of = draw(st.sampled_from(["a", "b"])), draw(st.integers(0, 1))
        queue = waiting.setdefault(of, [])
        if queue and draw(st.sampled_from([True, False])):
            number, fate = queue.pop(0)
            how = draw(st.sampled_from(["passed", "rewritten", "lost", "again"]))
            came = (
                ["made"]
                if fate == "withheld"
                else {"again": ["made", "withheld"], "lost": []}.get(how, [how])
            )
            for answer in came if draw(st.booleans()) else reversed(came):
                frames.append(Frame(*of, number, "response", answer, False, now))
                now += 1
        elif draw(st.integers(0, 9)) == 0:
            side = draw(st.sampled_from(["request", "response"]))
            frames.append(Frame(*of, -1, side, "passed", side == "request", now))
        else:
            number = numbers[of] = numbers.get(of, -1) + 1
            fate = draw(st.sampled_from(["passed", "rewritten", "withheld"]))
            awaits = draw(st.integers(0, 4)) > 0
            if awaits:
                queue.append((number, fate))
            if draw(st.integers(0, 9)):
                frames.append(Frame(*of, number, "request", fate, awaits, now))
    return frames


@settings(deadline=None, max_examples=300)
@given(conversations(), st.sets(st.integers(1, 60)))
def test_the_same_exchanges_wherever_a_capture_is_cut(frames: list[Frame], cuts: set[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(frames)), len(frames)]
    whole, left, last_response_ns = set(), [], {}
    for first, end in pairwise(places):
        part = frames[first:end]
        if part:
            pairs = pairs_of(batch(part))
            left += [part[at] for at in pairs.left]
            last_response_ns |= {part[at]: int(pairs.last_response_ns[at]) for at in pairs.left}
            for at, answer in zip(pairs.requests, pairs.responses, strict=True):
                response = None if answer == NONE else part[answer]
                whole.add(turn_of(part[at], response, int(pairs.last_response_ns[at])))
    assert whole | by_hand(left, last_response_ns) == by_hand(frames, {})


def test_what_is_whole_is_not_left() -> None:
    frames = [
        Frame("a", 1, 0, "request", "passed", True, 10),
        Frame("a", 1, 1, "request", "passed", True, 11),
        Frame("a", 1, 2, "request", "passed", False, 12),
        Frame("a", 1, 0, "response", "passed", False, 20),
        Frame("a", 1, 1, "response", "passed", False, 30),
        Frame("a", 1, 3, "request", "passed", True, 31),
    ]
    pairs = pairs_of(batch(frames))
    assert list(zip(pairs.requests, pairs.responses, strict=True)) == [(0, 3), (1, 4), (2, NONE)]
    assert list(pairs.left) == [5]
    assert [int(pairs.last_response_ns[at]) for at in (0, 1, 2, 5)] == [NEVER, 20, 30, 30]

"""Bytes that nobody should send: never an exception, never a leak, never a row that cannot be written."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.captures.streams.cutting import cut, filled
from klamm.decoders.schema import Side
from tests.captures.made_traffic import CONNECTION, of_any_api
from tests.proxy.traffic import at_random

SECRET = b"hush-hush-this-is-secret"


def damaged(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    kind = random.randrange(5)
    if kind == 0:
        return data[:at] + random.randbytes(1) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[at:]
    if kind == 3:
        return data[:at] + random.randbytes(random.randrange(20)) + data[at:]
    return data[:at] + b"\xff" * 4 + data[at + 4 :]


def played(seed: int, kept: Any) -> list[Captured]:
    """A reader of damaged frames, frames that other bytes stand for, and gaps."""
    random = Random(seed)
    cut_up = at_random(random, 400)
    keeping = Keeping(kept, b"key")
    reader = ConnectionReader(CONNECTION, keeping, mid_stream=random.random() < 0.3)
    rows: list[Captured] = []
    for step in of_any_api(random, 25, SECRET):
        data = damaged(step.data, random) if random.random() < 0.2 else step.data
        for piece in cut_up(data):
            if random.random() < 0.02:
                rows += reader.gap(step.side, random.choice([None, 1, 100, 5000]), 0)
            forwarded = random.random() < 0.7
            rows += reader.feed(step.side, piece, 0, forwarded)
            if not forwarded and random.random() < 0.8:
                to: Side = random.choice([step.side, "request", "response"])
                rows += reader.sent(to, damaged(piece, random) if random.random() < 0.3 else piece, 0)
    rows += reader.end(0, "over")
    assert keeping.buffered_bytes == 0
    return rows


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kept", ["blank", "keep", "hash"])
def test_whatever_comes_is_rows_that_can_be_written_and_read(kept: Any, seed: int) -> None:
    for row in played(seed, kept):
        (row.client_id or "").encode()
        for frame, blanks in ((row.frame, row.blanks), (row.forwarded, row.forwarded_blanks)):
            if frame is not None:
                whole = filled(frame, blanks)
                assert cut(whole, blanks) == frame
                assert row.fate == "rewritten" or len(whole) == row.size
        assert row.kind != "frame" or row.exchange >= -1


@pytest.mark.parametrize("seed", range(60))
def test_no_request_is_answered_twice(seed: int) -> None:
    counts = Counter(
        (row.exchange, row.fate == "made")
        for row in played(seed, "blank")
        if row.kind == "frame" and row.side == "response" and row.exchange >= 0
    )
    assert max(counts.values(), default=0) <= 1


@pytest.mark.parametrize("seed", range(30))
def test_noise_is_counted_to_the_byte(seed: int) -> None:
    random = Random(seed)
    reader = ConnectionReader(CONNECTION, Keeping("keep"), mid_stream=True)
    noise = random.randbytes(5000)
    rows = [row for piece in at_random(random)(noise) for row in reader.feed("request", piece, 0)]
    rows += reader.end(0, "over")
    assert sum(row.size + 4 * (row.kind == "frame") for row in rows) == len(noise)

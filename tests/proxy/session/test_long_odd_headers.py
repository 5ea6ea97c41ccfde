"""Long answers of which the tagged section of the header cannot be read: klamm reads them a few times, and
not again for each byte that comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from klamm.decoders import API
from klamm.decoders.headers import request_frame
from klamm.proxy.session.effects import Close, Event
from klamm.proxy.session.responses import Responses
from tests.proxy.traffic import Exchanged, Outcome, kinds, play

SIZE = 400_000
MOST_SCANS = 20
NO_END = b"\x80" * 8  # no varint is so long
ENDLESS = b"\xff\xff\x3f" + bytes(5)  # a million tags, which go on behind the end


def in_two(data: bytes) -> Iterable[bytes]:
    return data[:100], data[100:]


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the answer more often than MOST_SCANS fails."""
    left, scan = MOST_SCANS, Responses._scan

    def counted(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        assert left >= 0, "the same bytes are read again and again"
        scan(*arguments)

    monkeypatch.setattr(Responses, "_scan", counted)


def answered(name: str, version: int, header: bytes) -> tuple[Outcome, bytes]:
    """Plays an answer that comes in two pieces. Gives the outcome, and the answer as it came."""
    answer = (4 + SIZE).to_bytes(4, "big") + b"\0\0\0\1" + header + bytes(SIZE - len(header))
    request = request_frame(API[name], version, 1, "app", b"\0" * 40)
    return play([Exchanged(request, answer)], in_two), answer


@pytest.mark.parametrize("header", [NO_END, ENDLESS])
def test_such_an_answer_goes_on(header: bytes) -> None:
    outcome, answer = answered("Heartbeat", 4, header)
    assert outcome.client == answer
    assert (Event, "undecodable") in kinds(outcome.events)


@pytest.mark.parametrize("header", [NO_END, ENDLESS])
def test_one_that_may_have_addresses_closes_its_connection(header: bytes) -> None:
    outcome, _ = answered("Fetch", 16, header)
    assert outcome.client == b""
    assert (Close, "unrewritable") in kinds(outcome.events)

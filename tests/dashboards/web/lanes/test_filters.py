"""The filters of timelines, with the conditions that people ask for."""

from __future__ import annotations

import pytest

from klamm.client.types import Exchange
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.lanes.timelines import TIMELINES
from klamm.rules.expressions import parse
from tests.dashboards.web.exchanges import fetch, heartbeat, produce


@pytest.mark.parametrize(
    ("name", "one", "asked"),
    [
        ("groups", heartbeat(0, "m-1"), 'member_id == "m-1"'),
        ("groups", heartbeat(27), "error != NONE"),
        ("producers", produce(acks=-1), "acks == -1"),
        ("sessions", fetch(None), "max_wait_ms == 500"),
    ],
)
def test_a_field_of_a_request_or_an_answer_chooses_exchanges(name: str, one: Exchange, asked: str) -> None:
    _, where = TIMELINES[name]
    for text in ("", asked):
        assert parse(where(text)).holds(*frames_of(one))
    assert not parse(where(f"not ({asked})")).holds(*frames_of(one))

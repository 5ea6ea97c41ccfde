"""Kinds of exchanges that a page can hide."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from klamm.client.types import Exchange
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.noise import NOISE, Hidden, UnknownNoise
from tests.dashboards.web.exchanges import exchange, fetch, heartbeat, produce, raw, records


def hidden(name: str, one: Exchange) -> bool:
    return Hidden([name]).hides(*frames_of(one))


def test_heartbeats_are_hidden_unless_they_fail() -> None:
    assert hidden("heartbeats", heartbeat())
    assert not hidden("heartbeats", heartbeat(27))
    assert not hidden("heartbeats", produce())


def test_what_rules_made_fail_is_not_hidden() -> None:
    one = heartbeat()
    assert one.response is not None
    failed = raw({"error_code": 27}, "Heartbeat", one.version, "response")
    assert not hidden("heartbeats", replace(one, response=replace(one.response, sent=failed)))


def test_fetches_without_records_are_hidden_and_no_others() -> None:
    assert hidden("empty fetches", fetch(None))
    assert hidden("empty fetches", fetch(b""))
    assert not hidden("empty fetches", fetch(records(b"tea")))
    assert not hidden("empty fetches", produce())
    nothing = exchange("Fetch", 12, {"topics": []}, {"responses": []})
    assert hidden("empty fetches", nothing)


def test_requests_of_klamm_itself_are_hidden() -> None:
    assert hidden("probes of klamm", exchange("Metadata", 9, {"topics": []}, None, client_id="klamm"))
    assert not hidden("probes of klamm", exchange("Metadata", 9, {"topics": []}))


def test_all_kinds_at_once_are_counted_and_taken_once() -> None:
    every = Hidden(list(NOISE))
    assert [every.hides(*frames_of(one)) for one in (heartbeat(), produce(), fetch(None))] == [
        True,
        False,
        True,
    ]
    assert (every.taken(), every.taken()) == (2, 0)


def test_without_bytes_nothing_is_hidden() -> None:
    assert not Hidden(list(NOISE)).hides(None, None)


def test_a_kind_that_there_is_not_is_told() -> None:
    with pytest.raises(
        UnknownNoise, match="'lag' cannot be hidden: heartbeats, empty fetches, probes of klamm can"
    ):
        Hidden(["lag"])

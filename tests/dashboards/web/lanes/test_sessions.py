"""Fetch sessions and share sessions: begun, gone on with, lost, and opened again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.sessions import Sessions
from tests.dashboards.web.lanes.made import Client, Sheet, at

A = Client("app-a", 1)
NOT_FOUND, WRONG_EPOCH, NO_SHARE, STATE = 70, 71, 122, 121


def fetch(
    when: float, session: int, epoch: int, given: int | None = None, error: int = 0, *, who: Client = A,
    parts: Sequence[int] = (), forgotten: Sequence[int] = (), version: int = 12,
) -> Exchange:  # fmt: skip
    asked = [{"topic": "orders", "partitions": [{"partition": each} for each in parts]}] if parts else []
    request = {
        "max_wait_ms": 500, "min_bytes": 1, "session_id": session, "session_epoch": epoch, "topics": asked,
        "forgotten_topics_data": [{"topic": "orders", "partitions": list(forgotten)}] if forgotten else [],
    }  # fmt: skip
    answer = {"error_code": error, "session_id": session if given is None else given, "responses": []}
    return who.asks(when, "Fetch", version, request, answer)


def test_a_session_is_opened_gone_on_with_and_closed() -> None:
    sheet = Sheet(
        Sessions(),
        [
            fetch(0.0, 0, 0, 77, parts=[0, 1]),
            fetch(1.0, 77, 1),
            fetch(2.0, 77, 2, parts=[2], forgotten=[0, 1]),
            fetch(3.0, 77, -1, 0, parts=[2]),
        ],
    )
    assert sheet.texts("full") == [
        "full fetch, for a new session; 2 partitions",
        "full fetch of session 77, the last of its session; 1 partition",
    ]
    assert sheet.texts("incremental") == [
        "incremental fetch of session 77, epoch 1",
        "incremental fetch of session 77, epoch 2; 1 partition added or changed; 2 partitions forgotten",
    ]
    session = sheet.one("session")
    assert (session.begin, session.end, session.open) == (at(0.0), at(3.0), False)
    assert session.text == "fetch session 77 of broker 1, closed by its client after 3 fetches"
    lane = sheet.lanes["kafka/client/app-a", "1/10.0.0.7:50001/1"]
    assert lane.where == 'api == Fetch and client_id == "app-a" and client == "10.0.0.7" and broker == "1"'


def test_a_session_outlives_its_connection() -> None:
    again = Client("app-a", 5)
    sheet = Sheet(
        Sessions(), [fetch(0.0, 0, 0, 77), fetch(1.0, 77, 1, who=again), fetch(2.0, 77, 2, who=again)]
    )
    assert len([member for _, member in sheet.lanes if member]) == 1
    assert sheet.one("session").open


def test_a_session_that_was_evicted_says_so() -> None:
    sheet = Sheet(Sessions(), [fetch(0.0, 0, 0, 77), fetch(1.0, 77, 1), fetch(5.0, 77, 2, 0, NOT_FOUND)])
    lost = sheet.one("lost")
    assert (lost.error, lost.epoch) == ("FETCH_SESSION_ID_NOT_FOUND", 2)
    assert lost.text == (
        "incremental fetch of session 77, epoch 2: FETCH_SESSION_ID_NOT_FOUND: session 77 is known no more "
        "4.0 s after its last fetch; it was evicted (max.incremental.fetch.session.cache.slots), or the "
        "broker restarted"
    )
    assert sheet.one("session").text == "fetch session 77 of broker 1, evicted after 2 fetches"


def test_a_session_at_another_epoch_is_lost_too() -> None:
    sheet = Sheet(Sessions(), [fetch(0.0, 0, 0, 77), fetch(1.0, 77, 9, 0, WRONG_EPOCH)])
    assert sheet.one("lost").text.endswith(
        "session 77 is over 1.0 s after its last fetch; an answer was lost, or another client uses it"
    )


def test_a_broker_that_keeps_no_session_says_so() -> None:
    sheet = Sheet(Sessions(), [fetch(0.0, 0, 0, 0, parts=[0])])
    assert "the broker keeps no session for it" in sheet.one("full").text


def test_a_fetch_without_a_session_is_plain() -> None:
    sheet = Sheet(Sessions(), [fetch(0.0, 0, -1, 0, parts=[0])])
    assert sheet.one("plain").text == "full fetch, without a session; 1 partition"


def test_many_sessions_within_a_short_time_are_a_thrash() -> None:
    exchanges = []
    for number in range(6):
        exchanges.append(fetch(10.0 * number, 0, 0, 70 + number))
        exchanges.append(fetch(10.0 * number + 5, 70 + number, 1, 0, NOT_FOUND))
    sheet = Sheet(Sessions(), exchanges)
    thrash = sheet.one("thrash")
    assert (thrash.begin, thrash.end) == (at(0.0), at(50.0))
    assert thrash.text.startswith("5 fetch sessions within 40 s, 5 of them after FETCH_SESSION_ID_NOT_FOUND")
    calm = Sheet(Sessions(), [fetch(1000.0 * number, 0, 0, 70 + number) for number in range(8)])
    assert calm.of("thrash") == []


ACQUIRED = "first_offset", "last_offset", "delivery_count"
ACKNOWLEDGED = "first_offset", "last_offset", "acknowledge_types"


def share(
    when: float, epoch: int, error: int = 0, *, api: str = "ShareFetch", acquired: Sequence[Any] = (),
    acknowledged: Sequence[Any] = (), part_error: int = 0,
) -> Exchange:  # fmt: skip
    batches = [dict(zip(ACKNOWLEDGED, one, strict=True)) for one in acknowledged]
    asked = {"partition_index": 0, "acknowledgement_batches": batches}
    request: dict[str, Any] = {"group_id": "queue", "member_id": "m", "share_session_epoch": epoch}
    request["topics"] = [{"topic_id": bytes(16), "partitions": [asked]}]
    leader = {"leader_id": 1, "leader_epoch": 0}
    part: dict[str, Any] = {"partition_index": 0, "error_code": part_error, "current_leader": leader}
    if api == "ShareFetch":
        request |= {"max_wait_ms": 500, "min_bytes": 1, "max_records": 10, "batch_size": 10}
        part |= {"records": b"", "acknowledge_error_code": 0}
        part["acquired_records"] = [dict(zip(ACQUIRED, one, strict=True)) for one in acquired]
    answer = {"error_code": error, "responses": [{"topic_id": bytes(16), "partitions": [part]}]}
    return A.asks(when, api, 1, request, answer)


def test_a_share_session_counts_what_is_acquired_and_acknowledged() -> None:
    sheet = Sheet(
        Sessions(),
        [
            share(0.0, 0),
            share(1.0, 1, acquired=[(0, 9, 1), (20, 24, 2)]),
            share(2.0, 2, api="ShareAcknowledge", acknowledged=[(0, 6, [1]), (7, 9, [1, 2, 3])]),
            share(3.0, -1, api="ShareAcknowledge", acknowledged=[(20, 24, [2])]),
        ],
    )
    assert sheet.one("fetched").text == "share fetch, for a new session; acquired 0 records"
    assert sheet.one("acquired").text == (
        "share fetch, epoch 1; acquired 15 records, 5 of them not for the first time"
    )
    assert sheet.texts("acknowledged") == [
        "acknowledgement, epoch 2; 8 accepted; 1 released; 1 rejected",
        "acknowledgement, the last of its session; 5 released",
    ]
    assert sheet.one("session").text == (
        "share session at broker 1, closed by its member; 15 records acquired, 15 acknowledged"
    )


def test_a_share_session_that_is_lost_and_a_record_in_another_state_are_errors() -> None:
    sheet = Sheet(
        Sessions(),
        [share(0.0, 0), share(1.0, 1, api="ShareAcknowledge", part_error=STATE), share(4.0, 2, NO_SHARE)],
    )
    assert sheet.one("acknowledged").error == "INVALID_RECORD_STATE"
    assert sheet.one("lost").text.endswith(
        "SHARE_SESSION_NOT_FOUND, 3.0 s after the last request of the session"
    )
    assert not sheet.one("session").open


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.lanes.fetches.FETCHERS", 10)
    monkeypatch.setattr("klamm.dashboards.web.lanes.marks.HEADERS", 10)
    sessions = Sessions()
    for number in range(100):
        sessions.read("k", fetch(float(number), 0, 0, 1000 + number, who=Client(f"c{number}", number)))
    fetches = sessions.fetches
    assert len(fetches.by_connection.kept) <= 10
    assert len(fetches.by_session.kept) <= 10
    assert len(sessions.board.headers.kept) <= 10

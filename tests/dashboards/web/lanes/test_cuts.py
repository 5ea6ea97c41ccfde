"""Where exchanges are missing between two, nothing is concluded from what was not looked at; lanes go on."""

from __future__ import annotations

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.groups import Groups
from klamm.dashboards.web.lanes.marks import Mark
from klamm.dashboards.web.lanes.producers import Sending
from klamm.dashboards.web.lanes.sessions import Sessions
from klamm.dashboards.web.source import Cut
from tests.dashboards.web.lanes.made import Client, Sheet, at
from tests.dashboards.web.lanes.test_producers import add, batch, end, init, produce

A, B = Client("app-a", 1), Client("app-b", 2, host="10.0.0.8")


PART = (Cut(3.0, 3.0), Cut(60.0, 3.0))


def times(marks: list[Mark]) -> list[tuple[float, float, bool]]:
    return [(mark.begin - at(0), mark.end - at(0), mark.open) for mark in marks]


def beat(when: float, generation: int = 1, member: str = "m-1", error: int = 0) -> Exchange:
    asked = {"group_id": "g", "generation_id": generation, "member_id": member}
    return A.asks(when, "Heartbeat", 3, asked, {"error_code": error})


def test_a_member_is_on_one_lane_and_its_generation_is_told_on_both_sides() -> None:
    sheet = Sheet(Groups(), [beat(1.0), beat(2.0), *PART, beat(61.0), beat(62.0)])
    assert [member for _, member in sheet.lanes if member] == ["m-1"]
    assert times(sheet.of("epoch")) == [(1.0, 3.0, False), (61.0, 61.0, True)]


def test_what_begins_within_a_part_does_not_go_on_until_its_end() -> None:
    sheet = Sheet(Groups(), [beat(1.0), PART[0], beat(5.0), PART[1], beat(61.0)])
    assert times(sheet.of("epoch")) == [(1.0, 3.0, False), (5.0, 5.0, False), (61.0, 61.0, True)]


def newer(when: float, error: int = 0) -> Exchange:
    """Of a member of the newer protocol, whose session timeout is the brokers' default."""
    asked = {"group_id": "g", "member_id": "m-1", "member_epoch": 1}
    answer = {"error_code": error, "member_id": "m-1", "member_epoch": 1}
    return A.asks(when, "ConsumerGroupHeartbeat", 0, asked, answer)


def test_a_member_was_not_silent_while_nobody_looked() -> None:
    assert "no heartbeat for 61 s" in Sheet(Groups(), [newer(1.0), newer(62.0, 25)]).one("out").text
    sheet = Sheet(Groups(), [newer(1.0), *PART, newer(62.0, 25)])
    assert sheet.one("out").text == "out: nothing that was seen tells why"


def test_batches_that_nobody_looked_at_are_not_missing() -> None:
    before, after = produce(A, 1.0, batch(7, 0, 0)), produce(A, 61.0, batch(7, 0, 50))
    assert Sheet(Sending(), [before, after]).of("sequence")
    sheet = Sheet(Sending(), [before, *PART, after, produce(A, 62.0, batch(7, 0, 90))])
    assert [mark.begin - at(0) for mark in sheet.of("sequence")] == [62.0]
    assert len([member for _, member in sheet.lanes if member]) == 1


def test_a_transaction_ends_where_nobody_looks_and_its_producer_goes_on() -> None:
    sheet = Sheet(
        Sending(), [init(A, 1.0, 7, 0), add(A, 2.0, 7, 0), *PART, add(A, 61.0, 7, 0), end(A, 62.0, 7, 0)]
    )
    assert times(sheet.of("transaction")) == [(2.0, 3.0, False), (61.0, 62.0, False)]
    assert times(sheet.of("epoch")) == [(1.0, 3.0, False), (61.0, 61.0, True)]
    assert len([member for _, member in sheet.lanes if member]) == 1


def test_a_producer_that_came_while_nobody_looked_may_have_fenced_another() -> None:
    sheet = Sheet(Sending(), [init(A, 1.0, 7, 0), *PART, init(B, 61.0, 7, 2)])
    assert sheet.of("replaced") == []
    sheet = Sheet(Sending(), [init(A, 1.0, 7, 0), *PART, add(A, 61.0, 7, 0), init(B, 62.0, 7, 1)])
    assert len(sheet.of("fenced")) == 1


def fetch(when: float, session: int, epoch: int, given: int) -> Exchange:
    asked = {"max_wait_ms": 1, "min_bytes": 1, "session_id": session, "session_epoch": epoch}
    return A.asks(when, "Fetch", 12, asked, {"session_id": given})


def test_a_fetch_session_is_a_band_on_both_sides_of_one_lane() -> None:
    sheet = Sheet(Sessions(), [fetch(1.0, 0, 0, 5), *PART, fetch(61.0, 5, 9, 5)])
    assert times(sheet.of("session")) == [(1.0, 3.0, False), (61.0, 61.0, True)]
    assert len([member for _, member in sheet.lanes if member]) == 1


def test_a_share_session_is_a_band_on_both_sides_of_one_lane() -> None:
    def shared(when: float, epoch: int) -> Exchange:
        asked = {"group_id": "g", "member_id": "m-1", "share_session_epoch": epoch, "topics": []}
        return A.asks(when, "ShareFetch", 1, asked, {"responses": []})

    sheet = Sheet(Sessions(), [shared(1.0, 0), *PART, shared(61.0, 7)])
    assert times(sheet.of("session")) == [(1.0, 3.0, False), (61.0, 61.0, True)]

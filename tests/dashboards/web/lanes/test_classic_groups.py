"""Classic groups: who joined, who is out and why, and what set off each rebalance."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.client.types import Exchange
from klamm.dashboards.web.lanes.groups import Groups
from tests.dashboards.web.lanes.made import Client, Sheet, assignment, at, subscription

A, B = Client("app-a", 1), Client("app-b", 2)
SESSION_MS, REBALANCE_MS = 10_000, 60_000
INVITED, REBALANCES, UNKNOWN, FENCED, OLD = 79, 27, 25, 82, 22


def join(
    who: Client, when: float, member: str, generation: int, leader: str = "a", *, asked_as: str | None = None,
    members: tuple[str, ...] = (), error: int = 0, took: float = 0.0, reason: str | None = None,
    instance: str | None = None, topics: tuple[str, ...] = ("orders",),
) -> Exchange:  # fmt: skip
    """`asked_as`: the member id that is sent; `members`: told to the leader."""
    request = {
        "group_id": "billing", "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS,
        "member_id": member if asked_as is None else asked_as, "group_instance_id": instance,
        "protocol_type": "consumer", "reason": reason,
        "protocols": [{"name": "range", "metadata": subscription(*topics, rack="r1")}],
    }  # fmt: skip
    answer = {
        "error_code": error, "generation_id": generation, "protocol_type": "consumer",
        "protocol_name": "range", "leader": leader, "member_id": member,
        "members": [{"member_id": one, "metadata": b""} for one in members],
    }  # fmt: skip
    return who.asks(when, "JoinGroup", 9, request, answer, took)


def sync(
    who: Client, when: float, member: str, generation: int, error: int = 0, **topics: list[int]
) -> Exchange:
    request = {"group_id": "billing", "generation_id": generation, "member_id": member, "assignments": []}
    answer = {"error_code": error, "protocol_type": "consumer", "assignment": assignment(**topics)}
    return who.asks(when, "SyncGroup", 5, request, answer)


def beat(who: Client, when: float, member: str, generation: int = 1, error: int = 0, **more: Any) -> Exchange:
    request = {"group_id": "billing", "generation_id": generation, "member_id": member, **more}
    return who.asks(when, "Heartbeat", 4, request, {"error_code": error})


def leave(
    who: Client, when: float, member: str, reason: str | None = None, instance: str | None = None
) -> Exchange:
    one = {"member_id": member, "group_instance_id": instance}
    answer = {"error_code": 0, "members": [{**one, "error_code": 0}]}
    request = {"group_id": "billing", "members": [{**one, "reason": reason}]}
    return who.asks(when, "LeaveGroup", 5, request, answer)


def began() -> list[Exchange]:
    """Generation 1 of a and b."""
    return [
        join(A, 0.0, "a", -1, asked_as="", error=INVITED),
        join(B, 0.1, "b", -1, asked_as="", error=INVITED),
        join(A, 3.0, "a", 1, members=("a", "b"), took=2.9),
        join(B, 3.0, "b", 1, took=2.8),
        sync(A, 3.1, "a", 1, orders=[0, 1]),
        sync(B, 3.1, "b", 1, orders=[2]),
    ]


def test_a_member_is_one_lane_from_its_first_join_on() -> None:
    sheet = Sheet(Groups(), began())
    assert [member for _, member in sheet.lanes if member] == ["a", "b"]
    lane = sheet.lanes["kafka/billing", "a"]
    assert lane.about == {
        "member id": "a", "client id": "app-a", "host": "10.0.0.7", "rack": "r1", "type": "consumer",
        "generation": "1", "subscribes to": "orders", "partitions": "orders [0-1]",
    }  # fmt: skip
    assert sheet.lanes["kafka/billing", ""].about == {
        "cluster": "kafka", "protocol": "classic", "generation": "1", "members": "2",
    }  # fmt: skip
    assert lane.where == 'group == "billing" and connection == 1'
    assert sheet.lanes["kafka/billing", ""].where == 'group == "billing"'
    first, second = (mark for mark in sheet.of("join") if mark.member == "a")
    assert "MEMBER_ID_REQUIRED" in first.text
    assert second.text == (
        "joined generation 1 as its leader, with range; subscribes to orders; session.timeout.ms 10 s; "
        "protocols range"
    )
    assert (second.begin, second.end, second.epoch) == (pytest.approx(at(0.1)), at(3.0), 1)


def test_the_lane_of_a_member_that_left_says_so() -> None:
    sheet = Sheet(Groups(), [*began(), leave(B, 20.0, "b", "closed")])
    assert sheet.lanes["kafka/billing", "b"].about["no member"] == "left: closed"
    assert "partitions" not in sheet.lanes["kafka/billing", "b"].about


def test_a_rebalance_has_its_causes_its_time_and_its_members() -> None:
    one = Sheet(Groups(), began()).one("rebalance")
    assert one.text == "generation 1: app-a (a) joined, app-b (b) joined; 2 members after 3.0 s"
    assert (one.begin, one.end, one.member) == (pytest.approx(at(0.1)), at(3.1), "")


def test_a_member_that_joins_sets_off_a_rebalance_and_others_follow() -> None:
    c = Client("app-c", 3)
    more = [
        join(c, 10.0, "c", -1, asked_as="", error=INVITED),
        beat(A, 10.5, "a", error=REBALANCES),
        join(A, 11.0, "a", 2, members=("a", "b", "c"), took=0.4),
        join(B, 11.0, "b", 2, took=0.1, reason="group is already rebalancing"),
        join(c, 11.0, "c", 2, took=0.9),
        sync(A, 11.1, "a", 2, orders=[0]),
    ]
    sheet = Sheet(Groups(), [*began(), beat(B, 10.6, "b", error=REBALANCES), *more])
    assert sheet.of("rebalance")[1].text == "generation 2: app-c (c) joined; 3 members after 1.0 s"
    assert sheet.texts("asked") == ["heartbeat: REBALANCE_IN_PROGRESS, the member is to join again"] * 2
    assert sheet.texts("assignment")[-1] == "assigned orders [0]; gone: orders [1]"
    epochs = [mark for mark in sheet.of("epoch") if mark.member == "a"]
    assert [(mark.epoch, mark.open) for mark in epochs] == [(1, False), (2, True)]
    assert epochs[0].end == pytest.approx(at(10.6))


def test_a_member_that_leaves_tells_its_reason() -> None:
    why = "consumer poll timeout has expired."
    sheet = Sheet(
        Groups(),
        [
            *began(),
            leave(B, 20.0, "b", why),
            beat(A, 21.0, "a", error=REBALANCES),
            join(A, 21.2, "a", 2, members=("a",)),
        ],
    )
    assert sheet.one("leave").text == f"left: {why}"
    assert sheet.of("rebalance")[1].text == f"generation 2: app-b (b) left: {why}; 1 member after 1.2 s"
    assert [mark.open for mark in sheet.of("epoch") if mark.member == "b"] == [False]
    assert sheet.of("out") == []


def test_a_member_that_was_killed_is_out_after_its_session_timeout() -> None:
    sheet = Sheet(
        Groups(),
        [*began(), beat(A, 5.0, "a"), beat(B, 5.0, "b")]
        + [beat(A, 5.0 + number, "a") for number in range(1, 11)]
        + [beat(A, 15.2, "a", error=REBALANCES), join(A, 15.3, "a", 2, members=("a",))],
    )
    why = "no heartbeat for 10 s, session.timeout.ms is 10 s"
    out = sheet.one("out")
    assert (out.member, out.text, out.begin) == ("b", f"out: {why}", pytest.approx(at(15.0)))
    assert sheet.of("rebalance")[1].text == f"generation 2: app-b (b): {why}; 1 member after 300 ms"
    assert [mark.end for mark in sheet.of("epoch") if mark.member == "b"] == [pytest.approx(at(15.0))]


def test_a_killed_member_is_missed_by_the_first_sync_where_the_leader_is_not_seen() -> None:
    sheet = Sheet(
        Groups(), [*began(), join(A, 14.0, "a", 2, leader="elsewhere"), sync(A, 14.1, "a", 2, orders=[0])]
    )
    assert sheet.one("out").member == "b"


def test_a_member_that_did_not_join_again_in_time_is_told_so() -> None:
    sheet = Sheet(
        Groups(),
        [
            *began(),
            beat(B, 9.0, "b", error=REBALANCES),
            *(beat(B, 9.0 + 5 * number, "b", error=REBALANCES) for number in range(1, 12)),
            join(A, 69.0, "a", 2, members=("a",), took=60.0, reason="rebalance enforced by user"),
        ],
    )
    assert sheet.one("out").text == "out: it did not join again within its rebalance timeout of 60 s"
    assert "app-a (a) joined again: rebalance enforced by user" in sheet.of("rebalance")[1].text


def test_a_member_that_comes_back_too_late_hears_why() -> None:
    sheet = Sheet(Groups(), [*began(), beat(B, 20.0, "b", error=UNKNOWN)])
    why = "no heartbeat for 17 s, session.timeout.ms is 10 s"
    assert sheet.one("out").begin == pytest.approx(at(13.1))
    refused = sheet.one("heartbeat")
    assert (refused.error, refused.text) == ("UNKNOWN_MEMBER_ID", f"heartbeat: UNKNOWN_MEMBER_ID: {why}")
    more = join(A, 20.5, "a", 2, members=("a",), took=7.0)
    later = Sheet(Groups(), [*began(), beat(B, 20.0, "b", error=UNKNOWN), more])
    assert f"app-b (b): {why}" in later.of("rebalance")[1].text


def test_a_member_whose_generation_is_old_hears_which_is_current() -> None:
    more = [join(A, 14.0, "a", 2, leader="elsewhere"), beat(B, 14.5, "b", 1, OLD)]
    sheet = Sheet(Groups(), [*began(), *more])
    assert sheet.one("out").text == "out: the group is at generation 2, the member at 1"


def test_a_late_answer_about_an_earlier_generation_puts_nobody_out() -> None:
    more = [join(A, 14.0, "a", 2, leader="elsewhere"), beat(A, 14.1, "a", 1, OLD)]
    assert Sheet(Groups(), [*began(), *more]).of("out") == []


def test_an_instance_id_that_another_member_takes_over_is_told_on_both_lanes() -> None:
    other = Client("app-z", 9)
    sheet = Sheet(
        Groups(),
        [
            join(A, 1.0, "a", 1, asked_as="", members=("a",), instance="i1"),
            join(other, 5.0, "z", 1, asked_as="", leader="a", instance="i1"),
            beat(A, 6.0, "a", 1, FENCED, group_instance_id="i1"),
        ],
    )
    assert sheet.one("out").member == "a"
    assert sheet.one("out").text == "out: app-z (z) took over its instance id i1"
    assert sheet.one("heartbeat").text.endswith("FENCED_INSTANCE_ID: app-z (z) took over its instance id i1")
    assert len(sheet.of("rebalance")) == 1  # the generation goes on
    assert sheet.lanes["kafka/billing", "a"].label == "i1"


def test_a_subscription_that_changes_sets_off_a_rebalance() -> None:
    sheet = Sheet(
        Groups(), [*began(), join(A, 20.0, "a", 2, members=("a", "b"), topics=("orders", "payments"))]
    )
    assert "app-a (a) joined again: now subscribes to orders, payments" in sheet.of("rebalance")[1].text


def test_a_member_that_is_removed_by_another_client_is_told_so() -> None:
    admin = Client("admin", 8, host="10.0.0.9")
    sheet = Sheet(
        Groups(),
        [
            join(A, 1.0, "a", 1, asked_as="", members=("a",), instance="i1"),
            leave(admin, 9.0, "", "member was removed by an admin", "i1"),
        ],
    )
    assert sheet.one("leave").member == "a"
    assert sheet.one("leave").text == "was removed by admin at 10.0.0.9: member was removed by an admin"
    assert sheet.lanes["kafka/billing", "a"].about["client id"] == "app-a"


def test_older_versions_are_read_too() -> None:
    request = {"group_id": "old", "session_timeout_ms": 6000, "member_id": "", "protocol_type": "consumer"}
    answer = {"error_code": 0, "generation_id": 1, "protocol_name": "range", "leader": "m", "member_id": "m"}
    sheet = Sheet(
        Groups(),
        [
            A.asks(1.0, "JoinGroup", 0, {**request, "protocols": []}, {**answer, "members": []}),
            A.asks(1.1, "SyncGroup", 0, {"group_id": "old", "generation_id": 1, "member_id": "m"}, {}),
            A.asks(2.0, "Heartbeat", 0, {"group_id": "old", "generation_id": 1, "member_id": "m"}, {}),
            A.asks(3.0, "OffsetCommit", 0, {"group_id": "old"}, {}),
            A.asks(4.0, "LeaveGroup", 0, {"group_id": "old", "member_id": "m"}, {}),
        ],
    )
    assert sheet.on("m") == ["join", "epoch", "assignment", "heartbeat", "leave"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.lanes.members.MEMBERS", 10)
    monkeypatch.setattr("klamm.dashboards.web.lanes.members.GROUPS", 3)
    groups = Groups()
    for number in range(200):
        groups.read("k", beat(Client(number=number), float(number), f"m{number}"))
        request = {"group_id": f"g{number}", "generation_id": 1, "member_id": "m" * 30_000}
        groups.read("k", A.asks(float(number), "Heartbeat", 4, request, {"error_code": 0}))
    known = groups.known
    assert len(known.members.kept) <= 10
    assert len(known.groups.kept) <= 3
    assert sum(len(group.members) for group in known.groups.kept.values()) <= 10
    assert all(len(name) < 300 for _, name in known.members.kept)


def commit(who: Client, when: float, member: str, error: int = 0) -> Exchange:
    part = {"partition_index": 0, "committed_offset": 12, "committed_metadata": ""}
    request = {
        "group_id": "billing", "generation_id_or_member_epoch": 1, "member_id": member,
        "topics": [{"name": "orders", "partitions": [part, {**part, "partition_index": 1}]}],
    }  # fmt: skip
    parts = [{"partition_index": number, "error_code": error} for number in (0, 1)]
    return who.asks(when, "OffsetCommit", 8, request, {"topics": [{"name": "orders", "partitions": parts}]})


def test_a_member_whose_assignment_was_not_seen_has_the_partitions_that_it_commits() -> None:
    seen = [beat(A, 1.0, "a"), commit(A, 2.0, "a")]
    about = Sheet(Groups(), seen).lanes["kafka/billing", "a"].about
    assert (about["generation"], about["commits"]) == ("1", "orders [0-1]")
    refused = Sheet(Groups(), [*seen[:1], commit(A, 2.0, "a", UNKNOWN)]).lanes["kafka/billing", "a"].about
    assert "commits" not in refused
    assert "commits" not in Sheet(Groups(), [*began(), commit(A, 9.0, "a")]).lanes["kafka/billing", "a"].about


def test_commits_tell_their_offsets_and_are_signs_of_life() -> None:
    sheet = Sheet(
        Groups(), [*began(), commit(B, 9.0, "b"), beat(B, 15.0, "b"), commit(A, 16.0, "a", UNKNOWN)]
    )
    good, bad = sheet.of("commit")
    assert good.text == "committed orders [0] at 12, [1] at 12"
    assert bad.error == "UNKNOWN_MEMBER_ID"
    assert bad.text.startswith(
        "commit of orders [0] at 12, [1] at 12: UNKNOWN_MEMBER_ID: no heartbeat for 13 s"
    )
    assert sheet.on("b", "out") == []


def test_a_group_that_all_have_left_is_empty_and_the_next_member_begins_anew() -> None:
    c = Client("app-c", 3)
    sheet = Sheet(
        Groups(),
        [
            *began(),
            leave(A, 10.0, "a"),
            leave(B, 11.0, "b"),
            join(c, 99.0, "c", 2, "c", asked_as="", members=("c",)),
        ],
    )
    assert sheet.one("empty").text == "empty: app-b (b) left, the last member that was seen"
    again = sheet.of("rebalance")[1]
    assert (again.begin, again.text) == (at(99.0), "generation 2: app-c (c) joined; 1 member after 0 ms")


def test_a_member_that_died_alone_is_no_cause_of_what_comes_later() -> None:
    c = Client("app-c", 3)
    alone = join(A, 0.0, "a", 1, asked_as="", members=("a",))
    sheet = Sheet(Groups(), [alone, join(c, 99.0, "c", 2, "c", asked_as="", members=("c",))])
    assert (sheet.one("out").member, sheet.one("out").begin) == ("a", at(10.0))
    assert sheet.of("rebalance")[1].begin == at(99.0)

"""Each action: a frame in, orders out."""

from dataclasses import replace
from typing import Any

import pytest

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Versions
from klamm.rules.actions import ACTIONS
from klamm.rules.orders import (
    Answer,
    Cut,
    Delay,
    Drop,
    Edit,
    Log,
    MuteChannel,
    OnAnswer,
    Shape,
    Silence,
    Twice,
)
from tests.rules.acting import MS, PEER, S, acted, answers, asks, edit, fetched, on_answer, produces

HEARTBEAT = asks("Heartbeat", 4, {"group_id": "g"})
SILENT = produces(9, b"", acks=0)


def test_every_action_has_its_name_its_sides_and_words_for_people() -> None:
    for name, action in ACTIONS.items():
        assert action.name == name
        assert action.__doc__
        assert set(action.sides) <= {"request", "response", "connect"}


# delay


def test_a_delay_holds_the_answer_and_not_the_request() -> None:
    orders = acted(HEARTBEAT, "delay", 5 * MS)
    assert on_answer(orders, answers(HEARTBEAT)) == [Delay(5 * MS)]
    assert len(orders) == 1


@pytest.mark.parametrize("frame", [HEARTBEAT, SILENT], ids=["of request", "acks=0"])
def test_a_delay_holds_a_request_that_is_asked_for_or_that_has_no_answer(frame: Any) -> None:
    of = "answer" if frame is SILENT else "request"
    assert acted(frame, "delay", 5 * MS, of=of) == [Delay(5 * MS)]


@pytest.mark.parametrize(
    ("distribution", "mean", "spread"), [("uniform", 100, 30), ("normal", 100, 20), ("exponential", 100, 100)]
)
def test_a_delay_is_distributed_as_it_says(distribution: str, mean: float, spread: float) -> None:
    frame = answers(HEARTBEAT)
    jitter = 0 if distribution == "exponential" else {"uniform": 52, "normal": 20}[distribution]
    times = []
    for seed in range(3000):
        (order,) = acted(frame, "delay", 100 * MS, jitter * MS, distribution, seed=seed * 10**15)
        assert isinstance(order, Delay)
        assert order.ns >= 0
        times.append(order.ns / MS)
    average = sum(times) / len(times)
    assert average == pytest.approx(mean, rel=0.06)
    assert (sum((t - average) ** 2 for t in times) / len(times)) ** 0.5 == pytest.approx(spread, rel=0.1)
    if distribution == "uniform":
        assert all(48 <= t <= 152 for t in times)


# the ways not to hear an answer


@pytest.mark.parametrize(
    ("fields", "now", "later"),
    [
        ({"when": "before"}, [Cut("rst", 0)], None),
        ({"when": "before", "how": "fin"}, [Cut("fin", 0)], None),
        ({"when": "after"}, None, [Cut("rst", 0)]),
        ({"when": "answered", "how": "fin"}, None, [Cut("fin", None)]),
        ({"when": "mid frame"}, None, [Cut("rst", 4 + 7 // 2)]),
    ],
)
def test_a_connection_is_cut_where_it_is_said(fields: Any, now: Any, later: Any) -> None:
    orders = acted(HEARTBEAT, "disconnect", **fields)
    if now is not None:
        assert orders == now
    else:
        assert on_answer(orders, answers(HEARTBEAT)) == later


def test_a_connection_without_answers_is_cut_after_its_request() -> None:
    assert acted(SILENT, "disconnect") == [Cut("rst", None)]
    assert acted(SILENT, "disconnect", "before") == [Cut("rst", 0)]


def test_dropping_leaves_out_the_request_or_only_its_answer() -> None:
    assert acted(HEARTBEAT, "drop") == [Drop()]
    assert on_answer(acted(HEARTBEAT, "drop", sent=True), answers(HEARTBEAT)) == [Drop()]
    assert acted(answers(HEARTBEAT), "drop", sent=True) == [Drop()]


@pytest.mark.parametrize("name", ["blackhole", "stall"])
def test_what_is_muted_may_be_closed_later(name: str) -> None:
    assert acted(HEARTBEAT, name) == [Silence(0)]
    assert acted(HEARTBEAT, name, 3 * S) == [Silence(3 * S)]


def test_connections_are_refused_and_reset() -> None:
    assert acted(HEARTBEAT, "refuse") == [Cut("rst")]
    assert acted(HEARTBEAT, "refuse", "fin") == [Cut("fin")]
    assert acted(HEARTBEAT, "down") == [Cut("rst")]
    assert acted(HEARTBEAT, "reset") == [Cut("rst")]
    assert acted(HEARTBEAT, "reset", 2 * S) == [Delay(2 * S), Cut("rst")]


# streams


@pytest.mark.parametrize(
    ("name", "fields", "traits"),
    [
        ("bandwidth", (5000,), {"bytes_per_s": 5000}),
        ("slicer", (10, 3, MS), {"slice_bytes": 10, "slice_spread": 3, "slice_gap_ns": MS}),
        ("limit_data", (99,), {"limit_bytes": 99}),
        ("slow_close", (S,), {"close_after_ns": S}),
        ("packet_loss", (0.1, MS, 0.3), {"loss": 0.1, "loss_ns": MS, "loss_correlation": 0.3}),
    ],
)
def test_streams_are_shaped_in_one_direction_or_both(name: str, fields: Any, traits: Any) -> None:
    assert acted(HEARTBEAT, name, *fields) == [Shape("response", **traits)]
    assert acted(HEARTBEAT, name, *fields, side="request") == [Shape("request", **traits)]
    both = [Shape("request", **traits), Shape("response", **traits)]
    assert acted(HEARTBEAT, name, *fields, side="both") == both


# throttle and rate


def test_a_throttle_is_told_where_the_answer_has_room_and_mutes_the_channel_for_every_version() -> None:
    mute, on_answer_order = acted(HEARTBEAT, "throttle", 250 * MS)
    assert mute == MuteChannel(250 * MS)
    assert (
        edit(on_answer([on_answer_order], answers(HEARTBEAT)), answers(HEARTBEAT))["throttle_time_ms"] == 250
    )
    oldest = asks("Heartbeat", 0)
    mute, on_answer_order = acted(oldest, "throttle", 250 * MS)
    assert mute == MuteChannel(250 * MS)
    assert on_answer([on_answer_order], answers(oldest)) == [MuteChannel(250 * MS)]


def test_a_throttle_of_an_answer_mutes_the_channel_too() -> None:
    answer = answers(HEARTBEAT)
    orders = acted(answer, "throttle", 250 * MS)
    assert MuteChannel(250 * MS) in orders
    assert edit(orders, answer)["throttle_time_ms"] == 250


def test_a_throttle_adds_nothing_to_a_longer_one_of_the_broker() -> None:
    answer = answers(HEARTBEAT, {"throttle_time_ms": 900})
    assert edit(acted(answer, "throttle", 250 * MS), answer)["throttle_time_ms"] == 900


def test_a_throttle_mutes_the_channel_behind_a_produce_that_has_no_answer() -> None:
    assert acted(SILENT, "throttle", MS) == [MuteChannel(MS)]


def waits(rate: Any, *frames: Any) -> list[int]:
    """Throttle times (ms) of these requests, in turn."""
    found = []
    for frame in frames:
        orders = list(rate.act(frame, lambda: 0.0))
        edits = (
            [order for order in on_answer(orders, answers(frame)) if isinstance(order, Edit)]
            if orders
            else []
        )
        found.append(edits[0].values["throttle_time_ms"] if edits else 0)
    return found


def beats(client: str, *times: int, group: str = "g") -> list[Any]:
    return [asks("Heartbeat", 4, {"group_id": group}, client_id=client, now=now * MS) for now in times]


def test_a_rate_lets_a_windows_worth_pass_and_then_makes_wait() -> None:
    rate = ACTIONS["rate"](requests=2, window=1 * S)  # type: ignore[call-arg]
    assert waits(rate, *beats("a", 0, 0, 0, 0)) == [0, 0, 500, 1000]
    assert waits(rate, *beats("b", 0)) == [0]
    assert waits(rate, *beats("a", 2000)) == [0]


def test_a_rate_counts_for_whom_it_says() -> None:
    alone = ACTIONS["rate"](requests=1, per="rule", window=1 * S)  # type: ignore[call-arg]
    assert waits(alone, *beats("a", 0), *beats("b", 0)) == [0, 1000]
    groups = ACTIONS["rate"](requests=1, per="group", window=1 * S)  # type: ignore[call-arg]
    assert waits(groups, *beats("a", 0, group="x"), *beats("a", 0, group="y"), *beats("b", 0, group="x")) == [
        0,
        0,
        1000,
    ]
    connection = ACTIONS["rate"](requests=1, per="connection", window=1 * S)  # type: ignore[call-arg]
    assert waits(connection, *beats("a", 0), *beats("b", 0)) == [0, 1000]


def test_a_rate_holds_for_each_broker_as_kafka_s_quotas_do_and_for_all_where_the_rule_has_one() -> None:
    def waits_at_two(per: str) -> list[int]:
        frames = beats("a", 0, 0)
        frames[1].peer = replace(PEER, broker="2")
        return waits(ACTIONS["rate"](requests=1, per=per, window=1 * S), *frames)  # type: ignore[call-arg]

    assert waits_at_two("client") == [0, 0]
    assert waits_at_two("group") == [0, 0]
    assert waits_at_two("rule") == [0, 1000]


def test_a_rate_of_bytes_counts_requests_by_topic_and_what_is_fetched() -> None:
    rate = ACTIONS["rate"](bytes=100, per="topic", window=1 * S)  # type: ignore[call-arg]
    assert waits(rate, produces(9, bytes(60))) == [0]
    (wait,) = waits(rate, produces(9, bytes(60)))
    assert wait > 500
    request, answer = fetched(12, bytes(300))
    fetches = ACTIONS["rate"](bytes=100, window=1 * S)  # type: ignore[call-arg]
    orders = on_answer(list(fetches.act(request, lambda: 0.0)), answer)
    assert edit(orders, answer)["throttle_time_ms"] > 2000
    assert any(isinstance(order, MuteChannel) and order.ns > 2000 * MS for order in orders)


# refusals


@pytest.mark.parametrize(
    ("api", "asked", "error"),
    [
        ("Produce", {"topic_data": []}, "TOPIC_AUTHORIZATION_FAILED"),
        ("Fetch", {}, "TOPIC_AUTHORIZATION_FAILED"),
        ("Heartbeat", {}, "GROUP_AUTHORIZATION_FAILED"),
        ("OffsetFetch", {}, "GROUP_AUTHORIZATION_FAILED"),
        ("TxnOffsetCommit", {}, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ("EndTxn", {}, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ("InitProducerId", {"transactional_id": "t"}, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ("InitProducerId", {"transactional_id": None}, "CLUSTER_AUTHORIZATION_FAILED"),
        ("Produce", {"transactional_id": None}, "TOPIC_AUTHORIZATION_FAILED"),
        ("CreateTopics", {}, "TOPIC_AUTHORIZATION_FAILED"),
        ("DescribeCluster", {}, "CLUSTER_AUTHORIZATION_FAILED"),
        ("FindCoordinator", {"coordinator_keys": ["g"]}, "GROUP_AUTHORIZATION_FAILED"),
        (
            "FindCoordinator",
            {"coordinator_keys": ["t"], "key_type": 1},
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
    ],
)
def test_what_is_blocked_is_not_authorized(api: str, asked: dict[str, Any], error: str) -> None:
    from klamm.rules.actions.refuse import unauthorized

    frame = asks(api, API[api].versions.last, asked)
    assert ERRORS[unauthorized(frame)].name == error


def test_a_block_answers_resets_or_says_nothing() -> None:
    (order,) = acted(HEARTBEAT, "block")
    assert isinstance(order, Answer)
    assert order.values is not None
    assert order.values["error_code"] == ERRORS["GROUP_AUTHORIZATION_FAILED"].code
    assert acted(HEARTBEAT, "block", "reset") == [Cut("rst")]
    assert acted(HEARTBEAT, "block", "silent") == [Silence()]


@pytest.mark.parametrize("api", ["ApiVersions", "SaslHandshake", "SaslAuthenticate"])
def test_what_is_asked_before_anybody_is_known_is_not_blocked(api: str) -> None:
    assert acted(asks(api, 1), "block") == []


def test_a_denial_is_a_soft_error() -> None:
    (order,) = acted(HEARTBEAT, "deny")
    assert isinstance(order, Answer)
    assert order.values is not None
    assert order.values["error_code"] == ERRORS["POLICY_VIOLATION"].code


def test_an_error_that_was_applied_is_told_instead_of_the_answer() -> None:
    orders = acted(HEARTBEAT, "error", 25, applied=True)
    assert [type(order) for order in orders] == [OnAnswer]
    assert edit(on_answer(orders, answers(HEARTBEAT)), answers(HEARTBEAT))["error_code"] == 25


def test_an_error_in_part_of_a_produce_is_split_from_the_rest_and_comes_back_with_it() -> None:
    frame = produces(9, b"", b"", only=lambda part: part.get("partition") == 1)
    orders = acted(frame, "error", 6)
    (left,) = edit(orders, frame)["topic_data"]
    assert [row["index"] for row in left["partition_data"]] == [0]
    served = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": 7}]}]}
    answer = answers(frame, served)
    (topic,) = edit(on_answer(orders, answer), answer)["responses"]
    assert [(row["index"], row["error_code"]) for row in topic["partition_responses"]] == [(0, 0), (1, 6)]


def test_an_error_in_part_of_a_produce_without_answer_leaves_that_part_out() -> None:
    frame = produces(9, b"", b"", acks=0, only=lambda part: part.get("partition") == 1)
    (order,) = acted(frame, "error", 6)
    assert isinstance(order, Edit)


def test_twice_counted_and_logged() -> None:
    assert acted(HEARTBEAT, "duplicate") == [Twice()]
    assert acted(HEARTBEAT, "count") == []
    assert acted(HEARTBEAT, "log", "beat") == [Log("beat", {"version": 4, "client_id": "app"})]


# what is advertised

ADVERTISED = {
    "api_keys": [{"api_key": 0, "min_version": 3, "max_version": 12}, {"api_key": 1, "max_version": 9}]
}


def advertised(action: str, *fields: Any, values: dict[str, Any] = ADVERTISED) -> list[tuple[int, int, int]]:
    request = asks("ApiVersions", 4)
    answer = answers(request, values)
    rows = edit(on_answer(acted(request, action, *fields), answer), answer)["api_keys"]
    return [(row["api_key"], row["min_version"], row["max_version"]) for row in rows]


def test_versions_are_clamped_and_apis_hidden() -> None:
    assert advertised("clamp", "Produce", Versions(0, 8)) == [(0, 3, 8), (1, 0, 9)]
    assert advertised("clamp", "Produce", Versions(0, 2)) == [(1, 0, 9)]
    assert advertised("hide", "Fetch") == [(0, 3, 12)]


def test_an_answer_that_knows_no_such_version_is_left_alone() -> None:
    request = asks("ApiVersions", 4)
    answer = answers(asks("ApiVersions", 0), {"error_code": 35, "api_keys": [{"api_key": 18}]})
    answer.version = 4
    assert on_answer(acted(request, "hide", "Produce"), answer) == []


def metadata(leader: int) -> tuple[Any, Any]:
    request = asks("Metadata", 9)
    row = {"partition_index": 0, "leader_id": leader, "leader_epoch": 5, "replica_nodes": [1, 2, 3]}
    topics = [{"name": "orders", "partitions": [row]}, {"name": "bills", "partitions": [row]}]
    return request, answers(request, {"brokers": [{"node_id": 1}, {"node_id": 2}], "topics": topics})


def leaders(action: Any, leader: int) -> list[tuple[int, int]]:
    request, answer = metadata(leader)
    values = edit(on_answer(list(action.act(request, lambda: 0.0)), answer), answer)
    return [
        (row["leader_id"], row["leader_epoch"]) for topic in values["topics"] for row in topic["partitions"]
    ]


def test_stale_metadata_names_the_former_leader_or_another_replica_under_the_current_epoch() -> None:
    stale = ACTIONS["stale_metadata"]()
    assert leaders(stale, 1) == [(2, 5), (2, 5)]
    assert leaders(stale, 3) == [(1, 5), (1, 5)]
    assert leaders(stale, 3) == [(1, 5), (1, 5)]
    assert leaders(stale, -1) == [(-1, 5), (-1, 5)]


def test_stale_metadata_lacks_brokers_and_topics_and_then_leaves_leaders() -> None:
    request, answer = metadata(1)
    orders = acted(request, "stale_metadata", missing_brokers=(2,), missing_topics=("bills",))
    values = edit(on_answer(orders, answer), answer)
    assert [row["node_id"] for row in values["brokers"]] == [1]
    assert [(topic["name"], topic["partitions"][0]["leader_id"]) for topic in values["topics"]] == [
        ("orders", 1)
    ]

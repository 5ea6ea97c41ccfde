"""The summaries that metering and log keep of a frame: topics by name, errors beside them, partitions for the
log.
"""

from __future__ import annotations

from typing import Any

import pytest

from klamm.decoders import encode
from klamm.proxy.session.observing.summaries import (
    ResponseSummary,
    label,
    logged_fields,
    response_summary,
    topics_named,
)
from klamm.rules.plan import Picked, Plan, Planner, Wishes

ID, OTHER = bytes(range(16)), bytes(15) + b"\1"
SHOWN = "id:AAECAwQFBgcICQoLDA0ODw"
ALL = Planner(Wishes("full", None))
QUIET = Planner(Wishes("full"))


def unnamed(topic_id: bytes) -> str | None:
    return None


def named(topic_id: bytes) -> str | None:
    return {ID: "orders"}.get(topic_id)


def picked(plan: Plan, values: dict[str, Any], side: str) -> tuple[Picked, tuple[Any, ...]]:
    """The values that the plan picks."""
    found = plan.request if side == "request" else plan.response
    assert found is not None
    body = encode(values, plan.key, plan.version, side)  # type: ignore[arg-type]
    return found, tuple(found.pick(body, 0, len(body))[:-1])


def answered(
    planner: Planner, key: int, version: int, values: dict[str, Any], name_of: Any = named
) -> ResponseSummary:
    plan = planner.plan(key, version)
    return response_summary(plan, picked(plan, values, "response")[1], name_of)


def produce_answer(version: int, *codes: tuple[Any, list[int]]) -> dict[str, Any]:
    name = "topic_id" if version >= 13 else "name"
    return {
        "responses": [
            {
                name: topic,
                "partition_responses": [{"index": i, "error_code": code} for i, code in enumerate(below)],
            }
            for topic, below in codes
        ]
    }


def test_a_topic_id_without_a_name_is_shown_as_kafka_prints_it() -> None:
    assert label(ID, unnamed) == (SHOWN, False)
    assert label(ID, named) == ("orders", True)
    assert label("by-name", unnamed) == ("by-name", True)


@pytest.mark.parametrize("version", [0, 7, 12])
def test_topics_are_named_once_in_wire_order(version: int) -> None:
    plan = QUIET.plan(1, version)
    rows = [{"topic": name, "partitions": [{"partition": 0}]} for name in ("b", "a", "b")]
    assert topics_named(*picked(plan, {"topics": rows}, "request"), unnamed) == (["b", "a"], True)


def test_topics_by_id_are_named_as_far_as_they_are_known() -> None:
    plan = QUIET.plan(1, 13)
    rows = [{"topic_id": topic_id, "partitions": [{"partition": 0}]} for topic_id in (ID, OTHER)]
    found, columns = picked(plan, {"topics": rows}, "request")
    assert topics_named(found, columns, named) == (["orders", "id:AAAAAAAAAAAAAAAAAAAAAQ"], False)


def test_the_nil_id_is_no_topic() -> None:
    plan = QUIET.plan(3, 12)
    rows = [{"topic_id": bytes(16), "name": "orders"}, {"topic_id": bytes(16), "name": None}]
    assert topics_named(*picked(plan, {"topics": rows}, "request"), unnamed) == (["orders"], True)


def test_topics_that_a_fetch_forgets_are_not_counted() -> None:
    plan = QUIET.plan(1, 12)
    values = {"topics": [], "forgotten_topics_data": [{"topic": "old", "partitions": [1]}]}
    assert topics_named(*picked(plan, values, "request"), unnamed) == ([], True)


@pytest.mark.parametrize(("version", "topic"), [(0, "orders"), (9, "orders"), (12, "orders"), (13, ID)])
def test_errors_stand_beside_their_topics(version: int, topic: Any) -> None:
    summary = answered(QUIET, 0, version, produce_answer(version, (topic, [0, 6, 6]), (topic, [3])))
    assert summary.errors == [("orders", 6), ("orders", 6), ("orders", 3)]
    assert summary.named


def test_an_answer_without_errors_says_nothing() -> None:
    summary = answered(QUIET, 0, 9, produce_answer(9, ("a", [0, 0]), ("b", [0])))
    assert (summary.errors, summary.shown) == ([], None)


def test_errors_of_topics_without_a_name_are_read_again_later() -> None:
    assert not answered(QUIET, 0, 13, produce_answer(13, (OTHER, [3]))).named
    assert answered(QUIET, 0, 13, produce_answer(13, (OTHER, [0]))).named


@pytest.mark.parametrize(
    ("key", "version", "values", "errors"),
    [
        (12, 4, {"error_code": 27}, [(None, 27)]),
        (1, 7, {"error_code": 70, "responses": []}, [(None, 70)]),
        (18, 3, {"error_code": 35, "api_keys": []}, [(None, 35)]),
        (10, 4, {"coordinators": [{"key": "g", "error_code": 15}, {"key": "h"}]}, [(None, 15)]),
        (3, 12, {"topics": [{"name": "gone", "error_code": 3}]}, [("gone", 3)]),
        (
            3,
            1,
            {
                "topics": [
                    {"name": "t", "error_code": 0, "partitions": [{"error_code": 5}, {"error_code": 9}]}
                ]
            },
            [("t", 5), ("t", 9)],
        ),
        (9, 8, {"groups": [{"group_id": "g", "error_code": 16, "topics": []}]}, [(None, 16)]),
        (
            9,
            8,
            {"groups": [{"group_id": "g", "topics": [{"name": "t", "partitions": [{"error_code": 3}]}]}]},
            [("t", 3)],
        ),
        (2, 6, {"topics": [{"name": "t", "partitions": [{"error_code": -1}]}]}, [("t", -1)]),
    ],
)
def test_errors_are_found_wherever_a_layout_has_them(
    key: int, version: int, values: dict[str, Any], errors: list[tuple[str | None, int]]
) -> None:
    assert answered(QUIET, key, version, values).errors == errors


def test_the_log_is_shown_topics_with_partitions_and_groups() -> None:
    plan = ALL.plan(8, 8)
    values = {
        "group_id": "billing",
        "topics": [
            {"name": "a", "partitions": [{"partition_index": 3}, {"partition_index": 1}]},
            {"name": "b", "partitions": []},
        ],
    }
    assert logged_fields(plan, *picked(plan, values, "request"), unnamed) == {
        "topics": {"a": [3, 1], "b": []},
        "group": "billing",
    }


def test_the_log_is_shown_topics_by_id_with_their_partitions() -> None:
    plan = ALL.plan(1, 13)
    rows = [
        {"topic_id": ID, "partitions": [{"partition": 7}]},
        {"topic_id": OTHER, "partitions": [{"partition": 1}]},
    ]
    assert logged_fields(plan, *picked(plan, {"topics": rows}, "request"), named) == {
        "topics": {"orders": [7], "id:AAAAAAAAAAAAAAAAAAAAAQ": [1]}
    }


def test_several_groups_are_shown_together() -> None:
    plan = ALL.plan(9, 8)
    values = {"groups": [{"group_id": name, "topics": None} for name in ("g", "h")]}
    fields = logged_fields(plan, *picked(plan, values, "request"), unnamed)
    assert fields is not None
    assert fields["group"] == "g,h"


def test_nothing_is_made_for_the_log_of_an_api_that_is_not_logged() -> None:
    plan = QUIET.plan(8, 8)
    assert logged_fields(plan, *picked(plan, {"group_id": "g", "topics": []}, "request"), unnamed) is None

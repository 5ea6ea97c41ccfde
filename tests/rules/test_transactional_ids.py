"""Transactional ids are told beside topics and groups: in lines of the log, and in exchanges."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from klamm.client.sightings import line
from klamm.decoders import API
from klamm.decoders.schema import all_fields
from klamm.proxy.control.exchange import Seen, exchange_of
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line
from klamm.proxy.session.observing.summaries import logged_fields
from klamm.rules.frame import Frame
from klamm.rules.plan import Planner, Wishes
from klamm.rules.subjects import subjects
from tests.rules.acting import asks

ONE = {
    "Produce": range(3, 14), "InitProducerId": range(7), "AddOffsetsToTxn": range(5), "EndTxn": range(6),
    "TxnOffsetCommit": range(7),
}  # fmt: skip
BELOW = "v3_and_below_transactional"
TWO = [{"transactional_id": "pay-1"}, {"transactional_id": "pay-2"}]
REQUESTS = [
    *((api, version, {"transactional_id": "pay-1"}, "pay-1") for api in ONE for version in ONE[api]),
    *(("AddPartitionsToTxn", version, {f"{BELOW}_id": "pay-1"}, "pay-1") for version in range(4)),
    *(("AddPartitionsToTxn", version, {"transactions": TWO}, "pay-1,pay-2") for version in (4, 5)),
    ("DescribeTransactions", 0, {"transactional_ids": ["pay-1", "pay-2"]}, "pay-1,pay-2"),
    ("Produce", 2, {}, None),
    ("Produce", 9, {"transactional_id": None}, None),
    ("InitProducerId", 4, {"transactional_id": None}, None),
]  # fmt: skip
EACH = pytest.mark.parametrize(("api", "version", "values", "told"), REQUESTS)


def logged(frame: Frame) -> dict[str, Any]:
    plan = Planner(Wishes("header", None)).plan(frame.api.key, frame.version)
    assert plan.request is not None
    fields = logged_fields(
        plan, plan.request, plan.request.pick(frame.body, 0, len(frame.body)), lambda _: None
    )
    assert fields is not None
    return fields


@EACH
def test_the_log_and_the_exchange_tell_the_same(
    api: str, version: int, values: dict[str, Any], told: str | None
) -> None:
    frame = asks(api, version, values)
    assert logged(frame).get("transactional_id") == told
    assert (",".join(subjects(frame, None).transactional_ids) or None) == told


def test_every_api_that_names_one_in_requests_is_here() -> None:
    """Answers name only what their requests have named, but for those that list."""
    named = {
        api.name
        for api in API
        for version in range(api.versions.first, api.versions.last + 1)
        for path, _ in all_fields(api.request, version)
        if path[-1].removeprefix("v3_and_below_").rstrip("s") == "transactional_id"
    }
    assert named == {api for api, *_ in REQUESTS}


def test_the_lines_of_the_log_of_tail_and_of_the_fixture_have_it() -> None:
    frame = asks("EndTxn", 3, {"transactional_id": "pay 1", "producer_id": 5})
    about = {
        "cluster": "main", "broker": "1", "connection": "10.0.0.7:50000", "api": "EndTxn", "version": 3,
        "client_id": "app", "origin": "broker", "request_bytes": 40, "response_bytes": 12,
        "latency_ns": 2_000_000,
    }  # fmt: skip
    told = about | logged(frame)
    one = exchange_of(Seen(1.0, told))
    assert b"client=app broker=1" in (logs := console_line(Entry(1.0, EXCHANGE, "info", "", told), False))
    assert b'transactional_id="pay 1"' in logs
    assert console_line(Entry(1.0, EXCHANGE, "info", "", to_builtins(one)), False) == logs
    assert "transactional id pay 1" in line(one)
    assert exchange_of(Seen(1.0, about, frame)).transactional_id == "pay 1"

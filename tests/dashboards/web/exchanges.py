"""Exchanges with raw bodies, as a source of a page gives them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from klamm.client.types import Body, Exchange
from klamm.decoders import API, encode
from klamm.decoders.records import Batch, Record, write
from klamm.decoders.schema import Side
from klamm.rules.frame import Frame, Peer
from klamm.rules.subjects import subjects

Values = Mapping[str, Any]
TOPIC_ID = bytes(range(16))
TIME_MS = 1_700_000_000_000


def raw(values: Values, api: str, version: int, side: Side) -> str:
    return b64encode(encode(dict(values), api, version, side)).decode()


def exchange(
    api: str, version: int, request: Values | None = None, response: Values | None = None, **told: Any
) -> Exchange:
    """A broker's answer to client `shop`, 2 ms after the request. `told` has other fields."""
    asked, answer = _frame(api, version, "request", request), _frame(api, version, "response", response)
    about = subjects(asked, answer)
    known: dict[str, Any] = {
        "time": 1_700_000_000.002, "cluster": "main", "broker": "1", "connection": "10.0.0.7:50000",
        "api": api, "version": version, "client_id": "shop", "origin": "broker", "request_bytes": 100,
        "response_bytes": None if answer is None else 80, "latency_ms": None if answer is None else 2.0,
        "connection_id": 3, "topics": about.topics, "group": ",".join(about.groups) or None,
        "request": _body(asked), "response": _body(answer),
    }  # fmt: skip
    return Exchange(**(known | told))


def _frame(api: str, version: int, side: Side, values: Values | None) -> Frame | None:
    if values is None:
        return None
    data = encode(dict(values), api, version, side)
    frame = Frame(API[api], version, side, data, "shop", Peer("main", "1", "10.0.0.7:50000", "", 3), 0)
    frame.names = {TOPIC_ID: "orders"}.get
    return frame


def _body(frame: Frame | None) -> Body | None:
    return None if frame is None else Body(len(frame.body), raw=b64encode(frame.body).decode())


def records(*values: bytes, codec: str = "none", **of_batch: Any) -> bytes:
    """A batch of records with these values, and keys and headers."""
    headers = (("h", b"x"),)
    some = [Record(index, TIME_MS, b"k", value, headers) for index, value in enumerate(values)]
    return write(Batch(codec=codec, **of_batch), some)


def produce(data: bytes = b"", acks: int = -1, topic: str = "orders", **told: Any) -> Exchange:
    partition = {"index": 3, "records": data or records(b"tea")}
    sent = {"acks": acks, "timeout_ms": 1000, "topic_data": [{"name": topic, "partition_data": [partition]}]}
    part = {"index": 3, "error_code": 0, "base_offset": 7, "log_append_time_ms": -1, "log_start_offset": 0}
    answer = {"responses": [{"name": topic, "partition_responses": [part]}], "throttle_time_ms": 0}
    return exchange("Produce", 9, sent, answer, **told)


def fetch(data: bytes | None, **told: Any) -> Exchange:
    """Of version 13, which knows the topic by its id."""
    asked = {"partition": 3, "fetch_offset": 0, "partition_max_bytes": 1000}
    topic = {"topic_id": TOPIC_ID, "partitions": [asked]}
    sent = {"max_wait_ms": 500, "min_bytes": 1, "topics": [topic], "session_id": 0, "session_epoch": -1}
    part = {"partition_index": 3, "high_watermark": 9, "records": data, "aborted_transactions": None}
    answer = {"responses": [{"topic_id": TOPIC_ID, "partitions": [part]}]}
    return exchange("Fetch", 13, sent, answer, **told)


def heartbeat(error_code: int = 0, member: str = "shop-1", **told: Any) -> Exchange:
    sent = {"group_id": "billing", "generation_id": 4, "member_id": member}
    errors = {"REBALANCE_IN_PROGRESS": 1} if error_code else {}
    return exchange("Heartbeat", 3, sent, {"error_code": error_code}, **{"errors": errors, **told})

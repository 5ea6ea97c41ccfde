"""Frames to act on, and what actions ask for of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klamm.decoders import API, decode, encode
from klamm.decoders.records import Batch, Record, batches, records, write
from klamm.rules.actions import ACTIONS
from klamm.rules.chance import Draws
from klamm.rules.frame import Frame, Part, Peer
from klamm.rules.orders import Edit, OnAnswer, Order

PEER = Peer("test", "1", "10.0.0.7:50000", "test/1/10.0.0.7/1")
MS, S = 1_000_000, 1_000_000_000
Only = Callable[[Part], bool]


def asks(
    name: str,
    version: int,
    values: dict[str, Any] | None = None,
    *,
    only: Only | None = None,
    client_id: str | None = "app",
    now: int = 0,
) -> Frame:
    """A request."""
    body = encode(values or {}, API[name].key, version, "request")
    frame = Frame(API[name], version, "request", body, client_id, PEER, now)
    frame.only = only
    return frame


def answers(request: Frame, values: dict[str, Any] | None = None, now: int = 0) -> Frame:
    """Its answer."""
    body = encode(values or {}, request.api.key, request.version, "response")
    return Frame(request.api, request.version, "response", body, request.client_id, PEER, now, request)


def acted(frame: Frame, action: str, /, *fields: Any, seed: int = 1, **named: Any) -> list[Order]:
    """The orders of an action for a frame."""
    return list(ACTIONS[action](*fields, **named).act(frame, Draws(seed, 0)))


def on_answer(orders: list[Order], answer: Frame) -> list[Order]:
    """The orders of its only OnAnswer for the answer."""
    (act,) = (order.act for order in orders if isinstance(order, OnAnswer))
    return list(act(answer))


def edit(orders: list[Order], frame: Frame) -> dict[str, Any]:
    """The values of the only edit, as they come back from the wire."""
    (values,) = (order.values for order in orders if isinstance(order, Edit))
    key, version, side = frame.api.key, frame.version, frame.side
    return decode(encode(values, key, version, side), key, version, side)


def batch_of(*values: bytes | None, **header: Any) -> bytes:
    """A batch with a record for each value, at offsets from 100 on."""
    headers = (("h", b"1"),) if header.get("magic", 2) == 2 else ()
    time = 5 if header.get("magic", 2) else -1
    rows = [Record(100 + index, time, b"key", value, headers) for index, value in enumerate(values)]
    return write(Batch(base_offset=100, **header), rows)


def read(data: bytes) -> list[tuple[Batch, list[Record]]]:
    """The batches, each with its records."""
    return [(batch, list(records(batch))) for batch in batches(data)]


def produces(version: int, *data: bytes, acks: int = -1, only: Only | None = None) -> Frame:
    """A Produce with these records in partitions 0, 1, ... of orders."""
    rows = [{"index": index, "records": each} for index, each in enumerate(data)]
    topic = {"topic_id": bytes(range(16))} if version >= 13 else {"name": "orders"}
    return asks(
        "Produce", version, {"acks": acks, "topic_data": [{**topic, "partition_data": rows}]}, only=only
    )


def produced(frame: Frame, orders: list[Order]) -> list[bytes]:
    return [row["records"] for row in edit(orders, frame)["topic_data"][0]["partition_data"]]


def fetched(version: int, *data: bytes) -> tuple[Frame, Frame]:
    """A Fetch, and its answer with these records."""
    topic = {"topic_id": bytes(range(16))} if version >= 13 else {"topic": "orders"}
    asked = [{"partition": index} for index, _ in enumerate(data)]
    rows = [{"partition_index": index, "records": each} for index, each in enumerate(data)]
    request = asks("Fetch", version, {"topics": [{**topic, "partitions": asked}]})
    return request, answers(request, {"responses": [{**topic, "partitions": rows}]})

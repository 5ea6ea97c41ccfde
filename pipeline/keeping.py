"""Conditions on columns of headers, held against batches as segments have them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from klamm.decoders import API

# Column of `frames`: what it is in a segment.
SOURCES = {
    name: (name,)
    for name in (
        "capture",
        "connection",
        "cluster",
        "broker",
        "client",
        "client_id",
        "kind",
        "side",
        "api_key",
    )
} | {"time": ("time_ns",), "api": ("api_key",)}
COMPARE = {
    "==": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}


def mask(filters: list[tuple[str, str, Any]]) -> Callable[[pa.RecordBatch], pa.Array]:
    """True for rows that may be wanted."""

    def keeps(batch: pa.RecordBatch) -> pa.Array:
        held = [_held(batch, *one) for one in filters]
        found = held[0]
        for other in held[1:]:
            found = pc.and_(found, other)
        return pc.fill_null(found, False)

    return keeps


def _held(batch: pa.RecordBatch, column: str, operator: str, value: Any) -> pa.Array:
    values = batch.column(SOURCES[column][0])
    if pa.types.is_dictionary(values.type):
        texts = _held_of(values.dictionary, operator, value)
        return texts.take(values.indices)
    if column == "time":
        values = pc.divide(values, 1000)
        value = [_us(one) for one in value] if operator == "in" else _us(value)
    elif column == "api":
        value = [_key(one) for one in value] if operator == "in" else _key(value)
    return _held_of(values, operator, value)


def _held_of(values: pa.Array, operator: str, value: Any) -> pa.Array:
    if operator == "in":
        return pc.is_in(values, pa.array(list(value), values.type))
    return COMPARE[operator](values, pa.scalar(value, values.type))


def _us(time: datetime) -> int:
    from klamm.pipeline.source import ns

    return ns(time) // 1000


def _key(name: str) -> int:
    api = API.get(name)
    return -32768 if api is None else api.key

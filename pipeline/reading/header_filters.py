"""Conditions on columns of headers, held against batches as segments have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from klamm.pipeline.reading.filters import SOURCES, Filters, api_key, ns

COMPARE = {
    "==": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}


def mask(filters: Filters) -> Callable[[pa.RecordBatch], pa.Array]:
    """True for rows that may be wanted."""

    def keeps(batch: pa.RecordBatch) -> pa.Array:
        matches = [_matching(batch, *one) for one in filters]
        found = matches[0]
        for other in matches[1:]:
            found = pc.and_(found, other)
        return pc.fill_null(found, False)

    return keeps


def _matching(batch: pa.RecordBatch, column: str, operator: str, value: Any) -> pa.Array:
    values = batch.column(SOURCES[column])
    if pa.types.is_dictionary(values.type):
        texts = _matching_values(values.dictionary, operator, value)
        return texts.take(values.indices)
    if column == "time":
        values = pc.divide(values, 1000)
        value = [ns(one) // 1000 for one in value] if operator == "in" else ns(value) // 1000
    elif column == "api":
        value = [api_key(one) for one in value] if operator == "in" else api_key(value)
    return _matching_values(values, operator, value)


def _matching_values(values: pa.Array, operator: str, value: Any) -> pa.Array:
    if operator == "in":
        return pc.is_in(values, pa.array(list(value), values.type))
    return COMPARE[operator](values, pa.scalar(value, values.type))

"""The batches of a records field, as `wire_types.BATCH` has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from klamm.decoders.records import Batch, RecordsError, batches, records
from klamm.decoders.records.codecs import MissingCodec
from klamm.decoders.records.shapes import NO_TIMESTAMP, UNKNOWN

LIMIT = 16 << 20  # bytes of a decompressed batch; larger ones count as blank


def readable_batches(data: bytes, content: bool) -> dict[str, Any]:
    """The batches up to the first damaged one. `content`: with their records."""
    found: list[dict[str, Any]] = []
    try:
        for batch in batches(data):
            found.append(_batch(batch, content))
    except RecordsError:
        pass  # the batches before the damage are kept
    return {"bytes": len(data), "batches": found}


def _batch(batch: Batch, content: bool) -> dict[str, Any]:
    timed = batch.timestamp_type != NO_TIMESTAMP
    return {
        "magic": batch.magic,
        "base_offset": batch.base_offset if batch.base_offset != UNKNOWN else None,
        "last_offset": batch.last_offset,
        "records": batch.record_count if batch.record_count != UNKNOWN else 1,
        "codec": batch.codec,
        "bytes": batch.end - batch.start,
        "base_timestamp": _us(batch.base_timestamp) if timed else None,
        "max_timestamp": _us(batch.max_timestamp) if timed else None,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        **(_content(batch) if content and not batch.is_control else {}),
    }


def _us(timestamp_ms: int) -> int | None:
    return timestamp_ms * 1000 if 0 <= timestamp_ms < 1 << 52 else None


def _content(batch: Batch) -> dict[str, Any]:
    keys: Counter[bytes] = Counter()
    size = count = 0
    try:
        for record in records(batch, LIMIT):
            count += 1
            size += len(record.key or b"") + len(record.value or b"")
            if record.key is not None:
                keys[record.key] += 1
    except (RecordsError, MissingCodec):
        return {}
    return {
        "records": count,
        "uncompressed_bytes": size,
        "keys": len(keys),
        "top_key_records": max(keys.values(), default=0),
    }

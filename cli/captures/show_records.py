"""Record batches of a captured frame for `klamm show -v`: times, counts, codecs, producers; and the records,
where the capture has kept them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from klamm.decoders.records import (
    LEAST_SIZES,
    UNKNOWN,
    Batch,
    MissingCodec,
    RecordsError,
    batches,
    records,
    valid_bytes,
)
from klamm.decoders.schema import RECORDS, Field, members
from klamm.decoders.shown.inside import topics
from klamm.decoders.shown.payloads import payload_object, payload_text
from klamm.decoders.shown.records import Entry, entry_of
from klamm.decoders.shown.words import content, moment
from klamm.decoders.text import TopicName, valid_text

SHOWN = 10  # records of a batch
Show = Callable[[list[Entry]], Any]


def describe(
    fields: tuple[Field, ...],
    known: Mapping[str, Any],
    values: Mapping[str, Any],
    blanked: bool,
    show: Show,
    names: TopicName,
    topic: str | None = None,
) -> None:
    """Writes the batches of `values` into their JSON form, `known`: beside the size of each records field.
    `blanked`: the capture has left out contents. `show` turns records into their description. `names`
    tells the topics of ids; `topic`: the one that stands around the values.
    """
    topic = next(topics(((field.mark, values.get(field.name)) for field in fields), names), topic)
    for field in fields:
        value = values.get(field.name)
        if value is None:
            continue
        if field.mark == RECORDS:
            known[field.name].update(_described(bytes(value), blanked, show, topic))
        elif field.kind == "struct":
            describe(members(field), known[field.name], value, blanked, show, names, topic)
        elif field.kind == "array" and members(field):
            for one, other in zip(known[field.name], value, strict=True):
                describe(members(field), one, other, blanked, show, names, topic)


def as_lines(some: list[Entry]) -> dict[str, str]:
    """For people: a line for each."""
    return {f"[{number}]": _line(entry) for number, entry in enumerate(some)}


def as_objects(some: list[Entry]) -> list[dict[str, Any]]:
    """For programs; bytes that are no text as Python shows them."""
    return [
        {
            "offset": entry.record.offset,
            "timestamp": moment(entry.record.timestamp) or None,
            "key": _text(entry.record.key),
            "value": _text(entry.record.value),
            "headers": [[valid_text(name), _text(value)] for name, value in entry.record.headers],
            **dict(_payloads(entry)),
        }
        for entry in some
    ]


def _payloads(entry: Entry) -> Iterator[tuple[str, Any]]:
    record = entry.record
    for name, data, decoded in (("key", record.key, entry.key), ("value", record.value, entry.value)):
        if decoded is not None:
            yield f"{name}_of", payload_object(decoded, data)


def _line(entry: Entry) -> str:
    record = entry.record
    headers = ", ".join(f"{name}={content(value, False)}" for name, value in record.headers)
    words = (
        f"offset {record.offset}",
        moment(record.timestamp),
        f"key {content(record.key, False) if entry.key is None else payload_text(entry.key, False)}",
        f"value {content(record.value, False) if entry.value is None else payload_text(entry.value, False)}",
        f"headers {headers}" if headers else "",
        *entry.wrongs,
    )
    return "  ".join(filter(None, words))


def _described(data: bytes, blanked: bool, show: Show, topic: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"batches": []}
    try:
        for batch in batches(data):
            found["batches"].append(dict(_batch(batch, blanked, show, topic)))
        left = len(data) - valid_bytes(data)
    except RecordsError as wrong:
        return found | {"unreadable": str(wrong)}
    return found | ({"part_of_a_batch": left} if left else {})


def _batch(batch: Batch, blanked: bool, show: Show, topic: str | None) -> Iterator[tuple[str, Any]]:
    """Names are those of `klamm decode`, but for `records`, which is the count."""
    if batch.record_count != UNKNOWN:
        yield "records", batch.record_count
    yield "bytes", batch.size
    yield "codec", batch.codec
    if batch.base_offset != UNKNOWN:
        yield "offsets", f"{batch.base_offset}-{batch.last_offset}"
    for name in ("base_timestamp", "max_timestamp"):
        if time := moment(getattr(batch, name)):
            yield name, time
    if batch.producer_id >= 0:
        for name in ("producer_id", "producer_epoch", "base_sequence"):
            yield name, getattr(batch, name)
    for name in ("is_transactional", "is_control"):
        if getattr(batch, name):
            yield name, True
    if blanked and _is_blank(batch):
        yield "content", "blank: this capture keeps no records"
    else:
        yield from _content(batch, show, topic)


def _content(batch: Batch, show: Show, topic: str | None) -> Iterator[tuple[str, Any]]:
    try:
        found = iter(records(batch))
        yield "content", show([entry_of(record, batch, topic) for record in islice(found, SHOWN)])
        more = sum(1 for _ in found)
        if more:
            yield "more", f"{more} records, which -x shows"
    except (RecordsError, MissingCodec) as wrong:
        yield "unreadable", str(wrong)


def _is_blank(batch: Batch) -> bool:
    """Zeros stand where its records were."""
    return batch.magic < 2 or not any(batch.data[batch.start + LEAST_SIZES[2] : batch.end])


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")

"""Record batches of a body as rows of a table: what their headers tell, which every capture keeps."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from klamm.decoders.records import UNKNOWN, Batch
from klamm.decoders.schema import PARTITION, TOPIC, TOPIC_ID
from klamm.decoders.shown.records import Opened, is_blank
from klamm.decoders.shown.words import moment
from klamm.decoders.spans import Span
from klamm.decoders.text import TopicName
from klamm.settings.printable import printable

MOST = 500  # batches of a body


class BatchRow(Struct, frozen=True, omit_defaults=True):
    """`offsets`, `first` and `last` (times of the records) are texts; what the batch does not tell is absent.
    `kind`: "transactional", "control", or both. `blank`: the source keeps no records.
    """

    topic: str
    partition: int | None
    offsets: str
    bytes: int
    codec: str
    records: int | None = None
    first: str = ""
    last: str = ""
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    kind: str = ""
    blank: bool = False


def batch_rows(body: Span, name_of: TopicName) -> list[BatchRow]:
    """The first batches below a body into which `look_inside` has looked, in wire order."""
    found = []
    for row in _rows(body, name_of, "", None):
        found.append(row)
        if len(found) == MOST:
            break
    return found


def _rows(span: Span, name_of: TopicName, topic: str, partition: int | None) -> Iterator[BatchRow]:
    for part in span.parts:
        mark = None if part.field is None else part.field.mark
        if mark == TOPIC and isinstance(part.value, str):
            topic = printable(part.value)
        elif mark == TOPIC_ID and isinstance(part.value, bytes):
            topic = printable(name_of(part.value) or topic)
        elif mark == PARTITION and isinstance(part.value, int):
            partition = part.value
        elif isinstance(part.value, Opened):
            yield _row(part.value.batch, topic, partition)
        else:
            yield from _rows(part, name_of, topic, partition)


def _row(batch: Batch, topic: str, partition: int | None) -> BatchRow:
    flags = (("transactional", batch.is_transactional), ("control", batch.is_control))
    known = batch.producer_id >= 0
    return BatchRow(
        topic,
        partition,
        "" if batch.base_offset == UNKNOWN else f"{batch.base_offset}-{batch.last_offset}",
        batch.size,
        batch.codec,
        None if batch.record_count == UNKNOWN else batch.record_count,
        moment(batch.base_timestamp),
        moment(batch.max_timestamp),
        batch.producer_id if known else None,
        batch.producer_epoch if known else None,
        batch.base_sequence if known else None,
        " ".join(name for name, there in flags if there),
        is_blank(batch),
    )

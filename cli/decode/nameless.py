"""Records of Kafka's own topics that stay bytes, because a frame names their topic by an id alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from klamm.decoders import DecodeError
from klamm.decoders.payloads import COORDINATOR_TOPICS, coordinator_record
from klamm.decoders.records import Record
from klamm.decoders.schema import TOPIC_ID
from klamm.decoders.shown.inside import Inside
from klamm.decoders.shown.records import Opened
from klamm.decoders.spans import Span
from klamm.decoders.text import TopicName

NOTE = (
    "topics are named by ids here, so records stay bytes; that at offset {offset} reads as one of {topic}: "
    "klamm decode --payload {payload} shows such a {part}"
)


def note_of(body: Span, inside: Mapping[int, Inside | list[Opened]], names: TopicName) -> str | None:
    """A sentence about the first record that reads as one of Kafka's own: the command that shows it. None if
    there is no such record, or if `names` tells all topics.
    """
    if not any(names(topic_id) is None for topic_id in _topic_ids(body)):
        return None
    opened = chain.from_iterable(found for found in inside.values() if isinstance(found, list))
    records = (entry.record for one in opened for entry in one.entries or () if entry.key is None)
    return next(filter(None, map(_note, records)), None)


def _topic_ids(span: Span) -> Iterator[bytes]:
    if span.field is not None and span.field.mark == TOPIC_ID and isinstance(span.value, bytes):
        yield span.value
    for part in span.parts:
        yield from _topic_ids(part)


def _note(record: Record) -> str | None:
    for topic in COORDINATOR_TOPICS:
        try:
            key, value = coordinator_record(topic, record.key, record.value)
        except DecodeError:
            continue
        if key.failure is None and (value is None or value.failure is None):
            part, read = ("key", key) if value is None else ("value", value)
            return NOTE.format(offset=record.offset, topic=topic, payload=read.name, part=part)
    return None

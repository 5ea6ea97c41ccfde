"""Bodies of one version of an API: whether they decode, and what of them is not kept as it is."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from klamm.captures.streams.blanking import METADATA_TOPIC, METADATA_TOPIC_ID, Keeping
from klamm.captures.streams.cutting import Edit
from klamm.decoders import API, DecodeError, interpret, layout
from klamm.decoders.compile import TAG_PATH, UNREADABLE, Locate, Path, Pick, Read, locate, pick, read
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import RECORDS, SECRET, TELEMETRY, TOPIC, TOPIC_ID, Api, Side, all_fields, marked

PRODUCE = 0
MOST_LEFT_OVER = 4  # bytes behind a body
UNALIGNED = "unaligned_records"  # of FetchSnapshot: they may begin anywhere within a batch


class Body(NamedTuple):
    """`paths` are of the fields that `locate` finds, and `marks` theirs."""

    layout: Layout
    header_version: int
    read: Read
    locate: Locate | None  # None: nothing in it needs to be found
    paths: list[Path]
    marks: list[str | None]
    acks: Pick | None  # of Produce

    @property
    def has_blanks(self) -> bool:
        """Whether it has more to blank than records."""
        return SECRET in self.marks or TELEMETRY in self.marks

    def may_be_kept(self, keeping: Keeping, data: bytes, pos: int, end: int) -> bool:
        """Whether data[pos:end], which does not decode, may be kept as it is: all records are, and neither
        secrets nor Kafka's own metadata are in it.
        """
        named = (METADATA_TOPIC.encode(), METADATA_TOPIC_ID)
        return (
            keeping.records == "keep"
            and SECRET not in self.marks
            and all(data.find(name, pos, end) < 0 for name in named)
        )


@cache
def body_of(key: int, version: int, side: Side) -> Body | None:
    """None for an API or a version that klamm does not know."""
    api = API.get(key)
    if api is None or version not in api.versions:
        return None
    of = layout(key, version, side)
    header_version = request_header_version if side == "request" else response_header_version
    paths = _wanted(api, version, side)
    fields = dict(all_fields(api.fields(side), version))
    asks = key == PRODUCE and side == "request"
    return Body(
        of,
        header_version(api, version),
        read(of),
        locate(of, tuple(paths)) if paths else None,
        paths,
        [fields[path].mark for path in paths],
        pick(of, (("acks",),)) if asks else None,
    )


def _wanted(api: Api, version: int, side: Side) -> list[Path]:
    """Secrets, metrics, records, and the topics that these are of."""
    fields = api.fields(side)
    found = marked(fields, version, frozenset({SECRET, TELEMETRY, RECORDS}))
    kept = {
        path[:depth] for path in marked(fields, version, frozenset({RECORDS})) for depth in range(len(path))
    }
    topics = marked(fields, version, frozenset({TOPIC, TOPIC_ID}))
    return found + [path for path in topics if path[:-1] in kept]


def values_of(body: Body, data: bytes, pos: int, end: int) -> tuple[dict[str, Any], int] | None:
    """The values of data[pos:end], and where they end; None where it is no such body. A few bytes may be left
    over, which brokers and clients ignore: librdkafka 2.16 sends three in Metadata 13.
    """
    try:
        read = body.read(data, pos, end)
    except UNREADABLE:
        try:
            read = interpret.read(body.layout, data, pos, end)
        except DecodeError:
            return None
    return read if end - read[1] <= MOST_LEFT_OVER else None


def edits_of(body: Body, keeping: Keeping, data: bytes, pos: int, stop: int, end: int) -> list[Edit] | None:
    """The edits of a body that decodes up to `stop`; None where its secrets are not found. The bytes behind
    may be anything, and are blanked where the body has secrets or records.
    """
    if body.locate is None:
        return []
    try:
        found = body.locate(data, pos, stop)
    except UNREADABLE:
        return None
    edits: list[Edit] = []
    metadata = False
    for index, _, after, value in found:
        if index == TAG_PATH or value is None:
            continue
        mark = body.marks[index]
        if mark in (TOPIC, TOPIC_ID):
            metadata = is_metadata(value)
            continue
        first = after - len(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
        if mark == TELEMETRY and keeping.records == "keep":
            continue
        if mark in (SECRET, TELEMETRY) or body.paths[index][-1] == UNALIGNED:
            edits += [(first, after, None)] if first < after else []
        else:
            edits += keeping.edits(data, first, after, metadata)
    return [*edits, (stop, end, None)] if stop < end else edits


def is_metadata(topic: str | bytes) -> bool:
    """Whether this is, by its name or id, the topic of Kafka's own metadata."""
    return topic in (METADATA_TOPIC, METADATA_TOPIC_ID)

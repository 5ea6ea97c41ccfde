"""A segment of a capture: its name, its columns, and what it says of itself.

A segment is an Arrow IPC file. From its ninth byte up to its footer that is an Arrow IPC stream, and is read
as such while it grows. The metadata of its schema has an `Origin` under "klamm", that of each batch a
`Summary`; the last batch has no rows, and instead the `Statistics` of all.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from klamm.captures.storage.checksums import crc32c
from klamm.captures.storage.typed_json import typed

T = TypeVar("T")

FORMAT = 2
KEY, CHECKSUM = b"klamm", b"klamm.crc32c"
SEALED, GROWING = ".arrow", ".arrow.growing"
STREAM_AT = 8  # bytes before the stream
MAGIC = b"ARROW1\0\0"
NAME = re.compile(r"\d{8}T\d{6}Z-.+-\d{6,}\.arrow(\.growing)?")

# Column: its Arrow type; "codes" of text that repeats.
COLUMNS = {
    "time_ns": "int64",
    "kind": "codes",
    "capture": "codes",
    "connection": "int64",  # its number
    "cluster": "codes",
    "broker": "codes",
    "client": "codes",
    "side": "codes",
    "api_key": "int16",
    "api_version": "int16",
    "correlation_id": "int32",
    "client_id": "codes",
    "exchange": "int64",
    "size": "int64",  # of a gap too
    "frame": "binary",
    "blanks": "ranges",
    "fate": "codes",
    "forwarded": "binary",
    "forwarded_blanks": "ranges",
    "awaits": "bool",
    "lost": "int64",
    "text": "text",
    "principal": "codes",
}
NEWEST = {2: ("principal",)}  # format -> the columns that came with it; they are the last
BODIES = frozenset({"frame", "blanks", "forwarded", "forwarded_blanks"})


def columns_of_format(number: int) -> dict[str, str]:
    """The columns of a segment in this format."""
    later = {name for since, names in NEWEST.items() if since > number for name in names}
    return {name: kind for name, kind in COLUMNS.items() if name not in later}


class Damaged(ValueError):
    """The bytes differ from those that were written."""


class Newer(ValueError):
    """A later klamm wrote it, in a format unknown here."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The writer of a segment, its host and its start. `clusters`: name to Kafka's own id, as far as it was
    known.
    """

    capture: str
    records: str = "blank"
    clusters: dict[str, str | None] = field(default_factory=dict)
    host: str = ""
    pod: str = ""
    klamm: str = ""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Version:
    """The part of an Origin that every format has."""

    klamm: str = ""
    format: int = 0


class Span(NamedTuple):
    """One batch: its rows, and their earliest and latest time."""

    rows: int
    first_ns: int
    last_ns: int


@dataclass(slots=True)
class Statistics:
    """Counts of a whole segment, written when it is sealed. `cut`: its process was killed, and another has
    sealed it.
    """

    rows: int = 0
    frames: dict[int, int] = field(default_factory=dict)  # by API key
    size_bytes: int = 0  # of the frames as they were on the wire
    lost: int = 0  # frames
    batches: list[Span] = field(default_factory=list)
    clusters: dict[str, str | None] = field(default_factory=dict)
    cut: bool = False

    @property
    def first_ns(self) -> int:
        return min((batch.first_ns for batch in self.batches), default=0)

    @property
    def last_ns(self) -> int:
        return max((batch.last_ns for batch in self.batches), default=0)

    def add(self, batch: Summary) -> None:
        self.rows += batch.span.rows
        self.size_bytes += batch.size_bytes
        self.lost += batch.lost
        self.batches.append(batch.span)
        for key, count in batch.frames:
            self.frames[key] = self.frames.get(key, 0) + count


class Summary(NamedTuple):
    """Counts of one batch. `checksums`: CRC-32C of each column, in their order; of a column of codes together
    with the first `texts` of its dictionary.
    """

    span: Span
    checksums: list[int]
    texts: list[int]
    frames: list[tuple[int, int]]  # API key, count
    size_bytes: int
    lost: int


def origin(records: str = "blank", clusters: Mapping[str, str | None] | None = None) -> Origin:
    """The origin of a capture that begins now in this process. Names sort by time, and are unique."""
    host = socket.gethostname()
    return Origin(
        capture=f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(4).hex()}",
        records=records,
        clusters=dict(clusters or {}),
        host=host,
        pod=os.environ.get("POD_NAME") or os.environ.get("HOSTNAME") or host,
        klamm=metadata.version("klamm"),
    )


def name(of: Origin, number: int, began_s: float) -> str:
    """Names sort by the time at which segments began."""
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(began_s))
    pod = re.sub(r"[^A-Za-z0-9_.-]", "_", of.pod or of.host or "klamm")[:100]
    return f"{began}-{pod}-{of.capture[-8:]}-{number:06}{SEALED}"


def sealed_path(path: Path) -> Path:
    """The path of a segment once it is sealed."""
    return path.with_name(path.name.removesuffix(GROWING) + SEALED) if path.name.endswith(GROWING) else path


def growing_path(sealed: Path) -> Path:
    return sealed.with_name(sealed.name.removesuffix(SEALED) + GROWING)


@cache
def schema() -> Any:
    """The columns. Raises ModuleNotFoundError without pyarrow."""
    import pyarrow as pa

    types = {
        "codes": pa.dictionary(pa.int32(), pa.string()),
        "ranges": pa.list_(pa.struct([("offset", pa.int32()), ("size", pa.int32())])),
        "binary": pa.binary(),
        "text": pa.string(),
        "bool": pa.bool_(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
    }
    return pa.schema([(column, types[kind]) for column, kind in COLUMNS.items()])


def to_metadata(what: Origin | Statistics | Summary) -> dict[bytes, bytes]:
    """Encodes it as metadata of Arrow."""
    text = json.dumps(what if isinstance(what, Summary) else asdict(what), separators=(",", ":")).encode()
    return {KEY: text, CHECKSUM: b"%08x" % crc32c(text)}


def from_metadata(found: Mapping[bytes, bytes] | None, kind: type[T]) -> T:
    """Decodes the JSON that `to_metadata` wrote. Raises Damaged; KeyError where there is none."""
    text = (found or {})[KEY]
    if b"%08x" % crc32c(text) != (found or {}).get(CHECKSUM):
        raise Damaged("its metadata is damaged")
    try:
        read: T = typed(json.loads(text), kind)
    except (ValueError, TypeError, RecursionError):
        raise Damaged(f"its metadata is no {kind.__name__.lower()} of a segment") from None
    return read


def origin_of(found: Mapping[bytes, bytes] | None) -> Origin:
    """Reads a schema's metadata. Raises Damaged, Newer; KeyError if the file is not a capture."""
    version = from_metadata(found, Version)
    if version.format > FORMAT:
        raise Newer(
            f"written by klamm {version.klamm}, in format {version.format}; "
            f"this klamm reads formats up to {FORMAT}: update it"
        )
    return from_metadata(found, Origin)


def statistics_of(found: Mapping[bytes, bytes] | None) -> Statistics:
    """Reads the metadata of the last batch. Raises Damaged, KeyError."""
    return from_metadata(found, Statistics)


def summary_of(found: Mapping[bytes, bytes] | None) -> Summary:
    """Reads the metadata of a batch. Raises Damaged, KeyError."""
    return from_metadata(found, Summary)

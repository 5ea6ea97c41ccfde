"""The Arrow IPC format, as far as segments are written in it. Reading is left to pyarrow; for a proxy that
only writes, loading it would take 50 MB of memory.

https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from mmap import mmap
from struct import error, pack, unpack_from
from typing import NamedTuple

from klamm.captures.storage.arrow.flatbuffers import (
    Slot,
    Value,
    first,
    follow,
    place,
    root,
    structs,
    table,
    tables_at,
    text,
    text_at,
    vector,
)

MAGIC = b"ARROW1\0\0"
END = b"\xff\xff\xff\xff\0\0\0\0"
VERSION = ("h", 4)  # 1.0
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
TYPES: dict[str, tuple[int, Value]] = {
    "int16": (2, table({0: ("i", 16), 1: ("B", 1)})),
    "int32": (2, table({0: ("i", 32), 1: ("B", 1)})),
    "int64": (2, table({0: ("i", 64), 1: ("B", 1)})),
    "binary": (4, table({})),
    "text": (5, table({})),
    "bool": (6, table({})),
    "list": (12, table({})),
    "struct": (13, table({})),
}

Metadata = Mapping[bytes, bytes]


class Column(NamedTuple):
    """The nodes of a column and of what is in it, as (length, nulls), and its buffers."""

    nodes: Sequence[tuple[int, int]]
    buffers: Sequence[bytes | bytearray | memoryview]


class Block(NamedTuple):
    """The place of a message in the file."""

    at: int
    head_bytes: int
    body_bytes: int


def field(name: str, kind: str, children: Sequence[Value] = (), dictionary: int | None = None) -> Value:
    """`dictionary`: its values are codes of 32 bits, the texts are in the dictionary of this number."""
    number, of = TYPES[kind]
    slots: dict[int, Slot] = {
        0: text(name.encode()),
        1: ("B", 1),
        2: ("B", number),
        3: of,
        5: vector(children),
    }
    if dictionary is not None:
        slots[4] = table({0: ("q", dictionary), 1: TYPES["int32"][1]})
    return table(slots)


def schema(fields: Sequence[Value], metadata: Metadata) -> Value:
    return table({1: vector(fields), 2: _pairs(metadata)})


def schema_message(of: Value) -> bytes:
    return _head(SCHEMA, of, 0, {})


def batch_message(rows: int, columns: Iterable[Column], metadata: Metadata) -> tuple[bytes, list[bytes]]:
    """The head of a batch's message, and the parts of its body."""
    of, body = _batch(rows, columns)
    return _head(BATCH, of, sum(map(len, body)), metadata), body


def dictionary_message(number: int, texts: Column, more: bool) -> tuple[bytes, list[bytes]]:
    """`more`: they follow those that are known."""
    of, body = _batch(texts.nodes[0][0], [texts])
    slots: dict[int, Slot] = {0: ("q", number), 1: of, 2: ("B", int(more))}
    return _head(DICTIONARY, table(slots), sum(map(len, body)), {}), body


def footer(of: Value, dictionaries: Sequence[Block], batches: Sequence[Block]) -> bytes:
    """The end of a file."""
    blocks = (
        structs(len(them), b"".join(pack("<qi4xq", *one) for one in them)) for them in (dictionaries, batches)
    )
    data = root(table({0: VERSION, 1: of, **dict(enumerate(blocks, 2))}))
    return END + data + pack("<i", len(data)) + MAGIC[:6]


class Message(NamedTuple):
    """The kind and place of a message, and its metadata (of a schema: the schema's own)."""

    kind: int
    block: Block
    metadata: dict[bytes, bytes]


def messages(data: bytes | mmap) -> Iterator[Message]:
    """The messages of a growing file, up to the last that is whole and valid."""
    at = len(MAGIC)
    while data[at : at + 4] == END[:4]:
        try:
            message = _message(data, at)
        except error:
            return
        at += message.block.head_bytes + message.block.body_bytes
        if message.block.body_bytes < 0 or at > len(data):
            return
        yield message


def _message(data: bytes | mmap, at: int) -> Message:
    """Raises struct.error."""
    (size,) = unpack_from("<I", data, at + 4)
    head = data[at + 8 : at + 8 + size]
    of = first(head)
    kind, inside, body = (place(head, of, slot) or 0 for slot in (1, 2, 3))
    (number,) = unpack_from("<B", head, kind) if kind else (0,)
    (body_bytes,) = unpack_from("<q", head, body) if body else (0,)
    pairs = place(head, follow(head, inside), 2) if number == SCHEMA else place(head, of, 4)
    metadata = {
        text_at(head, place(head, pair, 0)): text_at(head, place(head, pair, 1))
        for pair in tables_at(head, pairs)
    }
    return Message(number, Block(at, 8 + size, body_bytes), metadata)


def _head(kind: int, of: Value, body_bytes: int, metadata: Metadata) -> bytes:
    slots: dict[int, Slot] = {0: VERSION, 1: ("B", kind), 2: of, 3: ("q", body_bytes)}
    if metadata:
        slots[4] = _pairs(metadata)
    data = root(table(slots))
    return b"\xff\xff\xff\xff" + pack("<i", len(data)) + data


def _batch(rows: int, columns: Iterable[Column]) -> tuple[Value, list[bytes]]:
    nodes: list[int] = []
    places: list[int] = []
    body: list[bytes] = []
    at = 0
    for column in columns:
        for node in column.nodes:
            nodes += node
        for buffer in column.buffers:
            size = len(buffer)
            places += (at, size)
            if size:
                padding = -size % 8
                body += (bytes(buffer), bytes(padding)) if padding else (bytes(buffer),)
                at += size + padding
    of: dict[int, Slot] = {
        0: ("q", rows),
        1: structs(len(nodes) // 2, pack(f"<{len(nodes)}q", *nodes)),
        2: structs(len(places) // 2, pack(f"<{len(places)}q", *places)),
    }
    return table(of), body


def _pairs(metadata: Metadata) -> Value:
    return vector([table({0: text(key), 1: text(value)}) for key, value in metadata.items()])

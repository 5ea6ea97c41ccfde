"""Replaces broker addresses in responses by klamm's own, in place; every other byte stays as it came."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct

from klamm.decoders.compile import TAG_PATH, UNREADABLE, Malformed, skip_tags
from klamm.decoders.interpret import STRUCTS, uvarint
from klamm.decoders.schema import HOST, NODE_ID
from klamm.decoders.tags import uvarint_at
from klamm.proxy.session.rewriting.topology import Kind, is_address
from klamm.rules.plan import Endpoints

INT16 = Struct(">h")
CONTROLLERS = 2  # DescribeCluster's endpoint_type (KIP-919)
UNUSED_TAG = 127  # one byte, and far from the tags that Kafka uses
EMPTY = b"\x01"  # a compact array without elements; null is less

Standing = Callable[[Kind, int, str, int], tuple[str, int] | None]


class Unbound(Exception):
    """A response names a node that has no listening port yet."""


def rewrite(
    endpoints: Endpoints, data: bytes, start: int, end: int, standing: Standing, tolerant: bool = False
) -> list[bytes] | None:
    """The body data[start:end] in pieces, with klamm's addresses; None where it names no node.

    `standing(kind, node_id, host, port)` gives klamm's host and port for a node, or None if the node has none
    yet: then Unbound is raised, but only after every node of the body was asked for. A body that does not
    decode raises the errors of `locate`; `tolerant`, those of `find`, which is slow.
    """
    kind: Kind = endpoints.kind
    edits: list[tuple[int, int, bytes]] = []
    tags: list[tuple[int, int, int]] = []
    marks = endpoints.marks
    node_id, host, host_start, unbound = -1, "", 0, False
    stood: int | None = None
    there: tuple[str, int] | None = None
    for path, first, last, value in (endpoints.find if tolerant else endpoints.locate)(data, start, end):
        if path == TAG_PATH:
            tags.append((first, last, value))
            continue
        mark = marks[path]
        if mark == NODE_ID:
            node_id = value
        elif mark == HOST:
            host, host_start = value or "", first
        elif mark is None:
            kind = "controller" if value == CONTROLLERS else "broker"
        elif is_address(host, value):
            if node_id != stood:  # a controller with several endpoints is reached at its first
                stood, there = node_id, standing(kind, node_id, host, value)
            if there is None:
                unbound = True
            else:
                edits.append(
                    (host_start, last, _address(*there, endpoints.port_kind, endpoints.layout.flexible))
                )
    if unbound:
        raise Unbound
    if not edits:
        return None
    if tags:
        edits = sorted(edits + _tag_sizes(edits, tags))
    return _spliced(data, start, end, edits)


@lru_cache(4096)
def _address(host: str, port: int, port_kind: str, flexible: bool) -> bytes:
    name = host.encode()
    length = uvarint(len(name) + 1) if flexible else INT16.pack(len(name))
    return length + name + STRUCTS[port_kind].pack(port)


def _tag_sizes(
    edits: list[tuple[int, int, bytes]], tags: list[tuple[int, int, int]]
) -> list[tuple[int, int, bytes]]:
    """The new sizes of those tagged fields that edits make larger or smaller."""
    sizes: list[tuple[int, int, bytes]] = []
    for size_start, start, end in tags:
        grown = sum([len(new) - (last - first) for first, last, new in edits if start <= first < end])
        if grown:
            sizes.append((size_start, start, uvarint(end - start + grown)))
    return sizes


def _spliced(data: bytes, start: int, end: int, edits: list[tuple[int, int, bytes]]) -> list[bytes]:
    pieces: list[bytes] = []
    for first, last, new in edits:
        pieces.append(data[start:first])
        pieces.append(new)
        start = last
    pieces.append(data[start:end])
    return pieces


def neutralise(tail: bytes, tagged: bool) -> bytes:
    """Empty `node_endpoints` in the end of a response, at unchanged length: its size field is already sent.

    `tail` begins at the tagged section (`tagged`), or at the compact array `node_endpoints`, which the tagged
    section follows. The freed bytes become a tagged field that no client knows; clients skip it, and refresh
    their metadata instead (KIP-951). The tagged section may be cut short, and bytes may stand behind it.
    Raises UNREADABLE where the addresses may go on in a way that is not known.
    """
    if tagged:
        return _blanked(tail)
    end = _array_end(tail) if tail else 0
    if end <= 1:
        return tail
    if end == len(tail):
        return b"\x01" + bytes(end - 1)
    count, after = uvarint_at(tail, end)
    if count > 126:
        raise Malformed
    try:
        stop = skip_tags(tail, after, len(tail), count)
    except UNREADABLE:
        stop = after  # the new field is the first, in front of what does not decode
    blank = bytes([UNUSED_TAG]) + _filled(after - 3)
    return b"\x01" + uvarint(count + 1) + tail[after:stop] + blank + tail[stop:]


def _filled(room: int) -> bytes:
    """A tagged field's size and zeros, together `room` bytes."""
    for width in range(1, min(room, 5) + 1):
        size = uvarint(room - width)
        if len(size) <= width:  # if no canonical varint fits, a padded one, which Kafka accepts
            padded = (
                bytes(b | 0x80 for b in size) + b"\x80" * (width - len(size) - 1) + b"\x00"
                if len(size) < width
                else size
            )
            return padded + bytes(room - width)
    raise Malformed


def _blanked(tail: bytes) -> bytes:
    out = bytearray(tail)
    try:
        count, pos = uvarint_at(tail, 0)
        for _ in range(count):
            at = pos
            tag, pos = uvarint_at(tail, pos)
            size, pos = uvarint_at(tail, pos)
            value = tail[pos : pos + size]
            if tag == 0 and value[:1] > EMPTY:
                out[at] |= UNUSED_TAG
                out[pos : pos + len(value)] = bytes(len(value))
            pos += size
    except IndexError:
        pass  # the section is cut short: nothing follows
    return bytes(out)


def _array_end(tail: bytes) -> int:
    """The end of the compact array of {int32 node_id, string host, int32 port, string? rack} at the start."""
    count, pos = uvarint_at(tail, 0)
    for _ in range(count - 1):
        for fixed in (4, 4):  # node_id before the host, port before the rack
            size, pos = uvarint_at(tail, pos + fixed)
            pos += max(size - 1, 0)
        tags, pos = uvarint_at(tail, pos)
        for _ in range(tags):
            _, pos = uvarint_at(tail, pos)
            size, pos = uvarint_at(tail, pos)
            pos += size
    return pos

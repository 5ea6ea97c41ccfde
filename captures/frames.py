"""Captured frames in the form that rules take."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.exchanges import Exchange
from klamm.decoders import API, DecodeError, layout
from klamm.decoders.body import decode_prefix
from klamm.decoders.compile import UNREADABLE, Path, Pick, pick
from klamm.decoders.headers import (
    answered_version,
    read_request_header,
    read_response_header,
    request_header_version,
    response_header_version,
)
from klamm.decoders.schema import Side
from klamm.rules.frame import Frame, Peer
from klamm.rules.parts import parts

METADATA, CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS = 3, 19, 75
NAMING = frozenset({METADATA, CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS})  # answers with names beside ids
NOWHERE = CapturedConnection("", 0, "", "", "")
REQUEST_BYTES, RESPONSE_BYTES, CLIENT_ID = 8, 4, struct.Struct(">h")  # of headers, up to the client id


class Framed(NamedTuple):
    """An exchange with its frames; a frame is there if its API is known and its bytes were kept."""

    exchange: Exchange
    request: Frame | None
    response: Frame | None


class Framing:
    """Makes frames from the rows of one capture. It learns the names of topic ids from the answers that have
    both; `topics` are known before. Times are those of the capture, in ns since 1970.
    """

    def __init__(self, topics: Mapping[bytes, str] | None = None) -> None:
        self.topics = dict(topics or {})
        self.peers: dict[CapturedConnection, Peer] = {}

    def exchange(self, one: Exchange) -> Framed:
        request = None if one.request is None else self.frame(one.request)
        response = None if one.response is None else self.frame(one.response, request)
        if response is not None and response.api.key in NAMING:
            self.learn(response)
        return Framed(one, request, response)

    def frame(self, one: Captured, request: Frame | None = None) -> Frame | None:
        """None for an API or version that klamm does not know, and for a frame of which only the size was
        kept.
        """
        api = API.get(one.api_key)
        if one.frame is None or one.side is None or api is None:
            return None
        version = one.api_version
        if one.side == "response":
            version = answered_version(one.api_key, version, one.frame, RESPONSE_BYTES)
        if version not in api.versions:
            return None
        body = body_of(one.frame, one.api_key, version, one.side)
        if body is None:
            return None
        frame = Frame(api, version, one.side, body, one.client_id, self.peer(one), one.time_ns, request)
        frame.names = self.topics.get
        if one.forwarded is not None:
            frame.sent = self.frame(one._replace(frame=one.forwarded, forwarded=None), request)
        return frame

    def peer(self, one: Captured) -> Peer:
        of = one.connection or NOWHERE
        peer = self.peers.get(of)
        if peer is None:
            peer = self.peers[of] = peer_of(of)
        return peer

    def learn(self, response: Frame) -> None:
        """Learns the names of topics from an answer that has their ids beside them."""
        try:
            fields = response.api.fields("response")
            for part in parts(fields, response.version, response.values, self.topics.get):
                if part.get("topic_id") is not None and part.get("topic"):
                    self.topics[part["topic_id"]] = part["topic"]
        except DecodeError:
            pass


def peer_of(connection: CapturedConnection) -> Peer:
    of = connection
    key = f"{of.cluster}/{of.broker}/{of.client}/{of.number}"
    return Peer(of.cluster, of.broker, of.client, key, of.number, principal=of.principal)


def body_of(frame: bytes, key: int, version: int, side: Side) -> bytes | None:
    """The bytes behind the header of a known API and version; None where the header is not whole."""
    try:
        return frame[_header_bytes(frame, header_version(key, version, side), side) :]
    except (DecodeError, struct.error, IndexError):
        return None


@cache
def header_version(key: int, version: int, side: Side) -> int:
    return (request_header_version if side == "request" else response_header_version)(API[key], version)


def _header_bytes(frame: bytes, version: int, side: Side) -> int:
    """The size of the header. Raises DecodeError, struct.error or IndexError."""
    if side == "response":
        size, tagged = RESPONSE_BYTES, version == 1
    else:
        size, tagged = REQUEST_BYTES, version == 2
        if version:
            size += CLIENT_ID.size + max(0, CLIENT_ID.unpack_from(frame, size)[0])
    if size > len(frame):
        raise IndexError("it ends in its header")
    if not tagged:
        return size
    if frame[size] == 0:
        return size + 1
    return (read_request_header if side == "request" else read_response_header)(frame, version).size


def columns(key: int, version: int, side: Side, body: bytes, paths: tuple[Path, ...]) -> list[Any]:
    """The values at these paths of a body; None for all of them where it cannot be read."""
    if not paths:
        return []
    try:
        found = _pick(key, version, side, paths)(body, 0, len(body))
        return list(found[: len(paths)])
    except UNREADABLE:
        pass
    try:
        values, _ = decode_prefix(body, key, version, side)
        return [_column(values, path) for path in paths]
    except DecodeError:
        return [None] * len(paths)


@cache
def _pick(key: int, version: int, side: Side, paths: tuple[Path, ...]) -> Pick:
    return pick(layout(key, version, side), paths)


def _column(values: Any, path: Path) -> Any:
    if isinstance(values, list) and path:
        return [_column(each, path) for each in values]
    return values if values is None or not path else _column(values.get(path[0]), path[1:])

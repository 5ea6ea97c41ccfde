"""Frames and their headers: what precedes a body (KIP-482 for the flexible ones).

    request   int32 size, int16 key, int16 version, int32 correlation id, [client id], [tagged fields]
    response  int32 size, int32 correlation id, [tagged fields]

The client id is a classic nullable string in every version; ControlledShutdown v0 has none. A response to
ApiVersions never has tagged fields, so that a client which asked in too new a version can read it (KIP-511).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from klamm.decoders.compile import UNREADABLE
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import uvarint
from klamm.decoders.schema import Api, Side
from klamm.decoders.tags import long_uvarint, unknown_tags

REQUEST = Struct(">ihhi")  # size, key, version, correlation id
RESPONSE = Struct(">ii")  # size, correlation id
API_VERSIONS, CONTROLLED_SHUTDOWN = 18, 7
UNSUPPORTED_VERSION = 35
REFUSED = UNSUPPORTED_VERSION.to_bytes(2, "big")

Tags = list[tuple[int, bytes]]


class RequestHeader(NamedTuple):
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    tags: Tags
    size: int  # bytes of the header: where the body begins, counted after the frame's size


class ResponseHeader(NamedTuple):
    correlation_id: int
    tags: Tags
    size: int


def request_header_version(api: Api, version: int) -> int:
    """0: no client id; 1: with it; 2: with tagged fields too."""
    if api.key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if version in api.flexible else 1


def response_header_version(api: Api, version: int) -> int:
    """0, or 1: with tagged fields."""
    return 1 if version in api.flexible and api.key != API_VERSIONS else 0


def _tags(data: bytes, pos: int, end: int) -> tuple[Tags, int]:
    count = data[pos]
    pos += 1
    if count > 0x7F:
        count, pos = long_uvarint(data, pos, count)
    return unknown_tags(data, pos, end, count)


def read_request_header(frame: bytes, header_version: int) -> RequestHeader:
    """`frame` is what follows the size. Raises DecodeError."""
    try:
        key, version, correlation_id = Struct(">hhi").unpack_from(frame)
        pos, client_id, tags = 8, None, Tags()
        if header_version:
            (size,) = Struct(">h").unpack_from(frame, pos)
            pos += 2
            if size > len(frame) - pos:
                reason = f"a length of {size}, {len(frame) - pos} bytes left"
                raise _refused("request", header_version, "client_id", pos, reason)
            if size >= 0:
                client_id = frame[pos : pos + size].decode("utf-8", "surrogateescape")
                pos += size
        if header_version == 2:
            tags, pos = _tags(frame, pos, len(frame))
    except UNREADABLE as error:
        raise _cut_short("request", header_version, frame, error) from None
    return RequestHeader(key, version, correlation_id, client_id, tags, pos)


def read_response_header(frame: bytes, header_version: int) -> ResponseHeader:
    """`frame` is what follows the size. Raises DecodeError."""
    try:
        (correlation_id,) = Struct(">i").unpack_from(frame)
        tags, pos = _tags(frame, 4, len(frame)) if header_version else (Tags(), 4)
    except UNREADABLE as error:
        raise _cut_short("response", header_version, frame, error) from None
    return ResponseHeader(correlation_id, tags, pos)


def _refused(side: Side, version: int, path: str, offset: int, reason: str) -> DecodeError:
    name = f"{side.capitalize()}Header"
    return DecodeError(reason, api=name, version=version, side=side, path=path, offset=offset)


def _cut_short(side: Side, version: int, frame: bytes, error: Exception) -> DecodeError:
    reason = f"cut short or malformed ({error or type(error).__name__})"
    return _refused(side, version, "", len(frame), reason)


def _written_tags(tags: Tags) -> bytes:
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def request_frame(
    api: Api, version: int, correlation_id: int, client_id: str | None, body: bytes, tags: Tags | None = None
) -> bytes:
    """A whole request as it goes on the wire, its size included."""
    header_version = request_header_version(api, version)
    middle = b""
    if header_version:
        name = b"" if client_id is None else client_id.encode("utf-8", "surrogateescape")
        middle = Struct(">h").pack(-1 if client_id is None else len(name)) + name
    if header_version == 2:
        middle += _written_tags(tags or [])
    return REQUEST.pack(8 + len(middle) + len(body), api.key, version, correlation_id) + middle + body


def response_frame(
    api: Api, version: int, correlation_id: int, body: bytes, tags: Tags | None = None
) -> bytes:
    """A whole response as it goes on the wire, its size included."""
    middle = _written_tags(tags or []) if response_header_version(api, version) else b""
    return RESPONSE.pack(4 + len(middle) + len(body), correlation_id) + middle + body


def refuses_version(data: bytes, pos: int = 0) -> bool:
    """Does the body of an ApiVersions answer, from data[pos] on, refuse the version that was asked? It is
    then of layout v0, and only tells where to try again (KIP-511).
    """
    return data.startswith(REFUSED, pos)


def answered_version(key: int, version: int, data: bytes, pos: int = 0) -> int:
    """The version in which the body of an answer to this version, from data[pos] on, is laid out."""
    return 0 if key == API_VERSIONS and refuses_version(data, pos) else version

"""Frames and their headers: what precedes a body (KIP-482 for the flexible ones).

    request   int32 size, int16 key, int16 version, int32 correlation id, [client id], [tagged fields]
    response  int32 size, int32 correlation id, [tagged fields]

The client id is a classic nullable string in every version; ControlledShutdown v0 has none. From request
header v3 on, only the first request of a connection tells the client id, and the client instance id in a
tagged field (KIP-1313). A response to ApiVersions never has tagged fields, so that a client which asked in
too new a version can read it (KIP-511).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from klamm.decoders.apis import API
from klamm.decoders.compile import UNREADABLE
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import uvarint
from klamm.decoders.schema import Api, Side, Versions
from klamm.decoders.spans import TAGGED
from klamm.decoders.tags import MOST_COUNT, unknown_tags, uvarint_at

REQUEST = Struct(">ihhi")  # size, key, version, correlation id
RESPONSE = Struct(">ii")  # size, correlation id
API_VERSIONS = 18
FIRST_TELLS = 3  # from this request header on, only a connection's first request tells the client id
CLIENT_INSTANCE_ID = 0  # tag of a UUID in request header v3
NEWER_VERSIONS = 12  # than those known, that a client may ask for; the bytes of text read as 32 and more
LONGEST_CLIENT_ID = 255  # bytes
UNSUPPORTED_VERSION = 35
FIND_COORDINATOR = 10
REFUSED = UNSUPPORTED_VERSION.to_bytes(2, "big")

Tags = list[tuple[int, bytes]]


class RequestHeader(NamedTuple):
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    tags: Tags
    size: int  # bytes of the header: where the body begins, counted after the frame's size

    @property
    def instance_id(self) -> bytes | None:
        """The client instance id, a UUID; for headers of version 3 only."""
        return next((data for tag, data in self.tags if tag == CLIENT_INSTANCE_ID and len(data) == 16), None)


class ResponseHeader(NamedTuple):
    correlation_id: int
    tags: Tags
    size: int


def request_header_version(api: Api, version: int) -> int:
    """0: no client id; 1: with it; 2: with tagged fields too; 3: one of them is the client instance id."""
    declared = _declared(api.request_headers, version)
    return declared if declared is not None else 2 if version in api.flexible else 1


def response_header_version(api: Api, version: int) -> int:
    """0, or 1: with tagged fields."""
    declared = _declared(api.response_headers, version)
    return declared if declared is not None else 1 if version in api.flexible else 0


def _declared(headers: tuple[tuple[int, Versions], ...], version: int) -> int | None:
    return next((of for of, versions in headers if version in versions), None)


def is_plausible(key: int, version: int) -> bool:
    """Whether a request may begin with these. Text never does, such as a SASL token in a request's place."""
    api = API.get(key)
    last = NEWER_VERSIONS if api is None else api.versions.last + NEWER_VERSIONS
    return key >= 0 and 0 <= version <= last


def shown_client_id(header: RequestHeader, before: str | None, decodes: bool = True) -> str | None:
    """The client id as it may be told; "<61 bytes>" for bytes in its place that may be anything, a password
    even: where the header is not plausible, where it is no printable UTF-8 of at most 255 bytes, where nobody
    knows the API, and where the body does not decode. `before`: what the connection has told before, which
    is told again.
    """
    client_id = header.client_id
    if client_id is None or client_id == before:
        return client_id
    size = len(client_id) if client_id.isascii() else len(client_id.encode("utf-8", "surrogateescape"))
    known = header.key in API and is_plausible(header.key, header.version)
    if decodes and known and size <= LONGEST_CLIENT_ID and client_id.isprintable():
        return client_id
    return f"<{size} bytes>"


def _tags(data: bytes, pos: int, end: int) -> tuple[Tags, int]:
    count, pos = uvarint_at(data, pos, MOST_COUNT)
    return unknown_tags(data, pos, end, count)


def read_request_header(frame: bytes, header_version: int) -> RequestHeader:
    """`frame` is what follows the size. Raises DecodeError."""
    path = ""
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
        if header_version >= 2:
            path = TAGGED
            tags, pos = _tags(frame, pos, len(frame))
    except UNREADABLE as error:
        raise _cut_short("request", header_version, frame, error, path) from None
    return RequestHeader(key, version, correlation_id, client_id, tags, pos)


def read_response_header(frame: bytes, header_version: int) -> ResponseHeader:
    """`frame` is what follows the size. Raises DecodeError."""
    try:
        (correlation_id,) = Struct(">i").unpack_from(frame)
        tags, pos = _tags(frame, 4, len(frame)) if header_version else (Tags(), 4)
    except UNREADABLE as error:
        raise _cut_short("response", header_version, frame, error) from None
    return ResponseHeader(correlation_id, tags, pos)


def unknown_tag_spans(frame: bytes, header: RequestHeader | ResponseHeader) -> list[tuple[int, int]]:
    """Where the values of a header's tags are, but for the client instance id of request header v3. `frame`
    is what follows the size.
    """
    if not header.tags:
        return []
    request = header if isinstance(header, RequestHeader) else None
    pos = 4 if request is None else 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))
    _, pos = uvarint_at(frame, pos)
    spans = []
    for tag, data in header.tags:
        _, pos = uvarint_at(frame, pos)
        _, pos = uvarint_at(frame, pos)
        if data and not (request is not None and tag == CLIENT_INSTANCE_ID and _tells_instance(request)):
            spans.append((pos, pos + len(data)))
        pos += len(data)
    return spans


def _tells_instance(header: RequestHeader) -> bool:
    api = API.get(header.key)
    newest = api is not None and request_header_version(api, header.version) >= FIRST_TELLS
    return newest and header.instance_id is not None


def _refused(side: Side, version: int, path: str, offset: int, reason: str) -> DecodeError:
    name = f"{side.capitalize()}Header"
    return DecodeError(reason, api=name, version=version, side=side, path=path, offset=offset)


def _cut_short(side: Side, version: int, frame: bytes, error: Exception, path: str = "") -> DecodeError:
    more = f" ({error})" if str(error) else ""
    return _refused(side, version, path, len(frame), f"cut short or malformed{more}")


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
    if header_version >= 2:
        middle += _written_tags(tags or [])
    return REQUEST.pack(8 + len(middle) + len(body), api.key, version, correlation_id) + middle + body


def response_frame(
    api: Api, version: int, correlation_id: int, body: bytes, tags: Tags | None = None
) -> bytes:
    """A whole response as it goes on the wire, its size included."""
    middle = _written_tags(tags or []) if response_header_version(api, version) else b""
    return RESPONSE.pack(4 + len(middle) + len(body), correlation_id) + middle + body


def refuses_version(data: bytes, pos: int = 0) -> bool:
    """Whether the body of an ApiVersions answer, from data[pos] on, refuses the requested version. It then
    has layout v0, and only names the versions to try again with (KIP-511).
    """
    return data.startswith(REFUSED, pos)


def answered_version(key: int, version: int, data: bytes, pos: int = 0) -> int:
    """The version in which the body of an answer to this version, from data[pos] on, is laid out."""
    return 0 if key == API_VERSIONS and refuses_version(data, pos) else version


def answered_with_0(key: int, version: int) -> bool:
    """Whether Kafka has answered this version with correlation id 0, whatever the request's: 0.8.2 does so
    where it has no coordinator.
    """
    return (key, version) == (FIND_COORDINATOR, 0)

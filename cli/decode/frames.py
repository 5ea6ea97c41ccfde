"""Bytes as frames: where each begins, which side said it, and how it reads. Responses find their requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from klamm.cli.decode.guess import fits
from klamm.cli.decode.nameless import note_of
from klamm.decoders import API, layout, spans
from klamm.decoders.failures import DecodeError, left_over
from klamm.decoders.headers import API_VERSIONS, request_header_version, response_header_version
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Api, Field, Side, int16, int32, string
from klamm.decoders.shown.inside import Inside, look_inside
from klamm.decoders.shown.records import Opened
from klamm.decoders.spans import Span, values
from klamm.decoders.text import TopicName, nameless

SIZE, START = Struct(">i"), Struct(">hhi")
LONGEST = 2**30  # bytes of a frame: no broker takes more
UNSUPPORTED_VERSION = 35
REQUEST_HEADER: list[Field] = [
    int16("request_api_key"), int16("request_api_version"), int32("correlation_id"),
    string("client_id", null="1+"),
]  # fmt: skip
RESPONSE_HEADER: list[Field] = [int32("correlation_id")]


@dataclass(slots=True)
class Piece:
    """The bytes of one frame, size excluded: `start` to `end` of `data`."""

    data: bytes
    start: int
    end: int
    sized: bool  # the four bytes before `start` are its size
    missing: int = 0  # bytes that the size announces and that are not there

    @property
    def first(self) -> int:
        """The position of the frame, its size included."""
        return self.start - 4 if self.sized else self.start


@dataclass(slots=True)
class Message:
    """A frame that was read as one side of one version of an API, wholly or until it failed."""

    piece: Piece
    api: Api
    version: int  # of the layout
    side: Side
    header: Span
    body: Span
    body_start: int
    failure: DecodeError | None
    asked_by: Message | None = None
    notes: list[str] = field(default_factory=list)
    inside: dict[int, Inside | list[Opened]] = field(default_factory=dict)  # by where the field begins

    @property
    def correlation_id(self) -> int | None:
        return next((part.value for part in self.header.parts if part.name == "correlation_id"), None)

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version} {self.side}"


@dataclass(frozen=True, slots=True)
class Hints:
    """The options by which the user describes the frames."""

    api: Api | None = None
    version: int | None = None
    side: Side | None = None
    bare: bool = False


def pieces(data: bytes, hints: Hints) -> list[Piece]:
    """Frames with their sizes if the bytes are that, whole or cut short; else one frame without its size."""
    sized = [] if hints.bare else list(_sized(data))
    bare = Piece(data, 0, len(data), sized=False)
    if sized and not sized[-1].missing:
        return sized
    if not sized or _reads(bare, hints):
        return [bare]
    if any(_reads(piece, hints) for piece in sized[:-1]) or _is_request(sized[0]):
        return sized
    return [bare] if _is_request(bare) or fits(data, 0, len(data)) else sized


def _sized(data: bytes) -> Iterator[Piece]:
    """Frames behind their sizes; the last may be cut short, or be followed by other bytes."""
    pos = 0
    while pos < len(data):
        size = SIZE.unpack_from(data, pos)[0] if len(data) - pos >= SIZE.size else -1
        if not 0 <= size <= LONGEST:
            yield Piece(data, pos, len(data), sized=False, missing=SIZE.size)
            return
        end = min(len(data), pos + 4 + size)
        yield Piece(data, pos + 4, end, sized=True, missing=pos + 4 + size - end)
        pos = end


def _is_request(piece: Piece) -> bool:
    """Whether it begins as requests do, client id included."""
    found = request_of(piece)
    if found is None:
        return False
    header, _, failure = _header(piece, *found, "request")
    client_id = values(header).get("client_id") or ""
    return failure is None and client_id.isprintable()


def _reads(piece: Piece, hints: Hints) -> bool:
    """Whether it reads to its end as the API that it names, or that the user named."""
    return any(message.failure is None for message in _candidates(piece, hints, {}))


def request_of(piece: Piece) -> tuple[Api, int] | None:
    """The API and version in its first bytes, were it a request; None if there is no such."""
    if piece.end - piece.start < START.size:
        return None
    key, version, _ = START.unpack_from(piece.data, piece.start)
    api = API.get(key)
    return (api, version) if api is not None and version in api.versions else None


class FrameReader:
    """Reads frames in their order: a response is read by its request. `names` tells the topics of ids."""

    def __init__(self, hints: Hints, names: TopicName = nameless) -> None:
        self.hints, self.names = hints, names
        self.open: dict[int, list[Message]] = {}

    def read(self, piece: Piece) -> Message | None:
        """None for a frame that is no request, answers none, and has no hints."""
        if piece.missing and not piece.sized:
            return None
        candidates = list(_candidates(piece, self.hints, self.open))
        if not candidates:
            return None
        chosen = next((message for message in candidates if message.failure is None), candidates[0])
        if chosen.failure and chosen.side == "request" and self.hints.side is None and _strays(piece):
            return None
        number = chosen.correlation_id
        if chosen.side == "request" and number is not None:
            self.open.setdefault(number, []).append(chosen)
        elif chosen.asked_by is not None and number is not None:
            self.open[number].remove(chosen.asked_by)
        asked = chosen.asked_by.body.value if chosen.asked_by is not None else None
        chosen.inside = look_inside(chosen.api.name, piece.data, chosen.body, asked, names=self.names)
        note = note_of(chosen.body, chosen.inside, self.names)
        chosen.notes += [] if note is None else [note]
        return chosen


def _candidates(piece: Piece, hints: Hints, asked: dict[int, list[Message]]) -> Iterator[Message]:
    """The possible readings of the frame, the likeliest first."""
    if hints.side != "request" and piece.end - piece.start >= 4:
        (number,) = SIZE.unpack_from(piece.data, piece.start)
        for request in asked.get(number, [])[:1]:
            message = response(piece, request.api, request.version)
            message.asked_by = request
            yield message
        if hints.api is not None and hints.version is not None:
            yield response(piece, hints.api, hints.version)
    if hints.side != "response":
        found = request_of(piece)
        if found is not None:
            yield _message(piece, *found, "request")


def _strays(piece: Piece) -> bool:
    """Whether it is a response rather than the request that its first bytes could begin."""
    whole = not piece.missing and any(fit.likely for fit in fits(piece.data, piece.start, piece.end))
    return whole or not _is_request(piece)


def response(piece: Piece, api: Api, version: int) -> Message:
    """The frame read as the answer to a request of this version."""
    message = _message(piece, api, version, "response")
    if api.key == API_VERSIONS and version > 0:
        older = _message(piece, api, 0, "response")
        code = older.body.parts[0].value if older.body.parts else None
        if older.failure is None and code == UNSUPPORTED_VERSION:
            older.notes.append(f"the broker does not know v{version} and answers in v0 (KIP-511)")
            return older
    return message


def _message(piece: Piece, api: Api, version: int, side: Side) -> Message:
    header, pos, failure = _header(piece, api, version, side)
    body = Span("", None, pos)
    if failure is None:
        of = layout(api.key, version, side)
        body, failure = spans.read(of, piece.data, pos, piece.end)
        if failure is None and body.end < piece.end:
            reason = left_over(piece.end - body.end)
            left = Span("left over", None, body.end, piece.end, piece.data[body.end : piece.end])
            body.parts.append(left)
            failure = DecodeError(
                reason, api=api.name, version=version, side=side, path="", offset=body.end - pos
            )
    return Message(piece, api, version, side, header, body, pos, failure)


def _header(piece: Piece, api: Api, version: int, side: Side) -> tuple[Span, int, DecodeError | None]:
    """The fixed part, whose client id is classic in all versions, and the tagged one of the newest."""
    if side == "request":
        of = request_header_version(api, version)
        name, fields, tagged = "RequestHeader", REQUEST_HEADER[: None if of else 3], of == 2
    else:
        of = response_header_version(api, version)
        name, fields, tagged = "ResponseHeader", RESPONSE_HEADER, of == 1
    fixed, compact = Layout(name, of, side, False, tuple(fields)), Layout(name, of, side, True, ())
    header, failure = spans.read(fixed, piece.data, piece.start, piece.end)
    if failure is None and tagged:
        start = header.end
        tags, failure = spans.read(compact, piece.data, start, piece.end)
        header.parts += tags.parts
        header.end = tags.end
        if failure is not None:
            failure.offset += start - piece.start
    return header, header.end, failure

"""The part of each frame that a capture keeps: its bytes, cut, and its blanks."""

from __future__ import annotations

from klamm.captures.captured import Blanks
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.bodies import Body, body_of, edits_of, values_of
from klamm.captures.streams.cutting import Edit, edited
from klamm.captures.streams.forms import Forms
from klamm.decoders import API, DecodeError
from klamm.decoders.compile import UNREADABLE
from klamm.decoders.headers import (
    FIRST_TELLS,
    RequestHeader,
    ResponseHeader,
    answered_version,
    read_request_header,
    read_response_header,
    request_header_version,
    shown_client_id,
    unknown_tag_spans,
)

LONGEST_HEADER = 64 * 1024
CORRELATION_ID = 4  # bytes: the whole header of an answer to ApiVersions, in all versions

Request = tuple[
    str | None, bool, bytes | None, Blanks
]  # client id, is an answer due, the frame cut, its blanks


class Kept:
    """Reads frames, with start, end and size as in framing.py. Of a frame that does not decode only its size
    is kept, unless all records are, and it can have no secrets.
    """

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.requests, self.responses = Forms(), Forms()
        self.client_id: str | None = None  # the last that a header told

    def request(self, data: bytes, start: int, end: int, size: int, code: int) -> Request:
        """The frame has at least 8 bytes, but may be cut short. `code`: its key and version."""
        if end - start == size:
            for form in self.requests.known.get(code, ()):
                found = form.cut(data, start, end, self.keeping)
                if found is not None:
                    return form.client_id, form.awaits, *found
        key, version = code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000
        body = body_of(key, version, "request")
        header = _header(data[start : min(end, start + LONGEST_HEADER)], key, version)
        if header is None or body is None:
            return self._told(header), True, None, ()
        pos = start + header.size
        if end - start < size:
            return self._told(header), _awaits_early(body, data, pos, end), None, ()
        read = values_of(body, data, pos, end)
        edits = None if read is None else edits_of(body, self.keeping, data, pos, read[1], end)
        if read is None or edits is None:
            told = self._told(header, decodes=False)
            is_told = told == header.client_id
            frame = self._undecodable(body, data, (start, pos, end), header) if is_told else (None, ())
            return told, _awaits_early(body, data, pos, end), *frame
        client_id = self._told(header)
        awaits = body.acks is None or read[0]["acks"] != 0
        edits = [*_tag_edits(data[start:pos], start, header), *edits]
        if read[1] == end and not header.tags:
            self.requests.learn(code, body, data, (start, pos, end), client_id, awaits)
        return client_id, awaits, *edited(data, start, end, edits)

    def _told(self, header: RequestHeader | None, decodes: bool = True) -> str | None:
        """The client id as it may be told. Those of APIs that nobody knows have one too."""
        if header is None:
            return None
        client_id = shown_client_id(header, self.client_id, decodes)
        if client_id is None:
            api = API.get(header.key)
            tells = api is None or request_header_version(api, header.version) < FIRST_TELLS
            return None if tells else self.client_id
        if decodes:
            self.client_id = client_id
        return client_id

    def response(
        self, data: bytes, start: int, end: int, size: int, code: int
    ) -> tuple[bytes | None, Blanks]:
        """The answer to a request of this key and version."""
        if end - start < size:
            return None, ()
        for form in self.responses.known.get(code, ()):
            found = form.cut(data, start, end, self.keeping)
            if found is not None:
                return found
        key, version = code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000
        body = body_of(key, answered_version(key, version, data, start + CORRELATION_ID), "response")
        if body is None:
            return None, ()
        try:
            header = read_response_header(data[start : min(end, start + LONGEST_HEADER)], body.header_version)
        except DecodeError:
            return None, ()
        pos = start + header.size
        read = values_of(body, data, pos, end)
        edits = None if read is None else edits_of(body, self.keeping, data, pos, read[1], end)
        if read is None or edits is None:
            return self._undecodable(body, data, (start, pos, end), header)
        edits = [*_tag_edits(data[start:pos], start, header), *edits]
        if read[1] == end and not header.tags:
            self.responses.learn(code, body, data, (start, pos, end), None, True)
        return edited(data, start, end, edits)

    def _undecodable(
        self, body: Body, data: bytes, place: tuple[int, int, int], header: RequestHeader | ResponseHeader
    ) -> tuple[bytes | None, Blanks]:
        """The frame, if it may be kept. `place`: where it and its body begin, and where both end."""
        start, pos, end = place
        if not body.may_be_kept(self.keeping, data, pos, end):
            return None, ()
        return edited(data, start, end, _tag_edits(data[start:pos], start, header))


def _header(frame: bytes, key: int, version: int) -> RequestHeader | None:
    """None where it does not decode."""
    api = API.get(key)
    known = api is not None and version in api.versions
    try:
        return read_request_header(frame, request_header_version(api, version) if api and known else 1)
    except DecodeError:
        return None


def _tag_edits(frame: bytes, start: int, header: RequestHeader | ResponseHeader) -> list[Edit]:
    """Blanks the values of a header's tags that nobody knows: they may be anything."""
    return [(start + at, start + stop, None) for at, stop in unknown_tag_spans(frame, header)]


def _awaits_early(body: Body, data: bytes, pos: int, end: int) -> bool:
    """Whether an answer is expected to a request that is cut short, or does not decode."""
    if body.acks is None:
        return True
    try:
        return bool(body.acks(data, pos, end)[0])
    except UNREADABLE:
        return True

"""What is kept of each frame of one connection: its bytes, cut, and its blanks."""

from __future__ import annotations

from klamm.captures.captured import Blanks
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.bodies import Body, body_of, edits_of, values_of
from klamm.captures.streams.cutting import edited
from klamm.captures.streams.forms import Forms
from klamm.decoders import API, DecodeError
from klamm.decoders.compile import UNREADABLE
from klamm.decoders.headers import (
    answered_version,
    read_request_header,
    read_response_header,
    request_header_version,
)

LONGEST_HEADER = 64 * 1024
CORRELATION_ID = 4  # bytes: the whole header of an answer to ApiVersions, in all versions

Request = tuple[
    str | None, bool, bytes | None, Blanks
]  # client id, is an answer due, the frame cut, its blanks


class Kept:
    """Reads frames, with start, end and size as in framing.py. What does not decode is not kept."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.requests, self.responses = Forms(), Forms()

    def request(self, data: bytes, start: int, end: int, size: int, code: int) -> Request:
        """Of at least 8 bytes, but not all of them need be there. `code`: its key and version."""
        if end - start == size:
            for form in self.requests.known.get(code, ()):
                found = form.cut(data, start, end, self.keeping)
                if found is not None:
                    return form.client_id, form.awaits, *found
        key, version = code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000
        body = body_of(key, version, "request")
        client_id, pos = _request_header(data[start : min(end, start + LONGEST_HEADER)], key, version)
        if pos is None or body is None:
            return client_id, True, None, ()
        if end - start < size:
            return client_id, _awaits_early(body, data, start + pos, end), None, ()
        read = values_of(body, data, start + pos, end)
        edits = None if read is None else edits_of(body, self.keeping, data, start + pos, read[1], end)
        if read is None or edits is None:
            return client_id, _awaits_early(body, data, start + pos, end), None, ()
        awaits = body.acks is None or read[0]["acks"] != 0
        if read[1] == end:
            self.requests.learn(code, body, data, (start, start + pos, end), client_id, awaits)
        return client_id, awaits, *edited(data, start, end, edits)

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
            return None, ()
        if read[1] == end:
            self.responses.learn(code, body, data, (start, pos, end), None, True)
        return edited(data, start, end, edits)


def _request_header(frame: bytes, key: int, version: int) -> tuple[str | None, int | None]:
    """The client id, and where the body begins: None if that does not decode. Those of APIs that nobody knows
    have a client id too.
    """
    api = API.get(key)
    known = api is not None and version in api.versions
    header_version = request_header_version(api, version) if api is not None and known else 1
    try:
        header = read_request_header(frame, header_version)
    except DecodeError:
        return None, None
    client_id = header.client_id
    if client_id is not None and not client_id.isascii():
        client_id = client_id.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if api is None and not (client_id or "").isprintable():  # it may be anything, a token even
        return None, None
    return client_id, header.size


def _awaits_early(body: Body, data: bytes, pos: int, end: int) -> bool:
    """Of a request whose end is not there, or that does not decode."""
    if body.acks is None:
        return True
    try:
        return bool(body.acks(data, pos, end)[0])
    except UNREADABLE:
        return True

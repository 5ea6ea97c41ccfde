"""Recognises connections of Kafka, and which end is the broker, by their first bytes, on any port.

Kafka is a connection whose client begins with a request that decodes; or, where the beginning was not seen,
one of whose ends sends two such requests in a row. Of ApiVersions the header is enough: clients newer than
klamm begin with a version that it does not know.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Literal

from klamm.decoders import API, DecodeError, decode
from klamm.decoders.framing import TLS_RECORD
from klamm.decoders.headers import API_VERSIONS, REQUEST, read_request_header, request_header_version
from klamm.decoders.sasl_tokens import GSSAPI_FIRST

Kind = Literal["Kafka", "TLS", "other"]

ENOUGH_BYTES = 2 << 20  # of one way, where the beginning was not seen; more than most requests
LARGEST_BYTES = 8 << 20  # of a request that is waited for
HEADER_BYTES = 2048
NEWEST_VERSION = 127  # of ApiVersions, that is taken for one
CLIENT_ID = Struct(">h")  # its length, behind the rest of a header
START = re.compile(rb"(?s)\0[\0-\x7f]..\0[\0-\x7f]\0[\0-\x7f]")  # of a request: such a size, a key, a version


def request_at(data: bytearray, at: int) -> int | None:
    """The size of the request that begins there, with its size field. 0: none begins there; None: more bytes
    are needed to tell.
    """
    if len(data) - at < REQUEST.size:
        return None
    size: int
    size, key, version, _ = REQUEST.unpack_from(data, at)
    api = API.get(key)
    if api is None or not 8 <= size <= LARGEST_BYTES:
        return 0
    newer = key == API_VERSIONS and api.versions.last < version <= NEWEST_VERSION
    if not newer and version not in api.versions:
        return 0
    begin = bytes(data[at + 4 : at + 4 + min(size, HEADER_BYTES)])
    try:
        header = read_request_header(begin, request_header_version(api, version))
    except DecodeError:
        return None if len(begin) < min(size, HEADER_BYTES) else 0
    if header.client_id is not None and not header.client_id.isprintable():
        return 0
    if len(data) - at < 4 + size:
        return None
    if newer:
        return 4 + size
    try:
        decode(bytes(data[at + 4 + header.size : at + 4 + size]), key, version, "request")
    except DecodeError:
        return 0
    return 4 + size


def opens(data: bytearray) -> bool:
    """Whether these are the first bytes of an ApiVersions request that the capture has cut short."""
    if len(data) < REQUEST.size + CLIENT_ID.size:
        return False
    size, key, version, _ = REQUEST.unpack_from(data)
    (length,) = CLIENT_ID.unpack_from(data, REQUEST.size)
    start = REQUEST.size + CLIENT_ID.size
    client_id = data[start : start + max(0, length)].decode("utf-8", "replace")
    plausible = 0 <= version <= NEWEST_VERSION and 8 <= size <= HEADER_BYTES and -1 <= length <= size - 10
    return key == API_VERSIONS and plausible and client_id.isprintable()


class Guess:
    """`client` is the direction of the client: None until it is known where the beginning was not seen.
    `began`: the bytes include the beginning.
    """

    def __init__(self, client: int | None) -> None:
        self.client = client
        self.began = client is not None
        self.received = [bytearray(), bytearray()]
        self.searched = [0, 0]  # where the first request may begin
        self.tls = False  # as far as anything looks like it

    def hear(self, way: int, data: bytes) -> Kind | None:
        """Takes the next bytes of a direction. None: more bytes are needed."""
        if not (self.began and self.received[way]):
            self.tls = self.tls or TLS_RECORD.match(data) is not None
        if self.began and way != self.client:
            return self._not_kafka()  # no broker speaks before a request is whole
        self.received[way] += data
        return self._begin() if self.began else self._search(way, last=False)

    def miss(self) -> Kind | None:
        """Bytes are missing here."""
        began, self.began = self.began, False
        return "Kafka" if began and self.client is not None and opens(self.received[self.client]) else None

    def end(self) -> Kind:
        """There is no more."""
        found = self._begin() if self.began else self._search(0, last=True) or self._search(1, last=True)
        return found or self._not_kafka()

    def _not_kafka(self) -> Kind:
        return "TLS" if self.tls else "other"

    def _begin(self) -> Kind | None:
        assert self.client is not None
        received = self.received[self.client]
        if received[:1] == b"\0" and received[4:5] == bytes([GSSAPI_FIRST]):
            return "Kafka"  # clients of 0.9 send a token first
        size = request_at(received, 0)
        if size is None:
            return None
        return "Kafka" if size else self._not_kafka()

    def _search(self, way: int, last: bool) -> Kind | None:
        received = self.received[way]
        waiting = None if len(received) < ENOUGH_BYTES + LARGEST_BYTES else self._not_kafka()
        while match := START.search(received, self.searched[way]):
            at = self.searched[way] = match.start()
            size = request_at(received, at)
            if size is None and not last:
                return waiting
            if size:
                another = request_at(received, at + size)
                if another or (another is None and last):
                    self.client = way
                    return "Kafka"
                if another is None:
                    return waiting
            self.searched[way] = at + 1
        self.searched[way] = max(self.searched[way], len(received) - REQUEST.size)
        return self._not_kafka() if len(received) > ENOUGH_BYTES else None

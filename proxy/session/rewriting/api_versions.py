"""Limits the versions in ApiVersions responses, so that no address passes klamm in a layout that it does not
know. Every byte but those of the entries concerned stays as it came, whether the body decodes or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from klamm.decoders import API, encode
from klamm.decoders.compile import UNREADABLE, Malformed, skip_tags
from klamm.decoders.failures import UnknownApi
from klamm.decoders.headers import UNSUPPORTED_VERSION, refuses_version
from klamm.decoders.interpret import uvarint
from klamm.decoders.tags import uvarint_at
from klamm.rules.plan import API_VERSIONS, bears_addresses

COUNT, ENTRY, VERSION = Struct(">i"), Struct(">hhh"), Struct(">h")
ENTRIES = 2  # behind the error code
ABSENT = -1
MOST_ENTRIES = 1 << 16  # a key is an int16: where more are announced, the answer has another layout


def clamped(body: bytes, asked: int, allow_unknown: bool) -> bytes:
    """The response with only the APIs and versions that may pass klamm; the same object if all may.

    APIs that bear addresses, and ApiVersions, are offered up to the newest version that klamm knows. An API
    of which no version is left is removed, and so is one that klamm does not know (unless allowed). Entries
    behind one that does not decode stay: klamm refuses requests of versions whose answers it cannot rewrite.
    """
    if refuses_version(body):
        return body
    flexible = asked in API[API_VERSIONS].flexible
    try:
        count, pos = _count(body, flexible)
    except UNREADABLE:
        return body
    kept, removed, start, begin = [], 0, pos, pos
    for at, end in _entries(body, pos, count, flexible):
        key, first, last = ENTRY.unpack_from(body, at)
        newest = _newest(key, first, last, allow_unknown)
        if newest != last:
            kept.append(body[begin:at])
            if newest == ABSENT:
                removed += 1
            else:
                kept += [body[at : at + 4], VERSION.pack(newest), body[at + ENTRY.size : end]]
            begin = end
    if not kept:
        return body
    left = count - removed
    head = body[:ENTRIES] + (uvarint(left + 1) if flexible else COUNT.pack(left))
    return b"".join((head if removed else body[:start], *kept, body[begin:]))


def range_of(key: int, body: bytes, asked: int) -> tuple[int, int] | None:
    """The oldest and the newest version of an API in a response to ApiVersions `asked`; None: it is
    not there, or cannot be read.
    """
    flexible = asked in API[API_VERSIONS].flexible
    try:
        count, pos = _count(body, flexible)
    except UNREADABLE:
        return None
    for at, _ in _entries(body, pos, count, flexible):
        found, first, last = ENTRY.unpack_from(body, at)
        if found == key:
            return first, last
    return None


def _count(body: bytes, flexible: bool) -> tuple[int, int]:
    """The number of entries, and where the first begins."""
    if not flexible:
        (count,) = COUNT.unpack_from(body, ENTRIES)
        return count, ENTRIES + COUNT.size
    count, pos = uvarint_at(body, ENTRIES)
    return count - 1, pos


def _entries(body: bytes, pos: int, count: int, flexible: bool) -> Iterator[tuple[int, int]]:
    """The begin and the end of each entry before the first that does not decode."""
    for _ in range(count if count <= MOST_ENTRIES else 0):
        try:
            end = _end(body, pos, flexible)
        except UNREADABLE:
            return
        yield pos, end
        pos = end


def _end(body: bytes, pos: int, flexible: bool) -> int:
    """The end of an entry."""
    end = pos + ENTRY.size
    if flexible:
        count, end = uvarint_at(body, end)
        end = skip_tags(body, end, len(body), count)
    if end > len(body):
        raise Malformed
    return end


def _newest(key: int, first: int, last: int, allow_unknown: bool) -> int:
    """The newest version of an API that may be offered; ABSENT for none."""
    try:
        api = API[key]
    except UnknownApi:
        return last if allow_unknown else ABSENT
    if last <= api.versions.last or not (bears_addresses(api) or api.key == API_VERSIONS):
        return last
    return ABSENT if first > api.versions.last else api.versions.last


def unsupported() -> bytes:
    """The answer to an ApiVersions request of a version that klamm does not know: v0, with its own range
    (KIP-511).
    """
    known = API[API_VERSIONS].versions
    mine = {"api_key": API_VERSIONS, "min_version": known.first, "max_version": known.last}
    return encode({"error_code": UNSUPPORTED_VERSION, "api_keys": [mine]}, API_VERSIONS, 0, "response")

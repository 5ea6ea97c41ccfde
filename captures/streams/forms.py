"""Recognises frames like an earlier one of their kind, without reading them: they decode, and their records
stand in known places.

A form is the bytes of a frame without its fields of fixed size and its records. Consecutive frames of one API
on one connection mostly repeat it: then each field is where it was, but for the lengths of the records, which
are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import Any, NamedTuple

from klamm.captures.captured import Blanks
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.bodies import PRODUCE, Body, is_metadata
from klamm.captures.streams.cutting import Edit, edited
from klamm.decoders.compile import Malformed, long_uvarint
from klamm.decoders.headers import API_VERSIONS
from klamm.decoders.schema import FIXED, TOPIC, TOPIC_ID
from klamm.decoders.spans import TAGGED, Span, read

MOST_FORMS = 4  # of one version, kept
MOST_CODES = 256  # versions of APIs on one connection: a client may make them up
FIRST_WAIT = 3  # frames without a form before one is made, which costs some 300 us; doubled each time
MOST_CONSTANTS = 64
LONGEST = 4096  # bytes besides records
INT32 = Struct(">i").unpack_from

Part = tuple[Callable[[bytes, int], tuple[Any, ...]], tuple[bytes, ...], int]


class Form(NamedTuple):
    """`before`: what stands before records, and whether these are of metadata; `behind`: behind the last.
    `client_id` and `awaits` of a request.
    """

    before: tuple[tuple[Part, bool], ...]
    behind: Part
    flexible: bool
    client_id: str | None
    awaits: bool

    def cut(self, data: bytes, start: int, end: int, keeping: Keeping) -> tuple[bytes, Blanks] | None:
        """The frame data[start:end] as it is kept, and its blanks; None if it has another form."""
        pos, edits = start, list[Edit]()
        try:
            for (unpack, constants, length), metadata in self.before:
                if unpack(data, pos) != constants:
                    return None
                pos += length
                if self.flexible:
                    size = data[pos]
                    pos += 1
                    if size > 127:
                        size, pos = long_uvarint(data, pos, size)
                    size -= 1
                else:
                    (size,) = INT32(data, pos)
                    pos += 4
                if not 0 <= size <= end - pos:
                    return None
                edits += keeping.edits(data, pos, pos + size, metadata)
                pos += size
            unpack, constants, length = self.behind
            if pos + length != end or unpack(data, pos) != constants:
                return None
        except (error, IndexError, Malformed):
            return None
        return edited(data, start, end, edits)


class Forms:
    """The forms of one side of one connection, by key and version as the header has them."""

    def __init__(self) -> None:
        self.known: dict[int, list[Form]] = {}
        self.waits: dict[int, tuple[int, int]] = {}  # frames to wait for, and how many next time

    def learn(
        self,
        code: int,
        of: Body,
        data: bytes,
        frame: tuple[int, int, int],
        client_id: str | None,
        awaits: bool,
    ) -> None:
        """Takes a frame that decodes and fits no form; `frame`: its start, its body's, its end."""
        left, again = self.waits.get(code, (FIRST_WAIT, 2 * FIRST_WAIT))
        if len(self.waits) > MOST_CODES:
            self.waits.clear()
            self.known.clear()
        if left > 1:
            self.waits[code] = (left - 1, again)
            return
        self.waits[code] = (again, 2 * again)
        made = _form(code, of, data, frame, client_id, awaits)
        if made is not None:
            self.known[code] = [made, *self.known.get(code, [])[: MOST_FORMS - 1]]


def _form(
    code: int, of: Body, data: bytes, frame: tuple[int, int, int], client_id: str | None, awaits: bool
) -> Form | None:
    """None where the form would not fit again, or is too long. An ApiVersions may be refused in another
    layout.
    """
    start, body, end = frame
    if of.has_blanks or code >> 16 == API_VERSIONS:
        return None
    if of.locate is None and end - start > LONGEST:
        return None
    tree, failure = read(of.layout, data, body, end)
    correlation = start + 4 if of.layout.side == "request" else start
    free = [(correlation, correlation + 4)]
    stops: list[tuple[int, int]] = []  # of records, from their length on
    metadata: list[bool] = []
    topic: str | bytes = ""
    for leaf in _leaves(tree):
        f = leaf.field
        assert f is not None
        if f.mark in (TOPIC, TOPIC_ID):
            topic = leaf.value
        elif f.kind == "records" and leaf.value is not None:
            stops.append((leaf.start, leaf.end))
            metadata.append(is_metadata(topic or ""))
        elif f.kind in FIXED and not (code >> 16 == PRODUCE and f.name == "acks"):
            free.append((leaf.start, leaf.end))
    if failure is not None or end - start - sum(stop - first for first, stop in stops) > LONGEST:
        return None
    parts = []
    for first, stop in zip(
        [start, *(stop for _, stop in stops)], [*(first for first, _ in stops), end], strict=True
    ):
        part = _part(data, first, stop, [one for one in free if first <= one[0] < stop])
        if part is None:
            return None
        parts.append(part)
    *before, behind = parts
    return Form(tuple(zip(before, metadata, strict=True)), behind, of.layout.flexible, client_id, awaits)


def _leaves(span: Span) -> Iterator[Span]:
    """The fields in place. Tagged fields, which come and go, count as constant bytes."""
    for part in span.parts:
        if part.name == TAGGED:
            continue
        if part.parts:
            yield from _leaves(part)
        elif part.field is not None:
            yield part


def _part(data: bytes, start: int, end: int, free: list[tuple[int, int]]) -> Part | None:
    codes, constants, pos = ">", [], start
    for first, stop in [*free, (end, end)]:
        if pos < first:
            codes += f"{first - pos}s"
            constants.append(data[pos:first])
        if first < stop:
            codes += f"{stop - first}x"
        pos = stop
    if len(constants) > MOST_CONSTANTS:
        return None
    return Struct(codes).unpack_from, tuple(constants), end - start

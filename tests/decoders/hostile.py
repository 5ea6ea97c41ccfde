"""Messages to damage, and what must hold whatever the bytes."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

from klamm.decoders import API, DecodeError, compile, decode, encode, headers, interpret, layout
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import (
    FIXED,
    MARKS,
    Api,
    Field,
    Side,
    all_fields,
    default_of,
    marked,
    members,
    present,
)
from klamm.decoders.tags import ANY, MOST_COUNT
from tests.decoders.columns import Path, column, in_wire_order

SIDES: tuple[Side, Side] = ("request", "response")
ALIKE = 6  # elements of one shape in a row: enough for the reader to make a function for it
TEXTS = ["", "k", "kk", "ä", "€uro", "\udcff\udcfe"]


def layouts(api: Api) -> Iterator[Layout]:
    for version in range(api.versions.first, api.versions.last + 1):
        for side in SIDES:
            yield layout(api.key, version, side)


LAYOUTS = [of for api in API for of in layouts(api)]


@cache
def reader(of: Layout) -> compile.Read:
    return compile.read(of)


def message(of: Layout, random: Random, alike: bool = False) -> bytes:
    """All tagged fields, nulls and strings that are not UTF-8; or none of these, and rows of one shape."""
    return interpret.write(of, struct_of(of.fields, of.version, alike, random))


def struct_of(fields: tuple[Field, ...], version: int, alike: bool, random: Random) -> dict[str, Any]:
    in_place, tagged = present(fields, version)
    values = {f.name: value_of(f, version, alike, random) for f in in_place}
    for f in tagged:
        values[f.name] = default_of(f, version) if alike else value_of(f, version, alike, random)
    return values


def value_of(f: Field, version: int, alike: bool, random: Random) -> Any:
    if not alike and version in f.null and random.random() < 0.2:
        return None
    if f.kind == "array":
        if isinstance(f.of, str):
            return [scalar(f.of, alike, random) for _ in range(2)]
        nested = any(below.kind == "array" and members(below) for below in f.of if version in below.versions)
        count = (2 if nested else ALIKE) if alike else random.randrange(1, 3)
        return [struct_of(f.of, version, alike, random) for _ in range(count)]
    if f.kind == "struct":
        return struct_of(members(f), version, alike, random)
    return scalar(f.kind, alike, random)


def scalar(kind: str, alike: bool, random: Random) -> Any:
    if kind in FIXED:
        return interpret.STRUCTS[kind].unpack(random.randbytes(FIXED[kind][1]))[0]
    if kind == "string":
        return "kkk" if alike else random.choice(TEXTS)
    return random.randbytes(3 if alike else random.randrange(4))


class Strict(interpret._Reader):
    """Notes what Kafka reads but would not write."""

    def __init__(self, of: Layout, data: bytes) -> None:
        super().__init__(of, data, 0, len(data))
        self.odd: set[str] = set()

    def uvarint(self, most: int = ANY) -> int:
        start, value = self.pos, super().uvarint(most)
        if self.data[start : self.pos] != interpret.uvarint(value):
            self.odd.add("padded varint")
        return value

    def fixed(self, kind: str) -> Any:
        value = super().fixed(kind)
        if kind == "boolean" and self.data[self.pos - 1] > 1:
            self.odd.add("boolean above 1")
        return value

    def length(self, classic: str, null: bool) -> int | None:
        start, size = self.pos, super().length(classic, null)
        if size is None and not self.flexible and self.data[start : self.pos].strip(b"\xff"):
            self.odd.add("null other than -1")
        return size

    def value(self, f: Field) -> Any:
        nullable = f.kind == "struct" and self.version in f.null
        if nullable and self.data[self.pos : self.pos + 1] not in (b"\1", b"\xff"):
            self.odd.add("presence other than -1 and 1")
        return super().value(f)

    def tags(self, values: dict[str, Any], tagged: list[Field]) -> None:
        start = self.pos
        super().tags(values, tagged)
        self.pos, there = start, []
        for _ in range(self.uvarint(MOST_COUNT)):
            there.append(self.uvarint())
            self.take(self.uvarint())
        if there != sorted(there):
            self.odd.add("tags out of order")
        if len(there) != len(set(there)):
            self.odd.add("a tag repeated")
        if any(f.tag in there and values[f.name] == default_of(f, self.version) for f in tagged):
            self.odd.add("a default as a tagged field")


def oddities(of: Layout, data: bytes) -> set[str]:
    """Differences from the bytes that Kafka would write, in readable bytes; empty for canonical ones."""
    strict = Strict(of, data)
    strict.struct(of.fields)
    return strict.odd


@cache
def paths(of: Layout) -> frozenset[str]:
    return frozenset(["", *(".".join(path) for path, _ in all_fields(of.fields, of.version))])


def read_both_ways(of: Layout, data: bytes) -> dict[str, Any] | None:
    """The result of both readers for a prefix of `data`: values that are written again, or a refusal
    (None).
    """
    try:
        values, pos = interpret.read(of, data)
    except DecodeError as error:
        refused_alike(of, data, error)
        return None
    try:
        found, end = reader(of)(data, 0, len(data))
    except UnicodeError:
        pass  # the interpreter decodes what is not UTF-8, be it that another of the same tag replaces it
    else:
        assert end == pos <= len(data), (of, data.hex())
        assert repr(found) == repr(values), (of, data.hex())  # a float that is no number equals nothing
    written_again(of, data[:pos], values)
    return values


def refused_alike(of: Layout, data: bytes, error: DecodeError) -> None:
    assert (error.api, error.version, error.side) == (of.api, of.version, of.side)
    assert error.reason
    assert 0 <= error.offset <= len(data), (of, data.hex())
    assert re.sub(r"\[\d+\]", "", error.path) in paths(of), (of, data.hex())
    try:
        found = reader(of)(data, 0, len(data))
    except compile.UNREADABLE:
        return
    raise AssertionError(f"{of}: made reader gives {found}, interpreter says {error}: {data.hex()}")


def written_again(of: Layout, data: bytes, values: dict[str, Any]) -> None:
    """The same bytes if they were as Kafka writes them, or else no more bytes of the same values."""
    again = encode(values, of.api, of.version, of.side)
    assert again == interpret.write(of, values), (of, data.hex())
    if not oddities(of, data):
        assert again == data, of
    elif again != data:
        assert len(again) <= len(data), (of, data.hex())
        assert repr(decode(again, of.api, of.version, of.side)) == repr(values), (of, data.hex())


@cache
def readers_of_marks(of: Layout) -> tuple[tuple[Path, ...], compile.Pick, compile.Locate, compile.Walk]:
    paths = tuple(marked(of.fields, of.version, MARKS))
    return paths, compile.pick(of, paths), compile.locate(of, paths), compile.walk(of, paths)


def held_in_part(of: Layout, data: bytes, random: Random) -> None:
    """The readers of marked fields find what a full read finds; where that is refused, they may refuse."""
    paths, pick, locate, walker = readers_of_marks(of)
    picked, spans = read_or_none(pick, data), read_or_none(locate, data)
    walked = walk_or_none(walker, data, random)
    values = read_both_ways(of, data)
    if values is None or oddities(of, data) & {"a tag repeated", "a default as a tagged field"}:
        return
    columns = tuple(column(of.fields, of.version, values, path) for path in paths)
    assert repr(picked[:-1]) == repr(walked[:-1]) == repr(columns), (of, data.hex())
    found = [(paths[index], value) for index, _, _, value in spans if index != compile.TAG_PATH]
    wanted = [one for one in in_wire_order(of.fields, of.version, values) if one[0] in paths]
    assert repr(found) == repr(wanted), (of, data.hex())
    assert all(start <= stop <= len(data) for _, start, stop, _ in spans), (of, data.hex())


def read_or_none(read: Callable[[bytes, int, int], Any], data: bytes) -> Any:
    try:
        result = read(data, 0, len(data))
    except compile.UNREADABLE:
        return None
    assert not isinstance(result, tuple) or result[-1] <= len(data)
    return result


def walk_or_none(walker: compile.Walk, data: bytes, random: Random) -> Any:
    """The result over random chunks; None where it refuses, or wants more than there is."""
    walking, at = walker(), 0
    try:
        next(walking)
        while at < len(data):
            size = random.randrange(1, 60)
            walking.send(data[at : at + size])
            at += size
    except StopIteration as end:
        return end.value
    except compile.UNREADABLE:
        return None
    return None


def header_held(side: Side, version: int, frame: bytes) -> None:
    """A header within the frame, or a refusal that names it."""
    read = headers.read_request_header if side == "request" else headers.read_response_header
    try:
        header = read(frame, version)
    except DecodeError as error:
        refusal = error
    else:
        assert header.size <= len(frame)
        return
    assert (refusal.api, refusal.version) == (f"{side.capitalize()}Header", version)
    assert refusal.side == side
    assert 0 <= refusal.offset <= len(frame)

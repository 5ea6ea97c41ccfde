"""Whatever the bytes: values or DecodeError, the same from made reader and interpreter, in bounded memory."""

import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, DecodeError, compile, decode, encode, interpret, layout
from klamm.decoders.body import decode_prefix
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import FIXED, UNKNOWN_TAGS, Api, Field, default_of, members, present, walk

SEED = 7
HOLD_TO = (  # the APIs that the proxy looks into
    "Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat "
    "LeaveGroup SyncGroup SaslHandshake ApiVersions SaslAuthenticate DescribeQuorum DescribeCluster "
    "ShareFetch ShareAcknowledge"
).split()
PLACES = 40  # damaged per message and test
ALIKE = 6  # elements of one shape in a row: enough for the reader to make a function for it
MOST_BYTES = 4 << 20
NUMBERS = {"float64": 0.5, "boolean": True, "uuid": bytes(range(16))}
INT32S = [number.to_bytes(4, "big", signed=True) for number in (-1, 0, 1, 2**31 - 1, -(2**31))]
HUGE = b"\xff\xff\xff\xff\x07"  # as a varint, 2**31 - 1
SECTIONS = [  # for a byte that says "no tagged fields"
    b"\1\x7f\2ab",
    b"\1\0\0",
    b"\2\x7f\1a\x7f\1b",
    b"\2\0\0\0\0",
    b"\1\x7f\x7f",
    b"\1" + HUGE + b"\0",
    HUGE,
]

every_api = pytest.mark.parametrize("api", [API[name] for name in HOLD_TO], ids=lambda api: api.name)


def layouts(api: Api) -> list[Layout]:
    """Both sides of the oldest version, the last classic one, and the newest."""
    first, last = api.versions
    classic = min(max(api.flexible.first - 1, first), last)
    versions = sorted({first, classic, last})
    return [layout(api.key, version, side) for version in versions for side in ("request", "response")]


@cache
def reader(of: Layout) -> compile.Read:
    return compile.read(of)


def message(of: Layout, alike: bool) -> bytes:
    """Arrays within arrays; innermost ones have elements of one shape, or of many."""
    random = Random(SEED)
    return encode(struct_of(of.fields, of.version, alike, random), of.api, of.version, of.side)


def struct_of(fields: tuple[Field, ...], version: int, alike: bool, random: Random) -> dict[str, Any]:
    in_place, tagged = present(fields, version)
    values = {f.name: value_of(f, version, alike, random) for f in in_place}
    for f in tagged:
        values[f.name] = default_of(f, version) if alike else value_of(f, version, alike, random)
    return values


def value_of(f: Field, version: int, alike: bool, random: Random) -> Any:
    if not alike and version in f.null and random.random() < 0.3:
        return None
    size = 3 if alike else random.randrange(6)
    if f.kind == "array":
        if isinstance(f.of, str):
            return [scalar(f.of, size) for _ in range(size)]
        nested = any(below.kind == "array" and members(below) for below in f.of if version in below.versions)
        count = 2 if nested else ALIKE
        return [struct_of(f.of, version, alike, random) for _ in range(count if alike else size)]
    if f.kind == "struct":
        return struct_of(members(f), version, alike, random)
    return scalar(f.kind, size)


def scalar(kind: str, size: int) -> Any:
    if kind in FIXED:
        return NUMBERS.get(kind, 7)
    return "k" * size if kind == "string" else b"r" * size


def messages(api: Api) -> Iterator[tuple[Layout, bytes]]:
    for of in layouts(api):
        for alike in (True, False):
            yield of, message(of, alike)


def places(data: bytes, random: Random, value: int | None = None) -> list[int]:
    """Some positions, only those of one value where it is given; all in a short message."""
    there = [at for at, byte in enumerate(data) if value is None or byte == value]
    return random.sample(there, min(len(there), PLACES))


def outcome(read: Callable[[], Any]) -> Any:
    """As text, since a float that is no number equals nothing; None where refused."""
    try:
        return repr(read())
    except DecodeError:
        return None


def agreed(of: Layout, data: bytes, end: int) -> Any:
    """What both make of data[:end], whatever stands behind it: values and position as text, or None."""
    interpreted = outcome(lambda: interpret.read(of, data, 0, end))
    try:
        values, pos = reader(of)(data, 0, end)
    except compile.UNREADABLE:
        return interpreted  # who then has the last word
    assert pos <= end
    assert repr((values, pos)) == interpreted, (of, end, data.hex())
    return interpreted


@every_api
def test_a_message_cut_short_anywhere_is_refused_also_when_more_bytes_stand_behind(api: Api) -> None:
    for of, data in messages(api):
        for end in range(len(data)):
            assert agreed(of, data[:end], end) is None, (of, end)
            with pytest.raises(compile.UNREADABLE):
                reader(of)(data, 0, end)


@every_api
def test_a_message_is_read_from_the_middle_of_other_bytes(api: Api) -> None:
    for of, data in messages(api):
        values, _ = interpret.read(of, data)
        around = b"\xff" * 9 + data + b"\xff" * 400
        assert reader(of)(around, 9, 9 + len(data)) == (values, 9 + len(data)), of


@every_api
def test_bytes_left_over_are_refused_and_a_reader_of_prefixes_leaves_them(api: Api) -> None:
    for of, data in messages(api):
        values, _ = interpret.read(of, data)
        for rest in (b"\0", b"\xff" * 40, data or b"\1"):
            assert decode_prefix(data + rest, of.api, of.version, of.side) == (values, len(data)), of
            with pytest.raises(DecodeError, match=f"{len(rest)} bytes left over"):
                decode(data + rest, of.api, of.version, of.side)


@every_api
def test_flipped_bits_and_wrong_lengths_are_read_alike_or_refused_alike(api: Api) -> None:
    random = Random(SEED)
    for of, data in messages(api):
        for at in places(data, random):
            flipped = bytes([data[at] ^ 1 << random.randrange(8)])
            for new in (flipped, random.choice(INT32S), random.choice((b"\0", b"\1", b"\x80", HUGE))):
                damaged = data[:at] + new + data[at + len(new) :]
                agreed(of, damaged, len(damaged))


@every_api
def test_padded_and_endless_varints_are_read_alike_or_refused_alike(api: Api) -> None:
    random = Random(SEED)
    for of, data in messages(api):
        if not of.flexible:
            continue
        for at in places(data, random):
            padding = b"\x80" * random.choice((0, 1, 3, 4, 9)) + b"\0"
            damaged = data[:at] + bytes([data[at] | 0x80]) + padding + data[at + 1 :]
            agreed(of, damaged, len(damaged))


@every_api
def test_unknown_and_repeated_tagged_fields_are_read_alike_or_refused_alike(api: Api) -> None:
    random = Random(SEED)
    for of, data in messages(api):
        if not of.flexible:
            continue
        for at in places(data, random, value=0):
            damaged = data[:at] + random.choice(SECTIONS) + data[at + 1 :]
            agreed(of, damaged, len(damaged))


@every_api
def test_unknown_tagged_fields_of_one_element_in_a_row_of_like_ones_are_kept(api: Api) -> None:
    for of in (of for of in layouts(api) if of.flexible):
        values = decode(message(of, alike=True), of.api, of.version, of.side)
        for array in arrays(of.fields, of.version, values):
            array[-2][UNKNOWN_TAGS] = [(99, b"odd"), (101, b"")]
        assert decode(interpret.write(of, values), of.api, of.version, of.side) == values, of


def arrays(fields: tuple[Field, ...], version: int, values: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Every array of structs in place, whatever its depth."""
    for f in present(fields, version)[0]:
        if f.kind == "struct" and values[f.name] is not None:
            yield from arrays(members(f), version, values[f.name])
        if f.kind == "array" and members(f):
            yield values[f.name]
            for element in values[f.name]:
                yield from arrays(members(f), version, element)


@every_api
def test_huge_counts_take_little_memory(api: Api) -> None:
    random, newest = Random(SEED), layouts(api)[-2:]
    tracemalloc.start()
    try:
        for of in newest:
            data = message(of, alike=True)
            huge = HUGE if of.flexible else INT32S[3]
            for at in places(data, random):
                damaged = data[:at] + huge + data[at + 1 :]
                outcome(partial(decode, damaged, of.api, of.version, of.side))
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@every_api
def test_picks_walks_and_spans_of_hostile_bytes_end_within_them_or_refuse(api: Api) -> None:
    random = Random(SEED)
    for of, data in messages(api):
        leaves = tuple(path for path, f in walk(of.fields, of.version) if not members(f))
        paths = tuple(random.sample(leaves, min(len(leaves), 3)))
        pick, locate, walker = (make(of, paths) for make in (compile.pick, compile.locate, compile.walk))
        for at in places(data, random):
            new = random.choice((b"\0", b"\x80", b"\xff", HUGE, *INT32S))
            damaged = data[:at] + new + data[at + len(new) :]
            end = random.randrange(len(damaged) + 1)
            for result in (read_or_none(pick, damaged, end), read_or_none(locate, damaged, end)):
                if isinstance(result, tuple):
                    assert result[-1] <= end
                elif result is not None:
                    assert all(start <= stop <= end for _, start, stop, *_ in result)
            walked(walker, damaged[:end])


def read_or_none(read: Callable[[bytes, int, int], Any], data: bytes, end: int) -> Any:
    try:
        return read(data, 0, end)
    except compile.UNREADABLE:
        return None


def walked(walker: compile.Walk, data: bytes) -> None:
    """Ends, wants more bytes, or refuses; nothing else is raised."""
    walking = walker()
    try:
        next(walking)
        walking.send(data[: len(data) // 2])
        walking.send(data[len(data) // 2 :])
    except (StopIteration, *compile.UNREADABLE):
        return

"""Whatever the bytes: values that are written again, or DecodeError; made reader and interpreter agree."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.decoders import API, DecodeError, compile, decode, headers, interpret
from klamm.decoders.body import decode_prefix
from klamm.decoders.failures import left_over
from klamm.decoders.interpret import Layout, uvarint
from klamm.decoders.schema import UNKNOWN_TAGS, Api, Field, members, present
from tests.decoders.hostile import (
    LAYOUTS,
    header_held,
    held_in_part,
    layouts,
    message,
    read_both_ways,
    reader,
)

SEED = 7
INT32S = [number.to_bytes(4, "big", signed=True) for number in (-1, 0, 1, 2**31 - 1, -(2**31))]
INT16S = [number.to_bytes(2, "big", signed=True) for number in (-1, -2, 0, 1, 2**15 - 1)]
HUGE = b"\xff\xff\xff\xff\x07"  # as a varint, 2**31 - 1
VARINTS = [
    b"\0",
    b"\1",
    b"\x80",
    b"\x80\0",
    b"\xff\xff\2",
    HUGE,
    b"\xff\xff\xff\xff\x0f",
    b"\x80" * 5 + b"\0",
]
WRONG = [*INT32S, *INT16S, *VARINTS]
SECTIONS = [  # for a byte that says "no tagged fields"
    b"\1\x7f\2ab",
    b"\1\0\0",
    b"\1\0\1\0",
    b"\2\x7f\1a\x7f\1b",
    b"\2\x7f\1a\x7e\1b",
    b"\2\0\0\0\0",
    b"\1\x7f\x7f",
    b"\1" + HUGE + b"\0",
    HUGE,
]

pytestmark = pytest.mark.sampled(30)
every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)
damaged_at = pytest.mark.parametrize(
    "most",
    [4, pytest.param(10**6, marks=[pytest.mark.long, pytest.mark.timeout(3600)], id="everywhere")],
    ids=str,
)


def places(data: bytes, most: int, random: Random) -> list[int]:
    return random.sample(range(len(data)), min(len(data), most))


def test_every_layout_is_damaged() -> None:
    assert len(LAYOUTS) == 736


@every_api
def test_a_message_cut_short_anywhere_is_refused_also_when_more_bytes_stand_behind(api: Api) -> None:
    for of in layouts(api):
        data = message(of, Random(SEED))
        for end in range(len(data)):
            assert read_both_ways(of, data[:end]) is None, (of, end)
            with pytest.raises(compile.UNREADABLE):
                reader(of)(data, 0, end)
            with pytest.raises(DecodeError):
                interpret.read(of, data, 0, end)


@every_api
def test_rows_of_one_shape_cut_short_anywhere_are_refused(api: Api) -> None:
    for of in layouts(api):
        data = message(of, Random(SEED), alike=True)
        for end in range(len(data)):
            with pytest.raises(compile.UNREADABLE):
                reader(of)(data, 0, end)


@every_api
def test_a_message_is_read_from_the_middle_of_other_bytes(api: Api) -> None:
    for of in layouts(api):
        data = message(of, Random(SEED), alike=True)
        values, _ = interpret.read(of, data)
        around = b"\xff" * 9 + data + b"\xff" * 400
        assert repr(reader(of)(around, 9, 9 + len(data))) == repr((values, 9 + len(data))), of


@every_api
def test_bytes_left_over_are_refused_and_a_reader_of_prefixes_leaves_them(api: Api) -> None:
    for of in layouts(api):
        data = message(of, Random(SEED))
        values = repr(interpret.read(of, data)[0])
        for rest in (b"\0", b"\xff" * 40, data or b"\1"):
            prefix, size = decode_prefix(data + rest, of.api, of.version, of.side)
            assert (repr(prefix), size) == (values, len(data)), of
            with pytest.raises(DecodeError, match=left_over(len(rest))) as refused:
                decode(data + rest, of.api, of.version, of.side)
            assert refused.value.offset == len(data)


@every_api
@damaged_at
def test_flipped_bits_and_wrong_lengths_are_read_alike_or_refused_alike(api: Api, most: int) -> None:
    random = Random(SEED)
    for of in layouts(api):
        for alike in (False, True):
            data = message(of, random, alike)
            for at in places(data, most, random):
                flipped = bytes([data[at] ^ 1 << random.randrange(8)])
                for new in (flipped, random.choice(WRONG)):
                    read_both_ways(of, data[:at] + new + data[at + len(new) :])


@every_api
@damaged_at
def test_padded_and_endless_varints_are_read_alike_or_refused_alike(api: Api, most: int) -> None:
    random = Random(SEED)
    for of in (of for of in layouts(api) if of.flexible):
        data = message(of, random)
        for at in places(data, most, random):
            padding = b"\x80" * random.choice((0, 1, 3, 4, 9)) + b"\0"
            read_both_ways(of, data[:at] + bytes([data[at] | 0x80]) + padding + data[at + 1 :])


@every_api
@damaged_at
def test_unknown_and_repeated_tagged_fields_are_read_alike_or_refused_alike(api: Api, most: int) -> None:
    random = Random(SEED)
    for of in (of for of in layouts(api) if of.flexible):
        data = message(of, random, alike=True)
        for section in SECTIONS:
            read_both_ways(of, data[:-1] + section)  # the last byte is the outermost section
        zeros = [at for at, byte in enumerate(data) if byte == 0]
        for at in random.sample(zeros, min(len(zeros), most)):
            read_both_ways(of, data[:at] + random.choice(SECTIONS) + data[at + 1 :])


@every_api
def test_every_byte_of_the_unknown_in_one_element_of_a_row_of_like_ones_is_kept(api: Api) -> None:
    for of in (of for of in layouts(api) if of.flexible):
        data = message(of, Random(SEED), alike=True)
        values = decode(data, of.api, of.version, of.side)
        for array in arrays(of.fields, of.version, values):
            array[-2][UNKNOWN_TAGS] = [(99, b"odd"), (101, b"")]
        assert repr(decode(interpret.write(of, values), of.api, of.version, of.side)) == repr(values), of


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
@damaged_at
def test_picks_walks_and_spans_of_marked_fields_agree_with_a_full_read_or_refuse(api: Api, most: int) -> None:
    random = Random(SEED)
    for of in layouts(api):
        data = message(of, random)
        for at in places(data, most, random):
            new = random.choice((bytes([data[at] ^ 1 << random.randrange(8)]), *WRONG))
            held_in_part(of, data[:at] + new + data[at + len(new) :], random)


@st.composite
def damaged_messages(draw: st.DrawFn) -> tuple[Layout, bytes]:
    of = draw(st.sampled_from(LAYOUTS))
    data = message(of, Random(draw(st.integers(0, 99))), draw(st.booleans()))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 8)))
        data = data[:start] + draw(st.sampled_from(WRONG) | st.binary(max_size=6)) + data[stop:]
    return of, data


@given(damaged_messages())
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
def test_any_damage_to_a_message_of_any_layout_is_read_alike_or_refused_alike(
    damaged: tuple[Layout, bytes],
) -> None:
    read_both_ways(*damaged)


@given(st.sampled_from(LAYOUTS), st.binary(max_size=200))
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
def test_any_bytes_are_read_alike_or_refused_alike(of: Layout, data: bytes) -> None:
    read_both_ways(of, data)


def request_frame(tags: headers.Tags) -> bytes:
    return headers.request_frame(API["Metadata"], 12, 7, "klamm-ä", b"", tags)[4:]


@given(st.integers(0, 2), st.binary(max_size=60), st.integers(0, 40))
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
def test_a_header_of_any_bytes_is_read_or_refused_with_its_name_and_version(
    version: int, data: bytes, keep: int
) -> None:
    frame = request_frame([(1, b"ab"), (300, b"")])[:keep] + data
    header_held("request", version, frame)
    header_held("response", version & 1, frame)


def test_a_header_cut_short_anywhere_is_refused_and_padded_varints_in_it_are_read() -> None:
    tags = [(5, b"xy"), (3, b"")]
    frame = request_frame(tags)
    for end in range(len(frame)):
        with pytest.raises(DecodeError):
            headers.read_request_header(frame[:end], 2)
    assert headers.read_request_header(frame, 2).tags == tags
    response = (
        b"\0\0\0\7"
        + b"\x82\0"
        + b"".join(bytes([tag | 0x80, 0]) + uvarint(len(data)) + data for tag, data in tags)
    )
    assert headers.read_response_header(response, 1) == (7, tags, len(response))
    for end in range(len(response)):
        with pytest.raises(DecodeError):
            headers.read_response_header(response[:end], 1)

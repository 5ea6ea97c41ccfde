"""The cost of hostile bytes: memory in proportion to them, and time."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from types import FrameType
from typing import Any

import pytest

from klamm.decoders import API, DecodeError, compile, decode, interpret, layout
from klamm.decoders.interpret import Layout, least_size, uvarint
from klamm.decoders.schema import FIXED, MARKS, Api, Field, marked, members, present
from tests.decoders.hostile import LAYOUTS, SIDES, layouts, message, reader

MOST_MEMORY = 200  # times the input
SOME_KB = 4 << 10  # the most memory for an input of few bytes
ELEMENTS = 100
HUGE = uvarint(2**31 - 1)
SEED = 7

Chain = tuple[Field, ...]  # an array, and what is on the way to it

pytestmark = pytest.mark.sampled(30)
every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)


def arrays(fields: Chain, version: int, above: Chain = ()) -> Iterator[Chain]:
    in_place, tagged = present(fields, version)
    for f in [*in_place, *tagged]:
        if f.kind == "array":
            yield (*above, f)
        yield from arrays(members(f), version, (*above, f))


def crowded(of: Layout, chain: Chain, count: int = ELEMENTS) -> bytes:
    """As few bytes as can be around an array of elements as small as can be."""
    return interpret.write(of, with_array(of.fields, of.version, chain, count))


def with_array(fields: Chain, version: int, chain: Chain, count: int) -> dict[str, Any]:
    values, f = smallest(fields, version), chain[0]
    if len(chain) > 1:
        below = with_array(members(f), version, chain[1:], count)
        return {**values, f.name: [below] if f.kind == "array" else below}
    return {**values, f.name: [smallest_element(f, version)] * count}


def smallest_element(f: Field, version: int) -> Any:
    return smallest(f.of, version) if isinstance(f.of, tuple) else zero(f.of)


def smallest(fields: Chain, version: int) -> dict[str, Any]:
    """Lists are empty rather than null, which takes as many bytes and no memory."""
    return {f.name: smallest_value(f, version) for f in present(fields, version)[0]}


def smallest_value(f: Field, version: int) -> Any:
    if f.kind == "array":
        return []
    if f.kind == "struct":
        return None if version in f.null else smallest(members(f), version)
    return zero(f.kind)


def zero(kind: str) -> Any:
    if kind in FIXED:
        return interpret.STRUCTS[kind].unpack(bytes(FIXED[kind][1]))[0]
    return "" if kind == "string" else b""


def test_every_element_of_every_array_takes_as_many_bytes_as_is_reckoned_with_and_one_at_least() -> None:
    for of in LAYOUTS:
        for chain in arrays(of.fields, of.version):
            size = len(crowded(of, chain, 2)) - len(crowded(of, chain, 1))
            assert size == least_size(chain[-1], of.version, of.flexible) >= 1, (of, chain[-1].name)


@every_api
def test_arrays_of_the_smallest_elements_take_bounded_memory_whole_or_cut_short(
    api: Api,
) -> None:
    for version in edges(api):
        for side in SIDES:
            of = layout(api.key, version, side)
            for chain in arrays(of.fields, version):
                data = crowded(of, chain)
                read = partial(decode, key=api.key, version=version, side=side)
                for body in (data, data[:-1]):
                    refused_or_read(read, body)  # makes the functions
                    assert peak(read, body) < bound(body), (of, [f.name for f in chain])


@every_api
def test_picks_of_marked_fields_from_arrays_of_the_smallest_elements_take_bounded_memory(api: Api) -> None:
    for version in edges(api):
        for side in SIDES:
            of = layout(api.key, version, side)
            pick: Callable[..., Any] = compile.pick(of, tuple(marked(of.fields, version, MARKS)))
            for chain in arrays(of.fields, version):
                data = crowded(of, chain)
                for body in (data, data[:-1]):
                    read = partial(pick, pos=0, end=len(body))
                    refused_or_read(read, body)  # makes the functions
                    assert peak(read, body) < bound(body), (of, [f.name for f in chain])


def edges(api: Api) -> list[int]:
    """The last classic version, and the newest."""
    first, last = api.versions
    return sorted({min(max(api.flexible.first - 1, first), last), last})


def bound(data: bytes) -> int:
    return MOST_MEMORY * len(data) + SOME_KB


def peak(read: Callable[[bytes], object], data: bytes) -> int:
    tracemalloc.start()
    try:
        refused_or_read(read, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused_or_read(read: Callable[[bytes], object], data: bytes) -> object:
    try:
        return read(data)
    except (DecodeError, *compile.UNREADABLE) as refusal:
        return refusal


def test_a_refusal_that_is_kept_does_not_keep_what_was_read() -> None:
    of = layout("CreatePartitions", 3, "request")
    chain = next(chain for chain in arrays(of.fields, 3) if chain[-1].name == "assignments")
    data = crowded(of, chain)[:-1]
    refused_or_read(partial(decode, key=of.api, version=3, side="request"), data)  # makes the functions
    tracemalloc.start()
    try:
        refusals = [refused_or_read(lambda body: decode(body, of.api, 3, "request"), data) for _ in range(3)]
        assert all(isinstance(refusal, DecodeError) for refusal in refusals)
        gc.collect()  # empties CPython's free lists too
        assert tracemalloc.get_traced_memory()[0] < 3 * SOME_KB
    finally:
        tracemalloc.stop()


@every_api
def test_huge_counts_and_lengths_take_no_memory(api: Api) -> None:
    for of in layouts(api):
        data = message(of, Random(SEED), alike=True)
        huge = HUGE if of.flexible else (2**31 - 1).to_bytes(4)
        for at in range(0, len(data), max(1, len(data) // 8)):
            damaged = data[:at] + huge + data[at + 1 :]
            read = partial(decode, key=of.api, version=of.version, side=of.side)
            refused_or_read(read, damaged)
            assert peak(read, damaged) < bound(damaged), (of, damaged.hex())


def steps(read: Callable[[bytes], object], data: bytes) -> int:
    """Lines of Python run by the decoders."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        refused_or_read(read, data)
    finally:
        sys.settrace(before)
    return count


@every_api
def test_twice_the_elements_take_twice_the_steps_whether_read_or_refused(api: Api) -> None:
    for side in SIDES:
        of = layout(api.key, api.versions.last, side)
        for chain in arrays(of.fields, of.version):
            few, many = (crowded(of, chain, count) for count in (20, 40))
            for read in (partial(interpret.read, of), partial(whole, of)):
                for cut in (0, 1):
                    refused_or_read(read, many)  # makes the functions
                    once, twice = (steps(read, data[: len(data) - cut]) for data in (few, many))
                    assert twice <= 2 * once, (of, [f.name for f in chain])


def whole(of: Layout, data: bytes) -> object:
    return reader(of)(data, 0, len(data))


def test_a_value_that_a_walk_keeps_is_joined_once_however_small_the_chunks() -> None:
    size = 1 << 16
    walking: Any = compile.walk(layout("SaslAuthenticate", 2, "request"), (("auth_bytes",),))()
    next(walking)
    walking.send(uvarint(size + 1))
    waiting = walking.gi_yieldfrom
    for _ in range(size - 1):
        walking.send(b"k")
    assert walking.gi_yieldfrom is waiting is not None
    with pytest.raises(StopIteration) as end:
        walking.send(b"k")
    assert end.value.value == (b"k" * size, 0)

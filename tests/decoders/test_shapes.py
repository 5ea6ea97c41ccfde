"""Array elements of one shape are read by functions made for it; the values are the interpreter's."""

from random import Random
from typing import Any

import pytest

from klamm.decoders import compile, decode, encode, interpret, layout
from klamm.decoders.emit.alike import MOST_SHAPES, Alikes
from klamm.decoders.schema import members

PIECES = ["", "a", "bb", "ä", "\udcff", "x" * 126, "y" * 127, "z" * 200, None]
VERSIONS = [7, 8]  # classic and flexible


def commit(metadata: list[list[str | None]]) -> dict[str, Any]:
    """An OffsetCommit request: a topic for each list, a partition for each text."""
    return {
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partition_index": i, "committed_offset": i, "committed_metadata": text}
                    for i, text in enumerate(texts)
                ],
            }
            for texts in metadata
        ]
    }


def decoded(version: int, metadata: list[list[str | None]]) -> list[list[str | None]]:
    body = encode(commit(metadata), "OffsetCommit", version, "request")
    of = layout("OffsetCommit", version, "request")
    values = decode(body, "OffsetCommit", version, "request")
    assert values == interpret.read(of, body)[0]
    return [[p["committed_metadata"] for p in topic["partitions"]] for topic in values["topics"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("of_a_shape", [1, 2, 3, 10])
def test_rows_of_a_shape_may_change_anywhere(version: int, of_a_shape: int) -> None:
    random = Random(3)
    for _ in range(40):
        topics = [
            [text for _ in range(random.randrange(6)) for text in [random.choice(PIECES)] * of_a_shape]
            for _ in range(random.randrange(5))
        ]
        assert decoded(version, topics) == topics


@pytest.mark.parametrize("version", VERSIONS)
def test_more_shapes_than_functions_are_kept_for_are_read_too(version: int) -> None:
    topics: list[list[str | None]] = [["x" * size] * 8 for size in range(3 * MOST_SHAPES)]
    assert decoded(version, topics) == topics


def test_functions_are_made_for_a_bounded_number_of_shapes_and_for_short_values_only() -> None:
    of = layout("OffsetCommit", 8, "request")
    partitions = next(f for f in members(of.fields[-1]) if f.name == "partitions")
    alikes = Alikes(of, members(partitions))
    assert alikes[(127,)] is None
    assert len(alikes) == 0
    made = [alikes[(size,)] for size in range(3 * MOST_SHAPES)]
    assert [function is not None for function in made] == [size < MOST_SHAPES for size in range(len(made))]


def test_a_run_of_one_shape_takes_one_struct_and_ends_where_the_shape_does() -> None:
    of = layout("OffsetCommit", 8, "request")
    topics = next(f for f in of.fields if f.name == "topics")
    partitions = next(f for f in members(topics) if f.name == "partitions")
    alike = Alikes(of, members(partitions))[(2,)]
    assert alike is not None
    element = b"\0\0\0\1" + b"\0" * 7 + b"\5" + b"\xff" * 4 + b"\3" + b"ab" + b"\0"
    items: list[object] = []
    data = element * 3 + element[:16] + b"\2a\0" + b"\0" * 40
    assert alike(data, 0, len(data), 9, items) == (60, 6)
    assert len(items) == 3
    assert alike(data, 0, 39, 9, items) == (20, 8), "only what ends before `end`"
    assert alike(data, 0, len(data), 0, items) == (0, 0)


def test_a_reader_makes_a_function_for_a_shape_that_it_meets_twice() -> None:
    of = layout("OffsetCommit", 8, "request")
    read = compile.read(of)
    body = encode(commit([["ab"] * 8]), "OffsetCommit", 8, "request")
    read(body, 0, len(body))
    made = [alikes for alikes in read.__globals__.values() if isinstance(alikes, Alikes) and alikes]
    assert [list(alikes) for alikes in made] == [[(2,)]]

"""What many frames name, swept up: judged by the reader of single bodies."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from klamm.captures.captured import Blanks
from klamm.captures.frames import header_version
from klamm.captures.storage.segments import COLUMNS, schema
from klamm.decoders import API
from klamm.decoders.compile import locate
from klamm.decoders.interpret import Layout, write
from klamm.decoders.schema import ERROR, RECORDS, Api, marked
from klamm.pipeline import naming_columns, sweeping
from klamm.pipeline.bodies import NAMED, STORED, Bodies, rows_of
from klamm.pipeline.naming_columns import TYPES, names, with_names
from klamm.rules.subjects import at
from tests.decoders.hostile import layouts, struct_of

every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)
CLIENT = b"\0\3app"
Row = tuple[Layout, int, bytes, Blanks]  # with the API's key


def head(of: Layout, key: int) -> bytes:
    version = header_version(key, of.version, of.side)
    if of.side == "response":
        return bytes(4) + (b"\0" if version else b"")
    return bytes(8) + (CLIENT if version else b"") + (b"\0" if version == 2 else b"")


def frames(rows: Iterable[Row]) -> pa.RecordBatch:
    """As segments have them."""
    columns = zip(
        *(("frame", key, of.version, of.side, frame, blanks) for of, key, frame, blanks in rows), strict=True
    )
    types = {name: schema().field(name).type for name in COLUMNS}
    found = {}
    for name, values in zip(STORED, columns, strict=True):
        if name == "blanks":
            values = [[dict(zip(("offset", "size"), one, strict=True)) for one in some] for some in values]
        coded = pa.types.is_dictionary(types[name])
        found[name] = pa.array(values, pa.string() if coded else types[name])
        found[name] = found[name].dictionary_encode() if coded else found[name]
    return pa.RecordBatch.from_pydict(found)


def one_by_one(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    told = Bodies(frozenset(NAMED), False).columns(rows_of(batch))
    return {name: pa.array(told[name], TYPES[name]).to_pylist() for name in NAMED}


def swept(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    found = names(batch, Bodies(frozenset(NAMED), False))
    return {name: found[name].to_pylist() for name in NAMED}


def harmed(frame: bytes, random: Random) -> bytes:
    """Cut off, or with a byte that is another."""
    if random.random() < 0.5 or not frame:
        return frame[: random.randrange(len(frame) + 1)]
    at = random.randrange(len(frame))
    return frame[:at] + bytes([random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))]) + frame[at + 1 :]


def message(of: Layout, random: Random, alike: bool) -> bytes:
    """Mostly without errors."""
    values = struct_of(of.fields, of.version, alike, random)
    for path in marked(of.fields, of.version, frozenset({ERROR})):
        for holder in at(values, path[:-1]):
            if alike or random.random() < 0.9:
                holder[path[-1]] = 0
    return write(of, values)


@pytest.mark.parametrize("few", [1, 8])
@every_api
def test_names_are_those_of_the_reader_of_single_bodies(
    api: Api, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming_columns, "LEAST", 1)
    monkeypatch.setattr(sweeping, "FEW", few)
    for of in layouts(api):
        random = Random(f"{of} {few}")
        whole = [head(of, api.key) + message(of, random, alike) for alike in (False, True) * 8]
        harm = [harmed(frame, random) for frame in whole * 2]
        batch = frames((of, api.key, frame, ()) for frame in [*whole, *harm])
        assert swept(batch) == one_by_one(batch), of


class Never(Bodies):
    def columns(self, rows: Iterable[Any]) -> dict[str, list[Any]]:
        raise AssertionError(list(rows))


@pytest.mark.parametrize(
    "name", ["Produce", "Fetch", "Metadata", "OffsetCommit", "Heartbeat", "FindCoordinator"]
)
def test_what_is_usual_is_swept_up(name: str) -> None:
    for of in layouts(API[name]):
        random = Random(str(of))
        whole = [
            head(of, API[name].key) + message(of, random, alike=True) for _ in range(naming_columns.LEAST)
        ]
        batch = frames((of, API[name].key, frame, ()) for frame in whole)
        found = names(batch, Never(frozenset(NAMED), False))
        assert {name: found[name].to_pylist() for name in NAMED} == one_by_one(batch)


@pytest.mark.parametrize(("name", "side"), [("Produce", "request"), ("Fetch", "response")])
def test_what_was_left_out_of_frames_is_not_missed(
    name: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming_columns, "LEAST", 1)
    monkeypatch.setattr(sweeping, "FEW", 1)
    for of in layouts(API[name]):
        if of.side != side:
            continue
        random, rows = Random(str(of)), []
        for _ in range(20):
            begins, body = head(of, API[name].key), message(of, random, alike=True)
            spans = locate(of, tuple(marked(of.fields, of.version, frozenset({RECORDS}))))(body, 0, len(body))
            cut, blanks = begins + body, []
            for _, _, end, _ in reversed(spans[:: random.randrange(1, 3)]):
                stop = len(begins) + end - random.randrange(2)
                size = random.randrange(1, 3)
                cut = cut[: stop - size] + cut[stop:]
                blanks.insert(0, (stop - size, size))
            rows.append((of, API[name].key, cut, tuple(blanks)))
        batch = frames(rows)
        found = names(batch, Never(frozenset(NAMED), False))
        assert {name: found[name].to_pylist() for name in NAMED} == one_by_one(batch)
        assert any(found["topics"].to_pylist()) or any(found["topic_ids"].to_pylist())
        wrong = frames((of, key, frame[: len(frame) // 2], blanks) for of, key, frame, blanks in rows)
        assert swept(wrong) == one_by_one(wrong)


def test_frames_of_nothing_known_are_null() -> None:
    of = next(layouts(API["Heartbeat"]))
    batch = frames([(of, -1, b"", ()), (of, 9999, b"12345678", ()), (of, API["Heartbeat"].key, b"", ())])
    assert swept(batch) == {name: [None] * 3 for name in NAMED}


def test_topics_are_named_by_their_ids_too() -> None:
    topics = pa.array([["a"], [], None, ["b", "a"], []], TYPES["topics"])
    ids = pa.array([["1", "2"], ["3"], None, [], []], TYPES["topic_ids"])
    known = {"1": "one", "2": "a"}
    assert with_names(topics, ids, known).to_pylist() == [["a", "one"], ["3"], None, ["b", "a"], []]
    assert with_names(topics, topics.slice(4), known).to_pylist() == topics.to_pylist()

"""Many frames swept at once, judged by the reader of single bodies, and by Spark's reader of VARIANT."""

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from klamm.captures.captured import Blanks
from klamm.captures.frames import header_version
from klamm.captures.storage.segments import COLUMNS, schema
from klamm.decoders import API, encode, layout
from klamm.decoders.compile import locate
from klamm.decoders.interpret import Layout, write
from klamm.decoders.schema import ERROR, RECORDS, Api, marked
from klamm.pipeline.bodies import decoding, sweeping, swept_frames, variants
from klamm.pipeline.bodies.decoding import Decoding
from klamm.pipeline.bodies.naming_columns import TYPES, with_names
from klamm.pipeline.bodies.one_by_one import NAMED, STORED, Bodies, rows_of
from klamm.pipeline.schemas import BODY, VARIANT
from klamm.rules.subjects import at
from tests.decoders.hostile import layouts, struct_of

WHAT = {"names": NAMED, "bodies": (BODY, VARIANT), "both": (*NAMED, BODY, VARIANT)}
every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)
CLIENT = b"\0\3app"
Row = tuple[Layout, int, bytes, Blanks]  # with the API's key


def head(of: Layout, key: int) -> bytes:
    version = header_version(key, of.version, of.side)
    if of.side == "response":
        return bytes(4) + (b"\0" if version else b"")
    return bytes(8) + (CLIENT if version else b"") + (b"\0" if version == 2 else b"")


def frames(rows: Iterable[Row], sent: Sequence[bytes | None] | None = None) -> pa.RecordBatch:
    """As segments have them; `sent`: what klamm sent in their place."""
    columns: Iterable[Any] = zip(
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
    count = len(found["frame"])
    found["forwarded"] = pa.array(sent or [None] * count, types["forwarded"])
    found["forwarded_blanks"] = pa.array([[]] * count, types["forwarded_blanks"])
    return pa.RecordBatch.from_pydict(found)


def one_by_one(batch: pa.RecordBatch, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    values = Bodies(frozenset(columns), False).columns(rows_of(batch))
    found = {name: pa.array(values[name], TYPES[name]).to_pylist() for name in NAMED if name in columns}
    if BODY in columns:
        found[BODY] = [None if body is None else json.loads(body) for body in values[BODY]]
    return found


def swept(batch: pa.RecordBatch, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    values = Decoding(columns).columns(batch)
    found = {name: values[name].to_pylist() for name in NAMED if name in columns}
    if BODY in columns:
        both = zip(values[VARIANT].to_pylist(), values[BODY].to_pylist(), strict=True)
        found[BODY] = [
            VariantVal(**variant).toPython() if variant else body and json.loads(body)
            for variant, body in both
        ]
    return found


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


@pytest.mark.sampled(70)
@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("few", [1, 8])
def test_a_key_is_a_group_where_its_type_says_so(
    version: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "FEW", few)
    of, rows, groups = layout("FindCoordinator", version, "request"), list[Row](), list[list[str]]()
    for number in range(12):
        keys = [f"key-{number}", f"other-{number}"] if version >= 4 else [f"key-{number}"]
        kind = number % 3 if version else 0
        values = {"key": keys[0], "coordinator_keys": keys, "key_type": kind}
        there = {name: values[name] for name, _ in ((f.name, f) for f in of.fields if version in f.versions)}
        body = encode(there, "FindCoordinator", version, "request")
        rows.append((of, API["FindCoordinator"].key, head(of, 10) + body, ()))
        groups.append(keys if kind == 0 else [])
    batch = frames(rows)
    for read in (swept, one_by_one):
        assert read(batch, NAMED)["groups"] == groups


@pytest.mark.parametrize("columns", [("errors",), (*NAMED, BODY, VARIANT)])
def test_errors_of_a_changed_answer_are_those_that_the_client_was_told(columns: tuple[str, ...]) -> None:
    of = layout("Heartbeat", 3, "response")
    bodies = [head(of, 12) + write(of, {"throttle_time_ms": 0, "error_code": code}) for code in (0, 27, 25)]
    fine, rebalance, unknown = bodies
    rows = [(of, 12, each, ()) for each in (fine, rebalance, fine, rebalance, fine)]
    batch = frames(rows, [None, None, unknown, unknown, fine[:-1]])
    told = swept(batch, columns)["errors"]
    assert [None if one is None else [error["name"] for error in one] for one in told] == [
        [],
        ["REBALANCE_IN_PROGRESS"],
        ["UNKNOWN_MEMBER_ID"],
        ["UNKNOWN_MEMBER_ID"],
        None,
    ]


@pytest.mark.parametrize(("what", "few"), [("names", 1), ("names", 8), ("both", 1)])
@every_api
def test_what_is_told_is_what_the_reader_of_single_bodies_tells(
    api: Api, what: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swept_frames, "LEAST", 1)
    monkeypatch.setattr(sweeping, "FEW", few)
    for of in layouts(api):
        random = Random(f"{of} {few}")
        whole = [head(of, api.key) + message(of, random, alike) for alike in (False, True) * 8]
        harm = [harmed(frame, random) for frame in whole * 2]
        batch = frames((of, api.key, frame, ()) for frame in [*whole, *harm])
        assert swept(batch, WHAT[what]) == one_by_one(batch, WHAT[what]), of


class Never(Bodies):
    def columns(self, rows: Iterable[Any]) -> dict[str, list[Any]]:
        raise AssertionError(list(rows))


@pytest.mark.parametrize("what", ["names", "both"])
@pytest.mark.parametrize(
    "name", ["Produce", "Fetch", "Metadata", "OffsetCommit", "Heartbeat", "FindCoordinator"]
)
def test_what_is_usual_is_swept_up(name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "Bodies", Never)
    monkeypatch.setattr(swept_frames, "LEAST", sweeping.FEW)
    for of in layouts(API[name]):
        random = Random(str(of))
        whole = [head(of, API[name].key) + message(of, random, alike=True) for _ in range(sweeping.FEW)]
        batch = frames((of, API[name].key, frame, ()) for frame in whole)
        assert swept(batch, WHAT[what]) == one_by_one(batch, WHAT[what])


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize(("name", "side"), [("Produce", "request"), ("Fetch", "response")])
def test_what_was_left_out_of_frames_is_not_missed(
    name: str, side: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = WHAT[what]
    monkeypatch.setattr(swept_frames, "LEAST", 1)
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
        with monkeypatch.context() as alone:
            alone.setattr(decoding, "Bodies", Never)
            found = swept(batch, columns)
        assert found == one_by_one(batch, columns)
        assert all(any(found[name]) for name in {BODY}.intersection(columns))
        assert BODY in columns or any(found["topics"]) or any(found["topic_ids"])
        wrong = frames((of, key, frame[: len(frame) // 2], blanks) for of, key, frame, blanks in rows)
        assert swept(wrong, columns) == one_by_one(wrong, columns)


def test_bodies_may_be_large_and_their_texts_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "Bodies", Never)
    monkeypatch.setattr(swept_frames, "LEAST", 1)
    monkeypatch.setattr(sweeping, "FEW", 1)
    key = API["Metadata"].key
    of = next(one for one in layouts(API["Metadata"]) if (one.side, one.version) == ("response", 12))
    for topics in (1, 255, 256, 700):
        rows = [
            {"name": "t" * (60 + number % 8), "partitions": [{"partition_index": number - 3}] * (number % 3)}
            for number in range(topics)
        ]
        bodies = [write(of, {"topics": some, "cluster_id": "é"}) for some in (rows, [], rows[:1])]
        batch = frames((of, key, head(of, key) + body, ()) for body in bodies)
        for columns in (WHAT["bodies"], WHAT["both"]):
            assert swept(batch, columns) == one_by_one(batch, columns)


def test_a_long_text_of_all_bodies_is_no_offset_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swept_frames, "LEAST", 1)
    monkeypatch.setattr(sweeping, "FEW", 1)
    key = API["SyncGroup"].key
    of = next(one for one in layouts(API["SyncGroup"]) if (one.side, one.version) == ("response", 5))
    body = write(of, {"assignment": bytes(60_000), "protocol_type": "consumer", "protocol_name": None})
    batch = frames((of, key, head(of, key) + body, ()) for _ in range(3))
    monkeypatch.setattr(decoding, "Bodies", Never)
    assert swept(batch, WHAT["both"]) == one_by_one(batch, WHAT["both"])
    monkeypatch.setattr(variants, "MOST_BYTES", 60_000)
    assert swept(batch, WHAT["both"])[BODY] == [None] * 3


def test_frames_of_nothing_known_are_null() -> None:
    of = next(layouts(API["Heartbeat"]))
    batch = frames([(of, -1, b"", ()), (of, 9999, b"12345678", ()), (of, API["Heartbeat"].key, b"", ())])
    assert swept(batch, WHAT["both"]) == {name: [None] * 3 for name in (*NAMED, BODY)}


def test_topics_are_named_by_their_ids_too() -> None:
    topics = pa.array([["a"], [], None, ["b", "a"], []], TYPES["topics"])
    ids = pa.array([["1", "2"], ["3"], None, [], []], TYPES["topic_ids"])
    known = {"1": "one", "2": "a"}
    assert with_names(topics, ids, known).to_pylist() == [["a", "one"], ["3"], None, ["b", "a"], []]
    assert with_names(topics, topics.slice(4), known).to_pylist() == topics.to_pylist()

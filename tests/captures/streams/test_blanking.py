"""Blanking: a capture keeps no secrets, and of records as much as was asked for."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.captures.captured import Captured
from klamm.captures.streams.blanking import METADATA_TOPIC, METADATA_TOPIC_ID, Keeping
from klamm.captures.streams.cutting import cut, filled
from klamm.captures.streams.record_content import MARKER_BYTES, blanked, hashed
from klamm.decoders import API, decode
from klamm.decoders.headers import (
    read_request_header,
    read_response_header,
    request_frame,
    request_header_version,
    response_frame,
    response_header_version,
)
from klamm.decoders.interpret import Layout
from klamm.decoders.records import Batch, Record, batches, records, write
from klamm.decoders.schema import RECORDS, SECRET, Field, marked, members
from tests.captures.made_traffic import (
    CODECS,
    PLANTED,
    TOPIC_ID,
    Step,
    batch,
    contents,
    exchange_steps,
    of_any_api,
    of_layout,
    play,
)
from tests.decoders.hostile import LAYOUTS
from tests.proxy.traffic import at_random, exchange

SECRET_TEXT = b"hush-hush-this-is-secret"
KEY = b"the key of this run"
HEADER = 61  # of a batch of magic 2
EVERY = ("blank", "keep", "hash")


def with_mark(mark: str) -> list[Layout]:
    return [of for of in LAYOUTS if marked(of.fields, of.version, frozenset({mark}))]


def frame_of(of: Layout, body: bytes) -> list[Step]:
    """The frame of a body, behind its request if it is a response."""
    api = API[of.api]
    if of.side == "request":
        return [Step("request", request_frame(api, of.version, 1, "app", body))]
    header = request_header_version(api, of.version)
    asked = request_frame(api, of.version, 1, "app" if header else None, b"\xff" * 20)
    return [Step("request", asked), Step("response", response_frame(api, of.version, 1, body))]


def values_of(row: Captured, frame: bytes) -> dict[str, Any]:
    api, version = API[row.api_key], row.api_version
    if row.side == "request":
        start = read_request_header(frame, request_header_version(api, version)).size
    else:
        start = read_response_header(frame, response_header_version(api, version)).size
    return decode(frame[start:], api.key, version, row.side or "request")


def without(values: dict[str, Any], fields: tuple[Field, ...], marks: set[str | None]) -> dict[str, Any]:
    """The values, those of fields with a mark replaced by zeros."""
    found = dict(values)
    for f in fields:
        value = values.get(f.name)
        if value is None:
            continue
        if f.mark in marks:
            found[f.name] = "\0" * len(value.encode()) if f.kind == "string" else bytes(len(value))
        elif f.kind == "array" and members(f):
            found[f.name] = [without(each, members(f), marks) for each in value]
        elif f.kind == "struct":
            found[f.name] = without(value, members(f), marks)
    return found


@pytest.mark.parametrize("kept", EVERY)
@pytest.mark.parametrize("of", with_mark(SECRET), ids=str)
def test_secrets_are_blanked_and_all_else_reads_as_it_did(of: Layout, kept: Any) -> None:
    body = of_layout(of, Random(3), SECRET_TEXT)
    rows = play(frame_of(of, body), keeping=Keeping(kept, KEY))
    assert SECRET_TEXT not in contents(rows)
    row = rows[-2]
    assert row.frame is not None
    before = decode(body, of.api, of.version, of.side)
    assert values_of(row, filled(row.frame, row.blanks)) == without(before, of.fields, {SECRET})


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kept", EVERY)
def test_planted_secrets_and_records_are_nowhere(kept: Any, seed: int) -> None:
    random = Random(seed)
    steps = of_any_api(random, 60, SECRET_TEXT)
    there = contents(play(steps, at_random(random), Keeping(kept, KEY)))
    assert SECRET_TEXT in b"".join(step.data for step in steps)
    assert SECRET_TEXT not in there
    assert kept == "keep" or PLANTED not in there


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kept", EVERY)
@pytest.mark.parametrize("of", with_mark(RECORDS), ids=str)
def test_frames_with_records_read_as_they_did_but_for_what_is_in_the_batches(
    of: Layout, kept: Any, codec: str
) -> None:
    body = of_layout(of, Random(5))
    row = play(frame_of(of, body), keeping=Keeping(kept, KEY))[-2]
    assert row.frame is not None
    before = decode(body, of.api, of.version, of.side)
    after = values_of(row, filled(row.frame, row.blanks))
    assert without(after, of.fields, {RECORDS}) == without(before, of.fields, {RECORDS})


@pytest.mark.parametrize("codec", CODECS)
def test_blanked_batches_keep_their_headers_and_nothing_else(codec: str) -> None:
    data = batch(codec) + batch(codec, 1)
    blanks = tuple((start, stop - start) for start, stop, _ in blanked(data, 0, len(data)))
    after = filled(cut(data, blanks), blanks)
    first, second = batches(data)
    assert blanks == tuple((one.start + HEADER, one.size - HEADER) for one in (first, second))
    assert [one._replace(data=b"") for one in batches(after)] == [
        one._replace(data=b"") for one in (first, second)
    ]
    assert PLANTED not in after


@pytest.mark.parametrize("magic", [0, 1])
def test_blanked_messages_keep_their_headers_and_lengths(magic: int) -> None:
    data = batch(magic=magic)
    blanks = tuple((start, stop - start) for start, stop, _ in blanked(data, 0, len(data)))
    after = filled(cut(data, blanks), blanks)
    read = [record for one in batches(after) for record in records(one)]
    whole = [record for one in batches(data) for record in records(one)]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read] == [
        (r.offset, r.timestamp, bytes(len(r.key or b"")), bytes(len(r.value or b""))) for r in whole
    ]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_blanked_compressed_messages_keep_their_headers(codec: str, magic: int) -> None:
    data = batch(codec, magic=magic)
    ((start, stop, _),) = blanked(data, 0, len(data))
    (one,) = batches(data)
    assert (start, stop) == (len(data) - len(_value(data, magic)), len(data))
    after = data[:start] + bytes(stop - start)
    assert [again._replace(data=b"") for again in batches(after)] == [one._replace(data=b"")]


def _value(data: bytes, magic: int) -> bytes:
    return data[(18, 26)[magic] + 8 :]  # behind the lengths of a null key and of itself


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_of_a_batch_that_is_cut_short_at_most_the_header_stays(magic: int) -> None:
    data = batch(magic=magic, content=b"\xaa" * 40 if magic < 2 else b"a" * 40)
    header = (18, 26, HEADER)[magic]
    first = next(batches(data)).end
    for end in range(first):
        edits = blanked(data[:end], 0, end)
        assert edits == ([] if end <= header else [(header, end, None)]), end


@pytest.mark.parametrize("data", [b"\xff" * 100, bytes(16) + b"\3" + b"secret" * 9, bytes(8) + b"\xff" * 90])
def test_bytes_that_are_no_batches_are_blanked_whole(data: bytes) -> None:
    assert blanked(data, 0, len(data)) == hashed(data, 0, len(data), KEY) == [(0, len(data), None)]
    behind = batch() + data
    assert blanked(behind, 0, len(behind))[-1] == (len(behind) - len(data), len(behind), None)


def test_a_message_whose_lengths_are_wrong_is_blanked_behind_its_header() -> None:
    data = bytearray(batch(count=1, magic=1))
    data[26:30] = b"\x7f\0\0\0"
    assert blanked(bytes(data), 0, len(data)) == [(26, len(data), None)]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_hashes_have_the_lengths_of_what_they_stand_for_and_equal_ones_stay_equal(magic: int) -> None:
    headers = (("trace", b"abc"), ("other", None)) if magic == 2 else ()
    rows = [
        Record(0, 5, b"customer-1", b"x" * 100, headers), Record(1, 6, b"customer-2", b"x" * 100),
        Record(2, 7, b"customer-1", b"", headers), Record(3, 8, None, None),
    ]  # fmt: skip
    if magic == 0:
        rows = [Record(r.offset, -1, r.key, r.value) for r in rows]
    data = write(Batch(magic=magic), rows)
    after, same, other = (_hashed(data, key) for key in (KEY, KEY, b"another"))
    assert after == same != other
    assert len(after) == len(data)
    assert all(one.crc_ok for one in batches(after))
    read = [record for one in batches(after) for record in records(one)]
    for record, whole in zip(read, rows, strict=True):
        assert (record.offset, record.timestamp) == (whole.offset, whole.timestamp)
        for new, old in ((record.key, whole.key), (record.value, whole.value)):
            assert (new is None) == (old is None)
            assert len(new or b"") == len(old or b"")
        assert [len(name) for name, _ in record.headers] == [len(name) for name, _ in whole.headers]
    assert read[0].key == read[2].key != read[1].key
    assert read[0].headers == read[2].headers
    assert read[0].value == read[1].value
    assert b"customer" not in after
    assert b"xxx" not in after
    assert magic < 2 or b"trace" not in after


def _hashed(data: bytes, key: bytes) -> bytes:
    edits = hashed(data, 0, len(data), key)
    assert edits[0][0] == 0
    return b"".join(new or b"" for _, _, new in edits)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_where_hashes_do_not_fit_the_content_is_blanked(codec: str) -> None:
    data = batch(codec)
    assert hashed(data, 0, len(data), KEY) == [(HEADER, len(data), None)]


@pytest.mark.parametrize("kept", EVERY)
@pytest.mark.parametrize("version", [11, 12, 17])
@pytest.mark.parametrize("form", [False, True])
def test_records_of_kafka_s_own_metadata_are_never_kept(kept: Any, version: int, form: bool) -> None:
    names = {"topic_id": METADATA_TOPIC_ID} if version >= 13 else {"topic": METADATA_TOPIC}
    usual = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "x" * len(METADATA_TOPIC)}
    rows = [{"partition_index": 0, "records": batch()}]
    steps = []
    for number in range(20 if form else 1):
        for name in (names, usual):
            steps += exchange_steps(
                exchange("Fetch", version, {}, {"responses": [{**name, "partitions": rows}]}, number)
            )
    answers = [row for row in play(steps, keeping=Keeping(kept, KEY)) if row.side == "response"]
    assert [PLANTED in (row.frame or b"") for row in answers] == [False, kept == "keep"] * (len(answers) // 2)


@pytest.mark.parametrize("kept", EVERY)
def test_snapshots_of_kafka_s_own_metadata_are_never_kept(kept: Any) -> None:
    partition = {"index": 0, "unaligned_records": batch()[5:]}
    topics = [{"name": METADATA_TOPIC, "partitions": [partition]}]
    row = play(exchange_steps(exchange("FetchSnapshot", 1, {}, {"topics": topics})), keeping=Keeping(kept))[
        -2
    ]
    assert row.frame is not None
    after = values_of(row, filled(row.frame, row.blanks))
    assert after["topics"][0]["partitions"][0]["unaligned_records"] == bytes(len(batch()) - 5)


def test_what_clients_say_of_themselves_stays() -> None:
    said_of_itself = {"client_software_name": "librdkafka", "client_software_version": "2.5"}
    rows = play(exchange_steps(exchange("ApiVersions", 3, said_of_itself, {})), keeping=Keeping("blank"))
    assert b"librdkafka" in (rows[0].frame or b"")


@pytest.mark.parametrize("seed", range(20))
def test_a_frame_that_was_cut_is_filled_again(seed: int) -> None:
    random = Random(seed)
    frame = random.randbytes(200)
    places = sorted(random.sample(range(201), 2 * random.randrange(1, 6)))
    blanks = tuple((start, stop - start) for start, stop in zip(places[::2], places[1::2], strict=True))
    expected = bytearray(frame)
    for at, size in blanks:
        expected[at : at + size] = bytes(size)
    assert filled(cut(frame, blanks), blanks) == bytes(expected)
    assert len(cut(frame, blanks)) == len(frame) - sum(size for _, size in blanks)


@pytest.mark.parametrize("blanks", [((30, 4),), ((5, 2), (3, 1)), ((-1, 3),), ((2, -1),)])
def test_blanks_that_do_not_fit_a_frame_are_refused(blanks: Any) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        filled(b"twelve bytes", blanks)


def test_the_end_of_a_transaction_stays_as_it_is_among_hashes() -> None:
    marker = Record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")
    data = write(Batch(is_transactional=True, is_control=True, producer_id=7, producer_epoch=0), [marker])
    assert len(data) <= MARKER_BYTES
    assert hashed(data, 0, len(data), b"key") == []

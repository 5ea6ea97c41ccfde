"""Bytes that are no records: read or refused with RecordsError, in linear time and little memory."""

import contextlib
import gzip
import re
import time
import tracemalloc
import zlib
from collections.abc import Callable
from random import Random
from struct import pack

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klamm.decoders.records import (
    CODECS,
    Batch,
    MissingCodec,
    Record,
    RecordsError,
    batches,
    records,
    valid_bytes,
    write,
)
from klamm.decoders.records import codecs as records_codecs
from klamm.settings.extras import installing

MAGICS_AND_CODECS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS[: 5 if magic == 2 else 4]]
every_kind = pytest.mark.parametrize(("magic", "codec"), MAGICS_AND_CODECS)
BATCHES = [
    write(
        Batch(magic, codec=codec),
        [Record(index, index, b"k" * index, b"v" * 80, (("h", b"x"),) * (magic // 2)) for index in range(4)],
    )
    for magic, codec in MAGICS_AND_CODECS
]
MEBIBYTE = 1 << 20


def outcome(data: bytes, limit: int = MEBIBYTE) -> int | RecordsError:
    """How many records; any other exception fails the test."""
    found = 0
    try:
        assert 0 <= valid_bytes(data) <= len(data)
        for batch in batches(data):
            assert batch.crc_ok in (True, False)
            for record in records(batch, limit):
                assert len(record.key or b"") + len(record.value or b"") <= max(limit, len(data))
                found += 1
    except RecordsError as refused:
        return checked(refused, data)
    return found


def checked(refused: RecordsError, data: bytes) -> RecordsError:
    assert refused.offset is not None
    assert 0 <= refused.offset <= len(data)
    assert refused.reason in str(refused)
    return refused


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    outcome(data)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2), st.integers(0, 255), st.binary(max_size=200))
def test_any_body_behind_a_sound_header_is_read_or_refused(magic: int, attributes: int, body: bytes) -> None:
    if magic == 2:
        rest = pack(">ibIhiqqqhii", 0, 2, 0, attributes, 3, 5, 9, -1, -1, -1, 4) + body
    else:
        rest = pack(">Ibb", 0, magic, attributes - 256 if attributes > 127 else attributes) + body
    outcome(pack(">qi", 7, len(rest)) + rest)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(BATCHES), st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 255)), max_size=4)
)
def test_a_batch_with_some_bytes_changed_is_read_or_refused(
    data: bytes, changes: list[tuple[int, int]]
) -> None:
    changed = bytearray(data)
    for at, value in changes:
        changed[at % len(data)] = value
    outcome(bytes(changed))


@every_kind
def test_a_batch_cut_anywhere_is_left_out(magic: int, codec: str) -> None:
    data = BATCHES[MAGICS_AND_CODECS.index((magic, codec))]
    ends = [batch.end for batch in batches(data)]
    for cut in range(len(data) + 1):
        whole = [end for end in ends if end <= cut]
        assert valid_bytes(data[:cut]) == max(whole, default=0)
        assert outcome(data[:cut]) == (4 if whole == [len(data)] else len(whole))


@every_kind
def test_a_changed_byte_behind_the_checksum_is_noticed(magic: int, codec: str) -> None:
    data = BATCHES[MAGICS_AND_CODECS.index((magic, codec))]
    start, end = next((batch.start, batch.end) for batch in batches(data))
    first = start + (21 if magic == 2 else 17)  # a changed magic makes it another format
    for at in range(first, end):
        changed = data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :]
        assert not next(batches(changed)).crc_ok


def of_zeros(size: int) -> dict[str, bytes]:
    """So many bytes of 0, as small as each codec can have them."""
    stream = zstandard.ZstdCompressor(level=19).compressobj()
    piece = bytes(MEBIBYTE)
    packed = b"".join(stream.compress(piece) for _ in range(size // MEBIBYTE)) + stream.flush()
    block = bytes(cramjam.snappy.compress_raw(piece))
    framed = records_codecs.XERIAL + (pack(">i", len(block)) + block) * (size // MEBIBYTE)
    return {
        "gzip": gzip.compress(bytes(size)),
        "snappy": framed,
        "snappy in one block": bytes(cramjam.snappy.compress_raw(bytes(size))),
        "lz4": lz4.frame.compress(bytes(size)),
        "zstd": packed,
    }


@pytest.mark.parametrize("bomb", ["gzip", "snappy", "snappy in one block", "lz4", "zstd"])
def test_a_bomb_is_refused_before_it_takes_more_than_the_limit(bomb: str) -> None:
    data = of_zeros(64 * MEBIBYTE)[bomb]
    codec = bomb.split()[0]
    tracemalloc.start()
    try:
        with pytest.raises(RecordsError, match="more than 4,194,304 bytes"):
            records_codecs.decompress(codec, data, 4 * MEBIBYTE)
        assert tracemalloc.get_traced_memory()[1] < 6 * MEBIBYTE + len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("magic", "codec"), [kind for kind in MAGICS_AND_CODECS if kind[1] != "none"])
def test_the_limit_is_exact(magic: int, codec: str) -> None:
    data = records_codecs.compress(codec, bytes(100_000), magic)
    assert records_codecs.decompress(codec, data, 100_000, magic) == bytes(100_000)
    with pytest.raises(RecordsError, match="more than 99,999 bytes"):
        records_codecs.decompress(codec, data, 99_999, magic)


def test_a_huge_size_announced_by_snappy_or_zstd_takes_no_memory() -> None:
    snappy, zstd = b"\xff\xff\xff\xff\x0f" + bytes(20), b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 7 + b"\x0f"
    tracemalloc.start()
    try:
        for codec, data in (("snappy", snappy), ("zstd", zstd)):
            with pytest.raises(RecordsError):
                records_codecs.decompress(codec, data, 4 << 30)
        assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
    finally:
        tracemalloc.stop()


def many_gzip_members(count: int) -> bytes:
    return gzip.compress(b"") * count


def many_headers(count: int) -> bytes:
    return write(Batch(), [Record(headers=(("", None),) * count)])


def many_small_records(count: int) -> bytes:
    return write(Batch(), [Record()] * count)


def many_messages(count: int) -> bytes:
    return write(Batch(1, codec="gzip"), [Record()] * count)


@pytest.mark.parametrize("make", [many_headers, many_small_records, many_messages])
def test_time_grows_with_the_input_and_not_with_its_square(make: Callable[[int], bytes]) -> None:
    small, large = (time_of(make(count)) for count in (4_000, 40_000))
    assert large < 40 * max(small, 0.001)


def time_of(data: bytes) -> float:
    taken = []
    for _ in range(3):
        begun = time.process_time()
        outcome(data, limit=64 * MEBIBYTE)
        taken.append(time.process_time() - begun)
    return min(taken)


def test_many_gzip_members_take_time_in_proportion() -> None:
    begun = time.process_time()
    assert records_codecs.decompress("gzip", many_gzip_members(20_000), MEBIBYTE) == b""
    assert time.process_time() - begun < 20


def test_records_of_a_bomb_within_the_limit_are_made_one_at_a_time() -> None:
    data = write(Batch(codec="gzip"), [Record()] * 200_000)
    (batch,) = batches(data)
    tracemalloc.start()
    try:
        assert sum(1 for _ in records(batch)) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 3 * MEBIBYTE
    finally:
        tracemalloc.stop()


def test_the_codec_numbers_that_mean_nothing_are_refused() -> None:
    body = pack(">hiqqqhii", 5, 0, 0, 0, -1, -1, -1, 1)
    (batch,) = batches(pack(">qiibI", 0, 9 + len(body), 0, 2, 0) + body)
    with pytest.raises(RecordsError, match="codec 5, which is none of gzip, snappy, lz4, zstd"):
        records(batch)


@pytest.mark.parametrize(("codec", "package"), [("snappy", "cramjam"), ("zstd", "zstandard")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    codec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    advice = re.escape(f"{package} is not installed; run: {installing('records')}")
    with pytest.raises(MissingCodec, match=advice):
        write(Batch(codec=codec), [Record(value=b"v")])
    data = BATCHES[MAGICS_AND_CODECS.index((2, codec))]
    with pytest.raises(MissingCodec, match=package):
        list(records(next(batches(data))))


def test_random_damage_to_compressed_bytes_is_refused_or_read() -> None:
    random = Random(3)
    for codec in CODECS[1:5]:
        whole = records_codecs.compress(codec, zlib.compress(random.randbytes(3000)) * 3)
        for _ in range(300):
            at = random.randrange(len(whole))
            damaged = whole[:at] + random.randbytes(random.randrange(9)) + whole[at + random.randrange(9) :]
            with contextlib.suppress(RecordsError):
                assert len(records_codecs.decompress(codec, damaged, MEBIBYTE)) <= MEBIBYTE

"""Kafka's MemoryRecords judges how batches and message sets are read and written."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from klamm.decoders.payloads import control_record
from klamm.decoders.payloads.control_records import CONTROL_TYPES
from klamm.decoders.records import (
    CODECS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    Batch,
    Record,
    batches,
    records,
    valid_bytes,
    write,
)
from tests.oracle.records import NEWEST, WRITES_ALL, Holds, as_kafka, read, written

SEED = 41
WRITERS = {WRITES_ALL: (0, 1, 2), NEWEST: (2,)}
every_writer = pytest.mark.parametrize("kafka", WRITERS)
every_reader = pytest.mark.parametrize("kafka", [WRITES_ALL, NEWEST])


@cache
def by_kafka(kafka: str) -> list[tuple[bytes, Holds]]:
    return written(kafka, SEED, *WRITERS[kafka])


def batches_of(data: bytes) -> list[tuple[Batch, list[Record]]]:
    return [(batch, list(records(batch))) for batch in batches(data)]


def as_told(data: bytes) -> list[Holds]:
    return [as_kafka(batch, found) for batch, found in batches_of(data)]


def without_control(batch: Holds) -> Holds:
    """The batch without fields of control records, which have a test of their own."""
    kept = [
        {k: v for k, v in one.items() if k not in ("control_type", "coordinator_epoch")}
        for one in batch["records"]
    ]
    return {**batch, "records": kept}


@every_writer
def test_batches_that_kafka_wrote_hold_what_kafka_reads_in_them(kafka: str) -> None:
    for data, holds in by_kafka(kafka):
        assert as_told(data) == [without_control(batch) for batch in holds["batches"]]
        assert valid_bytes(data) == holds["valid_bytes"] == len(data)


@every_writer
def test_kafka_wrote_every_codec_timestamp_type_and_kind_of_batch(kafka: str) -> None:
    seen = Counter(
        (batch["magic"], batch["codec"], batch["timestamp_type"])
        for _, holds in by_kafka(kafka)
        for batch in holds["batches"]
    )
    wanted = {(2, codec, kind) for codec in CODECS[:5] for kind in (CREATE_TIME, LOG_APPEND_TIME)}
    if kafka == WRITES_ALL:
        wanted |= {(1, codec, kind) for codec in CODECS[:4] for kind in (CREATE_TIME, LOG_APPEND_TIME)}
        wanted |= {(0, codec, NO_TIMESTAMP) for codec in CODECS[:4]}
    assert set(seen) == wanted
    new = [batch for _, holds in by_kafka(kafka) for batch in holds["batches"] if batch["magic"] == 2]
    for kind in ("is_transactional", "is_control", "delete_horizon"):
        assert {bool(batch[kind]) for batch in new} == {True, False}, kind


@every_writer
def test_control_records_are_of_the_type_and_epoch_that_kafka_says(kafka: str) -> None:
    seen = set()
    for data, holds in by_kafka(kafka):
        for batch, (_, ours) in zip(holds["batches"], batches_of(data), strict=True):
            for one, record in zip(batch["records"], ours, strict=True):
                if "control_type" not in one:
                    continue
                told_by_key, value = control_record(record.key, record.value)
                assert CONTROL_TYPES[told_by_key.values["type"]][0] == one["control_type"]
                assert value is not None
                assert value.values.get("coordinator_epoch") == one.get("coordinator_epoch")
                seen.add(one["control_type"])
    assert seen == {name for name, _ in CONTROL_TYPES.values()}


@every_writer
def test_a_batch_read_and_written_again_holds_the_same(kafka: str) -> None:
    for data, _ in by_kafka(kafka):
        for batch, found in batches_of(data):
            ours = write(batch, found)
            ((again, read_again),) = batches_of(ours)
            assert read_again == found
            kept: dict[str, Any] = {"crc": 0, "data": b"", "start": 0, "end": 0}
            assert again._replace(**kept) == batch._replace(**kept)
            if batch.codec == "none" and batch.timestamp_type != LOG_APPEND_TIME:
                assert ours == data[batch.start : batch.end]


@every_reader
def test_kafka_reads_in_batches_written_here_what_was_meant(kafka: str) -> None:
    fields = [
        b"".join(write(batch, found) for batch, found in batches_of(data)) for data, _ in by_kafka(WRITES_ALL)
    ]
    for data, holds, (_, meant) in zip(fields, read(kafka, fields), by_kafka(WRITES_ALL), strict=True):
        assert "error" not in holds, holds
        batches_read = [without_control(batch) for batch in holds["batches"]]
        assert as_told(data) == batches_read
        assert [batch["crc_ok"] for batch in batches_read] == [True] * len(batches_read)
        assert [settled(batch) for batch in holds["batches"]] == [
            settled(batch) for batch in meant["batches"]
        ]


def settled(batch: Holds) -> dict[str, Any]:
    """All that does not hang on how well a codec packs."""
    return {name: value for name, value in batch.items() if name not in ("crc", "size")}


@every_reader
def test_where_a_cut_field_ends_kafka_and_we_agree(kafka: str) -> None:
    cuts = []
    for data, _ in by_kafka(WRITES_ALL)[::7]:
        second = list(batches(data))[-1].start
        cuts += [
            data[:at] for at in (second, second + 1, second + 12, second + 16, second + 17, len(data) - 1)
        ]
    for data, holds in zip(cuts, read(kafka, cuts), strict=True):
        assert valid_bytes(data) == holds["valid_bytes"]
        assert as_told(data) == [without_control(batch) for batch in holds["batches"]]


@every_reader
def test_damage_that_kafka_reads_through_is_read_alike(kafka: str) -> None:
    """One bit in each batch: the checksum is wrong for both, or it is not covered by it."""
    damaged = []
    for index, (data, _) in enumerate(by_kafka(WRITES_ALL)):
        at = 17 + index * 131 % (len(data) - 17)
        damaged.append(data[:at] + bytes([data[at] ^ 1 << index % 8]) + data[at + 1 :])
    compared = 0
    for data, holds in zip(damaged, read(kafka, damaged), strict=True):
        try:
            ours = as_told(data)
        except ValueError:
            continue
        if "error" not in holds:
            compared += 1
            assert [batch["crc_ok"] for batch in ours] == [batch["crc_ok"] for batch in holds["batches"]]
    assert compared > 20

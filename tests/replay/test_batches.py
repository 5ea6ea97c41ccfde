"""Batches get another producer, and checksums that fit."""

from klamm.decoders.records import Batch, Record, batches, records, write
from klamm.replay.batches import with_producers

RECORDS = [Record(0, 5, b"k", b"v"), Record(1, 6, None, b"w" * 300)]


def by(producer_id: int, epoch: int, codec: str = "none") -> bytes:
    return write(Batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=7, codec=codec), RECORDS)


def test_each_batch_has_its_own_producer_in_a_valid_checksum() -> None:
    data = by(4, 1) + by(9, 0, "gzip")
    expected = {(4, 1): (2**40, 3), (9, 0): (11, 0)}
    found = list(batches(with_producers(data, lambda producer_id, epoch: expected[producer_id, epoch])))
    assert [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch in found] == [
        (2**40, 3, 7),
        (11, 0, 7),
    ]
    assert all(batch.crc_ok for batch in found)
    assert [list(records(batch)) for batch in found] == [RECORDS, RECORDS]


def test_what_has_no_other_producer_is_the_same_object() -> None:
    never = by(-1, -1) + write(Batch(1), RECORDS) + write(Batch(0), [Record(0, -1, b"k", b"v")])
    assert with_producers(never, lambda *_: (1, 1)) is never
    same = by(4, 1)
    assert with_producers(same, lambda *producer: producer) is same

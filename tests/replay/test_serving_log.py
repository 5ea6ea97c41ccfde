"""The recorded batches of a partition, as a Fetch gets them."""

from __future__ import annotations

from klamm.captures.streams.blanking import Keeping
from klamm.decoders.records import Batch, Record, batches, records, write
from klamm.replay.serving.log import Aborted, Partition

MOST = 1 << 20
NOW_MS = 1_700_000_000_000


def batch(first: int, count: int = 3, **of_batch: object) -> bytes:
    content = [Record(first + i, NOW_MS + first + i, b"k", b"value %d" % (first + i)) for i in range(count)]
    return write(Batch(**of_batch), content)  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, commits: bool) -> bytes:
    control = Batch(is_control=True, is_transactional=True, producer_id=producer_id, producer_epoch=0)
    return write(control, [Record(offset, NOW_MS, bytes([0, 0, 0, commits]), bytes(6))])


def sealed(*fetched: bytes) -> Partition:
    partition = Partition()
    for data in fetched:
        partition.fetch(data)
    partition.seal()
    return partition


def offsets(data: bytes) -> list[int]:
    return [record.offset for one in batches(data) for record in records(one)]


def values(data: bytes) -> list[bytes | None]:
    return [record.value for one in batches(data) for record in records(one)]


def test_batches_are_served_by_offset_whatever_fetches_brought_them() -> None:
    first, second, third = batch(0), batch(3), batch(6)
    partition = sealed(first + second, second + third, first)
    assert partition.read(0, MOST, 12) == (first + second + third, 9)
    assert partition.read(4, MOST, 12) == (second + third, 9)
    assert partition.read(9, MOST, 12) == (b"", 9)
    assert (partition.start, partition.end) == (0, 9)


def test_an_answer_has_as_many_bytes_as_asked_for_but_at_least_a_batch() -> None:
    first, second = batch(0), batch(3)
    partition = sealed(first, second)
    assert partition.read(0, len(first) + len(second) - 1, 12) == (first, 3)
    assert partition.read(0, 1, 12) == (first, 3)


def test_a_batch_that_a_broker_cut_off_is_left_to_the_fetch_that_has_it_whole() -> None:
    first, second = batch(0), batch(3)
    assert offsets(sealed(first + second[:-1]).read(0, MOST, 12)[0]) == [0, 1, 2]
    assert offsets(sealed(first + second[:-1], second).read(0, MOST, 12)[0]) == [0, 1, 2, 3, 4, 5]


def test_what_was_produced_fills_the_gaps_of_what_was_fetched_at_the_brokers_offsets() -> None:
    partition = Partition()
    partition.fetch(batch(10))
    partition.produce(batch(0), 10)
    partition.produce(batch(0), 13)
    partition.seal()
    data, _ = partition.read(10, MOST, 12)
    assert offsets(data) == [10, 11, 12, 13, 14, 15]
    assert all(one.crc_ok for one in batches(data))


def test_of_one_offset_in_two_formats_the_newer_is_kept() -> None:
    partition = sealed(batch(0, magic=1), batch(0), batch(3, magic=1))
    assert [one.magic for one in batches(partition.read(0, MOST, 12)[0])] == [2, 1, 1, 1]
    assert offsets(partition.read(0, MOST, 12)[0]) == [0, 1, 2, 3, 4, 5]


def test_old_fetches_get_old_formats_and_no_codec_they_do_not_know() -> None:
    partition = sealed(batch(0, codec="zstd"), marker(3, 1, commits=True), batch(4))
    for version, magic in ((0, 0), (3, 1)):
        data, after = partition.read(0, MOST, version)
        assert {(one.magic, one.codec) for one in batches(data)} == {(magic, "none")}
        assert (offsets(data), after) == ([0, 1, 2, 4, 5, 6], 7)
    assert [one.codec for one in batches(partition.read(0, MOST, 9)[0])] == ["none", "none", "none"]
    assert [one.codec for one in batches(partition.read(0, MOST, 10)[0])] == ["zstd", "none", "none"]


def test_compressed_messages_of_old_formats_are_found_by_any_offset_inside() -> None:
    old = batch(5, magic=1, codec="gzip")
    partition = sealed(old)
    assert [partition.read(offset, MOST, 12)[0] for offset in (5, 6, 7)] == [old, old, old]


def blanked(data: bytes) -> bytes:
    """As a capture has it, filled with zeros again."""
    filled = bytearray(data)
    for start, stop, new in Keeping("blank").edits(data, 0, len(data)):
        assert new is None
        filled[start:stop] = bytes(stop - start)
    return bytes(filled)


def test_blank_records_become_as_many_of_zeros_that_clients_can_read() -> None:
    for whole in (batch(7), batch(7, codec="gzip"), batch(7, magic=1), batch(7, magic=1, codec="gzip")):
        partition = sealed(blanked(whole))
        data, after = partition.read(7, MOST, 12)
        assert after == 10
        assert offsets(data)[-1] == 9
        assert not any(b"".join(value or b"" for value in values(data)))
        assert all(one.crc_ok for one in batches(data))
        assert partition.blank == len(list(batches(blanked(whole))))


def test_hashed_records_are_served_as_they_are() -> None:
    whole = batch(0)
    ((start, stop, new),) = Keeping("hash", b"key").edits(whole, 0, len(whole))
    assert (start, stop) == (0, len(whole))
    assert new is not None
    partition = sealed(new)
    assert partition.read(0, MOST, 12)[0] == new
    assert not partition.blank


def test_aborted_transactions_are_told_from_their_first_offset_to_their_marker() -> None:
    def of_transaction(first: int) -> bytes:
        return batch(first, is_transactional=True, producer_id=7, producer_epoch=0)

    log = (
        of_transaction(0),
        of_transaction(3),
        marker(6, 7, commits=False),
        of_transaction(7),
        marker(10, 7, commits=True),
    )
    partition = sealed(*log)
    assert partition.aborted == [Aborted(7, 0, 6)]
    assert partition.aborted_between(0, 3) == [Aborted(7, 0, 6)]
    assert partition.aborted_between(7, 11) == []


def test_of_blank_markers_only_those_abort_that_a_broker_named() -> None:
    data_batches = [batch(o, is_transactional=True, producer_id=7, producer_epoch=0) for o in (0, 4)]
    log = [data_batches[0], marker(3, 7, commits=False), data_batches[1], marker(7, 7, commits=True)]
    partition = Partition()
    for data in log:
        partition.fetch(blanked(data))
    partition.known_aborted.add((7, 0))
    partition.seal()
    assert partition.aborted == [Aborted(7, 0, 3)]
    assert [one.is_control for one in batches(partition.read(0, MOST, 12)[0])] == [False, True, False, True]


def test_an_offset_is_found_by_its_time() -> None:
    partition = sealed(batch(0), batch(3))
    assert partition.at_time(NOW_MS + 4) == (NOW_MS + 4, 4)
    assert partition.at_time(0) == (NOW_MS, 0)
    assert partition.at_time(NOW_MS + 100) is None


def test_the_same_partition_under_two_names_is_one() -> None:
    by_id, by_name = Partition(), Partition()
    by_id.fetch(batch(0))
    by_name.fetch(batch(3))
    by_name.take(by_id)
    by_name.seal()
    assert offsets(by_name.read(0, MOST, 12)[0]) == [0, 1, 2, 3, 4, 5]


def test_garbage_among_batches_loses_what_is_behind_it_only() -> None:
    assert offsets(sealed(batch(0) + b"\xff" * 80).read(0, MOST, 12)[0]) == [0, 1, 2]


def test_a_marker_that_was_hashed_is_a_marker_again() -> None:
    whole = marker(3, 7, commits=True)
    ((_, _, new),) = Keeping("hash", b"key").edits(whole, 0, len(whole)) or [(0, len(whole), whole)]
    (served,) = batches(sealed(new or blanked(whole)).read(3, MOST, 12)[0])
    (record,) = records(served)
    assert served.is_control
    assert record.key in (bytes(4), b"\0\0\0\1")

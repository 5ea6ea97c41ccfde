"""The recorded batches of each partition, by offset: what a Fetch is answered from."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from struct import Struct, error
from typing import NamedTuple

from klamm.decoders.records import UNKNOWN, Batch, MissingCodec, Record, RecordsError, batches, records, write

BASE_OFFSET = Struct(">q")  # the first field of a batch; magic 2 leaves it out of its checksum
CONTROL_KEY = Struct(">hh")  # version and type of a control record
ABORT, COMMIT = 0, 1
ZSTD_FETCH = 10  # the first Fetch version that zstd may be sent in
UNREADABLE = RecordsError, MissingCodec


class Stored(NamedTuple):
    """One whole batch, with its first and last offset."""

    first: int
    last: int
    batch: Batch


class Aborted(NamedTuple):
    """A transaction that was aborted, by a producer's id, from its first offset to that of the marker."""

    producer_id: int
    first: int
    last: int


class Partition:
    """`fetched` and `produced` are candidates; `seal` makes the log of them."""

    def __init__(self) -> None:
        self.fetched: dict[tuple[int, int], Stored] = {}  # by magic and last offset
        self.produced: dict[tuple[int, int], Stored] = {}
        self.known_aborted: set[tuple[int, int]] = set()
        self.told_start, self.told_end = (
            0,
            0,
        )  # from the brokers' answers: the log's first offset, its high watermark
        self.unreadable = 0  # answers and requests whose records could not all be read
        self.stored: list[Stored] = []
        self.lasts: list[int] = []
        self.aborted: list[Aborted] = []
        self.made_up: set[int] = set()  # first offsets of batches whose content was blank: now zeros

    def fetch(self, data: bytes) -> None:
        """Takes the batches of a Fetch answer."""
        self._keep(self.fetched, data)

    def produce(self, data: bytes, base_offset: int) -> None:
        """Takes the batches of a Produce request, and the offset that the broker gave them. Their offsets
        count from there.
        """
        self._keep(self.produced, data, base_offset)

    def take(self, other: Partition) -> None:
        """The candidates of the same partition under another name."""
        self.fetched |= other.fetched
        self.produced |= other.produced
        self.known_aborted |= other.known_aborted
        self.made_up |= other.made_up
        self.unreadable += other.unreadable
        self.told_start = max(self.told_start, other.told_start)
        self.told_end = max(self.told_end, other.told_end)

    def _keep(self, there: dict[tuple[int, int], Stored], data: bytes, moved_by: int = 0) -> None:
        try:
            for batch in batches(data):
                stored = self._stored(batch, moved_by)
                there.setdefault((batch.magic, stored.last), stored)
        except UNREADABLE:
            self.unreadable += 1  # the batches before it are kept

    def _stored(self, batch: Batch, moved_by: int) -> Stored:
        """A copy of the batch that clients can read, moved to its place in the log."""
        whole = batch.data[batch.start : batch.end]
        if not batch.crc_ok or not _readable(batch):
            whole = self._mended(batch)
        if moved_by:
            (own,) = BASE_OFFSET.unpack_from(whole)
            whole = BASE_OFFSET.pack(own + moved_by) + whole[BASE_OFFSET.size :]
        (batch,) = batches(whole)
        first = batch.base_offset
        if first == UNKNOWN:  # compressed messages of magic 0 and 1
            first = min((record.offset for record in records(batch)), default=batch.last_offset)
        return Stored(first, batch.last_offset, batch)

    def _mended(self, batch: Batch) -> bytes:
        """Blank content has not the batch's checksum; where not even lengths were kept, it becomes records of
        zeros, as many as there were.
        """
        try:
            content = [] if batch.is_control else list(records(batch))
        except UNREADABLE:
            content = []
        if not content:
            content = _zeros(batch)
            batch = batch._replace(codec="none")
        self.made_up.add(content[0].offset)
        return write(batch, content)

    def seal(self) -> None:
        """All candidates are there. Of two with one offset, the newest format that was fetched is kept."""
        taken: list[Stored] = []
        for there in (self.fetched, self.produced):
            for stored in sorted(there.values(), key=lambda s: (-s.batch.magic, s.last)):
                at = bisect_left(taken, stored.first, key=lambda s: s.last)
                if at == len(taken) or taken[at].first > stored.last:
                    taken.insert(at, stored)
        self.stored, self.lasts = taken, [stored.last for stored in taken]
        self.fetched, self.produced = {}, {}
        self.aborted = sorted(self._aborted(), key=lambda a: a.first)

    @property
    def blank(self) -> int:
        """The number of batches that have zeros for records."""
        return sum(one.first in self.made_up and not one.batch.is_control for one in self.stored)

    @property
    def start(self) -> int:
        """The first offset that the log has."""
        return self.stored[0].first if self.stored else self.told_start

    @property
    def end(self) -> int:
        """The offset after the last; without a batch, as the brokers said."""
        return self.lasts[-1] + 1 if self.stored else self.told_end

    def read(self, offset: int, most: int, version: int) -> tuple[bytes, int]:
        """Batches from `offset` on, of at most that many bytes but at least one, as one version of Fetch may
        have them; and the offset after them.
        """
        found: list[bytes] = []
        size, after = 0, offset
        for stored in self.stored[bisect_left(self.lasts, offset) :]:
            if found and size + stored.batch.size > most:
                break
            found.append(_sent(stored.batch, version))
            size, after = size + len(found[-1]), stored.last + 1
        return b"".join(found), after

    def aborted_between(self, offset: int, after: int) -> list[Aborted]:
        """The transactions that reach into these offsets."""
        return [a for a in self.aborted if a.first < after and a.last >= offset]

    def at_time(self, timestamp: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record that is not older."""
        for stored in self.stored:
            if stored.batch.max_timestamp >= timestamp and not stored.batch.is_control:
                for record in records(stored.batch):
                    if record.timestamp >= timestamp:
                        return record.timestamp, record.offset
        return None

    def _aborted(self) -> Iterator[Aborted]:
        """The transactions that a broker called aborted, and those with an abort marker in the log."""
        began: dict[int, int] = {}
        markers: dict[int, list[int]] = defaultdict(list)
        for stored in self.stored:
            producer = stored.batch.producer_id
            if stored.batch.is_control:
                markers[producer].append(stored.first)
                first = began.pop(producer, None)
                if first is not None and stored.first not in self.made_up and _marker(stored.batch) == ABORT:
                    self.known_aborted.add((producer, first))
            elif stored.batch.is_transactional:
                began.setdefault(producer, stored.first)
        ended = set()
        for producer, first in sorted(self.known_aborted, key=lambda entry: entry[1]):
            last = next((offset for offset in markers[producer] if offset > first), None)
            if last is not None and (producer, last) not in ended:  # named from its middle on, by another
                ended.add((producer, last))
                yield Aborted(producer, first, last)


def _readable(batch: Batch) -> bool:
    """A batch of zeros can have a checksum that is right; so can a marker that was hashed."""
    if batch.is_control:
        return _marker(batch) is not None
    content = batch.data[batch.end - min(batch.size, 16) : batch.end]
    if any(content):
        return True
    try:
        for _ in records(batch):
            pass
    except UNREADABLE:
        return False
    return True


def _marker(batch: Batch) -> int | None:
    """The end of a transaction in a control batch: ABORT, COMMIT, or None."""
    try:
        for record in records(batch):
            version, kind = CONTROL_KEY.unpack_from(record.key or b"")
            return int(kind) if version >= 0 and kind in (ABORT, COMMIT) else None
    except (*UNREADABLE, error):
        pass
    return None


def _zeros(batch: Batch) -> list[Record]:
    """So many records of zeros, with about so many bytes, at the same offsets and times. A marker ends a
    transaction only if it is known to be aborted.
    """
    last = batch.last_offset
    if batch.is_control:
        return [Record(last, batch.max_timestamp, bytes(4), bytes(6))]
    count = max(1, batch.record_count)
    first = batch.base_offset if batch.base_offset != UNKNOWN else last - count + 1
    share = max(0, batch.size - 70 * (batch.magic == 2)) // count
    offsets = [*range(first, first + count - 1), last]
    return [Record(offset, batch.max_timestamp, None, bytes(max(0, share - 10))) for offset in offsets]


def _sent(batch: Batch, version: int) -> bytes:
    """A batch in the format that a client of this version of Fetch can read."""
    magic = 2 if version > 3 else 1 if version > 1 else 0
    if batch.magic <= magic and (batch.codec != "zstd" or version >= ZSTD_FETCH):
        return batch.data
    if batch.is_control and magic < 2:
        return b""
    old = magic < 2
    content = [
        Record(r.offset, r.timestamp if magic else -1, r.key, r.value, () if old else r.headers)
        for r in records(batch)
    ]
    return write(
        batch._replace(
            magic=min(magic, batch.magic),
            codec="none",
            is_transactional=batch.is_transactional and not old,
        ),
        content,
    )

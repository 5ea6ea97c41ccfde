"""Record batches with another producer's id and epoch."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from crc32c import crc32c

from klamm.decoders.records import batches

CRC, PRODUCER = Struct(">I"), Struct(">qh")  # id and epoch
CRC_AT, CHECKED_AT, PRODUCER_AT = 17, 21, 43  # in a batch of magic 2

Producer = tuple[int, int]  # id and epoch


def with_producers(data: bytes, renewed: Callable[[int, int], Producer]) -> bytes:
    """The same batches with the producer that `renewed(id, epoch)` returns; the same object where nothing
    changes. Batches of magic 0 and 1 have no producer. Raises RecordsError.
    """
    out: bytearray | None = None
    for batch in batches(data):
        if batch.magic < 2 or batch.producer_id < 0:
            continue
        now = renewed(batch.producer_id, batch.producer_epoch)
        if now == (batch.producer_id, batch.producer_epoch):
            continue
        if out is None:
            out = bytearray(data)
        PRODUCER.pack_into(out, batch.start + PRODUCER_AT, *now)
        checked = crc32c(memoryview(out)[batch.start + CHECKED_AT : batch.end])
        CRC.pack_into(out, batch.start + CRC_AT, checked)
    return data if out is None else bytes(out)

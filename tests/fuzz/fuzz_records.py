"""Coverage-guided: any bytes as a records field, or as what one batch holds, compressed or not."""

from collections.abc import Iterator
from struct import pack

import atheris

from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.decoders"]):
    from klamm.decoders import records
    from klamm.decoders.records import CODECS, Batch, Record, RecordsError
    from klamm.decoders.records.codecs import compress

MOST_BYTES = 1 << 20
FIELD, INSIDE = b"\0", b"\1"  # the first byte: the others are a field, or what one batch holds
LEAST_SIZE = 61  # bytes of a batch of magic 2 before its records
KNOWN = CODECS[:5]
SOME = [
    Record(offset=5, timestamp=1_700_000_000_000, key=b"k", value=b"v" * 40),
    Record(offset=6, timestamp=1_700_000_000_001, key=None, value=None),
    Record(offset=9, timestamp=1_700_000_000_001, key=b"", value=b"v" * 300),
]


def one_input(data: bytes) -> None:
    field = around(data[1:]) if data[:1] == INSIDE else data[1:]
    try:
        held(field)
    except RecordsError as refused:
        offset = refused.offset
    else:
        return
    assert offset is not None
    assert 0 <= offset <= len(field)


def held(field: bytes) -> None:
    """Batches and records that are written again, or RecordsError."""
    assert 0 <= records.valid_bytes(field) <= len(field)
    for batch in records.batches(field):
        assert batch.crc_ok in (True, False)
        found = list(records.records(batch, MOST_BYTES))
        try:
            again = records.write(batch, found)
        except RecordsError:
            continue  # deltas that no writer makes
        inside = [record for one in records.batches(again) for record in records.records(one, 2 * MOST_BYTES)]
        assert inside == found


def around(body: bytes) -> bytes:
    """A batch of magic 2; the first two bytes tell the codec and how many records there are."""
    codec, count = divmod(int.from_bytes(body[:2]), 256)
    codec %= len(KNOWN)
    inside = compress(KNOWN[codec], body[2:]) if codec else body[2:]
    rest = pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, count) + inside
    return pack(">qiibI", 0, len(rest) + 9, 0, 2, 0) + rest


def seeds() -> Iterator[tuple[str, bytes]]:
    for magic in (0, 1, 2):
        for codec in KNOWN if magic == 2 else KNOWN[:4]:
            headers = (("h", b"x"), ("n", None)) if magic == 2 else ()
            some = [Record(r.offset, r.timestamp if magic else -1, r.key, r.value, headers) for r in SOME]
            data = records.write(Batch(magic=magic, codec=codec), some)
            yield f"magic-{magic}-{codec}", FIELD + data
            yield f"magic-{magic}-{codec}-twice-and-cut", FIELD + data + data[:-3]
    plain = records.write(Batch(), SOME)[LEAST_SIZE:]
    for index, codec in enumerate(KNOWN):
        yield f"inside-{codec}", INSIDE + bytes([index, len(SOME)]) + plain


if __name__ == "__main__":
    run(one_input, seeds())

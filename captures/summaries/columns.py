"""Columns of a capture as tables to count with: codes in place of texts, and a key for each exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE, BATCHES_AT_ONCE = 1 << 16, 32  # a batch may hold a MiB of frames that nobody looks at
EXCHANGE_BITS = 40  # of a key that stands for a connection and an exchange

Texts = dict[str, list[str]]  # by the name of a coded column
Name = tuple[str, int, int]  # of an exchange: run, connection, number there


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """So many batches as are counted at once."""
    waiting, rows = [], 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE or len(waiting) >= BATCHES_AT_ONCE:
            yield waiting
            waiting, rows = [], 0
    if rows:
        yield waiting


def numbered(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Table, Texts]:
    """One table in which coded columns hold their codes; and the texts of these."""
    import pyarrow as pa

    whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    columns, texts = [], {}
    for name, column in zip(whole.column_names, whole.columns, strict=True):
        chunk = column.chunk(0)
        if pa.types.is_dictionary(column.type):
            texts[name] = chunk.dictionary.to_pylist()
            chunk = chunk.indices
        columns.append(chunk)
    return pa.table(columns, names=whole.column_names), texts


def code(texts: Texts, column: str, text: str) -> int:
    """The code of a text; -1 where it does not occur."""
    return texts[column].index(text) if text in texts[column] else -1


class Keys:
    """Keys of exchanges, the same in all tables. `connections`: the numbers here, by run and number."""

    def __init__(self) -> None:
        self.connections: dict[tuple[str, int], int] = {}
        self._pairs: list[tuple[str, int]] = []

    def of(self, table: pa.Table, texts: Texts) -> Any:
        """The column of keys, of rows that all have a connection."""
        import pyarrow.compute as pc

        return pc.add(pc.shift_left(self._connections(table, texts), EXCHANGE_BITS), table["exchange"])

    def name(self, key: int) -> Name:
        """The exchange of a key."""
        return *self._pairs[key >> EXCHANGE_BITS], key & ((1 << EXCHANGE_BITS) - 1)

    def _connections(self, table: pa.Table, texts: Texts) -> Any:
        """The column of connections, each by its number here."""
        import pyarrow as pa
        import pyarrow.compute as pc

        pairs = pc.add(pc.shift_left(table["capture"].cast(pa.int64()), EXCHANGE_BITS), table["connection"])
        encoded = pc.dictionary_encode(pairs.combine_chunks())
        numbers = []
        for pair in encoded.dictionary.to_pylist():
            name = texts["capture"][pair >> EXCHANGE_BITS], pair & ((1 << EXCHANGE_BITS) - 1)
            if name not in self.connections:
                self.connections[name] = len(self._pairs)
                self._pairs.append(name)
            numbers.append(self.connections[name])
        return pa.array(numbers, pa.int64()).take(encoded.indices)


def frames(table: pa.Table, texts: Texts, side: str) -> Any:
    """The rows that are frames of this side, as a mask."""
    import pyarrow.compute as pc

    is_frame = pc.equal(table["kind"], code(texts, "kind", "frame"))
    of_side = pc.equal(table["side"], code(texts, "side", side))
    return pc.fill_null(pc.and_(is_frame, of_side), False)

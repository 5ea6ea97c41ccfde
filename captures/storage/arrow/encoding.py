"""Rows of a capture as the messages of a segment."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from klamm.captures.captured import Captured
from klamm.captures.storage.arrow import messages as arrow
from klamm.captures.storage.arrow.flatbuffers import Value
from klamm.captures.storage.arrow.messages import Column, Metadata
from klamm.captures.storage.checksums import crc32c
from klamm.captures.storage.segments import FORMAT, Span, Summary, columns_of_format, to_metadata
from klamm.decoders.text import valid_text

CONNECTION = ("capture", "connection", "cluster", "broker", "client", "principal")  # the columns of one
NOBODY = (None,) * len(CONNECTION)
LETTERS = {"int16": "h", "int32": "i", "int64": "q"}
RANGE = [arrow.field("item", "struct", [arrow.field("offset", "int32"), arrow.field("size", "int32")])]

Values = Sequence[Any]
Message = tuple[bytes, list[bytes]]


def columns_of(rows: Sequence[Captured]) -> dict[str, Values]:
    """The columns by name, as Python's values."""
    columns: dict[str, Values] = dict(zip(Captured._fields, zip(*rows, strict=True), strict=True))
    of = columns["connection"]
    if None in of:
        of = [one or NOBODY for one in of]
    columns.update(zip(CONNECTION, zip(*of, strict=True), strict=True))
    return columns


def schema(metadata: Metadata, number: int = FORMAT) -> Value:
    """The columns of a segment in the format of this number."""
    columns = columns_of_format(number).items()
    return arrow.schema([_field(place, *column) for place, column in enumerate(columns)], metadata)


def _field(number: int, name: str, kind: str) -> Value:
    if kind == "codes":
        return arrow.field(name, "text", dictionary=number)
    return arrow.field(name, "list", RANGE) if kind == "ranges" else arrow.field(name, kind)


class Encoding:
    """The batches of one segment: the codes of each go on from those of the one before."""

    def __init__(self, known: Sequence[int] | None = None, number: int = FORMAT) -> None:
        """`known`: the texts of each column in the segment that is gone on with; `number`: its format."""
        self._kinds = columns_of_format(number)
        texts = dict(zip(self._kinds, known, strict=True)) if known else {}
        self._codes = {name: Codes(texts.get(name)) for name, kind in self._kinds.items() if kind == "codes"}

    def batch(self, columns: Mapping[str, Values]) -> tuple[list[Message], Message, Summary]:
        """New texts for the dictionaries, and the batch. Of rows whose frames are cut."""
        encoded = [self._column(name, kind, columns[name]) for name, kind in self._kinds.items()]
        texts = self._texts()
        codes = [self._codes.get(name) for name in self._kinds]
        times = columns["time_ns"]
        sums = [checksum(one.buffers, of.crc if of else 0) for one, of in zip(encoded, codes, strict=True)]
        known = [of.checked if of else 0 for of in codes]
        frames = [(key, count) for key, count in Counter(columns["api_key"]).items() if key >= 0]
        span = Span(len(times), min(times), max(times))
        summary = Summary(span, sums, known, frames, sum(columns["size"]), sum(columns["lost"]))
        return texts, arrow.batch_message(len(times), encoded, to_metadata(summary)), summary

    def nothing(self, metadata: Metadata) -> tuple[list[Message], Message]:
        """A batch of no rows, for what its metadata says."""
        columns = [self._column(name, kind, ()) for name, kind in self._kinds.items()]
        return self._texts(), arrow.batch_message(0, columns, metadata)

    def _texts(self) -> list[Message]:
        news = [
            (number, self._codes[name].news())
            for number, name in enumerate(self._kinds)
            if name in self._codes
        ]
        return [arrow.dictionary_message(number, *texts) for number, texts in news if texts is not None]

    def _column(self, name: str, kind: str, values: Values) -> Column:
        same = _same(values)
        if kind == "codes":
            return self._codes[name].column(values, same)
        if kind == "ranges":
            return _ranges(values, same and not values[0])
        if kind == "binary":
            return _bytes(values, same)
        if kind == "text":
            empty = same and not values[0]
            return _bytes(values if empty else [valid_text(text).encode() for text in values], empty)
        if kind == "bool":
            return Column([(len(values), 0)], [b"", _bits(values, same)])
        return _numbers(LETTERS[kind], values, same)


class Codes:
    """The texts of one column so far; a code is a text's place."""

    def __init__(self, known: int | None) -> None:
        """`known`: so many there are already, which are not known here, and so are in no checksum."""
        self.of: dict[str | None, int] = {}  # never None
        self.checked, self.crc = 0, crc32c(bytes(4))
        self._before = known
        self._ends = array("i", [0])
        self._data = bytearray()
        self._written = -1 if known is None else 0

    def column(self, texts: Sequence[str | None], same: bool) -> Column:
        """The codes of the texts; None has no code, it is null."""
        count, nulls, of = len(texts), 0, self.of
        try:
            codes = array("i", [of[texts[0]]]) * count if same else array("i", [of[text] for text in texts])
        except KeyError:
            self._learn(texts)
            codes = array("i", [of.get(text, 0) for text in texts])
            nulls = texts.count(None)
        return Column([(count, nulls)], [_validity(texts, nulls), memoryview(codes).cast("B")])

    def _learn(self, texts: Sequence[str | None]) -> None:
        for text in dict.fromkeys(texts):
            if text is not None and text not in self.of:
                self.of[text] = (self._before or 0) + len(self.of)
                self._data += valid_text(text).encode()
                self._ends.append(len(self._data))

    def news(self) -> tuple[Column, bool] | None:
        """The texts that are new since the last call, and whether there were others."""
        first, count = self._written, len(self.of)
        if first == count:
            return None
        self._written = count
        if self._before is None:
            self.checked, self.crc = count, checksum([memoryview(self._ends).cast("B"), self._data])
        start = self._ends[max(first, 0)]
        ends = array("i", (end - start for end in self._ends[max(first, 0) :]))
        texts = Column([(len(ends) - 1, 0)], [b"", ends.tobytes(), self._data[start:]])
        return texts, first >= 0


def checksum(buffers: Sequence[bytes | bytearray | memoryview], so_far: int = 0) -> int:
    """CRC-32C of them all."""
    for buffer in buffers:
        so_far = crc32c(buffer, so_far)
    return so_far


def _same(values: Values) -> bool:
    """Whether all values are equal. It mostly looks at a few only."""
    if not values:
        return False
    first = values[0]
    return values[-1] is first and values[len(values) // 2] is first and values.count(first) == len(values)


def _numbers(letter: str, values: Values, same: bool) -> Column:
    nulls = 0
    try:
        data = array(letter, values[:1]) * len(values) if same else array(letter, values)
    except TypeError:
        data, nulls = array(letter, [value or 0 for value in values]), values.count(None)
    return Column([(len(values), nulls)], [_validity(values, nulls), memoryview(data).cast("B")])


def _bytes(values: Values, same: bool) -> Column:
    count, nulls = len(values), 0
    if same and not values[0]:
        ends, nulls, data = array("i", [0]) * (count + 1), count if values[0] is None else 0, b""
    else:
        whole = values
        try:
            data = b"".join(values)
        except TypeError:
            nulls, whole = values.count(None), [value or b"" for value in values]
            data = b"".join(whole)
        ends = array("i", accumulate(map(len, whole), initial=0))
    return Column([(count, nulls)], [_validity(values, nulls), memoryview(ends).cast("B"), data])


def _ranges(values: Values, empty: bool) -> Column:
    if empty:
        ends, flat = array("i", [0]) * (len(values) + 1), array("i")
    else:
        ends = array("i", accumulate(map(len, values), initial=0))
        flat = array("i", chain.from_iterable(chain.from_iterable(values)))
    count = len(flat) // 2
    nodes = [(len(values), 0), (count, 0), (count, 0), (count, 0)]
    return Column(
        nodes, [b"", memoryview(ends).cast("B"), b"", b"", flat[0::2].tobytes(), b"", flat[1::2].tobytes()]
    )


def _validity(values: Values, nulls: int) -> bytes:
    if not nulls:
        return b""
    return _bits([value is not None for value in values], nulls == len(values))


def _bits(values: Values, same: bool) -> bytes:
    count = len(values)
    if same:
        bits = (1 << count) - 1 if values[0] else 0
    else:
        bits = int("".join("1" if value else "0" for value in reversed(values)) or "0", 2)
    return bits.to_bytes((count + 7) // 8, "little")

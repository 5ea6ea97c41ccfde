"""Bodies of one layout as VARIANT, put together by numpy out of what was swept up of them.

As Spark and Parquet encode it (Parquet's VariantEncoding.md): a header byte, and behind it what it says.
Numbers are as wide as the wire has them, and offsets as wide as the largest body needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from klamm.decoders.compile import Path
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Field, all_fields, default_of, members, present
from klamm.pipeline.bodies.arrays import Bytes, Flags, Numbers
from klamm.pipeline.bodies.sweeping import EMPTY, Column, Swept, texts_at, where
from klamm.rules.json_form import HIDDEN, HIDDEN_BYTES, field_to_json, plain_json

TYPE = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
METADATA = 0x11  # version 1, names in their order
SHORT_TEXT, OBJECT, ARRAY = 1, 2, 3  # basic types
LARGE = 4  # of an array's header
NULL, TRUE, FALSE, LONG_TEXT = 0, 1, 2, 16  # primitive types
INTEGERS = {1: 3, 2: 4, 4: 5, 8: 6}  # by width
WIDTHS = {"int8": 1, "int16": 2, "uint16": 4, "int32": 4, "uint32": 8, "int64": 8}
MOST_SHORT = 63  # bytes of a short text
MOST = 255  # names, and elements of an array that is not large
OFFSETS = (2, 4)  # bytes of one
MOST_BYTES = (16 << 20) - 1  # of a body: Spark refuses to read more
LONG = 4  # bytes of a number of elements, or of a long text's length


def variants(layout: Layout, swept: Swept, data: Bytes) -> pa.StructArray:
    """The VARIANT values of bodies that are not odd, of which all fields were swept. Those that Spark could
    not read are null, as Spark makes them of JSON.
    """
    count = int(np.count_nonzero(~swept.odd))
    for width in OFFSETS:
        bodies = _Making(layout, swept, data, width).struct(layout.fields, (), count)
        sizes = _of_each(bodies.sizes, count)
        if sizes.max(initial=0) < 1 << 8 * width:
            break
    ends = np.append(0, np.cumsum(sizes))
    out = _Out(int(ends[-1]))
    bodies.put(out, ends[:-1])
    offsets = pa.array(ends.astype(np.int32)).buffers()[1]
    values = pa.Array.from_buffers(pa.binary(), len(sizes), [None, offsets, pa.py_buffer(out.data)])
    same = pa.array(np.zeros(len(sizes), np.int32))
    metadata = pa.array([_metadata(layout)]).take(same)
    is_too_large = pa.array(sizes > MOST_BYTES)
    return pa.StructArray.from_arrays([values, metadata], fields=list(TYPE), mask=is_too_large)


@cache
def _names(layout: Layout) -> dict[str, int]:
    """The names of all fields, with their numbers, in ascending order."""
    names = {f.name for _, f in all_fields(layout.fields, layout.version)} | {HIDDEN_BYTES}
    return {name: number for number, name in enumerate(sorted(names))}


@cache
def _metadata(layout: Layout) -> bytes:
    names = [name.encode() for name in _names(layout)]
    ends = list(accumulate(map(len, names), initial=0))
    width = 1 if ends[-1] <= MOST else 2
    numbers = [_little(each, width) for each in (len(names), *ends)]
    return b"".join([bytes([METADATA | (width - 1) << 6]), *numbers, *names])


class _Out:
    """Bytes that are written at many places at once."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(size, np.uint8)

    def integers(self, at: Numbers, width: int, values: Numbers | int) -> None:
        self._view(width, f"<u{width}")[at] = values

    def texts(self, at: Numbers, texts: Sequence[bytes], codes: Numbers) -> None:
        """Texts of one width."""
        kind = f"V{len(texts[0])}"
        self._view(len(texts[0]), kind)[at] = np.frombuffer(b"".join(texts), kind)[codes]

    def same(self, at: Numbers, text: bytes) -> None:
        while text:
            width = next(width for width in (8, 4, 2, 1) if width <= len(text))
            self.integers(at, width, int.from_bytes(text[:width], "little"))
            at, text = at + width, text[width:]

    def _view(self, width: int, kind: str) -> Any:
        return np.ndarray((max(len(self.data) - width + 1, 0),), kind, self.data, 0, (1,))


class _Values(NamedTuple):
    """The size of each value; the first bytes that all values share; and a function that writes the
    others.
    """

    sizes: Numbers | int
    head: bytes
    write: Callable[[_Out, Numbers], None]

    def put(self, out: _Out, at: Numbers) -> None:
        out.same(at, self.head)
        self.write(out, at)


class _Making:
    """`width`: of offsets."""

    def __init__(self, layout: Layout, swept: Swept, data: Bytes, width: int) -> None:
        self._version, self._numbers = layout.version, _names(layout)
        self._swept, self._data, self._width = swept, data, width

    def struct(self, fields: tuple[Field, ...], path: Path, count: int) -> _Values:
        """So many structs, without tagged fields."""
        in_place, tagged = present(fields, self._version)
        values = {f.name: self._field(f, (*path, f.name), count) for f in in_place}
        for f in tagged:
            values[f.name] = self._same(field_to_json(f, self._version, default_of(f, self._version)))
        return self._object(values)

    def _field(self, f: Field, path: Path, count: int) -> _Values:
        if f.kind == "array":
            counts = self._column(self._swept.counts, path, count).values
            return _optional(counts >= 0, self._array(f, path, counts[counts >= 0]))
        if f.kind != "struct":
            return self._plain(f, f.kind, self._column(self._swept.values, path, count))
        if self._version not in f.null:
            return self.struct(members(f), path, count)
        is_there = self._column(self._swept.counts, path, count).values >= 0
        return _optional(is_there, self.struct(members(f), path, int(np.count_nonzero(is_there))))

    def _array(self, f: Field, path: Path, counts: Numbers) -> _Values:
        total = int(counts.sum())
        if isinstance(f.of, tuple):
            return self._list(counts, self.struct(f.of, path, total))
        return self._list(counts, self._plain(f, f.of, self._column(self._swept.values, path, total)))

    def _plain(self, f: Field, kind: str, column: Column) -> _Values:
        if kind == "boolean":
            return _texts([_of_type(FALSE), _of_type(TRUE)], column.values)
        if kind in WIDTHS:
            return _integers(WIDTHS[kind], column.values)
        is_there = column.values >= 0
        there = where(column, is_there)
        if f.mark in HIDDEN:
            return _optional(is_there, self._object({HIDDEN_BYTES: _integers(4, there.values)}))
        coded = texts_at(self._data, there).dictionary_encode()
        texts = [_text(_plain_text(kind, value)) for value in coded.dictionary.to_pylist()]
        return _optional(is_there, _texts(texts, coded.indices.to_numpy()))

    def _same(self, value: Any) -> _Values:
        """A default."""
        if isinstance(value, dict):
            return self._object({name: self._same(each) for name, each in value.items()})
        if isinstance(value, bool):
            return _constant(_of_type(TRUE if value else FALSE))
        if isinstance(value, int):
            return _constant(_of_type(INTEGERS[8]) + _little(value, 8))
        if isinstance(value, list) and not value:
            return _constant(bytes([self._array_header(), 0]) + _little(0, self._width))
        return _constant(_of_type(NULL) if value is None else _text(value))

    def _object(self, fields: Mapping[str, _Values]) -> _Values:
        """Its offsets are in the order of the names, its values in wire order."""
        starts: dict[str, Numbers | int] = {}
        end: Numbers | int = 0
        for name, values in fields.items():
            starts[name] = end
            end = end + values.sizes
        names = sorted(fields)
        offsets = [starts[name] for name in names] + [end]
        header = OBJECT | (self._width - 1) << 2
        head = bytes([header, len(names), *(self._numbers[name] for name in names)])
        table = len(head)
        head += b"".join(_little(each if isinstance(each, int) else 0, self._width) for each in offsets)
        first, begun = len(head), set()
        for name, values in fields.items():
            start = starts[name]
            if isinstance(start, int) and first + start == len(head):
                head += values.head
                begun.add(name)

        def write(out: _Out, at: Numbers) -> None:
            for nth, offset in enumerate(offsets):
                if not isinstance(offset, int):
                    out.integers(at + (table + nth * self._width), self._width, offset)
            for name, values in fields.items():
                (values.write if name in begun else values.put)(out, at + (first + starts[name]))

        return _Values(first + end, head, write)

    def _list(self, counts: Numbers, elements: _Values) -> _Values:
        """Lists, each with its number of the elements."""
        total, width = int(counts.sum()), self._width
        of, first = np.repeat(np.arange(len(counts)), counts), np.cumsum(counts) - counts
        ends = np.append(0, np.cumsum(_of_each(elements.sizes, total)))
        sizes = ends[first + counts] - ends[first]
        is_large = bool(counts.max(initial=0) > MOST)
        table = 1 + (LONG if is_large else 1)

        def write(out: _Out, at: Numbers) -> None:
            out.same(at, bytes([self._array_header(is_large)]))
            out.integers(at + 1, table - 1, counts)
            offsets = ends[:-1] - ends[first][of]
            out.integers((at + table)[of] + width * (np.arange(total) - first[of]), width, offsets)
            out.integers(at + table + width * counts, width, sizes)
            elements.put(out, (at + table + width * (counts + 1))[of] + offsets)

        return _Values(_one_if_alike(table + width * (counts + 1) + sizes), b"", write)

    def _array_header(self, is_large: bool = False) -> int:
        return ARRAY | ((LARGE if is_large else 0) | (self._width - 1)) << 2

    def _column(self, of: Mapping[Path, Column], path: Path, count: int) -> Column:
        found = of.get(path, EMPTY)
        found = where(found, ~self._swept.odd[found.of])
        assert len(found.of) == count, path
        return found


def _constant(text: bytes) -> _Values:
    return _Values(len(text), text, lambda out, at: None)


def _integers(width: int, numbers: Numbers) -> _Values:
    head = _of_type(INTEGERS[width]) + bytes(width)
    return _Values(len(head), head, lambda out, at: out.integers(at + 1, width, numbers))


def _texts(texts: Sequence[bytes], codes: Numbers) -> _Values:
    """The texts, by their codes."""
    if len(texts) == 1:
        return _constant(texts[0])
    lengths = np.array([len(text) for text in texts], np.int64)
    sizes = lengths[codes]

    def write(out: _Out, at: Numbers) -> None:
        for length in np.unique(lengths):
            of_length, here = lengths == length, sizes == length
            numbers = np.cumsum(of_length) - 1
            alike = [text for text in texts if len(text) == length]
            out.texts(at[here], alike, numbers[codes[here]])

    return _Values(_one_if_alike(sizes), b"", write)


def _optional(is_there: Flags, values: _Values) -> _Values:
    """Null where there is none."""
    if is_there.all():
        return values
    sizes = np.ones(len(is_there), np.int64)
    sizes[is_there] = values.sizes

    def write(out: _Out, at: Numbers) -> None:
        out.same(at[~is_there], _of_type(NULL))
        values.put(out, at[is_there])

    return _Values(_one_if_alike(sizes), b"", write)


def _of_each(sizes: Numbers | int, count: int) -> Numbers:
    return np.full(count, sizes) if isinstance(sizes, int) else sizes


def _one_if_alike(sizes: Numbers) -> Numbers | int:
    one = int(sizes[0]) if len(sizes) else 0
    return one if (sizes == one).all() else sizes


def _plain_text(kind: str, value: bytes) -> str:
    """The text of a value as in JSON."""
    read = value.decode("utf-8", "surrogateescape") if kind == "string" else value
    return str(plain_json(read, kind))


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) <= MOST_SHORT:
        return bytes([SHORT_TEXT | len(data) << 2]) + data
    return _of_type(LONG_TEXT) + _little(len(data), LONG) + data


def _of_type(primitive: int) -> bytes:
    return bytes([primitive << 2])


def _little(number: int, width: int) -> bytes:
    return (number % (1 << 8 * width)).to_bytes(width, "little")

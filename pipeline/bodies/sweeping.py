"""Some fields of many bodies of one layout at once: a step of numpy for each field, not for each body.

Bodies go through the fields side by side, each at its own position. One that does what few do (null where
that is not allowed, tagged fields that are wanted, an array longer than those of the others, a length beyond
its end) is odd: what was found of it counts for nothing, and it is for a reader of single bodies. So are
bodies of which a floating number is wanted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from klamm.decoders.compile import Path
from klamm.decoders.interpret import LONGEST_STRING, UVARINT_BYTES, Layout
from klamm.decoders.schema import FIXED, UNKNOWN_TAGS, Field, members, present
from klamm.pipeline.bodies.arrays import Bytes, Flags, Numbers
from klamm.rules.json_form import HIDDEN

FEW = 32  # bodies: for so many a step costs more than they do by themselves
WIDEST = 16  # bytes of a fixed field
NULL = -1  # as a size
FRAME = 1 << 40  # more than a frame has bytes


class Frames(NamedTuple):
    """Frames in `data`, one behind the other: they begin at `frames`, their bodies go from `starts` to
    `ends`. Bytes were left out of them from `blank_at` on (the number of the frame times FRAME, and the place
    in the whole frame; ascending). `data` has WIDEST bytes at least.
    """

    data: Bytes
    frames: Numbers
    starts: Numbers
    ends: Numbers
    blank_at: Numbers
    blank_bytes: Numbers


class Column(NamedTuple):
    """The values at a path, for one body in wire order: the body, the place in `data`, and the number of
    bytes (NULL: none) or the number itself.
    """

    of: Numbers
    starts: Numbers
    values: Numbers


EMPTY = Column(*(np.zeros(0, np.int64) for _ in Column._fields))


def one_of(columns: Iterable[Column]) -> Column:
    """Joins the columns, one behind the other."""
    return Column(*(np.concatenate(parts) for parts in zip(EMPTY, *columns, strict=True)))


def where(column: Column, holds: Flags) -> Column:
    return column if holds.all() else Column(*(numbers[holds] for numbers in column))


def texts_at(data: Bytes, column: Column) -> pa.BinaryArray:
    """The texts of a column without nulls."""
    if not len(column.of):
        return pa.array([], pa.binary())
    seams = np.column_stack([column.starts, column.starts + column.values]).astype(np.int32)
    buffers = [None, pa.py_buffer(seams), pa.py_buffer(data)]
    spans = pa.Array.from_buffers(pa.binary(), seams.size - 1, buffers)
    return spans.take(pa.array(np.arange(0, seams.size, 2)))


class Swept(NamedTuple):
    """The columns by path, where any body has values: strings, uuids, numbers, or the elements of an array of
    these; and the counts of arrays, 0 for a struct that could be null and is not, NULL for nulls. `odd`: the
    bodies that must be read one by one.
    """

    values: dict[Path, Column]
    counts: dict[Path, Column]
    odd: Flags


def sweep(layout: Layout, paths: Collection[Path] | None, bodies: Frames) -> Swept:
    """Reads the values at these paths, or at all paths, of many bodies at once. It stops behind the last of
    the paths. Of hidden fields, which may have been left out, only the size is read.
    """
    sweeping = _Sweeping(layout, paths, bodies)
    sweeping.run()
    values, counts = (
        {path: _in_order(some) for path, some in found.items()}
        for found in (sweeping.values, sweeping.counts)
    )
    return Swept(values, counts, sweeping.odd)


def _in_order(columns: list[Column]) -> Column:
    """Sorts columns by their bodies."""
    if len(columns) == 1:
        return columns[0]
    found = one_of(columns)
    order = np.argsort(found.of, kind="stable")
    return Column(*(numbers[order] for numbers in found))


class _Sweeping:
    def __init__(self, layout: Layout, paths: Collection[Path] | None, bodies: Frames) -> None:
        self._layout, self._bodies, self._paths = layout, bodies, paths
        self._above = {path[:depth] for path in paths or () for depth in range(1, len(path))}
        self.values: defaultdict[Path, list[Column]] = defaultdict(list)
        self.counts: defaultdict[Path, list[Column]] = defaultdict(list)
        self._views = {
            kind: np.ndarray(
                (len(bodies.data) - size + 1,), f">{code}" if size > 1 else code, bodies.data, 0, (1,)
            )
            for kind, (code, size) in FIXED.items()
            if kind != "uuid"
        }
        self._blanks = np.concatenate([[0], np.cumsum(bodies.blank_bytes)])
        self._left_out = np.zeros(len(bodies.starts), np.int64)  # of each frame, so far
        self.odd = np.zeros(len(bodies.starts), np.bool_)

    def run(self) -> None:
        in_place, tagged = present(self._layout.fields, self._layout.version)
        fields = in_place
        wants_tags = self._wants_tags((), tagged)
        if not wants_tags:
            last = max((at for at, f in enumerate(in_place) if self._wants((f.name,))), default=NULL)
            fields = in_place[: last + 1]
        pos = self._bodies.starts
        lanes = np.arange(len(pos))
        for f in fields:
            pos = self._field(f, (f.name,), lanes, pos)
        if wants_tags:
            pos = self._tags(True, [], lanes, pos)
        self.odd |= pos > self._bodies.ends

    def _is_asked(self, path: Path) -> bool:
        return self._paths is None or path in self._paths

    def _wants(self, path: Path) -> bool:
        """It, or something in it."""
        return self._is_asked(path) or path in self._above

    def _wants_tags(self, path: Path, tagged: list[Field]) -> bool:
        """Whether tagged fields of a struct are wanted, if it has any."""
        names = (UNKNOWN_TAGS, *(f.name for f in tagged))
        return self._layout.flexible and any(self._wants((*path, name)) for name in names)

    def _field(self, f: Field, path: Path, lanes: Numbers, pos: Numbers) -> Numbers:
        null = self._layout.version in f.null
        if f.kind == "array":
            return self._array(f, path, null, lanes, pos)
        if f.kind != "struct":
            return self._value(f, f.kind, path, null, lanes, pos)
        if not null:
            return self._struct(members(f), path, lanes, pos)
        is_there = self._number("int8", pos) >= 0
        if self._is_asked(path):
            self.counts[path].append(Column(lanes, pos, np.where(is_there, 0, NULL)))
        there = np.flatnonzero(is_there)
        pos = pos + 1
        pos[there] = self._struct(members(f), path, lanes[there], pos[there])
        return pos

    def _struct(self, fields: tuple[Field, ...], path: Path, lanes: Numbers, pos: Numbers) -> Numbers:
        in_place, tagged = present(fields, self._layout.version)
        for f in in_place:
            pos = self._field(f, (*path, f.name), lanes, pos)
        if self._layout.flexible:
            known = [f.tag for f in tagged if f.tag is not None]
            pos = self._tags(self._wants_tags(path, tagged), known, lanes, pos)
        return pos

    def _tags(self, wanted: bool, known: list[int], lanes: Numbers, pos: Numbers) -> Numbers:
        """Skips tagged fields by their sizes. Bodies with a known one become odd, since Kafka does not heed
        its size; if one of them may be `wanted`, so do those that have any.
        """
        count, pos = self._uvarint(lanes, pos)
        count = self._possible(count, lanes, pos)
        at, nth = np.flatnonzero(count), 0
        while len(at) >= FEW and not wanted:
            of, here = lanes[at], pos[at]
            tag, here = self._uvarint(of, here)
            if known:
                self.odd[of[np.isin(tag, known)]] = True
            size, here = self._uvarint(of, here)
            pos[at] = here + size
            nth += 1
            at = at[count[at] > nth]
        self.odd[lanes[at]] = True
        return pos

    def _array(self, f: Field, path: Path, null: bool, lanes: Numbers, pos: Numbers) -> Numbers:
        count, pos = self._length("int32", null, lanes, pos)
        count = self._possible(count, lanes, pos)
        size = None if self._wants(path) else self._fixed_bytes(f)
        if size is not None:
            behind: Numbers = pos + np.maximum(count, 0) * size
            return behind
        if self._is_asked(path):
            self.counts[path].append(Column(lanes, pos, count))
        at, nth = np.flatnonzero(count > 0), 0
        while len(at) >= FEW:
            of, here = lanes[at], pos[at]
            if isinstance(f.of, tuple):
                pos[at] = self._struct(f.of, path, of, here)
            else:
                pos[at] = self._value(f, f.of, path, False, of, here)
            nth += 1
            at = at[count[at] > nth]
        self.odd[lanes[at]] = True
        return pos

    def _possible(self, count: Numbers, lanes: Numbers, pos: Numbers) -> Numbers:
        """Limits counts to the bytes left; 0 for odd bodies."""
        self.odd[lanes[count > self._bodies.ends[lanes] - pos]] = True
        return np.where(self.odd[lanes], 0, count)

    def _fixed_bytes(self, f: Field) -> int | None:
        """The size of an element whose size never varies."""
        if isinstance(f.of, str):
            return FIXED[f.of][1] if f.of in FIXED else None
        fields, _ = present(f.of, self._layout.version)
        if self._layout.flexible or not all(one.kind in FIXED for one in fields):
            return None
        return sum(FIXED[one.kind][1] for one in fields)

    def _value(self, f: Field, kind: str, path: Path, null: bool, lanes: Numbers, pos: Numbers) -> Numbers:
        is_asked = self._is_asked(path)
        if kind in FIXED:
            width = FIXED[kind][1]
            if is_asked and kind == "float64":
                self.odd[lanes] = True
            elif is_asked:
                values = np.full_like(pos, width) if kind == "uuid" else self._number(kind, pos)
                self.values[path].append(Column(lanes, pos, values))
            return pos + width
        size, pos = self._length("int16" if kind == "string" else "int32", null, lanes, pos)
        if kind == "string":
            self.odd[lanes[size > LONGEST_STRING]] = True
        if is_asked:
            self.values[path].append(Column(lanes, pos, size))
        return self._behind(is_asked and f.mark not in HIDDEN, lanes, pos, np.maximum(size, 0))

    def _behind(self, wanted: bool, lanes: Numbers, pos: Numbers, size: Numbers) -> Numbers:
        """The place behind so many bytes, some of which may have been left out."""
        if not len(self._bodies.blank_at):
            return pos + size
        at = lanes * FRAME + (pos - self._bodies.frames[lanes] + self._left_out[lanes])
        first, end = (np.searchsorted(self._bodies.blank_at, one) for one in (at, at + size))
        left_out = self._blanks[end] - self._blanks[first]
        if wanted:
            self.odd[lanes[left_out > 0]] = True
        self._left_out[lanes] += left_out
        behind: Numbers = pos + size - left_out
        return behind

    def _length(self, classic: str, null: bool, lanes: Numbers, pos: Numbers) -> tuple[Numbers, Numbers]:
        """NULL for any that is negative, as Kafka has it."""
        if self._layout.flexible:
            size, pos = self._uvarint(lanes, pos)
            size = size - 1
        else:
            size, pos = self._number(classic, pos), pos + FIXED[classic][1]
        if not null:
            self.odd[lanes[size < 0]] = True
        return np.maximum(size, NULL), pos

    def _uvarint(self, lanes: Numbers, pos: Numbers) -> tuple[Numbers, Numbers]:
        byte = self._number("uint8", pos)
        value, pos = byte & 0x7F, pos + 1
        at = np.flatnonzero(byte > 0x7F)
        for shift in range(7, 7 * UVARINT_BYTES, 7):
            if not len(at):
                return value, pos
            byte = self._number("uint8", pos[at])
            value[at] |= (byte & 0x7F) << shift
            pos[at] += 1
            at = at[byte > 0x7F]
        self.odd[lanes[at]] = True
        return value & 0xFFFFFFFF, pos

    def _number(self, kind: str, pos: Numbers) -> Numbers:
        """Reads past the end are clamped to the padding; such a body becomes odd later."""
        view = self._bodies.data if kind == "uint8" else self._views[kind]
        found: Numbers = view[np.minimum(pos, len(view) - 1)].astype(np.int64)
        return found

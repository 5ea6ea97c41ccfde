"""Emits the reading of array elements that all have one shape: the same lengths and counts, no tagged fields.

    alike(data, pos, end, left, items) -> (pos, left)          adds elements until one has another shape
    alike(data, pos, end, left, column, ...) -> (pos, left)    the same for the wanted fields of a pick

What tells the shape stands at the same places in each element, so that a slice with a stride, stripped of the
byte that is expected there, says how many elements are of the shape. A wrong guess only ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from struct import Struct
from typing import Any

from klamm.decoders.emit import Scan, Source
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import FIXED, SIZED, Field, default_of, members, present

FEW = 5  # elements for which a shape is not worth looking for
MOST_SHAPES = 32  # kept per array; elements of other shapes are read one by one
MOST_VALUES = 64
MOST_ROWS = 64
LONGEST = 126  # bytes or elements: the most that a varint of one byte holds

Want = dict[str, Any]  # field name -> index of a path, or the Want of its members
Shape = tuple[int, ...]
Alike = Callable[..., tuple[int, int]]


def indexes(want: Want | int) -> list[int]:
    return [want] if isinstance(want, int) else [i for below in want.values() for i in indexes(below)]


class _Unfit(Exception):
    """The lengths do not say where each value is, or there are too many values."""


class Alikes(dict[Shape, Alike | None]):
    """Readers by shape, made on first use; None for shapes without one. With `want` they are picks."""

    def __init__(self, layout: Layout, fields: tuple[Field, ...], want: Want | None = None) -> None:
        self.layout, self.fields, self.want = layout, fields, want

    def __missing__(self, shape: Shape) -> Alike | None:
        if len(self) >= MOST_SHAPES or max(shape, default=0) > LONGEST:
            return None
        try:
            made: Alike | None = _Alike(self.layout, shape).reading(self.fields, self.want)
        except _Unfit:
            made = None
        self[shape] = made
        return made


class Rows(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Readers of the values of n adjacent rows of some struct codes; those of a few rows are kept."""

    def __init__(self, codes: str) -> None:
        self.codes, self.row = codes, Struct(">" + codes)

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        if count <= MOST_ROWS:
            self[count] = made = Struct(">" + self.codes * count).unpack_from
            return made
        size = count * self.row.size
        return lambda data, pos: tuple(chain.from_iterable(self.row.iter_unpack(data[pos : pos + size])))


class Shaped(Scan):
    """`shape`: the lengths and counts met so far in the element being emitted, as expressions."""

    def __init__(self, layout: Layout, goal: str) -> None:
        super().__init__(layout, goal)
        self.shape: list[str] = []

    @contextmanager
    def apart(self) -> Iterator[None]:
        """The code emitted within may run never or often: its lengths are no part of a shape."""
        shape, self.shape = self.shape, []
        yield
        self.shape = shape

    @contextmanager
    def elements(self, told: str, left: str, alikes: Alikes, outputs: str, but: str = "") -> Iterator[None]:
        """The loop over an array whose elements are read one by one, as emitted within, until two have one
        shape; then that is tried. `left` counts what follows; `but` many of the last are not read alike.
        """
        look, alike, known, last = (self.fresh(name) for name in ("look", "alike", "known", "last"))
        self.names[alike] = alikes
        self.first_lines.append(f"{known} = {last} = None")
        run = [f"pos, {left} = {known}(data, pos, end, {left}{outputs})"]
        if but:
            run = [f"pos, {left} = {known}(data, pos, end, {left} - {but}{outputs})", f"{left} += {but}"]
        self.line(f"{left} = {self.amount(told)}")
        self.line(f"{look} = {left} > {FEW}")
        with self.block(f"if {look} and {known}:"):
            self.emit(run)
        with self.block(f"while {left}:"), self.apart():
            self.line(f"{left} -= 1")
            yield
            with self.block(f"if {look}:"):
                shape = f"({''.join(f'{length}, ' for length in self.shape)})"
                with self.block(f"if {last} == {shape}:"):
                    self.line(f"{known} = {alike}[{last}]")
                    with self.block(f"if {known}:"):
                        self.emit(run)
                    with self.block("else:"):
                        self.line(f"{look} = False")
                self.line(f"{last} = {shape}")

    def emit(self, lines: list[str]) -> None:
        for text in lines:
            self.line(text)


class _Alike(Source):
    """Walks one element of the shape and notes what stands where in it."""

    def __init__(self, layout: Layout, shape: Shape) -> None:
        super().__init__(layout, "alike")
        self.shape = shape
        self.lengths: Iterator[int] = iter(shape)
        self.size = 0  # of the bytes walked over
        self.codes: list[str] = []
        self.variables: list[str] = []
        self.fixed_bytes: list[tuple[int, int]] = []  # (offset, byte) of the lengths and counts of the shape

    def reading(self, fields: tuple[Field, ...], want: Want | None) -> Alike:
        columns: dict[int, str] = {}
        element = ""
        if want is None:
            element = self.struct(fields)
        else:
            self.columns(fields, want, columns)
        if len(self.variables) > MOST_VALUES:
            raise _Unfit
        self.line(f"turns = max(min(left, (end - pos) // {self.size}), 0)")
        self.line(f"stop = pos + turns * {self.size}")
        others = [
            f"len(data[pos + {offset}:stop:{self.size}].lstrip({bytes([byte])!r}))"
            for offset, byte in self.fixed_bytes
        ]
        if others:
            self.line(f"turns -= max({', '.join(others)}, 0)")
            self.line(f"stop = pos + turns * {self.size}")
        if self.variables and (want is None or columns):
            self.names |= {"rows": Rows("".join(self.codes)), "width": len(self.variables)}
            self.line("values = rows[turns](data, pos)")
        if want is None:
            self.line(f"items += [{element} for {self.turns()}]")
        for index, values in columns.items():
            self.line(f"out{index} += {values}")
        self.line("return stop, left - turns")
        outputs = ["items"] if want is None else [f"out{index}" for index in indexes(want)]
        return self.made(", ".join(["data, pos, end, left", *outputs]), str(self.shape))

    def turns(self) -> str:
        """The head of a loop over the elements."""
        if len(self.variables) < 2:
            return f"{self.variables[0]} in values" if self.variables else "_ in range(turns)"
        self.line("values = iter(values)")
        return f"{', '.join(self.variables)} in zip({', '.join(['values'] * len(self.variables))})"

    def skip(self, size: int) -> None:
        if size:
            self.codes.append(f"{size}x")
            self.size += size

    def take(self, code: str, size: int, name: str) -> str:
        variable = self.fresh(name)
        self.codes.append(code)
        self.size += size
        self.variables.append(variable)
        return variable

    def same(self, told: bytes) -> None:
        """Every element of the shape has these bytes here."""
        self.fixed_bytes += [(self.size + index, byte) for index, byte in enumerate(told)]
        self.skip(len(told))

    def length(self, kind: str) -> int:
        """The next length or count of the shape."""
        size = next(self.lengths)
        self.same(
            bytes([size + 1])
            if self.flexible
            else size.to_bytes(2 if kind == "string" else 4, "big", signed=True)
        )
        return size

    def value(self, f: Field) -> str:
        """The expression of a field's value."""
        if f.kind in FIXED:
            return self.take(*FIXED[f.kind], f.name)
        if f.kind in SIZED:
            size = self.length(f.kind)
            if size < 1:
                return "None" if size < 0 else repr(b"" if f.kind != "string" else "")
            variable = self.take(f"{size}s", size, f.name)
            return f"{variable}.decode()" if f.kind == "string" else variable
        if f.kind == "array":
            count = self.countable(f)
            if count > MOST_VALUES:
                raise _Unfit
            taken = [self.take(*FIXED[str(f.of)], f.name) for _ in range(count)]
            return "None" if count < 0 else f"[{', '.join(taken)}]"
        if self.version in f.null:
            self.absent()
            return "None"
        return self.struct(members(f))

    def struct(self, fields: tuple[Field, ...]) -> str:
        in_place, tagged = present(fields, self.version)
        values = [(f.name, self.value(f)) for f in in_place]
        if self.flexible:
            values += [(f.name, repr(default_of(f, self.version))) for f in tagged]
            self.same(b"\0")
        return "{" + ", ".join(f"{name!r}: {value}" for name, value in values) + "}"

    def countable(self, f: Field) -> int:
        """The count of an array of which the size follows from it."""
        count = self.length("array")
        if count > 0 and f.of not in FIXED:
            raise _Unfit
        return count

    def absent(self) -> None:
        """A struct that is null."""
        there = next(self.lengths)
        if there >= 0:
            raise _Unfit
        self.same(there.to_bytes(1, "big", signed=True))

    def columns(self, fields: tuple[Field, ...], want: Want, columns: dict[int, str]) -> None:
        """Skips all but the wanted fields; the expressions of their values go into `columns`."""
        in_place, tagged = present(fields, self.version)
        if any(f.name in want for f in tagged):
            raise _Unfit
        for f in in_place:
            wanted = want.get(f.name)
            if isinstance(wanted, int):
                columns[wanted] = self.column(f)
            elif f.kind == "struct" and self.version not in f.null:
                self.columns(members(f), wanted or {}, columns)
            elif wanted is not None:
                raise _Unfit
            elif f.kind in FIXED:
                self.skip(FIXED[f.kind][1])
            elif f.kind in SIZED:
                self.skip(max(self.length(f.kind), 0))
            elif f.kind == "array":
                count = self.countable(f)
                self.skip(count * FIXED[str(f.of)][1] if count > 0 else 0)
            else:
                self.absent()
        if self.flexible:
            self.same(b"\0")

    def column(self, f: Field) -> str:
        """The values of a wanted field, which stand at a stride in what one Struct reads of all elements."""
        if f.kind not in FIXED and f.kind not in SIZED:
            raise _Unfit
        first = len(self.variables)
        value = self.value(f)
        if first == len(self.variables):
            return f"[{value}] * turns"
        column = f"values[{first}::width]"
        if f.kind == "string":
            return f'[text.decode("utf-8", "surrogateescape") for text in {column}]'
        return column

"""Emits the reading of array elements that all have one shape: the same lengths and counts, no tagged fields.

    alike(data, pos, end, left, items) -> (pos, left)    adds elements to `items` until one has another shape

Every length is still compared with the shape, so that a wrong guess only ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from klamm.decoders.emit import Source
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import FIXED, SIZED, Field, default_of, members, present

MOST_SHAPES = 32  # kept per array; elements of other shapes are read one by one
MOST_VALUES = 64
LONGEST = 126  # bytes or elements: what a varint of one byte can tell

HEAD = "data, pos, end, left, items"

Shape = tuple[int, ...]
Alike = Callable[[bytes, int, int, int, list[object]], tuple[int, int]]


class _Unfit(Exception):
    """The lengths do not say where each value is, or there are too many values."""


class Alikes(dict[Shape, Alike | None]):
    """By shape, made when first asked for; None where there is none to make."""

    def __init__(self, layout: Layout, fields: tuple[Field, ...]) -> None:
        self.layout, self.fields = layout, fields

    def __missing__(self, shape: Shape) -> Alike | None:
        if len(self) >= MOST_SHAPES or max(shape, default=0) > LONGEST:
            return None
        try:
            made: Alike | None = _Alike(self.layout, self.fields, shape).made(HEAD, str(shape))
        except _Unfit:
            made = None
        self[shape] = made
        return made


class _Alike(Source):
    def __init__(self, layout: Layout, fields: tuple[Field, ...], shape: Shape) -> None:
        super().__init__(layout, "alike")
        self.lengths: Iterator[int] = iter(shape)
        self.codes: list[str] = []
        self.variables: list[str] = []
        self.wrong: list[str] = []  # conditions under which an element has another shape
        element = self.struct(fields)
        if len(self.variables) > MOST_VALUES:
            raise _Unfit
        codes = "".join(self.codes)
        size = Struct(">" + codes).size
        unpack = self.structure(codes, "iter_unpack")
        self.line(f"turns = min(left, (end - pos) // {size})")
        self.line("add, before = items.append, len(items)")
        with self.block(
            f"for {', '.join(self.variables)}, in {unpack}(memoryview(data)[pos : pos + turns * {size}]):"
        ):
            if self.wrong:
                with self.block(f"if {' or '.join(self.wrong)}:"):
                    self.line("break")
            self.line(f"add({element})")
        self.line("done = len(items) - before")
        self.line(f"return pos + done * {size}, left - done")

    def take(self, code: str, name: str) -> str:
        variable = self.fresh(name)
        self.codes.append(code)
        self.variables.append(variable)
        return variable

    def length(self, kind: str) -> int:
        """The next length of the shape, which the element's own is compared with."""
        size = next(self.lengths)
        if self.flexible:
            variable, told = self.take("B", "size"), size + 1
        else:
            variable, told = self.take("h" if kind == "string" else "i", "size"), size
        self.wrong.append(f"{variable} != {told}" if told else variable)
        return size

    def value(self, f: Field) -> str:
        """The expression of a field's value."""
        if f.kind in FIXED:
            return self.take(FIXED[f.kind][0], f.name)
        if f.kind in SIZED:
            size = self.length(f.kind)
            if size < 1:
                return "None" if size < 0 else repr(b"" if f.kind != "string" else "")
            variable = self.take(f"{size}s", f.name)
            return f"{variable}.decode()" if f.kind == "string" else variable
        if f.kind == "array":
            count = self.length("array")
            if count > 0 and f.of not in FIXED:
                raise _Unfit
            if count > MOST_VALUES:
                raise _Unfit
            taken = [self.take(FIXED[str(f.of)][0], f.name) for _ in range(count)]
            return "None" if count < 0 else f"[{', '.join(taken)}]"
        if self.version in f.null:
            if next(self.lengths) >= 0:
                raise _Unfit
            self.wrong.append(f"{self.take('b', 'there')} >= 0")
            return "None"
        return self.struct(members(f))

    def struct(self, fields: tuple[Field, ...]) -> str:
        in_place, tagged = present(fields, self.version)
        values = [(f.name, self.value(f)) for f in in_place]
        if self.flexible:
            values += [(f.name, repr(default_of(f, self.version))) for f in tagged]
            self.wrong.append(self.take("B", "tags"))
        return "{" + ", ".join(f"{name!r}: {value}" for name, value in values) + "}"

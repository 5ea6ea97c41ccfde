"""Emits `read`: everything, as dicts and lists.

Elements of an array mostly have the lengths and counts of the one before (their shape): partitions with three
replicas each. When a shape is met twice, a function is made that reads an element of it with one Struct.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from klamm.decoders.emit import Scan
from klamm.decoders.emit_alike import Alikes
from klamm.decoders.interpret import Layout, least_size
from klamm.decoders.schema import FIXED, SIZED, Field, default_of, members, present


class _Arrays(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Readers of n adjacent values of one kind; the short ones are kept."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        made = Struct(">" + self.code * count if self.code == "16s" else f">{count}{self.code}").unpack_from
        if count <= 64:
            self[count] = made
        return made


FEW = 5  # elements for which a shape is not worth looking for
_ARRAYS = {kind: _Arrays(code) for kind, (code, _) in FIXED.items()}


class Reader(Scan):
    """`shape`: the variables of the lengths and counts met so far in the element being emitted."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout, "read")
        self.shape: list[str] = []
        result = self.struct(layout.fields)
        self.line(f"values = {result}")
        self.refuse_if("pos > end")
        self.line("return values, pos")

    def value(self, f: Field) -> str:
        """Emits the reading of a field; returns the expression of its value, good after the next flush."""
        variable, null = self.fresh(f.name), self.version in f.null
        if f.kind in FIXED:
            self.fixed(FIXED[f.kind][0], variable)
        elif f.kind in SIZED:
            self.sized(f.kind, variable, null)
        elif f.kind == "array":
            self.array(f, variable, null)
        elif null:
            there = self.fresh("there")
            self.fixed("b", there)
            self.flush()
            self.shape.append(there)
            shape, self.shape = self.shape, []  # what is within may not be there
            with self.unless_null(there, variable, True):
                self.line(f"{variable} = {self.struct(members(f))}")
            self.shape = shape
        else:
            return self.struct(members(f))
        return variable

    def sized(self, kind: str, variable: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, kind, null)
        self.shape.append(size)
        with self.unless_null(size, variable, null):
            self.slice_of(kind, size, variable)

    def array(self, f: Field, variable: str, null: bool) -> None:
        count = self.fresh("count")
        self.length(count, "array", null)
        self.shape.append(count)
        with self.unless_null(count, variable, null):
            if isinstance(f.of, str) and f.of in FIXED:
                self.names[f"{f.of}s"] = _ARRAYS[f.of]
                self.line(f"stop = pos + {count} * {FIXED[f.of][1]}")
                self.refuse_if("stop > end")
                self.line(f"{variable} = list({f.of}s[{count}](data, pos)) if {count} else []")
                self.line("pos = stop")
                return
            self.refuse_if(f"{count} * {least_size(f, self.version, self.flexible)} > end - pos")
            self.line(f"{variable} = []")
            if isinstance(f.of, tuple):
                self.structs(f.of, count, variable)
            else:
                element = self.fresh("element")
                shape, self.shape = self.shape, []
                with self.block(f"for _ in range({count}):"):
                    self.sized(f.of, element, False)
                    self.line(f"{variable}.append({element})")
                self.shape = shape

    def structs(self, fields: tuple[Field, ...], count: str, variable: str) -> None:
        """The elements of an array: one by one until two have one shape; then that is tried."""
        add = self.fresh("add")
        self.line(f"{add} = {variable}.append")
        outer, self.shape = self.shape, []
        if any(f.kind == "records" for f in present(fields, self.version)[0]):  # no two are of one length
            with self.block(f"for _ in range({count}):"):
                self.line(f"{add}({self.struct(fields)})")
        else:
            self.alike(fields, count, variable, add)
        self.shape = outer

    def alike(self, fields: tuple[Field, ...], count: str, variable: str, add: str) -> None:
        left, look, alike, known, last = (
            self.fresh(name) for name in ("left", "look", "alike", "known", "last")
        )
        self.names[alike] = Alikes(self.layout, fields)
        self.first_lines.append(f"{known} = {last} = None")
        self.line(f"{left} = {count}")
        self.line(f"{look} = {count} > {FEW}")
        with self.block(f"if {look} and {known}:"):
            self.line(f"pos, {left} = {known}(data, pos, end, {count}, {variable})")
        with self.block(f"while {left}:"):
            self.line(f"{add}({self.struct(fields)})")
            self.line(f"{left} -= 1")
            with self.block(f"if {look}:"):
                shape = f"({''.join(f'{length}, ' for length in self.shape)})"
                with self.block(f"if {last} == {shape}:"):
                    self.line(f"{known} = {alike}[{last}]")
                    with self.block(f"if {known}:"):
                        self.line(f"pos, {left} = {known}(data, pos, end, {left}, {variable})")
                    with self.block("else:"):
                        self.line(f"{look} = False")
                self.line(f"{last} = {shape}")

    def struct(self, fields: tuple[Field, ...]) -> str:
        in_place, tagged = present(fields, self.version)
        values = [(f.name, self.value(f)) for f in in_place]
        count, result = self.fresh("tags"), self.fresh("struct")
        if self.flexible:
            self.fixed("B", count)
            values += [(f.name, repr(default_of(f, self.version))) for f in tagged]
        self.flush()
        made = "{" + ", ".join(f"{name!r}: {value}" for name, value in values) + "}"
        if not self.flexible:
            return made
        self.line(f"{result} = {made}")
        with self.block(f"if {count}:"):
            shape, self.shape = self.shape, []
            self.tags(result, count, tagged)
            self.shape = shape
        return result

    def tags(self, result: str, count: str, tagged: list[Field]) -> None:
        self.rest_of_uvarint(count)
        if not tagged:
            self.line(f"{count}, pos = unknown_tags(data, pos, end, {count})")
            with self.block(f"if {count}:"):
                self.line(f"{result}[UNKNOWN_TAGS] = {count}")
            return
        tag, size, stop, outer, unknown = (self.fresh(n) for n in ("tag", "size", "stop", "outer", "unknown"))
        self.line(f"{unknown} = []")
        with self.block(f"for _ in range({count}):"):
            self.uvarint(tag)
            self.uvarint(size)
            self.line(f"{stop} = pos + {size}")
            self.refuse_if(f"{stop} > end")
            self.line(f"{outer}, end = end, {stop}")
            for index, f in enumerate(tagged):
                with self.block(f"{'el' if index else ''}if {tag} == {f.tag}:"):
                    value = self.value(f)
                    self.flush()
                    self.line(f"{result}[{f.name!r}] = {value}")
            with self.block("else:"):
                self.line(f"{unknown}.append(({tag}, data[pos:{stop}]))")
                self.line(f"pos = {stop}")
            self.refuse_if(f"pos != {stop}")
            self.line(f"end = {outer}")
        with self.block(f"if {unknown}:"):
            self.line(f"{result}[UNKNOWN_TAGS] = {unknown}")

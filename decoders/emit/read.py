"""Emits `read`: everything, as dicts and lists.

Elements of an array mostly have the lengths and counts of the one before (their shape): partitions with three
replicas each. When a shape is met twice, a function is made that reads an element of it with one Struct.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from klamm.decoders.emit.alike import Alikes, Rows, Shaped
from klamm.decoders.interpret import Layout, least_size
from klamm.decoders.schema import FIXED, SIZED, Field, all_fields, default_of, members, present

_ARRAYS = {kind: Rows(code) for kind, (code, _) in FIXED.items()}


class Reader(Shaped):
    """Rare parts are read by functions of their own, made on first use: tagged fields, structs that may be
    null, and arrays whose elements other arrays have too (`often`).
    """

    def __init__(self, layout: Layout, goal: str) -> None:
        super().__init__(layout, goal)
        arrays = Counter(
            members(f) for _, f in all_fields(layout.fields, layout.version) if f.kind == "array"
        )
        self.often = [element for element, count in arrays.items() if element and count > 1]

    def everything(self) -> Callable[..., Any]:
        result = self.struct(self.layout.fields)
        self.refuse_if("pos > end")
        self.line(f"return {result}, pos")
        return self.made("data, pos, end")

    def struct_alone(self, fields: tuple[Field, ...], name: str) -> Callable[..., Any]:
        self.line(f"return {self.struct(fields)}, pos")
        return self.made("data, pos, end", f" {name}")

    def elements_alone(self, fields: tuple[Field, ...]) -> Callable[..., Any]:
        self.line("items = []")
        self.structs(fields, "told", "items")
        self.line("return items, pos")
        return self.made("data, pos, end, told", f" {self.often.index(fields)}")

    def tags_alone(self, tagged: list[Field]) -> Callable[..., Any]:
        self.tags(tagged)
        self.line("return pos")
        return self.made("data, pos, end, count, values", f" {tagged[0].name}")

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
            self.presence(f, there)
            self.shape.append(there)
            alone = self.later(
                f"{variable}_alone", lambda: Reader(self.layout, "struct").struct_alone(members(f), variable)
            )
            with self.unless_null(f"{there} < 0", variable, True):
                self.line(f"{variable}, pos = {alone}(data, pos, end)")
        else:
            return self.struct(members(f))
        return variable

    def sized(self, kind: str, variable: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, kind, null)
        self.shape.append(self.amount(size))
        with self.unless_null(self.is_null(size), variable, null):
            self.slice_of(kind, size, variable)

    def array(self, f: Field, variable: str, null: bool) -> None:
        count = self.fresh("count")
        self.length(count, "array", null)
        self.shape.append(self.amount(count))
        with self.unless_null(self.is_null(count), variable, null):
            if isinstance(f.of, str) and f.of in FIXED:
                self.names[f"{f.of}s"] = _ARRAYS[f.of]
                self.line(f"stop = pos + ({self.amount(count)}) * {FIXED[f.of][1]}")
                self.refuse_if("stop > end")
                values = f"[*{f.of}s[{self.amount(count)}](data, pos)]"
                self.line(f"{variable} = {values} if {self.is_some(count)} else []")
                self.line("pos = stop")
                return
            self.refuse_many(count, least_size(f, self.version, self.flexible))
            if f.of in self.often:
                alone = self.later(
                    f"elements_{self.often.index(members(f))}",
                    lambda: Reader(self.layout, "elements").elements_alone(members(f)),
                )
                self.line(f"{variable}, pos = {alone}(data, pos, end, {count})")
                return
            self.line(f"{variable} = []")
            if isinstance(f.of, tuple):
                self.structs(f.of, count, variable)
            else:
                element = self.fresh("element")
                with self.block(f"for _ in range({self.amount(count)}):"), self.apart():
                    self.sized(f.of, element, False)
                    self.line(f"{variable}.append({element})")

    def structs(self, fields: tuple[Field, ...], count: str, variable: str) -> None:
        """The elements of an array."""
        add, left = self.fresh("add"), self.fresh("left")
        self.line(f"{add} = {variable}.append")
        if any(f.kind == "records" for f in present(fields, self.version)[0]):  # no two are of one length
            with self.block(f"for _ in range({self.amount(count)}):"), self.apart():
                self.line(f"{add}({self.struct(fields)})")
        else:
            with self.elements(count, left, Alikes(self.layout, fields), f", {variable}"):
                self.line(f"{add}({self.struct(fields)})")

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
            keep = "keep_tags"
            if tagged:
                keep = self.later(f"keep_{count}", lambda: Reader(self.layout, "tags").tags_alone(tagged))
            self.line(f"pos = {keep}(data, pos, end, {count}, {result})")
        return result

    def tags(self, tagged: list[Field]) -> None:
        self.line("unknown = []")
        self.rest_of_uvarint("count", "count")
        with self.block("for _ in range(count):"):
            self.uvarint("tag")
            self.uvarint("size")
            self.line("stop_at = pos + size")
            self.refuse_if("stop_at > end")
            for index, f in enumerate(tagged):
                with self.block(f"{'el' if index else ''}if tag == {f.tag}:"):
                    self.line("outer, end = end, stop_at")
                    value = self.value(f)
                    self.flush()
                    self.line("end = outer")
                    self.line(f"values[{f.name!r}] = {value}")
            with self.block("else:"):
                self.line("unknown.append((tag, data[pos:stop_at]))")
                self.line("pos = stop_at")
            self.refuse_if("pos != stop_at")
        with self.block("if unknown:"):
            self.line("values[UNKNOWN_TAGS] = unknown")

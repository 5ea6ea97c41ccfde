"""Source in the making: lines, and what they need from outside. The only place that executes made source."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple

from klamm.decoders.interpret import LONGEST_STRING, Layout, uvarint
from klamm.decoders.schema import UNKNOWN_TAGS, Field
from klamm.decoders.tags import (
    ANY,
    MOST_COUNT,
    MOST_LENGTH,
    Malformed,
    gather,
    keep_tags,
    long_uvarint,
    long_uvarint_walk,
    skip_tags,
)

_GLOBALS: dict[str, Any] = {
    "Malformed": Malformed,
    "UNKNOWN_TAGS": UNKNOWN_TAGS,
    "gather": gather,
    "keep_tags": keep_tags,
    "long_uvarint": long_uvarint,
    "long_uvarint_walk": long_uvarint_walk,
    "skip_tags": skip_tags,
    "uvarint": uvarint,
}


class Later(NamedTuple):
    """A function among the `names` of another, made when it is first called."""

    names: dict[str, Any]
    name: str
    make: Callable[[], Callable[..., Any]]

    def __call__(self, *arguments: Any) -> Any:
        function = self.names[self.name] = self.make()
        return function(*arguments)


class Source:
    """A function being made. `goal` is its name."""

    def __init__(self, layout: Layout, goal: str) -> None:
        self.layout, self.goal = layout, goal
        self.version, self.flexible = layout.version, layout.flexible
        self.first_lines: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = dict(_GLOBALS)
        self.serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, name: str) -> str:
        self.serial += 1
        return f"{name}_{self.serial}"

    def structure(self, codes: str, method: str) -> str:
        name = f"{method}_" + "".join(c if c.isalnum() else "_" for c in codes)
        self.names[name] = getattr(Struct(">" + codes), method)
        return name

    def later(self, name: str, make: Callable[[], Callable[..., Any]]) -> str:
        """The name of a function that is made when first called, for a rare case."""
        self.names[name] = Later(self.names, name, make)
        return name

    def made(self, head: str, about: str = "") -> Callable[..., Any]:
        """The function, its source as its __doc__; `about` tells it from others of its goal."""
        first = ["    " + text for text in self.first_lines]
        text = "\n".join([f"def {self.goal}({head}):", *first, *self.lines, ""])
        filename = f"<klamm {self.layout} {self.goal}{about}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names.pop(self.goal)  # else it and its names were a circle
        function.__doc__ = text
        return function


class Fixed(NamedTuple):
    """One of adjacent fixed-size values: its struct code, its size, its variable or None to skip it."""

    code: str
    size: int
    variable: str | None


class Scan(Source):
    """Emits code that moves over bytes: fixed runs, lengths, varints; over one buffer or resumable over
    chunks.
    """

    resumable = False

    def __init__(self, layout: Layout, goal: str) -> None:
        super().__init__(layout, goal)
        self.run: list[Fixed] = []

    def need(self, size: int | str) -> None:
        """`size` more bytes must be at hand before the next line."""
        if self.resumable:
            with self.block(f"if end - pos < {size}:"):
                self.line(f"data = yield from gather(data, pos, {size})")
                self.line("pos, end = 0, len(data)")

    def fixed(self, code: str, variable: str | None) -> None:
        self.run.append(Fixed(code, Struct(">" + code).size, variable))

    def flush(self) -> None:
        """Emit the reading of the run."""
        run, self.run = self.run, []
        wanted = [value.variable for value in run if value.variable is not None]
        total = sum(value.size for value in run)
        if not run:
            return
        if not wanted:
            self.advance(str(total))
            return
        self.need(total)
        if run[-1].code == "B" and wanted == [run[-1].variable]:
            self.line(f"{wanted[0]} = data[pos + {total - 1}]" if total > 1 else f"{wanted[0]} = data[pos]")
        else:
            codes = "".join(value.code if value.variable else f"{value.size}x" for value in run)
            self.line(f"{', '.join(wanted)}, = {self.structure(codes, 'unpack_from')}(data, pos)")
        self.line(f"pos += {total}")

    def advance(self, size: str) -> None:
        """Skip. Beyond the end no slice is taken any more, and the check at the end refuses."""
        self.line(f"pos += {size}")
        if self.resumable:
            with self.block("while pos > end:"):
                self.line("pos -= end")
                self.line("data = yield")
                self.line("end = len(data)")

    def refuse_if(self, condition: str) -> None:
        with self.block(f"if {condition}:"):
            self.line("raise Malformed")

    def uvarint(self, variable: str, kind: str = "") -> None:
        self.fixed("B", variable)
        self.flush()
        self.rest_of_uvarint(variable, kind)

    def rest_of_uvarint(self, variable: str, kind: str = "") -> None:
        """`kind`: of the value whose length it is, or "count"; "" for the number or size of a tag."""
        most = ANY if not kind else MOST_COUNT if kind == "count" else MOST_LENGTH
        with self.block(f"if {variable} > 127:"):
            if self.resumable:
                walk = f"long_uvarint_walk(data, pos, end, {variable}, {most})"
                self.line(f"data, pos, end, {variable} = yield from {walk}")
            elif kind in ("bytes", "records"):  # mostly long: two bytes are not worth a call
                self.line(f"{variable} += (data[pos] << 7) - 128")
                self.line("pos += 1")
                with self.block(f"if {variable} > 16383:"):
                    self.line(f"{variable}, pos = long_uvarint(data, pos, {variable}, 14, {most})")
            else:
                self.line(f"{variable}, pos = long_uvarint(data, pos, {variable}, 7, {most})")
            if kind == "string":
                self.refuse_if(f"{variable} > {LONGEST_STRING + 1}")

    def length(self, variable: str, kind: str, null: bool) -> None:
        """Reads the raw length or count of a `kind` into `variable`; null, which is any negative one, is
        refused unless allowed.
        """
        if self.flexible:
            self.fixed("B", variable)
            self.flush()
            self.rest_of_uvarint(variable, kind)
            if not null:
                self.refuse_if(f"not {variable}")
        else:
            self.fixed("h" if kind == "string" else "i", variable)
            self.flush()
            if not null:
                self.refuse_if(f"{variable} < 0")

    def amount(self, told: str) -> str:
        """The length or count that the raw value `told` stands for; -1 for null."""
        return f"{told} - 1" if self.flexible else told

    def is_null(self, told: str) -> str:
        return f"not {told}" if self.flexible else f"{told} < 0"

    def is_some(self, told: str) -> str:
        """Neither null nor zero."""
        return f"{told} > {int(self.flexible)}"

    def refuse_many(self, told: str, least: int) -> None:
        """More elements of at least `least` bytes than there is room for?"""
        room = f"end - pos + {least}" if self.flexible else "end - pos"
        self.refuse_if(f"{told} * {least} > {room}")

    def presence(self, f: Field, variable: str) -> None:
        """A nullable struct is there unless `variable` is negative; in a tag it is a varint (KIP-893)."""
        if f.tag is None:
            self.fixed("b", variable)
            self.flush()
        else:
            self.uvarint(variable, "count")
            self.line(f"{variable} -= 1")

    @contextmanager
    def unless_null(self, condition: str, variable: str, null: bool) -> Iterator[None]:
        """The code emitted within reads `variable`; where it may be null, `condition` makes it None."""
        if null:
            with self.block(f"if {condition}:"):
                self.line(f"{variable} = None")
            self.line("else:")
            self.depth += 1
        yield
        self.depth -= null

    def slice_of(self, kind: str, told: str, variable: str, errors: str = "") -> None:
        """The bytes of a `kind` into `variable`; `errors` are the arguments of decode()."""
        self.need(self.amount(told))
        self.line(f"stop = pos + {self.amount(told)}")
        self.refuse_if("stop > end")
        text = f".decode({errors})" if kind == "string" else ""
        self.line(f"{variable} = data[pos:stop]{text}")
        self.line("pos = stop")

"""Source in the making: lines, and what they need from outside. The only place that executes made source."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple

from klamm.decoders.interpret import Layout, uvarint
from klamm.decoders.schema import UNKNOWN_TAGS
from klamm.decoders.tags import Malformed, long_uvarint, long_uvarint_walk, skip_tags, unknown_tags

_GLOBALS: dict[str, Any] = {
    "Malformed": Malformed,
    "UNKNOWN_TAGS": UNKNOWN_TAGS,
    "long_uvarint": long_uvarint,
    "long_uvarint_walk": long_uvarint_walk,
    "skip_tags": skip_tags,
    "unknown_tags": unknown_tags,
    "uvarint": uvarint,
}


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

    def made(self, head: str, about: str = "") -> Callable[..., Any]:
        """The function, its source as its __doc__; `about` tells it from others of its goal."""
        first = ["    " + text for text in self.first_lines]
        text = "\n".join([f"def {self.goal}({head}):", *first, *self.lines, ""])
        filename = f"<klamm {self.layout} {self.goal}{about}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[self.goal]
        function.__doc__ = text
        return function


class Fixed(NamedTuple):
    """One of adjacent fixed-size values: its struct code, its size, its variable or None to skip it."""

    code: str
    size: int
    variable: str | None


class Scan(Source):
    """Emits what moves over bytes: fixed runs, lengths, varints; over one buffer or resumable over chunks."""

    resumable = False

    def __init__(self, layout: Layout, goal: str) -> None:
        super().__init__(layout, goal)
        self.run: list[Fixed] = []

    def need(self, size: int | str) -> None:
        """`size` more bytes must be at hand before the next line."""
        if self.resumable:
            with self.block(f"while end - pos < {size}:"):
                self.line("data = data[pos:] + (yield)")
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
            self.advance(str(total), trusted=True)
            return
        self.need(total)
        if [value.code for value in run] == ["B"]:
            self.line(f"{wanted[0]} = data[pos]")
        else:
            codes = "".join(value.code if value.variable else f"{value.size}x" for value in run)
            self.line(f"{', '.join(wanted)}, = {self.structure(codes, 'unpack_from')}(data, pos)")
        self.line(f"pos += {total}")

    def advance(self, size: str, trusted: bool = False) -> None:
        """Skip; `trusted` sizes are the layout's own, which the check at the end covers."""
        self.line(f"pos += {size}")
        if self.resumable:
            with self.block("while pos > end:"):
                self.line("pos -= end")
                self.line("data = yield")
                self.line("end = len(data)")
        elif not trusted:
            self.refuse_if("pos > end")

    def refuse_if(self, condition: str) -> None:
        with self.block(f"if {condition}:"):
            self.line("raise Malformed")

    def uvarint(self, variable: str) -> None:
        self.fixed("B", variable)
        self.flush()
        self.rest_of_uvarint(variable)

    def rest_of_uvarint(self, variable: str) -> None:
        with self.block(f"if {variable} > 127:"):
            if self.resumable:
                self.line(
                    f"data, pos, end, {variable} = yield from long_uvarint_walk(data, pos, end, {variable})"
                )
            else:
                self.line(f"{variable}, pos = long_uvarint(data, pos, {variable})")

    def length(self, variable: str, kind: str, null: bool) -> None:
        """The length or count of a `kind` into `variable`; -1 is null, and refused unless allowed."""
        if self.flexible:
            self.uvarint(variable)
            self.line(f"{variable} -= 1")
        else:
            self.fixed("h" if kind == "string" else "i", variable)
            self.flush()
        self.refuse_if(f"{variable} < {-1 if null else 0}")

    @contextmanager
    def unless_null(self, length: str, variable: str, null: bool) -> Iterator[None]:
        """What is emitted within reads `variable`; a null `length` makes it None."""
        if null:
            with self.block(f"if {length} < 0:"):
                self.line(f"{variable} = None")
            self.line("else:")
            self.depth += 1
        yield
        self.depth -= null

    def slice_of(self, kind: str, size: str, variable: str, errors: str = "") -> None:
        """`size` bytes of a `kind` into `variable`; `errors` are the arguments of decode()."""
        self.need(size)
        self.line(f"stop = pos + {size}")
        self.refuse_if("stop > end")
        text = f".decode({errors})" if kind == "string" else ""
        self.line(f"{variable} = data[pos:stop]{text}")
        self.line("pos = stop")

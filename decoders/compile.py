"""From a layout to functions specialised for it, made on first use: the only place that executes made source.

One walk over the fields, four goals:

    read(data, pos, end) -> (values, pos)             everything, as dicts and lists
    pick(data, pos, end) -> (column, ..., pos)        some fields, in the order asked; returns once the last is read
    walk() -> generator                               pick over chunks: send() bytes; returns (column, ..., bytes left over)
    locate(data, pos, end) -> [(path, start, end, value), ...]    the same fields with their spans, in wire order
    write(values) -> bytes

A column is a value, None where null or absent, and a list per array on the way to the field. Made functions check lengths,
counts and the end only. Whatever they raise (UNREADABLE, UNWRITABLE), the interpreter is asked again and explains, or, where they merely
lack a rare case (unknown fields, strings that are not UTF-8, tagged fields to write), does the work.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from struct import Struct, error
from typing import Any

from klamm.decoders.interpret import Layout, least_size, uvarint
from klamm.decoders.schema import FIXED, SIZED, UNKNOWN_TAGS, Field, default_of, members, present

Path = tuple[str, ...]
Read = Callable[[bytes, int, int], tuple[dict[str, Any], int]]
Pick = Callable[[bytes, int, int], tuple[Any, ...]]
Walk = Callable[[], Generator[None, bytes, tuple[Any, ...]]]
Locate = Callable[[bytes, int, int], list[tuple[int, int, int, Any]]]
Write = Callable[[dict[str, Any]], bytes]


class Malformed(Exception):
    """A length, a count or the end is wrong; the interpreter says which."""


UNREADABLE = (Malformed, error, IndexError, UnicodeError)  # from read, pick, walk and locate
UNWRITABLE = (Malformed, error, KeyError, TypeError, AttributeError, OverflowError)  # from write

TAG_PATH = (
    -1
)  # in what `locate` finds: a tagged field on the way, as (TAG_PATH, size_start, value_start, value_end)


def long_uvarint(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte said that more follow."""
    value, shift = first & 0x7F, 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, pos
        shift += 7
        if shift >= 35:
            raise Malformed


def long_uvarint_walk(
    data: bytes, pos: int, end: int, first: int
) -> Generator[None, bytes, tuple[bytes, int, int, int]]:
    """The same over chunks: returns (data, pos, end, value)."""
    value, shift = first & 0x7F, 7
    while True:
        while pos >= end:
            data = yield
            pos, end = 0, len(data)
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return data, pos, end, value & 0xFFFFFFFF
        shift += 7
        if shift >= 35:
            raise Malformed


def unknown_tags(data: bytes, pos: int, end: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
    """A tagged section of which no tag is known."""
    found = []
    for _ in range(count):
        tag, size = data[pos], 0
        pos += 1
        if tag > 0x7F:
            tag, pos = long_uvarint(data, pos, tag)
        size = data[pos]
        pos += 1
        if size > 0x7F:
            size, pos = long_uvarint(data, pos, size)
        if size > end - pos:
            raise Malformed
        found.append((tag, data[pos : pos + size]))
        pos += size
    return found, pos


def skip_tags(data: bytes, pos: int, end: int, count: int) -> int:
    """The position after a tagged section whose count was read."""
    if count > 0x7F:
        count, pos = long_uvarint(data, pos, count)
    return unknown_tags(data, pos, end, count)[1]


class _Arrays(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Readers of n adjacent values of one kind; the short ones are kept."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        made = Struct(">" + self.code * count if self.code == "16s" else f">{count}{self.code}").unpack_from
        if count <= 64:
            self[count] = made
        return made


_ARRAYS = {kind: _Arrays(code) for kind, (code, _) in FIXED.items()}
_GLOBALS: dict[str, Any] = {
    "Malformed": Malformed,
    "UNKNOWN_TAGS": UNKNOWN_TAGS,
    "long_uvarint": long_uvarint,
    "long_uvarint_walk": long_uvarint_walk,
    "skip_tags": skip_tags,
    "unknown_tags": unknown_tags,
    "uvarint": uvarint,
}


class _Source:
    """Lines of a function being made, with what they need from outside."""

    def __init__(self, layout: Layout, goal: str) -> None:
        self.layout, self.goal = layout, goal
        self.version, self.flexible = layout.version, layout.flexible
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = dict(_GLOBALS)
        self.serial = 0
        self.run: list[
            tuple[str, str | None]
        ] = []  # adjacent fixed-size fields: struct code, variable or None to skip

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

    def made(self, head: str) -> Callable[..., Any]:
        text = "\n".join([f"def {self.goal}({head}):", *self.lines, ""])
        filename = f"<klamm {self.layout} {self.goal}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[self.goal]
        function.__doc__ = text
        return function


class _Scan(_Source):
    """Emits what moves over bytes: fixed runs, lengths, varints; over one buffer, or resumable over chunks."""

    resumable = False

    def need(self, size: int) -> None:
        """`size` more bytes must be at hand before the next line."""
        if self.resumable:
            with self.block(f"while end - pos < {size}:"):
                self.line("data = data[pos:] + (yield)")
                self.line("pos, end = 0, len(data)")

    def fixed(self, code: str, variable: str | None) -> None:
        self.run.append((code, variable))

    def flush(self) -> None:
        run, self.run = self.run, []
        sizes = [Struct(">" + code).size for code, _ in run]
        wanted = [variable for _, variable in run if variable is not None]
        if not run:
            return
        if not wanted:
            self.advance(str(sum(sizes)), trusted=True)
            return
        self.need(sum(sizes))
        if [code for code, _ in run] == ["B"]:
            self.line(f"{wanted[0]} = data[pos]")
        else:
            codes = "".join(
                code if variable else f"{size}x" for (code, variable), size in zip(run, sizes, strict=True)
            )
            self.line(f"{', '.join(wanted)}, = {self.structure(codes, 'unpack_from')}(data, pos)")
        self.line(f"pos += {sum(sizes)}")

    def advance(self, size: str, trusted: bool = False) -> None:
        """Skip; `trusted` sizes are the layout's own, which the check at the end covers."""
        self.line(f"pos += {size}")
        if self.resumable:
            with self.block("while pos > end:"):
                self.line("pos -= end")
                self.line("data = yield")
                self.line("end = len(data)")
        elif not trusted:
            with self.block("if pos > end:"):
                self.line("raise Malformed")

    def uvarint(self, variable: str) -> None:
        self.fixed("B", variable)
        self.flush()
        with self.block(f"if {variable} > 127:"):
            if self.resumable:
                self.line(
                    f"data, pos, end, {variable} = yield from long_uvarint_walk(data, pos, end, {variable})"
                )
            else:
                self.line(f"{variable}, pos = long_uvarint(data, pos, {variable})")

    def length(self, variable: str, classic: str, null: bool) -> None:
        """A length or count into `variable`; -1 is null, and refused unless allowed."""
        if self.flexible:
            self.uvarint(variable)
            self.line(f"{variable} -= 1")
        else:
            self.fixed(classic, variable)
            self.flush()
        with self.block(f"if {variable} < {-1 if null else 0}:"):
            self.line("raise Malformed")

    def classic(self, kind: str) -> str:
        return "h" if kind == "string" else "i"


class _Reader(_Scan):
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
            self.fixed("b", variable)
            self.flush()
            with self.block(f"if {variable} < 0:"):
                self.line(f"{variable} = None")
            with self.block("else:"):
                self.line(f"{variable} = {self.struct(members(f))}")
        else:
            self.line(f"{variable} = {self.struct(members(f))}")
        return variable

    def sized(self, kind: str, variable: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, self.classic(kind), null)
        if null:
            self.line(f"if {size} < 0:")
            self.line(f"    {variable} = None")
            self.line("else:")
            self.depth += 1
        self.line(f"stop = pos + {size}")
        with self.block("if stop > end:"):
            self.line("raise Malformed")
        self.line(f"{variable} = data[pos:stop]" + (".decode()" if kind == "string" else ""))
        self.line("pos = stop")
        if null:
            self.depth -= 1

    def array(self, f: Field, variable: str, null: bool) -> None:
        count = self.fresh("count")
        self.length(count, "i", null)
        if null:
            self.line(f"if {count} < 0:")
            self.line(f"    {variable} = None")
            self.line("else:")
            self.depth += 1
        with self.block(f"if {count} * {least_size(f, self.version, self.flexible)} > end - pos:"):
            self.line("raise Malformed")
        if isinstance(f.of, str) and f.of in FIXED:
            self.names[f"{f.of}s"] = _ARRAYS[f.of]
            self.line(f"{variable} = list({f.of}s[{count}](data, pos))")
            self.line(f"pos += {count} * {FIXED[f.of][1]}")
        else:
            add = self.fresh("add")
            self.line(f"{variable} = []")
            self.line(f"{add} = {variable}.append")
            with self.block(f"for _ in range({count}):"):
                if isinstance(f.of, tuple):
                    self.line(f"{add}({self.struct(f.of)})")
                else:
                    element = self.fresh("element")
                    self.sized(f.of, element, False)
                    self.line(f"{add}({element})")
        if null:
            self.depth -= 1

    def struct(self, fields: tuple[Field, ...]) -> str:
        in_place, tagged = present(fields, self.version)
        values = []
        for f in in_place:
            values.append((f.name, self.value(f)))
        if not self.flexible:
            self.flush()
            return "{" + ", ".join(f"{name!r}: {value}" for name, value in values) + "}"
        count = self.fresh("tags")
        self.fixed("B", count)
        self.flush()
        if tagged:
            result = self.fresh("struct")
            values += [(f.name, repr(default_of(f, self.version))) for f in tagged]
            self.line(f"{result} = {{{', '.join(f'{name!r}: {value}' for name, value in values)}}}")
            self.tags(result, count, tagged)
            return result
        result = self.fresh("struct")
        self.line(f"{result} = {{{', '.join(f'{name!r}: {value}' for name, value in values)}}}")
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, pos = long_uvarint(data, pos, {count})")
            self.line(f"{count}, pos = unknown_tags(data, pos, end, {count})")
            with self.block(f"if {count}:"):
                self.line(f"{result}[UNKNOWN_TAGS] = {count}")
        return result

    def tags(self, result: str, count: str, tagged: list[Field]) -> None:
        tag, size, stop, outer, unknown = (
            self.fresh(name) for name in ("tag", "size", "stop", "outer", "unknown")
        )
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, pos = long_uvarint(data, pos, {count})")
            self.line(f"{unknown} = []")
            with self.block(f"for _ in range({count}):"):
                self.uvarint(tag)
                self.uvarint(size)
                self.line(f"{stop} = pos + {size}")
                with self.block(f"if {stop} > end:"):
                    self.line("raise Malformed")
                self.line(f"{outer}, end = end, {stop}")
                for index, f in enumerate(tagged):
                    with self.block(f"{'el' if index else ''}if {tag} == {f.tag}:"):
                        value = self.value(f)
                        self.flush()
                        self.line(f"{result}[{f.name!r}] = {value}")
                with self.block("else:"):
                    self.line(f"{unknown}.append(({tag}, data[pos:{stop}]))")
                    self.line(f"pos = {stop}")
                with self.block(f"if pos != {stop}:"):
                    self.line("raise Malformed")
                self.line(f"end = {outer}")
            with self.block(f"if {unknown}:"):
                self.line(f"{result}[UNKNOWN_TAGS] = {unknown}")


def read(layout: Layout) -> Read:
    source = _Reader(layout, "read")
    result = source.struct(layout.fields)
    source.line(f"values = {result}")
    with source.block("if pos > end:"):
        source.line("raise Malformed")
    source.line("return values, pos")
    return source.made("data, pos, end")


Want = dict[str, Any]  # field name -> index of a path, or the Want of what is below


def _want(paths: tuple[Path, ...]) -> Want:
    tree: Want = {}
    for index, path in enumerate(paths):
        at = tree
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = index
    return tree


def _indexes(want: Want | int) -> list[int]:
    return [want] if isinstance(want, int) else [i for below in want.values() for i in _indexes(below)]


class _Picker(_Scan):
    """Skips, and keeps what is wanted. `lefts`: counters of the loops around, 0 in the last turn; None once something wanted follows."""

    spans = False

    def __init__(self, layout: Layout, goal: str, paths: tuple[Path, ...], stop: str | None = None) -> None:
        super().__init__(layout, goal)
        self.paths, self.stop = paths, stop
        self.result = "found" if self.spans else "".join(f"out{i}, " for i in range(len(paths)))

    def top(self) -> None:
        if self.spans:
            self.line("found = []")
        else:
            for index in range(len(self.paths)):
                self.line(f"out{index} = None")
        if not self.struct(self.layout.fields, _want(self.paths), [], {}, stop=self.stop):
            self.finish()

    def finish(self) -> None:
        """The last wanted field is read."""
        self.flush()
        if self.spans:
            self.line("return found")
            return
        if not self.resumable:
            with self.block("if pos > end:"):
                self.line("raise Malformed")
        self.line(f"return ({self.result}{'end - pos' if self.resumable else 'pos'},)")

    def struct(
        self,
        fields: tuple[Field, ...],
        want: Want,
        lefts: list[str] | None,
        columns: dict[int, str],
        stop: str | None = None,
    ) -> bool:
        """Emits the walk over a struct; says whether it has ended in an unconditional return."""
        in_place, tagged = present(fields, self.version)
        order = [*in_place, *tagged]
        last = max((i for i, f in enumerate(order) if f.name in want or f.name == stop), default=-1)
        if last == -1 and lefts == [] and not stop:
            self.finish()
            return True
        for index, f in enumerate(in_place):
            if f.name == stop:
                self.finish()
                return True
            self.member(f, want.get(f.name), lefts if index == last else None, columns)
            if index == last and lefts is not None:
                if not lefts:
                    self.finish()
                    return True
                self.flush()
                with self.block(f"if not ({' or '.join(lefts)}):"):
                    self.finish()
        if self.flexible:
            if any(f.name == stop for f in tagged):
                self.finish()
                return True
            self.tags([f for f in tagged if f.name in want], want, columns)
        self.flush()
        return False

    def tags(self, tagged: list[Field], want: Want, columns: dict[int, str]) -> None:
        count, tag, size, stop = (self.fresh(name) for name in ("tags", "tag", "size", "stop"))
        self.absent({f.name: want[f.name] for f in tagged}, columns)
        self.fixed("B", count)
        self.flush()
        with self.block(f"if {count}:"):
            if not tagged and not self.resumable:
                self.line(f"pos = skip_tags(data, pos, end, {count})")
                return
            with self.block(f"if {count} > 127:"):
                if self.resumable:
                    self.line(
                        f"data, pos, end, {count} = yield from long_uvarint_walk(data, pos, end, {count})"
                    )
                else:
                    self.line(f"{count}, pos = long_uvarint(data, pos, {count})")
            with self.block(f"for _ in range({count}):"):
                self.uvarint(tag)
                before = self.fresh("before")
                if self.spans:
                    self.line(f"{before} = pos")
                self.uvarint(size)
                for index, f in enumerate(tagged):
                    with self.block(f"{'el' if index else ''}if {tag} == {f.tag}:"):
                        if not self.resumable:
                            self.line(f"{stop} = pos + {size}")
                        if self.spans:
                            self.line(f"found.append(({TAG_PATH}, {before}, pos, {stop}))")
                        for index in _indexes(want[f.name]):
                            if index in columns:
                                self.line(f"{columns[index]}.pop()")
                        self.member(f, want[f.name], None, columns)
                        self.flush()
                        if not self.resumable:
                            with self.block(f"if pos != {stop} or pos > end:"):
                                self.line("raise Malformed")
                if tagged:
                    with self.block("else:"):
                        self.advance(size)
                else:
                    self.advance(size)

    def member(
        self, f: Field, want: Want | int | None, lefts: list[str] | None, columns: dict[int, str]
    ) -> None:
        null = self.version in f.null
        if isinstance(want, int):
            self.keep(f, want, null, columns)
        elif f.kind in FIXED:
            self.fixed(FIXED[f.kind][0], None)
        elif f.kind in SIZED:
            size = self.fresh("size")
            self.length(size, self.classic(f.kind), null)
            self.skip_sized(size, null)
        elif f.kind == "array":
            self.array(f, want or {}, null, lefts, columns)
        elif null:
            there = self.fresh("there")
            self.fixed("b", there)
            self.flush()
            with self.block(f"if {there} >= 0:"):
                self.struct(members(f), want or {}, None, columns)
            if any(index in columns for index in _indexes(want or {})):
                with self.block("else:"):
                    self.absent(want or {}, columns)
        else:
            self.struct(members(f), want or {}, None, columns)

    def absent(self, want: Want, columns: dict[int, str]) -> None:
        """None for each wanted field in the columns of the arrays around."""
        for index in _indexes(want):
            if index in columns:
                self.line(f"{columns[index]}.append(None)")

    def skip_sized(self, size: str, null: bool) -> None:
        if null:
            with self.block(f"if {size} > 0:"):
                self.advance(size)
        else:
            self.advance(size)

    def array(
        self, f: Field, want: Want, null: bool, lefts: list[str] | None, columns: dict[int, str]
    ) -> None:
        count = self.fresh("count")
        self.length(count, "i", null)
        inner = {}
        if not self.spans:
            for index in _indexes(want):
                inner[index] = self.fresh(f"out{index}")
                self.line(f"{inner[index]} = " + (f"[] if {count} >= 0 else None" if null else "[]"))
                self.line(
                    f"{columns[index]}.append({inner[index]})"
                    if index in columns
                    else f"out{index} = {inner[index]}"
                )
        if isinstance(f.of, str) and f.of in FIXED:
            self.line(f"size = {count} * {FIXED[f.of][1]}")
            self.skip_sized("size", null)
            return
        if not self.resumable:
            with self.block(f"if {count} * {least_size(f, self.version, self.flexible)} > end - pos:"):
                self.line("raise Malformed")
        left = self.fresh("left")
        with self.block(f"for {left} in range({count} - 1, -1, -1):"):
            if isinstance(f.of, tuple):
                self.struct(f.of, want, None if lefts is None or not want else [*lefts, left], inner)
            else:
                size = self.fresh("size")
                self.length(size, self.classic(f.of), False)
                self.advance(size)

    def keep(self, f: Field, index: int, null: bool, columns: dict[int, str]) -> None:
        """A wanted field: a fixed one, a string or bytes, or an array of those."""
        variable = self.fresh(f.name)
        start = self.fresh("start")
        if self.spans:
            self.flush()
            self.line(f"{start} = pos")
        if f.kind in FIXED:
            self.fixed(FIXED[f.kind][0], variable)
            self.flush()
        elif f.kind in SIZED:
            self.keep_sized(f.kind, variable, null)
        elif f.kind == "array" and isinstance(f.of, str):
            self.keep_array(f.of, variable, null)
        else:
            raise ValueError(f"{self.layout}: {f.name} is a struct; name the fields in it")
        if self.spans:
            self.line(f"found.append(({index}, {start}, pos, {variable}))")
        elif index in columns:
            self.line(f"{columns[index]}.append({variable})")
        else:
            self.line(f"out{index} = {variable}")

    def keep_sized(self, kind: str, variable: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, self.classic(kind), null)
        if null:
            self.line(f"if {size} < 0:")
            self.line(f"    {variable} = None")
            self.line("else:")
            self.depth += 1
        if self.resumable:
            with self.block(f"while end - pos < {size}:"):
                self.line("data = data[pos:] + (yield)")
                self.line("pos, end = 0, len(data)")
        self.line(f"stop = pos + {size}")
        with self.block("if stop > end:"):
            self.line("raise Malformed")
        text = '.decode("utf-8", "surrogateescape")' if kind == "string" else ""
        self.line(f"{variable} = data[pos:stop]{text}")
        self.line("pos = stop")
        if null:
            self.depth -= 1

    def keep_array(self, kind: str, variable: str, null: bool) -> None:
        count, element = self.fresh("count"), self.fresh("element")
        self.length(count, "i", null)
        self.line(f"{variable} = " + (f"[] if {count} >= 0 else None" if null else "[]"))
        if not self.resumable:
            with self.block(f"if {count} > end - pos:"):
                self.line("raise Malformed")
        with self.block(f"for _ in range({count}):"):
            if kind in FIXED:
                self.fixed(FIXED[kind][0], element)
                self.flush()
            else:
                self.keep_sized(kind, element, False)
            self.line(f"{variable}.append({element})")


class _Walker(_Picker):
    resumable = True


class _Locator(_Picker):
    spans = True


def pick(layout: Layout, paths: tuple[Path, ...]) -> Pick:
    """Paths that this version lacks give None."""
    source = _Picker(layout, "pick", paths)
    source.top()
    return source.made("data, pos, end")


def walk(layout: Layout, paths: tuple[Path, ...], stop: str | None = None) -> Walk:
    """`stop` names a top-level field before which to return; for a tagged one that is before the tagged section.

    Start the generator with next(), feed the body in pieces with send(). Nothing but a wanted field is kept.
    """
    source = _Walker(layout, "walk", paths, stop)
    source.line("pos = end = 0")
    source.line('data = b""')
    source.top()
    source.line("yield")  # not reached; a walk that needs no bytes is a generator too
    return source.made("")


def locate(layout: Layout, paths: tuple[Path, ...]) -> Locate:
    """Each span is from the first byte of a field (its length included) to the byte after it."""
    source = _Locator(layout, "locate", paths)
    source.top()
    return source.made("data, pos, end")


class _Writer(_Source):
    def value(self, f: Field, expression: str) -> None:
        null = self.version in f.null
        if f.kind in FIXED:
            self.run.append((FIXED[f.kind][0], expression))
        elif f.kind in SIZED:
            self.sized(f.kind, expression, null)
        elif f.kind == "array":
            self.array(f, expression, null)
        else:
            item = self.fresh(f.name)
            self.flush()
            self.line(f"{item} = {expression}")
            if null:
                with self.block(f"if {item} is None:"):
                    self.line(r'add(b"\xff")')
                with self.block("else:"):
                    self.line(r'add(b"\x01")')
                    self.struct(members(f), item)
                    self.flush()
            else:
                self.struct(members(f), item)

    def flush(self) -> None:
        run, self.run = self.run, []
        if run:
            pack = self.structure("".join(code for code, _ in run), "pack")
            self.line(f"add({pack}({', '.join(expression or '' for _, expression in run)}))")

    def length(self, expression: str, classic: str) -> None:
        if self.flexible:
            self.flush()
            self.line(f"add(uvarint({expression} + 1))")
        else:
            self.run.append((classic, expression))
            self.flush()

    def sized(self, kind: str, expression: str, null: bool) -> None:
        item = self.fresh("item")
        self.line(f"{item} = {expression}")
        classic = "h" if kind == "string" else "i"
        if null:
            self.flush()
            with self.block(f"if {item} is None:"):
                self.length("-1", classic)
            self.line("else:")
            self.depth += 1
        self.line(
            f'{item} = {item}.encode("utf-8", "surrogateescape")'
            if kind == "string"
            else f"{item} = bytes(memoryview({item}))"
        )
        if kind == "string":
            with self.block(f"if len({item}) > 32767:"):
                self.line("raise Malformed")
        self.length(f"len({item})", classic)
        self.line(f"add({item})")
        if null:
            self.depth -= 1

    def array(self, f: Field, expression: str, null: bool) -> None:
        items, item = self.fresh("items"), self.fresh("item")
        self.line(f"{items} = {expression}")
        if null:
            self.flush()
            with self.block(f"if {items} is None:"):
                self.length("-1", "i")
            self.line("else:")
            self.depth += 1
        self.length(f"len({items})", "i")
        with self.block(f"for {item} in {items}:"):
            if isinstance(f.of, tuple):
                self.struct(f.of, item)
            elif f.of in SIZED:
                self.sized(f.of, item, False)
            else:
                self.run.append((FIXED[f.of][0], item))
            self.flush()
        if null:
            self.depth -= 1

    def struct(self, fields: tuple[Field, ...], name: str) -> None:
        in_place, tagged = present(fields, self.version)
        with self.block(f"if len({name}) != {len(in_place) + len(tagged)}:"):
            self.line("raise Malformed")  # a field too many or too few: the interpreter knows what to do
        for f in in_place:
            self.value(f, f"{name}[{f.name!r}]")
        if not self.flexible:
            return
        for f in tagged:
            with self.block(f"if {name}[{f.name!r}] != {default_of(f, self.version)!r}:"):
                self.line("raise Malformed")
        self.run.append(("B", "0"))


def write(layout: Layout) -> Write:
    source = _Writer(layout, "write")
    source.line("parts = []")
    source.line("add = parts.append")
    source.struct(layout.fields, "values")
    source.flush()
    source.line('return b"".join(parts)')
    return source.made("values")

"""Emits `pick`, `walk` and `locate`: some fields are kept, the rest is skipped."""

from __future__ import annotations

from typing import Any, NamedTuple

from klamm.decoders.emit import Scan
from klamm.decoders.interpret import Layout, least_size
from klamm.decoders.schema import FIXED, SIZED, Field, members, present

Path = tuple[str, ...]
Want = dict[str, Any]  # field name -> index of a path, or the Want of what is below

# In what `locate` finds: a tagged field on the way, as (TAG_PATH, size_start, value_start, value_end).
TAG_PATH = -1


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


class Kept(NamedTuple):
    """A wanted field in the run: its variable, offset and size in the run, and where it goes."""

    variable: str
    offset: int
    size: int
    path: int
    columns: dict[int, str]


class Picker(Scan):
    """Skips, and keeps what is wanted.

    `columns` are the lists that wanted fields go to, by path; `lefts` are the counters of the loops around,
    0 in the last turn, and None once something wanted follows.
    """

    spans = False

    def __init__(self, layout: Layout, goal: str, paths: tuple[Path, ...], stop: str | None = None) -> None:
        super().__init__(layout, goal)
        self.kept: list[Kept] = []
        self.begun: list[
            tuple[str, int]
        ] = []  # variables for where a length in the run begins, and its offset
        self.result = "".join(f"out{i}, " for i in range(len(paths)))
        if self.resumable:
            self.line("pos = end = 0")
            self.line('data = b""')
        if self.spans:
            self.line("found = []")
        elif paths:
            self.line(" = ".join(f"out{index}" for index in range(len(paths))) + " = None")
        if not self.struct(layout.fields, _want(paths), [], {}, stop):
            self.finish()
        if self.resumable:
            self.line("yield")  # not reached; a walk that needs no bytes is a generator too

    def finish(self) -> None:
        """The last wanted field is read."""
        self.flush()
        if not self.resumable:
            self.refuse_if("pos > end")
        if self.spans:
            self.line("return found")
            return
        self.line(f"return ({self.result}{'end - pos' if self.resumable else 'pos'},)")

    def flush(self) -> None:
        total = sum(value.size for value in self.run)
        kept, self.kept = self.kept, []
        begun, self.begun = self.begun, []
        super().flush()
        for variable, offset in begun:
            self.line(f"{variable} = pos - {total - offset}")
        for one in kept:
            start = total - one.offset
            stop = start - one.size
            until = f"pos - {stop}" if stop else "pos"
            self.found(one.variable, f"pos - {start}", until, one.path, one.columns)

    def found(self, variable: str, start: str, stop: str, index: int, columns: dict[int, str]) -> None:
        """A wanted field goes where it belongs."""
        if self.spans:
            self.line(f"found.append(({index}, {start}, {stop}, {variable}))")
        elif index in columns:
            self.line(f"{columns[index]}.append({variable})")
        else:
            self.line(f"out{index} = {variable}")

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
            self.rest_of_uvarint(count)
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
                            self.refuse_if(f"pos != {stop} or pos > end")
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
            self.length(size, f.kind, null)
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
        self.length(count, "array", null)
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
            self.refuse_if(f"{count} * {least_size(f, self.version, self.flexible)} > end - pos")
        left = self.fresh("left")
        with self.block(f"for {left} in range({count} - 1, -1, -1):"):
            if isinstance(f.of, tuple):
                self.struct(f.of, want, None if lefts is None or not want else [*lefts, left], inner)
            else:
                size = self.fresh("size")
                self.length(size, f.of, False)
                self.advance(size)

    def keep(self, f: Field, index: int, null: bool, columns: dict[int, str]) -> None:
        """A wanted field: a fixed one, a string or bytes, or an array of those."""
        variable = self.fresh(f.name)
        if f.kind in FIXED:
            code, size = FIXED[f.kind]
            offset = sum(value.size for value in self.run)
            self.kept.append(Kept(variable, offset, size, index, columns))
            self.fixed(code, variable)
            return
        start = self.fresh("start")
        if self.spans:
            self.begun.append((start, sum(value.size for value in self.run)))
        if f.kind in SIZED:
            self.keep_sized(f.kind, variable, null)
        elif f.kind == "array" and isinstance(f.of, str):
            self.keep_array(f.of, variable, null)
        else:
            raise ValueError(f"{self.layout}: {f.name} is a struct; name the fields in it")
        self.found(variable, start, "pos", index, columns)

    def keep_sized(self, kind: str, variable: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, kind, null)
        with self.unless_null(size, variable, null):
            self.slice_of(kind, size, variable, '"utf-8", "surrogateescape"')

    def keep_array(self, kind: str, variable: str, null: bool) -> None:
        count, element = self.fresh("count"), self.fresh("element")
        self.length(count, "array", null)
        self.line(f"{variable} = " + (f"[] if {count} >= 0 else None" if null else "[]"))
        if not self.resumable:
            self.refuse_if(f"{count} > end - pos")
        with self.block(f"for _ in range({count}):"):
            if kind in FIXED:
                self.fixed(FIXED[kind][0], element)
                self.flush()
            else:
                self.keep_sized(kind, element, False)
            self.line(f"{variable}.append({element})")


class Walker(Picker):
    resumable = True


class Locator(Picker):
    spans = True

"""Emits `pick`, `walk` and `locate`: some fields are kept, the rest is skipped."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple

from klamm.decoders.emit.alike import Alikes, Shaped, Want, indexes
from klamm.decoders.interpret import Layout, least_size
from klamm.decoders.schema import FIXED, SIZED, Field, members, present

Path = tuple[str, ...]

# In the result of `locate`: a tagged field on the path, as (TAG_PATH, size_start, value_start, value_end).
TAG_PATH = -1


def _want(paths: tuple[Path, ...]) -> Want:
    tree: Want = {}
    for index, path in enumerate(paths):
        at = tree
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = index
    return tree


class Kept(NamedTuple):
    """A wanted field in the run: its variable, offset and size in the run, and where it goes."""

    variable: str
    offset: int
    size: int
    path: int
    columns: dict[int, str]


class Picker(Shaped):
    """Skips fields, and keeps the wanted ones. `columns` are the lists that wanted fields go to, by path;
    `lefts` are the counters of the loops around, 0 in the last turn, and None once a wanted field follows.
    `most`: elements to read; where an array has more, the result is what was found before it.
    """

    spans = False

    def __init__(
        self,
        layout: Layout,
        goal: str,
        paths: tuple[Path, ...],
        stop: str | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(layout, goal)
        self.most = most
        if most is not None:
            self.line(f"room = {most}")
        self.kept: list[Kept] = []
        self.begun: list[tuple[str, int]] = []  # where a length in the run begins: a variable, and its offset
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
            self.tags(tagged, want, columns)
        self.flush()
        return False

    def tags(self, tagged: list[Field], want: Want, columns: dict[int, str]) -> None:
        """Known tags are walked over too: Kafka does not heed the size that is told of them."""
        count, tag, size, stop = (self.fresh(name) for name in ("tags", "tag", "size", "stop"))
        self.absent({f.name: want[f.name] for f in tagged if f.name in want}, columns)
        self.fixed("B", count)
        self.flush()
        with self.block(f"if {count}:"):
            if not tagged and not self.resumable:
                self.line(f"pos = skip_tags(data, pos, end, {count})")
                return
            self.rest_of_uvarint(count, "count")
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
                        wanted = want.get(f.name)
                        if self.spans and wanted is not None:
                            self.line(f"found.append(({TAG_PATH}, {before}, pos, {stop}))")
                        for index in () if wanted is None else indexes(wanted):
                            if index in columns:
                                self.line(f"{columns[index]}.pop()")
                        self.member(f, wanted, None, columns)
                        self.flush()
                        if not self.resumable:
                            self.refuse_if(f"pos != {stop}")
                if tagged:
                    with self.block("else:"):
                        self.advance(size)
                else:
                    self.advance(size)
                if not self.resumable:
                    self.refuse_if("pos > end")

    def member(
        self, f: Field, want: Want | int | None, lefts: list[str] | None, columns: dict[int, str]
    ) -> None:
        null = self.version in f.null
        if isinstance(want, int):
            self.keep(f, want, null, columns)
        elif f.kind in FIXED:
            self.fixed(FIXED[f.kind][0], None)
        elif f.kind in SIZED:
            self.skip_sized(f.kind, null)
        elif f.kind == "array":
            self.array(f, want or {}, null, lefts, columns)
        elif null:
            there = self.fresh("there")
            self.presence(f, there)
            self.shape.append(there)
            with self.block(f"if {there} >= 0:"), self.apart():
                self.struct(members(f), want or {}, None, columns)
            if any(index in columns for index in indexes(want or {})):
                with self.block("else:"):
                    self.absent(want or {}, columns)
        else:
            self.struct(members(f), want or {}, None, columns)

    def absent(self, want: Want, columns: dict[int, str]) -> None:
        """None for each wanted field in the columns of the arrays around."""
        for index in indexes(want):
            if index in columns:
                self.line(f"{columns[index]}.append(None)")

    def skip_sized(self, kind: str, null: bool) -> None:
        size = self.fresh("size")
        self.length(size, kind, null)
        self.shape.append(self.amount(size))
        if null:
            with self.block(f"if {self.is_some(size)}:"):
                self.advance(self.amount(size))
        else:
            self.advance(self.amount(size))

    def array(
        self, f: Field, want: Want, null: bool, lefts: list[str] | None, columns: dict[int, str]
    ) -> None:
        count = self.fresh("count")
        self.length(count, "array", null)
        self.shape.append(self.amount(count))
        inner = {}
        if not self.spans:
            for index in indexes(want):
                inner[index] = self.fresh(f"out{index}")
                self.line(f"{inner[index]} = " + (f"None if {self.is_null(count)} else []" if null else "[]"))
                self.line(
                    f"{columns[index]}.append({inner[index]})"
                    if index in columns
                    else f"out{index} = {inner[index]}"
                )
        with self.block(f"if {self.is_some(count)}:"), self.apart():
            if isinstance(f.of, str) and f.of in FIXED:
                self.charge_fixed(self.amount(count))
                self.advance(f"({self.amount(count)}) * {FIXED[f.of][1]}")
                return
            if not self.resumable:
                self.refuse_many(count, least_size(f, self.version, self.flexible))
            self.charge(self.amount(count))
            if isinstance(f.of, str):
                with self.block(f"for _ in range({self.amount(count)}):"):
                    self.skip_sized(f.of, False)
                return
            below = None if lefts is None or not want else lefts
            left = self.fresh("left")
            with self.turns(f.of, want, count, left, below, inner):
                self.struct(f.of, want, None if below is None else [*below, left], inner)

    def charge(self, elements: str) -> None:
        """Return what was found so far where so many more elements are too many."""
        if self.most is None:
            return
        self.line(f"room -= {elements}")
        with self.block("if room < 0:"):
            if not self.resumable:
                self.line("pos = end")
            self.finish()

    def charge_fixed(self, elements: str) -> None:
        """Numbers are skipped at once, however many they are."""

    def turns(
        self,
        fields: tuple[Field, ...],
        want: Want,
        count: str,
        left: str,
        lefts: list[str] | None,
        columns: dict[int, str],
    ) -> AbstractContextManager[None]:
        """The loop over an array. With `lefts`, its last element is left to a turn that may end the pick."""
        if self.resumable or self.spans or any(f.kind == "records" for f in present(fields, self.version)[0]):
            return self.block(f"for {left} in range({self.amount(count)} - 1, -1, -1):")
        outputs = "".join(f", {columns[index]}" for index in indexes(want))
        but = "" if lefts is None else f"(not ({' or '.join(lefts)}))" if lefts else "1"
        return self.elements(count, left, Alikes(self.layout, fields, want), outputs, but)

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
        self.shape.append(self.amount(size))
        with self.unless_null(self.is_null(size), variable, null):
            self.slice_of(kind, size, variable, '"utf-8", "surrogateescape"')
            self.charge(f"{self.amount(size)} >> 8")  # long text takes the memory of many elements

    def keep_array(self, kind: str, variable: str, null: bool) -> None:
        count, element = self.fresh("count"), self.fresh("element")
        self.length(count, "array", null)
        self.shape.append(self.amount(count))
        self.line(f"{variable} = " + (f"None if {self.is_null(count)} else []" if null else "[]"))
        if not self.resumable:
            self.refuse_many(count, 1)
        with self.block(f"if {self.is_some(count)}:"):
            self.charge(self.amount(count))
            self.line("pass")
        with self.block(f"for _ in range({self.amount(count)}):"), self.apart():
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


class Counter(Picker):
    """Tells whether there are more than `most` elements. Stops nowhere before."""

    def __init__(self, layout: Layout, most: int) -> None:
        super().__init__(layout, "count", (), "-", most)

    def finish(self) -> None:
        self.flush()
        self.line("return room < 0")

    def charge_fixed(self, elements: str) -> None:
        self.charge(elements)

    def turns(
        self,
        fields: tuple[Field, ...],
        want: Want,
        count: str,
        left: str,
        lefts: list[str] | None,
        columns: dict[int, str],
    ) -> AbstractContextManager[None]:
        return self.block(f"for {left} in range({self.amount(count)}):")

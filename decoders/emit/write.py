"""Emits `write`: values to bytes; refuses what the interpreter must look at."""

from __future__ import annotations

from klamm.decoders.emit import Source
from klamm.decoders.interpret import LONGEST_STRING, Layout
from klamm.decoders.schema import FIXED, SIZED, Field, default_of, members, present


class Writer(Source):
    """Adjacent fixed-size values are packed together: `run` holds their struct codes and expressions."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout, "write")
        self.run: list[tuple[str, str]] = []
        self.line("parts = []")
        self.line("add = parts.append")
        self.struct(layout.fields, "values")
        self.flush()
        self.line('return b"".join(parts)')

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
            self.line(f"add({pack}({', '.join(expression for _, expression in run)}))")

    def length(self, expression: str, kind: str) -> None:
        if self.flexible:
            self.flush()
            self.line(f"add(uvarint({expression} + 1))")
        else:
            self.run.append(("h" if kind == "string" else "i", expression))
            self.flush()

    def sized(self, kind: str, expression: str, null: bool) -> None:
        item = self.fresh("item")
        self.line(f"{item} = {expression}")
        if null:
            self.flush()
            with self.block(f"if {item} is None:"):
                self.length("-1", kind)
            self.line("else:")
            self.depth += 1
        self.line(
            f'{item} = {item}.encode("utf-8", "surrogateescape")'
            if kind == "string"
            else f"{item} = bytes(memoryview({item}))"
        )
        if kind == "string":
            with self.block(f"if len({item}) > {LONGEST_STRING}:"):
                self.line("raise Malformed")
        self.length(f"len({item})", kind)
        self.line(f"add({item})")
        self.depth -= null

    def array(self, f: Field, expression: str, null: bool) -> None:
        items, item = self.fresh("items"), self.fresh("item")
        self.line(f"{items} = {expression}")
        if null:
            self.flush()
            with self.block(f"if {items} is None:"):
                self.length("-1", "array")
            self.line("else:")
            self.depth += 1
        self.length(f"len({items})", "array")
        with self.block(f"for {item} in {items}:"):
            if isinstance(f.of, tuple):
                self.struct(f.of, item)
            elif f.of in SIZED:
                self.sized(f.of, item, False)
            else:
                self.run.append((FIXED[f.of][0], item))
            self.flush()
        self.depth -= null

    def struct(self, fields: tuple[Field, ...], name: str) -> None:
        in_place, tagged = present(fields, self.version)
        with self.block(f"if len({name}) != {len(in_place) + len(tagged)}:"):
            self.line("raise Malformed")  # a field too many or too few: the interpreter explains it
        for f in in_place:
            self.value(f, f"{name}[{f.name!r}]")
        if not self.flexible:
            return
        for f in tagged:
            with self.block(f"if {name}[{f.name!r}] != {default_of(f, self.version)!r}:"):
                self.line("raise Malformed")
        self.run.append(("B", "0"))

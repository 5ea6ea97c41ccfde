"""The interpreter's reading as a tree of spans: where each field stands in the bytes, up to a failure."""

from __future__ import annotations

import dataclasses
from typing import Any

from klamm.decoders import interpret
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import UNKNOWN_TAGS, Field
from klamm.decoders.tags import MOST_COUNT

TAGGED = "tagged_fields"  # the name of a struct's tagged section; unknown tags in it are "tag 7"


@dataclasses.dataclass(slots=True)
class Span:
    """A field, an element of an array of structs, or a tagged section.

    `start` and `end` are positions in the data that was read, length or count included; `end` is -1 where
    reading failed inside. `field` is None for elements, sections and unknown tags. A struct, an array of
    structs and a section have `parts`; all else has a `value` only. That of an array in which reading failed
    has the elements before the failure.
    """

    name: str
    field: Field | None
    start: int
    end: int = -1
    value: Any = None
    parts: list[Span] = dataclasses.field(default_factory=list)

    @property
    def own_end(self) -> int:
        """The end of its own bytes (a count, a mark of presence), before its parts, if they stand in it."""
        return self.parts[0].start if self.parts and self.parts[0].start >= self.start else self.end


def read(layout: Layout, data: bytes, pos: int, end: int) -> tuple[Span, DecodeError | None]:
    """The tree of a body, and why and where it ends early. Raises nothing; the root has no name."""
    reader = _Reader(layout, data, pos, end)
    try:
        reader.root.value = reader.struct(layout.fields)
    except interpret._Stop:
        return reader.root, _failure(layout, data, pos, end)
    reader.root.end = reader.pos
    return reader.root, None


def values(span: Span, whole_elements: bool = False) -> Any:
    """The value of a span, or as much of it as was read; `whole_elements`: without the element of an array in
    which reading failed.
    """
    if span.end >= 0 or not (span.parts or span.field is None):
        return span.value
    if span.field is not None and span.field.kind == "array":
        parts = [part for part in span.parts if part.end >= 0] if whole_elements else span.parts
        return [values(part, whole_elements) for part in parts]
    found: dict[str, Any] = {}
    for part in span.parts:
        if part.name == TAGGED:
            known = [tag for tag in part.parts if tag.field is not None]
            found |= {tag.name: values(tag, whole_elements) for tag in known}
            unknown = [(int(tag.name[4:]), tag.value) for tag in part.parts if tag.field is None]
            found |= {UNKNOWN_TAGS: unknown} if unknown else {}
        elif part.end >= 0 or part.parts or part.value:
            found[part.name] = values(part, whole_elements)
    return found


def _failure(layout: Layout, data: bytes, pos: int, end: int) -> DecodeError | None:
    try:
        interpret.read(layout, data, pos, end)
    except DecodeError as failure:
        return failure
    return None


class _Reader(interpret._Reader):
    def __init__(self, layout: Layout, data: bytes, pos: int, end: int) -> None:
        super().__init__(layout, data, pos, end)
        self.root = Span("", None, pos)
        self.within = self.root

    def value(self, f: Field) -> Any:
        outer, span = self.enter(f.name, f)
        span.value = super().value(f)
        self.leave(outer, span)
        return span.value

    def struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        if not (self.path and self.path[-1].startswith("[")):
            return super().struct(fields)
        outer, span = self.enter(self.path[-1], None)
        span.value = super().struct(fields)
        self.leave(outer, span)
        found: dict[str, Any] = span.value
        return found

    def tags(self, values: dict[str, Any], tagged: list[Field]) -> None:
        outer, section = self.enter(TAGGED, None)
        super().tags(values, tagged)
        self.leave(outer, section)
        self.add_unknown(section)

    def begin_array(self) -> list[Any]:
        self.within.value = found = super().begin_array()
        return found

    def enter(self, name: str, f: Field | None) -> tuple[Span, Span]:
        outer, span = self.within, Span(name, f, self.pos)
        outer.parts.append(span)
        self.within = span
        return outer, span

    def leave(self, outer: Span, span: Span) -> None:
        span.end = self.pos
        self.within = outer

    def add_unknown(self, section: Span) -> None:
        """Reads the section again for the tags that no field has, and where each entry begins."""
        known = {part.start: part for part in section.parts}
        section.parts = []
        self.pos = section.start
        section.value = self.uvarint(MOST_COUNT)
        for _ in range(section.value):
            start = self.pos
            tag, size = self.uvarint(), self.uvarint()
            part = known.get(self.pos) or Span(f"tag {tag}", None, start)
            part.start, part.end = start, self.pos + size
            if part.field is None:
                part.value = self.data[self.pos : part.end]
            self.pos = part.end
            section.parts.append(part)

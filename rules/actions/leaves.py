"""Frames with some of their fields changed, wherever these stand, in the parts that a rule has selected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from klamm.decoders.schema import Field, members, present
from klamm.rules.frame import Frame, Part
from klamm.rules.orders import Edit, OnAnswer, Order
from klamm.rules.parts import MARKS

Path = tuple[str, ...]
Paths = Callable[[tuple[Field, ...], int], Collection[Path]]  # which fields, of one version of a body
Change = Callable[[Path, Field, Any, Frame], Any]


def edited(frame: Frame, paths_of: Paths, change: Change) -> Iterable[Order]:
    """These fields of a frame changed; those that a request does not have, in its answer."""
    only = frame.only

    def edit(one: Frame, paths: Collection[Path]) -> list[Order]:
        values = _Walk(one, paths, change, only).struct(one.api.fields(one.side), one.values, (), {}, False)
        return [] if values is one.values else [Edit(values)]

    here = paths_of(frame.api.fields(frame.side), frame.version)
    said = edit(frame, here) if here else []
    if frame.side == "request":
        there = set(paths_of(frame.api.response, frame.version)).difference(here)
        if there:
            said.append(OnAnswer(lambda answer: edit(answer, there)))
    return said


class _Walk:
    def __init__(
        self, frame: Frame, paths: Collection[Path], change: Change, only: Callable[[Part], bool] | None
    ) -> None:
        self.frame, self.change, self.only = frame, change, only
        self.paths = frozenset(paths)
        self.ways = {path[:count] for path in paths for count in range(len(path))}

    def struct(
        self, fields: tuple[Field, ...], values: dict[str, Any], path: Path, about: Part, element: bool
    ) -> dict[str, Any]:
        """`element`: within an array whose elements are parts: only those in question are changed."""
        in_place, tagged = present(fields, self.frame.version)
        there = [f for f in (*in_place, *tagged) if values.get(f.name) is not None or f.kind == "records"]
        told = {MARKS[f.mark]: values[f.name] for f in there if f.mark in MARKS and f.kind != "array"}
        about = {**about, **told}
        asked = element and not about.keys().isdisjoint(MARKS.values())
        out = values
        for f in (*in_place, *tagged):
            here = (*path, f.name)
            before = values.get(f.name, f.default)
            if here in self.paths:
                meant = not asked or self.only is None or self.only(about)
                after = self.change(here, f, before, self.frame) if meant else before
            elif before is None or here not in self.ways:
                continue
            elif f.kind == "struct":
                after = self.struct(members(f), before, here, about, element)
            else:
                after = [self.struct(members(f), each, here, about, True) for each in before]
                if all(new is old for new, old in zip(after, before, strict=True)):
                    after = before
            if after is not before:
                out = {**out, f.name: after}
        return out

"""Frames of one length that follow each other, all like the last of their kind: looked at with one Struct,
not one by one.

Small frames in steady traffic are mostly of this sort. Every byte that the memo speaks of is still compared,
in each frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from klamm.proxy.connection import SIZE, Flow, Memo

FEWEST = 4  # frames within a read for which it is worth while
MOST = 64  # frames at once: a Struct is kept for each number of them

Form = tuple[Callable[[bytes | memoryview], tuple[Any, ...]], list[tuple[int, tuple[bytes, ...]]]]


class Alike:
    """Frames of `stride` bytes, their size field included, that begin with `head`, go on with a correlation
    id, and have these constants at these offsets. They hold for as long as `steady` is what the flow
    remembers.
    """

    __slots__ = ("constants", "forms", "steady", "stride")

    def __init__(
        self, stride: int, steady: bytes | Memo, head: bytes, constants: tuple[tuple[int, bytes], ...]
    ) -> None:
        self.stride, self.steady = stride, steady
        self.constants = ((0, head), *((at, what) for at, what in constants if what))
        self.forms: dict[int, Form] = {}

    def ids(self, data: bytes | memoryview, count: int) -> tuple[int, ...] | None:
        """The correlation ids of `count` frames, which are all of `data`; None if they are not alike."""
        unpack, columns = self.forms.get(count) or self._form(count)
        values, width = unpack(data), len(columns) + 1
        for at, expected in columns:
            if values[at::width] != expected:
                return None
        return values[1::width]

    def _form(self, count: int) -> Form:
        (_, head), *rest = self.constants
        frame, end = f"{len(head)}si", len(head) + 4
        for at, what in rest:
            frame += f"{at - end}x{len(what)}s"
            end = at + len(what)
        unpack = Struct(">" + f"{frame}{self.stride - end}x" * count).unpack
        columns = [(number, (what,) * count) for number, (_, what) in enumerate(rest, 2)]
        form = self.forms[count] = (unpack, [(0, (head,) * count), *columns])
        return form


def requests(flow: Flow, head: bytes, stride: int) -> Alike | None:
    """What requests like the flow's last have in common; None if none of this length has come just before."""
    known = flow.alike
    if known is not None and known.stride == stride and known.steady is flow.prefix:
        return known
    flow.alike = Alike(stride, flow.prefix, head, ((12, flow.prefix),))
    return None


def responses(flow: Flow, stride: int) -> Alike | None:
    """The same for responses that the flow's memo knows."""
    known, memo = flow.answers_alike, flow.answer
    if known is not None and known.stride == stride and known.steady is memo:
        return known
    if memo.least <= stride - 4 <= memo.most:
        constants = ((8, memo.first), (memo.second_at, memo.second), (memo.third_at, memo.third))
        flow.answers_alike = Alike(stride, memo, SIZE.pack(stride - 4), constants)
    return None

"""Frames of one length in one read, all like the last of their kind: looked at with one Struct, not one by
one.

Pipelined small frames are mostly of this sort. Every byte that the memo speaks of is still compared, in each
frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from struct import Struct
from typing import Any, NamedTuple

from klamm.proxy.connection import Flow, Memo

FEWEST = 4  # frames for which it is worth while
LENGTH = Struct(">i").unpack_from

Frames = Callable[[memoryview], Iterator[tuple[Any, ...]]]


class Alike(NamedTuple):
    """How to cut frames of `length` (without their size field) that are like `steady`."""

    length: int
    steady: bytes | Memo
    frames: Frames


def requests(flow: Flow, data: bytes, pos: int, length: int, code: int, ids: list[int]) -> int:
    """Adds the correlation ids of the frames from `pos` on that are like the flow's last and of its length;
    the position after them.
    """
    stride = length + 4
    count = (len(data) - pos) // stride
    if count < FEWEST or LENGTH(data, pos + stride)[0] != length:
        return pos
    prefix, alike = flow.prefix, flow.alike
    if alike is None or alike.length != length or alike.steady is not prefix:
        rest = stride - 12 - len(prefix)
        alike = flow.alike = Alike(length, prefix, Struct(f">iii{len(prefix)}s{rest}x").iter_unpack)
    add, before = ids.append, len(ids)
    for size, key, correlation, head in alike.frames(memoryview(data)[pos : pos + count * stride]):
        if head != prefix or size != length or key != code:
            break
        add(correlation)
    return pos + (len(ids) - before) * stride


def responses(flow: Flow, data: bytes, pos: int, ids: list[int], turn: int) -> tuple[int, int]:
    """(length, number) of the frames from `pos` on that answer `ids[turn:]`, are of one length, and known by
    the flow's memo.
    """
    memo = flow.answer
    length: int = LENGTH(data, pos)[0]
    stride = length + 4
    if not memo.least <= length <= memo.most:
        return length, 0
    count = min((len(data) - pos) // stride, len(ids) - turn)
    if count < FEWEST or LENGTH(data, pos + stride)[0] != length:
        return length, 0
    alike = flow.answers_alike
    if alike is None or alike.length != length or alike.steady is not memo:
        alike = flow.answers_alike = Alike(length, memo, _cut(memo, stride))
    first, second, third = memo.first, memo.second, memo.third
    seen = 0
    frames = alike.frames(memoryview(data)[pos : pos + count * stride])
    for (size, correlation, one, two, three), expected in zip(frames, islice(ids, turn, None), strict=False):
        if correlation != expected or size != length or one != first or two != second or three != third:
            break
        seen += 1
    return length, seen


def _cut(memo: Memo, stride: int) -> Frames:
    """A frame as its length, its correlation id, and the bytes at the three places of the memo."""
    second_at = memo.second_at if memo.second else 8 + len(memo.first)
    third_at = memo.third_at if memo.third else second_at + len(memo.second)
    gaps = (
        second_at - 8 - len(memo.first),
        third_at - second_at - len(memo.second),
        stride - third_at - len(memo.third),
    )
    sizes = (len(memo.first), len(memo.second), len(memo.third))
    return Struct(
        ">ii" + "".join(f"{size}s{gap}x" for size, gap in zip(sizes, gaps, strict=True))
    ).iter_unpack

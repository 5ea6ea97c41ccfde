"""The part of the FlatBuffers format that the metadata of Arrow is written in.

A value is a function that appends itself to a buffer and tells where it begins; what a table or vector points
to comes after it. Scalars of a table are (letter of struct, number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import calcsize, pack, pack_into, unpack_from

Value = Callable[[bytearray], int]
Slot = Value | tuple[str, int]


def root(value: Value) -> bytes:
    """A whole buffer, in whole words of 8 bytes."""
    out = bytearray(8)
    pack_into("<I", out, 0, value(out))
    _pad(out, 8)
    return bytes(out)


def table(slots: Mapping[int, Slot]) -> Value:
    """A table, by the numbers of its fields; an absent field has its default."""
    scalars = {slot: value for slot, value in slots.items() if isinstance(value, tuple)}
    others = {slot: value for slot, value in slots.items() if not isinstance(value, tuple)}
    letters = {slot: value[0] for slot, value in scalars.items()} | dict.fromkeys(others, "I")
    at, size = {}, 4  # the first four lead to the places
    for slot in sorted(letters, key=lambda slot: -calcsize(letters[slot])):
        width = calcsize(letters[slot])
        at[slot] = -(-size // width) * width
        size = at[slot] + width
    count = max(slots, default=-1) + 1
    places = pack(f"<HH{count}H", 4 + 2 * count, size, *(at.get(slot, 0) for slot in range(count)))

    def written(out: bytearray) -> int:
        out.extend(bytes(-(len(out) + len(places)) % 8))
        out.extend(places)
        start = len(out)
        out.extend(bytes(size))
        pack_into("<i", out, start, len(places))
        for slot, (letter, number) in scalars.items():
            pack_into(f"<{letter}", out, start + at[slot], number)
        for slot, value in others.items():
            pack_into("<I", out, start + at[slot], value(out) - start - at[slot])
        return start

    return written


def text(value: bytes) -> Value:
    def written(out: bytearray) -> int:
        _pad(out, 4)
        start = len(out)
        out.extend(pack("<I", len(value)) + value + b"\0")
        return start

    return written


def vector(values: Sequence[Value]) -> Value:
    """A vector of tables."""

    def written(out: bytearray) -> int:
        _pad(out, 4)
        start = len(out)
        out.extend(pack("<I", len(values)) + bytes(4 * len(values)))
        for place in range(start + 4, start + 4 + 4 * len(values), 4):
            pack_into("<I", out, place, values[(place - start) // 4 - 1](out) - place)
        return start

    return written


def structs(count: int, data: bytes) -> Value:
    """A vector of so many structs, as their bytes, aligned to 8."""

    def written(out: bytearray) -> int:
        out.extend(bytes((4 - len(out)) % 8))
        start = len(out)
        out.extend(pack("<I", count) + data)
        return start

    return written


def first(data: bytes) -> int:
    """The position of the root table of a buffer."""
    return follow(data, 0)


def follow(data: bytes, at: int) -> int:
    """The position that the offset at `at` points to."""
    found: int = at + unpack_from("<I", data, at)[0]
    return found


def place(data: bytes, table: int, slot: int) -> int | None:
    """The position of a field of a table; None: it has its default."""
    places = table - unpack_from("<i", data, table)[0]
    (size,) = unpack_from("<H", data, places)
    at = unpack_from("<H", data, places + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
    return table + at if at else None


def text_at(data: bytes, at: int | None) -> bytes:
    if at is None:
        return b""
    start = follow(data, at)
    return data[start + 4 : start + 4 + unpack_from("<I", data, start)[0]]


def tables_at(data: bytes, at: int | None) -> list[int]:
    """The positions of the tables of a vector."""
    if at is None:
        return []
    start = follow(data, at)
    (count,) = unpack_from("<I", data, start)
    return [follow(data, start + 4 + 4 * n) for n in range(count)]


def _pad(out: bytearray, to: int) -> None:
    out.extend(bytes(-len(out) % to))

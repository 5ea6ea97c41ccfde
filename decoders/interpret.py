"""The slow, obvious reader and writer of a layout: oracle in tests, and the explainer of every failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from struct import Struct
from typing import Any

from klamm.decoders.failures import DecodeError, EncodeError
from klamm.decoders.schema import FIXED, SIZED, UNKNOWN_TAGS, Field, Side, default_of, members, present
from klamm.decoders.tags import ANY, MOST_COUNT, MOST_LENGTH

STRUCTS = {kind: Struct(">" + code) for kind, (code, _) in FIXED.items()}
UVARINT_BYTES = 5  # Kafka's ByteUtils.readUnsignedVarint takes no more
LONGEST_STRING = 32767  # also where its length is a varint: Kafka refuses longer ones both ways


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One side of one version of one API: what a reader or writer is made from. Compared by identity."""

    api: str
    version: int
    side: Side
    flexible: bool
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"{self.api} v{self.version} {self.side}"


class _Stop(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


class _Reader:
    def __init__(self, layout: Layout, data: bytes, pos: int, end: int) -> None:
        self.version, self.flexible = layout.version, layout.flexible
        self.data, self.pos, self.end = data, pos, end
        self.path: list[str] = []

    def take(self, size: int) -> bytes:
        if size > self.end - self.pos:
            raise _Stop(f"needs {size} bytes, {self.end - self.pos} left")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def fixed(self, kind: str) -> Any:
        value: Any = STRUCTS[kind].unpack(self.take(STRUCTS[kind].size))[0]
        return value

    def uvarint(self, most: int = ANY) -> int:
        value = 0
        for shift in range(0, 7 * UVARINT_BYTES, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= ANY
                return value if value <= most else 0
        raise _Stop(f"a varint of more than {UVARINT_BYTES} bytes")

    def length(self, classic: str, null: bool) -> int | None:
        """A length or count; None for null, which any negative one is to Kafka."""
        size = self.uvarint(MOST_LENGTH) - 1 if self.flexible else self.fixed(classic)
        if size < 0:
            if not null:
                raise _Stop("null where null is not allowed" if size == -1 else f"a length of {size}")
            return None
        return int(size)

    def sized(self, kind: str, null: bool) -> Any:
        size = self.length("int16" if kind == "string" else "int32", null)
        if size is None:
            return None
        if kind == "string" and size > LONGEST_STRING:
            raise _Stop(f"a string of {size} bytes; Kafka allows {LONGEST_STRING}")
        data = self.take(size)
        return data.decode("utf-8", "surrogateescape") if kind == "string" else data

    def value(self, f: Field) -> Any:
        null = self.version in f.null
        if f.kind in SIZED:
            return self.sized(f.kind, null)
        if f.kind == "array":
            return self.array(f, null)
        if f.kind == "struct":
            if null and (self.uvarint(MOST_COUNT) == 0 if f.tag is not None else self.fixed("int8") < 0):
                return None
            return self.struct(members(f))
        return self.fixed(f.kind)

    def array(self, f: Field, null: bool) -> list[Any] | None:
        count = self.length("int32", null)
        if count is None:
            return None
        self.room(count, least_size(f, self.version, self.flexible))
        found = self.begin_array()
        for index in range(count):
            self.path.append(f"[{index}]")
            if isinstance(f.of, tuple):
                found.append(self.struct(f.of))
            else:
                found.append(self.sized(f.of, False) if f.of in SIZED else self.fixed(f.of))
            self.path.pop()
        return found

    def begin_array(self) -> list[Any]:
        """The list for the elements of an array."""
        return []

    def room(self, count: int, least: int) -> None:
        """There must be bytes for so many elements."""
        if count * least > self.end - self.pos:
            raise _Stop(f"announces {count} elements of at least {least} bytes, {self.end - self.pos} left")

    def struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        in_place, tagged = present(fields, self.version)
        values: dict[str, Any] = {}
        for f in in_place:
            self.path.append(f.name)
            values[f.name] = self.value(f)
            self.path.pop()
        if self.flexible:
            self.tags(values, tagged)
        return values

    def tags(self, values: dict[str, Any], tagged: list[Field]) -> None:
        known = {f.tag: f for f in tagged}
        values.update((f.name, default_of(f, self.version)) for f in tagged)
        unknown = []
        for _ in range(self.uvarint(MOST_COUNT)):
            tag, size = self.uvarint(), self.uvarint()
            if size > self.end - self.pos:
                raise _Stop(f"tag {tag} announces {size} bytes, {self.end - self.pos} left")
            if tag not in known:
                unknown.append((tag, self.take(size)))
                continue
            f, start, outer = known[tag], self.pos, self.end
            self.path.append(f.name)
            self.end = start + size
            values[f.name] = self.value(f)
            self.end = outer
            if self.pos != start + size:
                raise _Stop(f"tag {tag} announces {size} bytes, its value takes {self.pos - start}")
            self.path.pop()
        if unknown:
            values[UNKNOWN_TAGS] = unknown


def least_size(f: Field, version: int, flexible: bool) -> int:
    """The fewest bytes that an element of an array can take: bounds a count before memory is spent on it."""
    if isinstance(f.of, tuple):
        return max(1, least_struct(f.of, version, flexible))
    return _least(f.of, flexible)


def least_struct(fields: tuple[Field, ...], version: int, flexible: bool) -> int:
    total = 1 if flexible else 0
    for f in present(fields, version)[0]:
        if f.kind == "struct":
            total += 1 if version in f.null else least_struct(members(f), version, flexible)
        else:
            total += _least(f.kind, flexible)
    return total


def _least(kind: str, flexible: bool) -> int:
    if kind in FIXED:
        return FIXED[kind][1]
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def read(layout: Layout, data: bytes, pos: int = 0, end: int | None = None) -> tuple[dict[str, Any], int]:
    """The values of a body and the position after it. Raises DecodeError with path, offset and reason."""
    end = len(data) if end is None else end
    reader = _Reader(layout, data, pos, end)
    try:
        return reader.struct(layout.fields), reader.pos
    except _Stop as stop:
        failure = _failure(layout, reader, pos, stop.reason)
    raise failure  # out here, it does not hold on to the values read so far


def _failure(layout: Layout, reader: _Reader, start: int, reason: str) -> DecodeError:
    """Why the reader of a body that begins at `start` stopped, and where."""
    path, offset = ".".join(reader.path).replace(".[", "["), reader.pos - start
    return DecodeError(
        reason, api=layout.api, version=layout.version, side=layout.side, path=path, offset=offset
    )


class _Writer:
    def __init__(self, layout: Layout) -> None:
        self.version, self.flexible = layout.version, layout.flexible
        self.path: list[str] = []

    def length(self, size: int | None, classic: str, null: bool) -> bytes:
        if size is None:
            if not null:
                raise _Stop("null where null is not allowed")
            size = -1
        return uvarint(size + 1) if self.flexible else self.fixed(classic, size)

    def fixed(self, kind: str, value: Any) -> bytes:
        try:
            return STRUCTS[kind].pack(value)
        except Exception as error:
            raise _Stop(f"{value!r} is no {kind}: {error}") from None

    def sized(self, kind: str, value: Any, null: bool) -> bytes:
        classic = "int16" if kind == "string" else "int32"
        if value is None:
            return self.length(None, classic, null)
        wanted = str if kind == "string" else (bytes, bytearray, memoryview)
        if not isinstance(value, wanted):
            raise _Stop(f"{value!r} is no {kind}")
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        if kind == "string" and len(data) > LONGEST_STRING:
            raise _Stop(f"a string of {len(data)} bytes; Kafka allows {LONGEST_STRING}")
        return self.length(len(data), classic, null) + data

    def value(self, f: Field, value: Any) -> bytes:
        null = self.version in f.null
        if f.kind in SIZED:
            return self.sized(f.kind, value, null)
        if f.kind == "array":
            if value is None:
                return self.length(None, "int32", null)
            if not isinstance(value, (list, tuple)):
                raise _Stop(f"{value!r} is no array")
            return self.length(len(value), "int32", null) + b"".join(self.elements(f, value))
        if f.kind == "struct":
            if value is None:
                if not null:
                    raise _Stop("null where null is not allowed")
                return b"\xff" if f.tag is None else b"\x00"  # a tagged one says it by a varint (KIP-893)
            return (b"\x01" if null else b"") + self.struct(members(f), value)
        return self.fixed(f.kind, value)

    def elements(self, f: Field, values: Sequence[Any]) -> list[bytes]:
        parts = []
        for index, value in enumerate(values):
            self.path.append(f"[{index}]")
            if isinstance(f.of, tuple):
                parts.append(self.struct(f.of, value))
            else:
                parts.append(self.sized(f.of, value, False) if f.of in SIZED else self.fixed(f.of, value))
            self.path.pop()
        return parts

    def struct(self, fields: tuple[Field, ...], values: Any) -> bytes:
        if not isinstance(values, dict):
            raise _Stop(f"{values!r} is no struct")
        in_place, tagged = present(fields, self.version)
        names = {f.name for f in in_place} | {f.name for f in tagged} | {UNKNOWN_TAGS}
        for name in values:
            if name not in names:
                there = ", ".join(sorted(names - {UNKNOWN_TAGS}))
                raise _Stop(f"no field {name!r} in version {self.version}; there are {there}")
        parts = []
        for f in in_place:
            self.path.append(f.name)
            parts.append(self.value(f, values[f.name] if f.name in values else default_of(f, self.version)))
            self.path.pop()
        if self.flexible:
            parts.append(self.tags(tagged, values))
        return b"".join(parts)

    def tags(self, tagged: list[Field], values: dict[str, Any]) -> bytes:
        known: list[tuple[int, bytes]] = []
        for f in tagged:
            default = default_of(f, self.version)
            value = values.get(f.name, default)
            full = {**default, **value} if isinstance(default, dict) and isinstance(value, dict) else value
            self.path.append(f.name)
            if full != default:
                known.append((f.tag or 0, self.value(f, value)))
            self.path.pop()
        # Unknown fields stay in the order that they were read in, whether it ascends or not.
        section = list(merge(values.get(UNKNOWN_TAGS, ()), known, key=itemgetter(0)))
        return uvarint(len(section)) + b"".join(
            uvarint(tag) + uvarint(len(data)) + data for tag, data in section
        )


def uvarint(value: int) -> bytes:
    """An unsigned varint, as short as it can be."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write(layout: Layout, values: dict[str, Any]) -> bytes:
    """The body for these values; a missing field gets Kafka's default. Raises EncodeError: path, reason."""
    writer = _Writer(layout)
    try:
        return writer.struct(layout.fields, values)
    except _Stop as stop:
        where = ".".join(writer.path).replace(".[", "[")
        raise EncodeError(
            stop.reason, api=layout.api, version=layout.version, side=layout.side, path=where
        ) from None

"""Fields of bodies as SQL: paths into a VARIANT, and columns of the structs that arrays are read as.

An array is read once for all that is asked of its elements, as in `ARRAY<STRUCT<name: STRING>>`: which
fields these are is known after a walk over the whole tree, so there are two walks, and `Wanted` is what
the first leaves.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from klamm.decoders.compile import Path
from klamm.decoders.schema import Api, Field, Side, all_fields
from klamm.pipeline.sql.values import NULL, Value, literal
from klamm.rules.expressions.body import Place
from klamm.rules.expressions.kinds import OF_FIELDS
from klamm.rules.json_form import HIDDEN, uuid_text

Shape = dict[
    str, Any
]  # a field's name: its type's text, the shape of a struct, or [the element's] of an array
Wanted = dict[tuple[int, Path], Shape]  # by body and array

TYPES = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32"), "INT"),
    **dict.fromkeys(("uint32", "int64"), "BIGINT"),
    **dict.fromkeys(("string", "uuid", "bytes"), "STRING"),
    "boolean": "BOOLEAN", "float64": "DOUBLE",
}  # fmt: skip
BOUNDS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
BOUNDS |= {f"uint{bits}": (0, 2**bits - 1) for bits in (16, 32)}
SIZED = "STRUCT<bytes: BIGINT>"  # of fields that are shown as their size


class Variable(NamedTuple):
    """The variable of a lambda: the array's path, and the shape of its elements, {} for plain values."""

    name: str
    path: Path
    shape: Shape


class Fields:
    """The fields of one body of one version. `column` is its place in the table."""

    def __init__(self, source: int, api: Api, version: int, side: Side, wanted: Wanted) -> None:
        self.source, self.column = source, f"{side}_body"
        self._version = version
        self._fields, self._wanted = _fields(api.fields(side), version), wanted
        self.is_read = False

    def field(self, path: Path) -> Field:
        return self._fields[path]

    def hides(self, place: Place) -> bool:
        """Has the table the size of it only?"""
        return place.there and place.path in self._fields and self._fields[place.path].mark in HIDDEN

    def never_null(self, path: Path) -> bool:
        """A value, wherever the arrays on its way have elements."""
        on_the_way = [self._fields[path[:size]] for size in range(1, len(path) + 1)]
        return not any(
            self._version in f.null for f in on_the_way if f.kind != "array" or f is on_the_way[-1]
        )

    def value(self, place: Place, within: Variable | None) -> Value:
        """A field that is one value; `within`: the innermost variable on the way to it."""
        if not place.there:
            return Value(NULL, place.kind)
        f = self._fields[place.path]
        kind = f.of if f.kind == "array" and isinstance(f.of, str) else f.kind
        text = self._at(place.path, within, TYPES[kind])
        if place.default is not None:
            default = uuid_text(place.default) if kind == "uuid" else place.default
            text = f"coalesce({text}, {literal(default)})"
        if kind == "bytes":
            text = f"unbase64({text})"
        if kind in BOUNDS:
            return Value(text, "number", *BOUNDS[kind], whole=True)
        return Value(text, OF_FIELDS[kind])

    def element(self, place: Place) -> Value:
        """The elements of an array of plain values."""
        kind = str(self._fields[place.path].of)
        if kind in BOUNDS:
            return Value("", "number", *BOUNDS[kind], whole=True)
        return Value("", place.element)

    def size(self, place: Place, within: Variable | None) -> Value:
        """Bytes of records, or of a secret."""
        if not place.there:
            return Value(NULL, "number")
        text = self._at(place.path, within, SIZED)
        return Value(f"{text}.bytes", "number", 0, 2**31 - 1, True)

    def array(self, place: Place, within: Variable | None) -> tuple[str, Shape]:
        """An array, and the shape of its elements, which callers fill with the fields they need."""
        if not place.there:
            return NULL, {}
        f, path = self._fields[place.path], place.path
        element = TYPES[f.of] if isinstance(f.of, str) else ""
        if within is None:
            shape = self._wanted.setdefault((self.source, path), {})
            text = self._read(path, f"ARRAY<{element or _struct(shape)}>")
        else:
            holder, name = self._holder(path, within)
            shape = holder.setdefault(name, [{}, element])[0]
            text = self._inner(path, within)
        return (text if place.default is None else f"coalesce({text}, array())"), shape

    def is_there(self, place: Place, within: Variable | None) -> str:
        """An expression that is null where an array, a struct, or a field told by its size is null."""
        if not place.there:
            return NULL
        if place.kind == "array":
            return self.array(place, within)[0]
        return self._at(place.path, within, SIZED)

    def _at(self, path: Path, within: Variable | None, kind: str) -> str:
        if within is None:
            return self._read(path, kind)
        if path == within.path:
            return within.name
        holder, name = self._holder(path, within)
        if not isinstance(holder.get(name), dict):
            holder.setdefault(name, kind)
        return self._inner(path, within)

    def _read(self, path: Path, kind: str) -> str:
        self.is_read = True
        return f"try_variant_get({self.column}, '$.{'.'.join(path)}', '{kind}')"

    def _holder(self, path: Path, within: Variable) -> tuple[Shape, str]:
        """The shape of the struct that a field is in, below a variable."""
        shape = within.shape
        *structs, name = path[len(within.path) :]
        for struct in structs:
            if not isinstance(shape.get(struct), dict):
                shape[struct] = {}
            shape = shape[struct]
        return shape, name

    def _inner(self, path: Path, within: Variable) -> str:
        return ".".join((within.name, *(f"`{name}`" for name in path[len(within.path) :])))


@cache
def _fields(fields: tuple[Field, ...], version: int) -> dict[Path, Field]:
    return dict(all_fields(fields, version))


def _struct(shape: Shape) -> str:
    named = [f"`{name}`: {_type(of)}" for name, of in shape.items()]
    return f"STRUCT<{', '.join(named) or '_: STRING'}>"


def _type(of: Any) -> str:
    if isinstance(of, dict):
        return _struct(of)
    if isinstance(of, list):
        shape, element = of
        return f"ARRAY<{element or _struct(shape)}>"
    return str(of)

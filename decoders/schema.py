"""The declaration language of the wire: one `Api` per key, its fields in wire order, a version range beside
each.

Compact encodings are never declared: they follow from `flexible` (KIP-482). Values of decoded fields:

    int8 .. int64, uint16, uint32     int          uuid             bytes, 16 of them
    float64                           float        bytes, records   bytes
    boolean                           bool         array            list
    string                            str          struct           dict

A null is None. A string that is not UTF-8 keeps its bytes as lone surrogates (PEP 383).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

Side = Literal["request", "response"]

# Marks: the meaning of a field, whatever its name. Rewriting, redaction, faults and metrics use them.
NODE_ID, HOST, PORT = "NODE_ID", "HOST", "PORT"  # of an endpoint that clients may connect to
TOPIC, TOPIC_ID, PARTITION, GROUP, ERROR = "TOPIC", "TOPIC_ID", "PARTITION", "GROUP", "ERROR"
TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
SECRET, RECORDS, TELEMETRY, CLIENT_TEXT = "SECRET", "RECORDS", "TELEMETRY", "CLIENT_TEXT"
MARKS = frozenset(
    {NODE_ID, HOST, PORT, TOPIC, TOPIC_ID, PARTITION, GROUP, TRANSACTIONAL_ID, ERROR}
    | {SECRET, RECORDS, TELEMETRY, CLIENT_TEXT}
)

NEWEST = 32767  # versions are an int16
UNKNOWN_TAGS = (
    "unknown_tagged_fields"  # key in a decoded struct: [(tag, bytes), ...], there only when not empty
)


class Versions(NamedTuple):
    """An inclusive range of versions; empty when last < first."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == NEWEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALL, NONE = Versions(0, NEWEST), Versions(0, -1)


def version_range(text: str | None) -> Versions:
    """'3+', '0-8', '4' or None (no version)."""
    if text is None:
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), NEWEST)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


FIXED = {  # struct format character and size
    "int8": ("b", 1),
    "boolean": ("?", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
SIZED = frozenset({"string", "bytes", "records"})
_ZERO: dict[str, Any] = {
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": bytes(16),
    "float64": 0.0,
    "boolean": False,
}


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field: `of` holds a struct's fields, or an array's element (a kind, or the fields of a struct).
    `only`: the mark holds only where the field of this name beside it has this value, or is not there.

    Equal to nothing but itself, so that caches by fields need not look into them.
    """

    kind: str
    name: str
    versions: Versions
    null: Versions
    tag: int | None
    default: Any
    mark: str | None
    of: str | tuple[Field, ...]
    only: tuple[str, int] | None = None


_UNSET = object()


def _field(
    kind: str,
    name: str,
    when: str | None = None,
    *,
    null: str | None = None,
    tag: int | None = None,
    default: Any = _UNSET,
    mark: str | None = None,
    of: str | list[Field] = "",
    only: tuple[str, int] | None = None,
) -> Field:
    if mark is not None and mark not in MARKS:
        raise ValueError(f"{name}: unknown mark {mark}")
    if default is _UNSET:
        default = _ZERO.get(kind, 0)
    elements = tuple(of) if isinstance(of, list) else of
    present = ALL if when is None else version_range(when)
    return Field(kind, name, present, version_range(null), tag, default, mark, elements, only)


int8, int16, int32, int64 = (partial(_field, kind) for kind in ("int8", "int16", "int32", "int64"))
uint16, uint32, float64 = (partial(_field, kind) for kind in ("uint16", "uint32", "float64"))
boolean, uuid, string = (partial(_field, kind) for kind in ("boolean", "uuid", "string"))
bytestring = partial(_field, "bytes")  # Kafka's type `bytes`
records = partial(_field, "records", mark=RECORDS)  # a span of record batches, left undecoded
array = partial(
    _field, "array", default=()
)  # `of` is a kind ("int32") or the fields of a struct; a mark is of the elements
struct = partial(
    _field, "struct", default=()
)  # in place; `default=None` where Kafka's default is null, else its fields' defaults


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """One API key: its name, the union of all versions ever released, and its two bodies in wire order.

    `unstable` versions exist in the newest Kafka but are not released. `aliases` are names of older Kafka.
    """

    key: int
    name: str
    versions: Versions
    flexible: Versions
    request: tuple[Field, ...]
    response: tuple[Field, ...]
    aliases: tuple[str, ...] = ()
    unstable: Versions = NONE
    request_headers: tuple[tuple[int, Versions], ...] = ()  # (header version, versions that have it), where
    response_headers: tuple[tuple[int, Versions], ...] = ()  # they do not follow from `flexible`

    def fields(self, side: Side) -> tuple[Field, ...]:
        return self.request if side == "request" else self.response


def api(
    key: int,
    name: str,
    *,
    versions: str,
    flexible: str | None,
    request: list[Field],
    response: list[Field],
    aliases: tuple[str, ...] = (),
    unstable: str | None = None,
    request_headers: dict[int, str] | None = None,
    response_headers: dict[int, str] | None = None,
) -> Api:
    """Declare one API. Ranges are written "0-13", "9+" or "4"; `flexible=None` where no version is
    (KIP-482). Headers are declared where they are not those of KIP-482: {header version: range}.
    """
    known, compact, early = version_range(versions), version_range(flexible), version_range(unstable)
    headers = [
        tuple((of, version_range(text)) for of, text in (given or {}).items())
        for given in (request_headers, response_headers)
    ]
    return Api(key, name, known, compact, tuple(request), tuple(response), aliases, early, *headers)


def present(fields: tuple[Field, ...], version: int) -> tuple[list[Field], list[Field]]:
    """The fields of a struct in one version: (in place, tagged in ascending order of tags)."""
    there = [f for f in fields if version in f.versions]
    return [f for f in there if f.tag is None], sorted(
        (f for f in there if f.tag is not None), key=lambda f: f.tag or 0
    )


def default_of(f: Field, version: int) -> Any:
    """A fresh default value of a field, as Kafka's generated classes have it."""
    if f.kind == "array":
        return None if f.default is None else list(f.default)
    if f.kind == "struct":
        return None if f.default is None else defaults(members(f), version)
    return f.default


def defaults(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    return {f.name: default_of(f, version) for f in fields if version in f.versions}


def members(f: Field) -> tuple[Field, ...]:
    """The fields of a struct, or of an array's struct elements; empty for an array of a kind."""
    return f.of if isinstance(f.of, tuple) else ()


def all_fields(
    fields: tuple[Field, ...], version: int, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Every field of one version with its path, parents first, in wire order (tagged fields last in their
    struct).
    """
    in_place, tagged = present(fields, version)
    for f in [*in_place, *tagged]:
        yield (*path, f.name), f
        yield from all_fields(members(f), version, (*path, f.name))


def marked(fields: tuple[Field, ...], version: int, marks: frozenset[str]) -> list[tuple[str, ...]]:
    """Paths of the fields that carry one of the marks, in wire order."""
    return [path for path, f in all_fields(fields, version) if f.mark in marks]


def means(f: Field, values: Mapping[str, Any]) -> bool:
    """Whether the field's mark holds in a struct of these values."""
    return f.only is None or values.get(f.only[0], f.only[1]) == f.only[1]


def deciding(
    there: Mapping[tuple[str, ...], Field], path: tuple[str, ...]
) -> tuple[tuple[str, ...], int] | None:
    """The field that decides whether the mark of the field at `path` holds, and its value where it does.
    None: the mark holds always. `there`: all fields of a version, as of `all_fields`.
    """
    only = there[path].only
    if only is None or (*path[:-1], only[0]) not in there:
        return None
    return (*path[:-1], only[0]), only[1]

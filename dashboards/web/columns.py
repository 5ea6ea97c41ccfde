"""Columns of the list that are fields of bodies, such as `request.acks`: which there are, and their cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from klamm.captures.frames import columns as picked
from klamm.client.types import Exchange
from klamm.dashboards.web.frames import frames_of
from klamm.decoders import API
from klamm.decoders.compile import Path
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, RECORDS, SECRET, Api, Field, Side, all_fields, members
from klamm.decoders.text import uuid_text
from klamm.settings.listing import named
from klamm.settings.nearest import suggestion
from klamm.settings.printable import printable

MOST = 20  # columns
VALUES = 20  # of a cell
TEXT = 200  # characters of a cell
SIDES: tuple[Side, ...] = ("request", "response")


class UnknownField(ValueError):
    """A path that leads to no field which can be shown; the text says why."""


class Column(NamedTuple):
    """A field of one side. Its path has no places in arrays: it stands for all their elements."""

    side: Side
    path: Path

    def __str__(self) -> str:
        return ".".join((self.side, *self.path))


def columns(text: str) -> tuple[Column, ...]:
    """The columns of `request.acks,response.error_code`. Raises UnknownField."""
    names = named(text)
    if len(names) > MOST:
        raise UnknownField(f"{len(names)} columns of fields are too many: the most is {MOST}")
    return tuple(_column(name) for name in names)


def _column(name: str) -> Column:
    side, *path = name.split(".")
    if side not in SIDES:
        raise UnknownField(
            f"{printable(name[:60])!r}: a field begins with request. or response., as request.acks does"
        )
    found = Column("request" if side == "request" else "response", tuple(path))
    fields = [field for api in API if (field := _fields(api, found.side).get(found.path)) is not None]
    if not fields:
        raise UnknownField(f"unknown field {printable(name[:60])!r}{suggestion(name, paths(API))}")
    if all(field.mark == SECRET for field in fields):
        raise UnknownField(f"{name} is a secret, which is never shown")
    if all(_holds_others(field) for field in fields):
        inside = next(path for path in paths(API) if path.startswith(f"{name}."))
        raise UnknownField(f"{name} holds other fields: name one of them, such as {inside}")
    return found


def paths(apis: Iterable[Api]) -> list[str]:
    """Every field of these APIs that can be a column, in alphabetical order."""
    return sorted(
        {
            str(Column(side, path))
            for api in apis
            for side in SIDES
            for path, field in _fields(api, side).items()
            if not _holds_others(field) and field.mark != SECRET
        }
    )


def cells(one: Exchange, wanted: tuple[Column, ...]) -> list[str]:
    """A text for each column; empty where this exchange has no such field, or its bytes are not there."""
    frames, found = frames_of(one), dict[Column, str]()
    for side, frame in zip(SIDES, frames, strict=True):
        own = [column for column in wanted if column.side == side]
        if frame is None or not own:
            continue
        known = _fields_in(frame.api, frame.version, side)
        there = [column for column in own if (field := known.get(column.path)) and field.mark != SECRET]
        paths = tuple(column.path for column in there)
        values = picked(frame.api.key, frame.version, side, frame.body, paths)
        found |= {
            column: _joined(value, known[column.path]) for column, value in zip(there, values, strict=True)
        }
    return [found.get(column, "") for column in wanted]


def _holds_others(field: Field) -> bool:
    return bool(members(field))


@cache
def _fields(api: Api, side: Side) -> dict[Path, Field]:
    """The fields of all versions."""
    first, last = api.versions
    return {
        path: field
        for version in range(first, last + 1)
        for path, field in _fields_in(api, version, side).items()
    }


@cache
def _fields_in(api: Api, version: int, side: Side) -> dict[Path, Field]:
    return dict(all_fields(api.fields(side), version))


def _joined(value: Any, field: Field) -> str:
    """Several values with commas between them; of many, the first and their number."""
    texts, more = list[str](), 0
    for one in _each(value):
        if len(texts) < VALUES:
            texts.append(_text(one, field))
        else:
            more += 1
    text = ", ".join(texts)
    if len(text) > TEXT:
        text = f"{text[:TEXT]}…"
    return f"{text}, and {more:,} more" if more else text


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _each(one)
    else:
        yield value


def _text(value: Any, field: Field) -> str:
    kind = field.of if field.kind == "array" else field.kind
    if value is None:
        return "null"
    if field.mark == ERROR:
        return error_name(value)
    if field.mark == RECORDS or (isinstance(value, bytes) and kind != "uuid"):
        return f"{len(value):,} bytes"
    if isinstance(value, bytes):
        return uuid_text(value)
    return str(value).lower() if isinstance(value, bool) else printable(str(value))

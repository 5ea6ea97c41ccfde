"""Bodies to values and back: compiled functions, made on first use, with the interpreter behind them."""

from __future__ import annotations

from functools import cache
from typing import Any

from klamm.decoders import compile, interpret, spans
from klamm.decoders.apis import API
from klamm.decoders.failures import DecodeError, UnknownApi, left_over
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Side, defaults


@cache
def layout(key: int | str, version: int, side: Side) -> Layout:
    """The layout of one side of one version. Raises UnknownApi."""
    api = API[key]
    if version not in api.versions:
        raise UnknownApi(f"{api.name} has versions {api.versions}, not {version}")
    return Layout(api.name, version, side, version in api.flexible, api.fields(side))


@cache
def _reader(key: int | str, version: int, side: Side) -> compile.Read:
    return compile.read(layout(key, version, side))


@cache
def _ends(key: int | str, version: int, side: Side) -> compile.Pick:
    return compile.ends(layout(key, version, side))


@cache
def _writer(key: int | str, version: int, side: Side) -> compile.Write:
    return compile.write(layout(key, version, side))


def decode(body: bytes, key: int | str, version: int, side: Side) -> dict[str, Any]:
    """The values of a body (what follows the header). Raises DecodeError, or UnknownApi."""
    values, pos = decode_prefix(body, key, version, side)
    if pos != len(body):
        of = layout(key, version, side)
        reason = left_over(len(body) - pos)
        raise DecodeError(reason, api=of.api, version=version, side=side, path="", offset=pos)
    return values


def decode_prefix(body: bytes, key: int | str, version: int, side: Side) -> tuple[dict[str, Any], int]:
    """The values of a body, and the bytes they took: clients ignore the bytes behind."""
    reader = _reader(key, version, side)
    try:
        return reader(body, 0, len(body))
    except compile.UNREADABLE:
        pass  # only out of here are the values read so far let go
    return interpret.read(layout(key, version, side), body)


def is_whole(
    key: int | str, version: int, side: Side, data: bytes, start: int = 0, end: int | None = None
) -> bool:
    """Does the body data[start:end] end where its layout does? Quick: no value is read. Raises UnknownApi."""
    end = len(data) if end is None else end
    try:
        return bool(_ends(key, version, side)(data, start, end)[0] == end)
    except compile.UNREADABLE:
        return False


def decode_so_far(body: bytes, key: int | str, version: int, side: Side) -> dict[str, Any]:
    """The values of a body. Of one that does not decode those before the failure, and Kafka's defaults for
    the others. Raises UnknownApi.
    """
    try:
        return decode_prefix(body, key, version, side)[0]
    except DecodeError:
        of = layout(key, version, side)
        root, _ = spans.read(of, body, 0, len(body))
        found: dict[str, Any] = spans.values(root, whole_elements=True)
        return defaults(of.fields, version) | found


def encode(values: dict[str, Any], key: int | str, version: int, side: Side) -> bytes:
    """The body for these values; a missing field gets Kafka's default. Raises EncodeError, or UnknownApi."""
    writer = _writer(key, version, side)
    try:
        return writer(values)
    except compile.UNWRITABLE:
        pass
    return interpret.write(layout(key, version, side), values)

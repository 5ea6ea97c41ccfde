"""Guesses the API of a response without a request: every layout that takes its bytes exactly."""

from __future__ import annotations

from typing import Any, NamedTuple

from klamm.decoders import API, ERRORS, interpret, layout
from klamm.decoders.failures import DecodeError, EncodeError
from klamm.decoders.headers import read_response_header, response_header_version
from klamm.decoders.schema import ERROR, HOST, PORT, UNKNOWN_TAGS, Api, Field, members

LONGEST_THROTTLE_MS = 600_000


class Fit(NamedTuple):
    """One API, and its versions in which the bytes are a whole response."""

    api: Api
    versions: tuple[int, ...]
    likely: bool  # the values make sense too
    sensible: int  # texts and elements that make sense: many of them are no accident

    def __str__(self) -> str:
        return f"{self.api.name} {_ranges(self.versions)}"


def fits(data: bytes, start: int, end: int, only: Api | None = None) -> list[Fit]:
    """The APIs whose responses these bytes may be, the likeliest first."""
    found = []
    for api in API if only is None else [only]:
        marks: dict[int, int | None] = {}
        for version in range(api.versions.first, api.versions.last + 1):
            read = _read(data, start, end, api, version)
            if read is not None:
                marks[version] = _sense(layout(api.key, version, "response").fields, read, version)
        for likely in (True, False):
            versions = tuple(version for version, mark in marks.items() if (mark is not None) == likely)
            if versions:
                found.append(Fit(api, versions, likely, max(marks[version] or 0 for version in versions)))
    return sorted(found, key=lambda fit: (-fit.likely, -fit.sensible))


def _read(data: bytes, start: int, end: int, api: Api, version: int) -> dict[str, Any] | None:
    """The values, if the body ends where the frame does and would be written as these bytes."""
    of = layout(api.key, version, "response")
    pos = start + 4
    try:
        if response_header_version(api, version):
            pos = start + read_response_header(data[start:end], 1).size
        values, pos_after = interpret.read(of, data, pos, end)
        whole = pos_after == end and interpret.write(of, values) == data[pos:end]
    except (DecodeError, EncodeError):
        return None
    return values if whole else None


def _sense(fields: tuple[Field, ...], values: dict[str, Any], version: int) -> int | None:
    """How much the values mean; None where one of them cannot be meant."""
    sensible = 0
    if UNKNOWN_TAGS in values:
        return None
    for f in fields:
        value = values.get(f.name)
        if version not in f.versions or value is None:
            continue
        one = _sense_of(f, value, version)
        if one is None:
            return None
        sensible += one
    return sensible


def _sense_of(f: Field, value: Any, version: int) -> int | None:
    parts = value if f.kind == "array" and members(f) else [value] if f.kind == "struct" else []
    if parts:
        marks = [_sense(members(f), part, version) for part in parts]
        return None if None in marks else sum(mark + 1 for mark in marks if mark is not None)
    texts = value if f.kind == "array" and f.of == "string" else [value] if f.kind == "string" else []
    if not all(text.isprintable() for text in texts) or (f.mark == HOST and " " in str(value)):
        return None
    if f.mark == ERROR and f.kind == "int16" and value not in ERRORS:
        return None
    if f.name == "throttle_time_ms" and not 0 <= value <= LONGEST_THROTTLE_MS:
        return None
    if f.mark == PORT and not -1 <= value <= 65535:
        return None
    if isinstance(value, int) and f.kind == "int32" and f.name.endswith(("_id", "_index")) and value < -2:
        return None
    return sum(len(text) > 0 for text in texts)


def _ranges(versions: tuple[int, ...]) -> str:
    """1-3,5"""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][-1] + 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)

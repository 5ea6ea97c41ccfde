"""Payloads to values and back, by the compiled functions of the APIs with the interpreter behind them."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, cast

from klamm.decoders import compile, interpret
from klamm.decoders.failures import DecodeError, EncodeError, UnknownApi
from klamm.decoders.interpret import STRUCTS, Layout
from klamm.decoders.payloads.control_records import CONTROL_RECORD_TYPE, CONTROL_TYPES
from klamm.decoders.payloads.declaration import Payload, Record
from klamm.decoders.payloads.tables import COORDINATOR_TOPICS, GROUP_PAYLOADS, PAYLOADS, USER_DATA, Part
from klamm.decoders.schema import Side

SIDE = cast(Side, "payload")  # where an API's layout has its side


class Decoded(NamedTuple):
    """`version` is that of the layout; `values` begin with what the bytes themselves tell."""

    name: str
    version: int
    values: dict[str, Any]


@cache
def payload_layout(name: str, version: int) -> Layout:
    """The layout of one version. Raises UnknownApi."""
    payload = PAYLOADS[name]
    if version not in payload.versions:
        raise UnknownApi(f"{payload.name} has versions {payload.versions}, not {version}")
    return Layout(payload.name, version, SIDE, version in payload.flexible, payload.fields)


@cache
def _reader(name: str, version: int) -> compile.Read:
    return compile.read(payload_layout(name, version))


@cache
def _writer(name: str, version: int) -> compile.Write:
    return compile.write(payload_layout(name, version))


def decode_payload(name: str, data: bytes) -> Decoded:
    """The values of a payload. Where its bytes tell no version, the newest that fits. Raises DecodeError, or
    UnknownApi.
    """
    payload = PAYLOADS[name]
    told = _version(payload, data)
    if told is None:
        return _newest_that_fits(payload, data)
    version = min(told, payload.versions.last) if payload.newer_as_newest else told
    if version not in payload.versions:
        raise _refused(payload.name, told, "version", f"version {told}; known are {payload.versions}")
    return _decoded(payload, data, version, whole=told == version)


def encode_payload(name: str, values: dict[str, Any], version: int | None = None) -> bytes:
    """The payload for these values; a missing field gets Kafka's default. Its version is values["version"],
    or the one given, or the newest. Raises EncodeError, or UnknownApi.
    """
    payload = PAYLOADS[name]
    leads, newest = payload.leads, payload.versions.last
    if version is None:
        version = newest
    if leads and leads.name == "version":
        version = values.get("version", version)
        values = {**values, "version": version}
    elif leads and values.get("type", leads.default) != leads.default:
        reason = f"a record of type {values['type']!r}, not {leads.default}"
        raise EncodeError(reason, api=payload.name, version=newest, side=SIDE, path="type")
    if payload.newer_as_newest and isinstance(version, int):
        version = min(version, newest)
    if version not in payload.versions:
        reason = f"version {version!r}; known are {payload.versions}"
        raise EncodeError(reason, api=payload.name, version=newest, side=SIDE, path="version")
    with suppress(*compile.UNWRITABLE):
        return _writer(payload.name, version)(values)
    return interpret.write(payload_layout(payload.name, version), values)


def coordinator_record(topic: str, key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of one of COORDINATOR_TOPICS; no value means that what the key names is gone. Raises
    DecodeError, or UnknownApi for another topic.
    """
    records = COORDINATOR_TOPICS.get(topic)
    if records is None:
        raise UnknownApi(f"no coordinator keeps a topic {topic!r}; they keep {', '.join(COORDINATOR_TOPICS)}")
    if key is None or len(key) < 2:
        raise _refused(f"{topic} key", 0, "type", f"needs 2 bytes, {len(key or b'')} left")
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind not in records:
        raise _refused(f"{topic} key", 0, "type", f"a record of type {kind}; known are {_types(records)}")
    found = records[kind]
    told = decode_payload(found.key.name, key)
    return told, None if value is None else decode_payload(found.value.name, value)


def control_record(key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of a control batch; the value of a type that is not known is None. Raises DecodeError."""
    told = decode_payload(CONTROL_RECORD_TYPE.name, key or b"")
    kind = CONTROL_TYPES.get(told.values["type"])
    return told, None if kind is None else decode_payload(kind[1].name, value or b"")


def group_payload(protocol_type: str | None, part: Part, data: bytes | None) -> Decoded | None:
    """The metadata of a joining member of a classic group ("metadata"), or its "assignment"; None where it is
    empty, or of no protocol type that Kafka's own programs use. Raises DecodeError.
    """
    return _decoded_if(GROUP_PAYLOADS.get((protocol_type or "", part)), data)


def user_data(assignor: str | None, part: Part, data: bytes | None) -> Decoded | None:
    """The `user_data` of a subscription ("metadata") or an "assignment", by the name of the protocol; None
    where it is empty, or where the assignor is not one of Kafka's own. Raises DecodeError.
    """
    return _decoded_if(USER_DATA.get((assignor or "", part)), data)


def _decoded_if(payload: Payload | None, data: bytes | None) -> Decoded | None:
    return decode_payload(payload.name, data) if payload and data else None


def _version(payload: Payload, data: bytes) -> int | None:
    """The version that the first bytes tell; None where they tell none."""
    leads = payload.leads
    if leads is None:
        return None
    struct = STRUCTS[leads.kind]
    if len(data) < struct.size:
        reason = f"needs {struct.size} bytes, {len(data)} left"
        raise _refused(payload.name, payload.versions.last, leads.name, reason)
    told: int = struct.unpack_from(data)[0]
    if leads.name == "version":
        return told
    if told != leads.default:
        raise _refused(payload.name, 0, leads.name, f"a record of type {told}, not {leads.default}")
    return payload.versions.last


def _newest_that_fits(payload: Payload, data: bytes) -> Decoded:
    for version in range(payload.versions.last, payload.versions.first, -1):
        try:
            return _decoded(payload, data, version, whole=True)
        except DecodeError:
            continue
    return _decoded(payload, data, payload.versions.first, whole=True)


def _decoded(payload: Payload, data: bytes, version: int, *, whole: bool) -> Decoded:
    values, pos = _read(payload.name, version, data)
    if whole and pos != len(data):
        raise _refused(payload.name, version, "", f"{len(data) - pos} bytes left over", pos)
    return Decoded(payload.name, version, values)


def _read(name: str, version: int, data: bytes) -> tuple[dict[str, Any], int]:
    with suppress(*compile.UNREADABLE):
        return _reader(name, version)(data, 0, len(data))
    return interpret.read(payload_layout(name, version), data)


def _types(records: dict[int, Record]) -> str:
    return ", ".join(map(str, sorted(records)))


def _refused(name: str, version: int, path: str, reason: str, offset: int = 0) -> DecodeError:
    return DecodeError(reason, api=name, version=version, side=SIDE, path=path, offset=offset)

"""Payloads to values and back, by the compiled functions of the APIs with the interpreter behind them."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, cast

from klamm.decoders import compile, interpret, spans
from klamm.decoders.failures import DecodeError, EncodeError, UnknownApi, left_over
from klamm.decoders.interpret import STRUCTS, Layout
from klamm.decoders.payloads.control_records import CONTROL_RECORD_TYPE, CONTROL_TYPES
from klamm.decoders.payloads.declaration import Payload, Record
from klamm.decoders.payloads.tables import (
    COORDINATOR_TOPICS,
    FIELD_PAYLOADS,
    GROUP_PAYLOADS,
    PAYLOADS,
    USER_DATA,
    Part,
)
from klamm.decoders.schema import Side

SIDE = cast(Side, "payload")  # where an API's layout has its side


class Decoded(NamedTuple):
    """`version` is that of the layout; `values` begin with what the bytes themselves tell. `failure`: why the
    values end early, or that bytes are left over behind them.
    """

    name: str
    version: int
    values: dict[str, Any]
    failure: DecodeError | None = None


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


def read_payload(name: str, data: bytes) -> Decoded:
    """The values of a payload as far as its bytes go, without the element of an array that they do not end.
    Raises UnknownApi.
    """
    try:
        return decode_payload(name, data)
    except DecodeError as error:
        failure = error
    read = Decoded(failure.api, failure.version, {}, failure)
    tree, _ = spans.read(layout_read(read), data, 0, len(data))
    return read._replace(values=spans.values(tree, whole_elements=True))


def layout_read(read: Decoded) -> Layout:
    """The layout by which a payload was read: its leading field only, where that is the failure."""
    payload, failure = PAYLOADS[read.name], read.failure
    if failure is None or payload.leads is None or failure.path != payload.leads.name:
        return payload_layout(read.name, read.version)
    return Layout(payload.name, read.version, SIDE, False, (payload.leads,))


def coordinator_record(topic: str, key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of one of COORDINATOR_TOPICS, as far as its bytes go; no value means that what the key names
    is gone. Raises DecodeError where the key is of no known type, or UnknownApi for another topic.
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
    told = read_payload(found.key.name, key)
    return told, None if value is None else read_payload(found.value.name, value)


def control_record(key: bytes | None, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of a control batch, as far as its bytes go; the value of a type that is not known is None."""
    told = read_payload(CONTROL_RECORD_TYPE.name, key or b"")
    kind = CONTROL_TYPES.get(told.values.get("type", -1))
    return told, None if kind is None else read_payload(kind[1].name, value or b"")


def group_payload(protocol_type: str | None, part: Part, data: bytes | None) -> Decoded | None:
    """The metadata of a joining member of a classic group ("metadata"), or its "assignment", as far as its
    bytes go; None where it is empty, or of no protocol type that Kafka's own programs use. Where the protocol
    type is not known, it is a consumer's if its first field is whole.
    """
    read = _read_if(GROUP_PAYLOADS.get((protocol_type or "consumer", part)), data)
    return None if read is None or not (protocol_type or _begins_well(read)) else read


def user_data(assignor: str | None, part: Part, data: bytes | None) -> Decoded | None:
    """The `user_data` of a subscription ("metadata") or an "assignment", by the name of the protocol and as
    far as its bytes go; None where it is empty, or where the assignor is not one of Kafka's own.
    """
    return _read_if(USER_DATA.get((assignor or "", part)), data)


def field_payload(api: str, field: str, data: bytes | None) -> Decoded | None:
    """The payload in a field of FIELD_PAYLOADS, as far as its bytes go; None in other fields, and where its
    first field is not whole: then another program than Kafka's wrote it.
    """
    read = _read_if(FIELD_PAYLOADS.get((api, field)), data)
    return None if read is None or not _begins_well(read) else read


def _read_if(payload: Payload | None, data: bytes | None) -> Decoded | None:
    return read_payload(payload.name, data) if payload and data else None


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
    for version in range(payload.versions.last, payload.versions.first - 1, -1):
        with suppress(DecodeError):
            return _decoded(payload, data, version, whole=True)
    return _decoded(payload, data, payload.versions.last, whole=True)


def _decoded(payload: Payload, data: bytes, version: int, *, whole: bool) -> Decoded:
    values, pos = _read(payload.name, version, data)
    if whole and pos != len(data):
        raise _refused(payload.name, version, "", left_over(len(data) - pos), pos)
    return Decoded(payload.name, version, values)


def _read(name: str, version: int, data: bytes) -> tuple[dict[str, Any], int]:
    with suppress(*compile.UNREADABLE):
        return _reader(name, version)(data, 0, len(data))
    return interpret.read(payload_layout(name, version), data)


def _begins_well(read: Decoded) -> bool:
    """Is the field behind the version whole?"""
    name = PAYLOADS[read.name].fields[1].name
    return read.failure is None or (name in read.values and not read.failure.path.startswith(name))


def _types(records: dict[int, Record]) -> str:
    return ", ".join(map(str, sorted(records)))


def _refused(name: str, version: int, path: str, reason: str, offset: int = 0) -> DecodeError:
    return DecodeError(reason, api=name, version=version, side=SIDE, path=path, offset=offset)

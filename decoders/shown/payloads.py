"""A payload in words and for JSON, with what the members of a classic group wrote into its record."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

from klamm.decoders.payloads import group_payload, payload_oddity, user_data
from klamm.decoders.payloads.body import Decoded
from klamm.decoders.payloads.consumer_offsets import GROUP_METADATA
from klamm.decoders.payloads.tables import Part
from klamm.decoders.shown.words import quoted, sized

OF_MEMBERS: dict[str, Part] = {"subscription": "metadata", "assignment": "assignment"}
CONSUMERS = ("", "consumer", None)  # their protocol types: only their payloads have `user_data`


class Inner(NamedTuple):
    """A payload in a field of another one, and its bytes."""

    decoded: Decoded
    data: bytes


def payload_text(decoded: Decoded, full: bool) -> str:
    """Its name and its values."""
    return f"{decoded.name}({_arguments(_opened(decoded), full)})"


def payload_object(decoded: Decoded, data: bytes | None) -> dict[str, Any]:
    """A payload for JSON, read from `data`. Bytes are in base64; what is in them has the name of their field
    with `_of` behind it.
    """
    of = {"name": decoded.name, "version": decoded.version, "values": _plain(_opened(decoded))}
    reason = payload_oddity(decoded, data or b"")
    return {**of, "reason": reason} if reason else of


def base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _opened(decoded: Decoded) -> dict[str, Any]:
    """The values; what a member of a classic group wrote is an Inner where it is known."""
    values = decoded.values
    if decoded.name != GROUP_METADATA.value.name:
        return values
    kind, protocol = values.get("protocol_type"), values.get("protocol")
    members = [{**member, **_written(member, kind, protocol)} for member in values.get("members", ())]
    return {**values, "members": members}


def _written(member: dict[str, Any], protocol_type: str | None, protocol: str | None) -> dict[str, Inner]:
    found = {}
    for name, part in OF_MEMBERS.items():
        data = member.get(name)
        read = group_payload(protocol_type, part, data)
        if read is None or data is None:
            continue
        added = read.values.get("user_data") if protocol_type in CONSUMERS else None
        more = user_data(protocol, part, added)
        if more is not None:
            read = read._replace(values={**read.values, "user_data": Inner(more, added or b"")})
        found[name] = Inner(read, data)
    return found


def _arguments(values: dict[str, Any], full: bool) -> str:
    return ", ".join(f"{name}={_argument(value, full)}" for name, value in values.items())


def _argument(value: Any, full: bool) -> str:
    if isinstance(value, str):
        return quoted(value, full)
    if isinstance(value, bytes):
        return sized(value, full)
    if isinstance(value, Inner):
        reason = payload_oddity(*value)
        return payload_text(value.decoded, full) + (f" ({reason})" if reason else "")
    if isinstance(value, list):
        return f"[{', '.join(_argument(one, full) for one in value)}]"
    return f"({_arguments(value, full)})" if isinstance(value, dict) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Inner):
        return base64(value.data)
    if isinstance(value, dict):
        inner = {f"{name}_of": payload_object(*one) for name, one in value.items() if isinstance(one, Inner)}
        return {name: _plain(one) for name, one in value.items()} | inner
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return base64(value) if isinstance(value, bytes) else value

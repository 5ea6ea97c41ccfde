"""Exchanges as rows of the table `exchanges`."""

from __future__ import annotations

from typing import Any

import msgspec

from klamm.captures.frames import Framed
from klamm.decoders import API, DecodeError
from klamm.decoders.error_codes import error_name
from klamm.decoders.text import valid_text
from klamm.rules.frame import Frame
from klamm.rules.json_form import to_json
from klamm.rules.subjects import subjects

SIZE = 4  # bytes of the size field, which frames are kept without


def row(one: Framed, bodies: bool = True) -> tuple[Any, ...]:
    """The values of COLUMNS in exchange_schema.py."""
    first, (request, response) = one.exchange.first, one.exchange
    of, api = first.connection, API.get(first.api_key)
    assert of is not None
    unseen = first.api_key < 0 and request is None
    about = subjects(one.request, one.response)
    return (
        of.capture,
        of.number,
        first.exchange if first.exchange >= 0 else None,
        first.time_ns // 1000,
        first.time_ns,
        one.exchange.latency_ns,
        of.cluster,
        of.broker,
        of.client,
        None if first.client_id is None else valid_text(first.client_id),
        None if api is None else api.name,
        None if unseen else first.api_key,
        None if unseen else first.api_version,
        first.correlation_id,
        None if request is None else request.size + SIZE,
        None if response is None else response.size + SIZE,
        request is None or request.awaits,
        response is not None,
        None if request is None else request.fate,
        None if response is None else response.fate,
        [valid_text(name) for name in about.topics],
        [valid_text(name) for name in about.groups],
        [(code, error_name(code), count) for code, count in about.errors.items()],
        _body(one.request) if bodies else None,
        _body(one.response) if bodies else None,
        of.principal,
    )


def _body(frame: Frame | None) -> str | None:
    if frame is None:
        return None
    try:
        values = to_json(frame.api.fields(frame.side), frame.version, frame.values)
    except DecodeError:
        return None
    return msgspec.json.encode(values).decode()

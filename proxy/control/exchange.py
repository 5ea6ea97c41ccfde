"""A request and its response, as listeners are told of them."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

from klamm.client.types import Body, Exchange
from klamm.decoders import DecodeError
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import SECRET, marked
from klamm.rules.frame import Frame
from klamm.rules.json_form import to_json
from klamm.rules.subjects import subjects


class Seen(NamedTuple):
    """What a listener keeps: the fields of the log, and the frames where it looks at bodies."""

    time: float
    said: Mapping[str, Any]
    request: Frame | None = None
    response: Frame | None = None

    @property
    def size(self) -> int:
        """Bytes of the bodies."""
        return sum(len(frame.body) for frame in (self.request, self.response) if frame is not None)


def seen(request: Frame, response: Frame | None) -> Seen:
    """What there is to say of two frames, but for what has to be read from them."""
    own = response is not None and response.arrived_ns == request.arrived_ns
    said = {
        "api": request.api.name,
        "version": request.version,
        "client_id": request.client_id,
        "cluster": request.peer.cluster,
        "broker": request.peer.broker,
        "connection": request.peer.client_address,
        "connection_id": request.peer.number,
        "origin": "klamm" if own else "broker",
        "request_bytes": _size(request),
        "response_bytes": None if response is None else _size(response),
        "latency_ns": None if response is None else response.arrived_ns - request.arrived_ns,
    }
    return Seen(time.time(), said, request, response)


def _size(frame: Frame) -> int:
    """Bytes on the wire, the size field included."""
    return frame.header_bytes + len(frame.body)


def told(one: Seen, number: int = 0, request: Body | None = None, response: Body | None = None) -> Exchange:
    """As the API tells it. Reads the bodies, where they are there, for topics and errors."""
    said = one.said
    latency_ns, more = said.get("latency_ns"), _read(one)
    errors: dict[str, int] = {}
    for _, code in more.get("errors", said.get("errors", ())):
        errors[error_name(code)] = errors.get(error_name(code), 0) + 1
    return Exchange(
        time=round(one.time, 6),
        cluster=said["cluster"],
        broker=said["broker"],
        connection=said["connection"],
        connection_id=said.get("connection_id", 0),
        api=said["api"],
        version=said["version"],
        client_id=said["client_id"],
        origin=said["origin"],
        request_bytes=said["request_bytes"],
        response_bytes=said["response_bytes"],
        latency_ms=None if latency_ns is None else round(latency_ns / 1e6, 3),
        id=number,
        correlation_id=said.get("correlation_id"),
        topics=more.get("topics", said.get("topics", {})),
        group=more.get("group", said.get("group")),
        errors=errors,
        request=request,
        response=response,
    )


def _read(one: Seen) -> dict[str, Any]:
    """Topics, group and errors, in the words of the log."""
    if one.request is None:
        return {}
    about = subjects(one.request, one.response)
    errors = [(None, code) for code, count in about.errors.items() for _ in range(count)]
    return {"topics": about.topics, "errors": errors, "group": ",".join(about.groups) or None}


def body(frame: Frame, raw: bool) -> Body:
    """One side. Secrets are never told; records only as they are on the wire, to those who ask for `raw`."""
    size = len(frame.body)
    fields = frame.api.fields(frame.side)
    if raw:
        if any(marked(fields, frame.version, frozenset({SECRET}))):
            return Body(size, reason=f"a {frame.api.name} {frame.side} carries secrets")
        return Body(size, raw=b64encode(frame.body).decode())
    try:
        values = to_json(fields, frame.version, frame.values)
    except DecodeError as problem:
        return Body(size, reason=str(problem))
    return Body(size, values=values)

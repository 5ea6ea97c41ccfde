"""A captured exchange in the form of the admin API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from klamm.captures.captured import Captured, api_name
from klamm.captures.frames import Framed
from klamm.client.types import Body, Exchange, Fate
from klamm.dashboards.own_changes import is_own
from klamm.proxy.control.exchange import Seen, exchange_of
from klamm.rules.frame import Frame

SIZE = 4  # bytes of the size field, which frames are kept without


Read = Callable[[Frame, Captured], Body]  # makes a body from a frame and its row


def as_exchange(one: Framed, read: Read | None = None) -> Exchange:
    """An exchange in the form of the admin API, with its bodies if there is a function that reads them.
    Without its request, a response has 0 `request_bytes`; then the version may not be known, and is -1.
    """
    first, (request, response) = one.exchange.first, one.exchange
    of, own = first.connection, _is_own(one)
    changed = own is False
    fields: Mapping[str, Any] = {
        "api": api_name(first.api_key, first.side),
        "version": first.api_version,
        "client_id": first.client_id,
        "cluster": of.cluster if of else "",
        "broker": of.broker if of else "",
        "connection": of.client if of else "",
        "connection_id": of.number if of else 0,
        "principal": of.principal if of else None,
        "origin": "klamm" if changed or (response is not None and response.fate == "made") else "broker",
        "request_bytes": 0 if request is None else request.size + SIZE,
        "response_bytes": None if response is None else response.size + SIZE,
        "latency_ns": one.exchange.latency_ns,
        "correlation_id": first.correlation_id,
        "changed": changed,
        "fates": _fates(one.exchange, own),
    }
    seen = Seen(one.exchange.last.time_ns / 1e9, fields, one.request, one.response)
    if read is None:
        return exchange_of(seen)
    halves = (request, one.request), (response, one.response)
    return exchange_of(seen, 0, *(_body(row, frame, read) for row, frame in halves))


def _is_own(one: Framed) -> bool | None:
    """Whether klamm changed the answer as it does without a rule; None where it did not, or where this
    cannot be seen.
    """
    row, frame = one.exchange.response, one.response
    return None if row is None or row.fate != "rewritten" or frame is None else is_own(frame)


def _fates(rows: Iterable[Captured | None], own: bool | None) -> dict[str, Fate]:
    """`fates` of an Exchange. A change that klamm makes without a rule is none (`own`)."""
    fates: dict[str, Fate] = {}
    for row in rows:
        if row is None or row.side is None or row.fate == "passed":
            continue
        if not (own and row.side == "response"):
            fates[row.side] = row.fate
    return fates


def as_object(one: Framed, read: Read | None = None) -> dict[str, Any]:
    """The same for programs, with klamm's changes, and whether the request is missing. What only the request
    would tell is None.
    """
    found: dict[str, Any] = to_builtins(as_exchange(one, read))
    if one.exchange.request is None:
        found["request_missing"], found["request_bytes"] = True, None
        if found["version"] < 0:
            found["api"] = found["version"] = None
    return found


def _body(row: Captured | None, frame: Frame | None, read: Read) -> Body | None:
    if row is None:
        return None
    if frame is None:
        return Body(row.size, reason="only its size was kept" if row.frame is None else "cannot be read")
    return replace(read(frame, row), withheld=row.fate == "withheld")

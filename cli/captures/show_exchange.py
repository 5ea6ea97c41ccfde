"""One captured exchange for people: its line, as in `klamm tail`, and below it its fields or its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from klamm.captures.captured import Blanks, Captured
from klamm.captures.frames import Framed, Framing
from klamm.captures.values import changes
from klamm.cli.captures.show_records import Show, as_lines, describe
from klamm.cli.decode.frames import Conversation, Piece, Told
from klamm.cli.decode.records import Opened, Wrong
from klamm.cli.decode.tree import Shown, lines
from klamm.cli.live.tail import text as as_in_tail
from klamm.client.types import Body, Exchange
from klamm.decoders import API
from klamm.decoders.spans import Span
from klamm.proxy.control.exchange import Seen, body, told
from klamm.proxy.log.lines import DIM, YELLOW, printable
from klamm.rules.frame import Frame

SIZE = 4  # bytes of the size field, which frames are kept without
FATES = {"rewritten": "rewritten", "withheld": "withheld by klamm", "made": "made by klamm"}


def as_text(one: Framed, colour: bool, bodies: str) -> Iterator[str]:
    """Its line; below it fields for `bodies` "values", fields beside bytes for "raw"."""
    first, *below = as_in_tail(as_exchange(one, bodies, as_lines), colour, False)
    notes = (f"\x1b[{style}m{words}\x1b[0m" if colour else words for words, style in _notes(one))
    yield " ".join([first, *notes])
    if bodies == "raw":
        yield from _marked(one)
    elif bodies == "values":
        yield from below
        yield from _changed(one)


def as_object(one: Framed, bodies: str, show: Show | None = None) -> dict[str, Any]:
    """The same for programs, as `klamm tail --json` has it, and what klamm did."""
    found: dict[str, Any] = msgspec.to_builtins(as_exchange(one, bodies, show))
    fates = {row.side: row.fate for row in one.exchange if row is not None and row.fate != "passed"}
    if fates:
        found["fates"] = fates
    if one.exchange.request is None:
        found["request_missing"] = True
    return found


def as_exchange(one: Framed, bodies: str = "none", show: Show | None = None) -> Exchange:
    """As the admin API tells it, with its bodies unless they are "none", and with `show`, which
    makes of records what is told of them, what their batches are.
    """
    first, (request, response) = one.exchange.first, one.exchange
    api, of = API.get(first.api_key), first.connection
    said: Mapping[str, Any] = {
        "api": f"API key {first.api_key}" if api is None else api.name,
        "version": first.api_version,
        "client_id": first.client_id,
        "cluster": of.cluster if of else "",
        "broker": of.broker if of else "",
        "connection": of.client if of else "",
        "connection_id": of.number if of else 0,
        "origin": "klamm" if response is not None and response.fate == "made" else "broker",
        "request_bytes": 0 if request is None else request.size + SIZE,
        "response_bytes": None if response is None else response.size + SIZE,
        "latency_ns": one.exchange.latency_ns,
        "correlation_id": first.correlation_id,
    }
    seen = Seen(one.exchange.last.time_ns / 1e9, said, one.request, one.response)
    if bodies == "none":
        return told(seen)
    raw = bodies == "raw"
    halves = (request, one.request), (response, one.response)
    return told(seen, 0, *(_body(row, frame, raw, show) for row, frame in halves))


def _body(row: Captured | None, frame: Frame | None, raw: bool, show: Show | None) -> Body | None:
    if row is None:
        return None
    if frame is None:
        return Body(row.size, reason="only its size was kept" if row.frame is None else "cannot be read")
    found = body(frame, raw)
    if found.values is not None and show is not None:
        describe(frame.api.fields(frame.side), found.values, frame.values, bool(row.blanks), show)
    return found


def _notes(one: Framed) -> Iterator[tuple[str, str]]:
    """What is to be said of it besides, with a style."""
    request, response = one.exchange
    if request is None:
        yield "its request is not in the capture", YELLOW
    elif request.fate != "passed" and not (request.fate == "withheld" and _made(response)):
        yield f"request {FATES[request.fate]}", YELLOW
    if response is None and request is not None and request.awaits:
        yield "no answer", YELLOW
    elif response is not None and response.fate in ("rewritten", "withheld"):
        yield f"response {FATES[response.fate]}", DIM if response.fate == "rewritten" else YELLOW


def _made(response: Captured | None) -> bool:
    """Did klamm answer in the broker's place? Its line implies that the broker got no request."""
    return response is not None and response.fate == "made"


def _changed(one: Framed) -> Iterator[str]:
    """What klamm sent on differs in these fields."""
    for row, frame in zip(one.exchange, (one.request, one.response), strict=True):
        if row is None or frame is None or row.forwarded is None:
            continue
        sent = Framing().frame(row._replace(frame=row.forwarded), frame.request)
        yield f"  {row.side} as klamm sent it on, {len(row.forwarded) + SIZE} bytes"
        for path, before, after in changes(_values(frame), _values(sent)):
            yield f"    {path}: {_said(before)} -> {_said(after)}"


def _values(frame: Frame | None) -> Any:
    return None if frame is None else body(frame, False).values


def _said(value: Any) -> str:
    return "nothing" if value is None else printable(str(value))


def _marked(one: Framed) -> Iterator[str]:
    """The frames as `klamm decode` shows them, and what was sent on in their place."""
    conversation = Conversation(Told())
    for row in one.exchange:
        if row is None:
            continue
        if row.frame is None:
            yield f"  {row.side}, {row.size + SIZE} bytes: only its size was kept"
            continue
        yield f"  {row.side}"
        yield from _tree(row, row.frame, row.blanks, conversation)
        if row.forwarded is not None:
            yield f"  {row.side} as klamm sent it on"
            yield from _tree(row, row.forwarded, row.forwarded_blanks, Conversation(Told()))


def _tree(row: Captured, frame: bytes, blanks: Blanks, conversation: Conversation) -> Iterator[str]:
    data = len(frame).to_bytes(SIZE, "big") + frame
    piece = Piece(data, SIZE, len(data), sized=True)
    api, message = API.get(row.api_key), None
    if api is not None and row.api_version in api.versions:
        message = conversation.read(piece) or Conversation(Told(api, row.api_version, row.side)).read(piece)
    if message is None or message.api is not api:
        yield f"    API key {row.api_key} v{row.api_version} is not known to klamm: {frame[:64].hex(' ')}"
        return
    _hide(message.body, [(SIZE + at, SIZE + at + size) for at, size in blanks])
    for line in lines(message, Shown(every_element=True)):
        yield "  " + "".join(words for words, _ in line).rstrip()


def _hide(span: Span, blanks: list[tuple[int, int]]) -> None:
    """Records whose content is blank are not shown as damaged ones."""
    for part in span.parts:
        _hide(part, blanks)
        if isinstance(part.value, Opened) and any(
            part.start < end and start < part.end for start, end in blanks
        ):
            part.parts = [inner for inner in part.parts if inner.name not in ("damaged", "records")]
            part.value = Wrong(f"batch of {part.value.batch.record_count} records, blank")

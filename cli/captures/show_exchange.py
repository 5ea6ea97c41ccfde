"""One captured exchange for people: its line, as in `klamm tail`, and below it its fields or its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from klamm.captures.captured import WITHOUT_REQUEST, Blanks, Captured
from klamm.captures.frames import Framed
from klamm.captures.values import changes
from klamm.cli.captures.show_records import Show, as_lines, describe
from klamm.cli.decode.frames import FrameReader, Hints, Piece
from klamm.cli.decode.tree import View, lines
from klamm.cli.live.tail import text as as_in_tail
from klamm.client.types import Body, Exchange
from klamm.dashboards import captured
from klamm.dashboards.captured import SIZE, Read, as_exchange
from klamm.decoders import API
from klamm.decoders.shown.records import Opened, Wrong
from klamm.decoders.spans import Span
from klamm.decoders.text import printable
from klamm.proxy.control.exchange import body
from klamm.proxy.log.lines import DIM, YELLOW
from klamm.rules.frame import Frame
from klamm.rules.plan import API_VERSIONS


def as_text(one: Framed, colour: bool, bodies: str) -> Iterator[str]:
    """Its line; below it fields for `bodies` "values", fields beside bytes for "raw"."""
    exchange = as_exchange(one, reader(bodies, as_lines))
    first, *below = as_in_tail(exchange, colour, False)
    notes = (f"\x1b[{style}m{words}\x1b[0m" if colour else words for words, style in _notes(one, exchange))
    yield " ".join([first, *notes])
    if bodies == "raw":
        yield from _marked(one)
    elif bodies == "values":
        yield from below
        yield from _changed(one)


def as_object(one: Framed, bodies: str, show: Show | None = None) -> dict[str, Any]:
    """The same for programs, as `klamm tail --json` has it, and what klamm did."""
    return captured.as_object(one, reader(bodies, show))


def reader(bodies: str, show: Show | None) -> Read | None:
    """Reads bodies: None for "none"; `show` turns records into a description of their batches."""
    if bodies == "none":
        return None

    def read(frame: Frame, row: Captured) -> Body:
        found = body(frame, bodies == "raw")
        if found.values is not None and show is not None:
            fields = frame.api.fields(frame.side)
            describe(fields, found.values, frame.values, bool(row.blanks), show, frame.names)
        return found

    return read


def _notes(one: Framed, exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Remarks about it, with a style."""
    request, response = one.exchange
    if request is None and one.exchange.first.api_key >= 0:
        yield WITHOUT_REQUEST, YELLOW
    if response is None and request is not None and request.awaits:
        yield "no answer", YELLOW
    elif response is not None and response.fate == "rewritten" and not exchange.changed:
        yield _unruled(exchange), DIM


def _unruled(exchange: Exchange) -> str:
    """Names a change of the answer that no rule made, as far as the bytes tell that."""
    if "response" in exchange.fates:
        return "response rewritten"
    return "versions limited" if exchange.api == API[API_VERSIONS].name else "addresses replaced"


def _changed(one: Framed) -> Iterator[str]:
    """The fields in which the frame that klamm sent differs."""
    for row, frame in zip(one.exchange, (one.request, one.response), strict=True):
        if row is None or frame is None or row.forwarded is None:
            continue
        yield f"  {row.side} as klamm sent it on, {len(row.forwarded) + SIZE} bytes"
        for path, before, after in changes(_values(frame), _values(frame.sent)):
            yield f"    {path}: {_text(before)} -> {_text(after)}"


def _values(frame: Frame | None) -> Any:
    return None if frame is None else body(frame, False).values


def _text(value: Any) -> str:
    return "nothing" if value is None else printable(str(value))


def _marked(one: Framed) -> Iterator[str]:
    """The frames as `klamm decode` shows them, and those that klamm sent in their place."""
    reader = FrameReader(Hints())
    for row, frame in zip(one.exchange, (one.request, one.response), strict=True):
        if row is None:
            continue
        if row.frame is None:
            yield f"  {row.side}, {row.size + SIZE} bytes: only its size was kept"
            continue
        if frame is not None:
            reader.names = frame.names
        yield f"  {row.side}"
        yield from _tree(row, row.frame, row.blanks, reader)
        if row.forwarded is not None:
            yield f"  {row.side} as klamm sent it on"
            yield from _tree(row, row.forwarded, row.forwarded_blanks, FrameReader(Hints(), reader.names))


def _tree(row: Captured, frame: bytes, blanks: Blanks, reader: FrameReader) -> Iterator[str]:
    data = len(frame).to_bytes(SIZE, "big") + frame
    piece = Piece(data, SIZE, len(data), sized=True)
    api, message = API.get(row.api_key), None
    if api is not None and row.api_version in api.versions:
        hints = Hints(api, row.api_version, row.side)
        message = reader.read(piece) or FrameReader(hints, reader.names).read(piece)
    if message is None or message.api is not api:
        yield f"    API key {row.api_key} v{row.api_version} is not known to klamm: {frame[:64].hex(' ')}"
        return
    _hide(message.body, [(SIZE + at, SIZE + at + size) for at, size in blanks])
    for line in lines(message, View(every_element=True)):
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

"""A message as lines: offset, bytes, and the tree of its fields. Each line is pieces of text with a style."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from klamm.cli.decode.frames import Message
from klamm.decoders import layout
from klamm.decoders.error_codes import error_name
from klamm.decoders.failures import DecodeError
from klamm.decoders.schema import ERROR, SECRET, Field, marked
from klamm.decoders.shown.records import Entry, Opened, Wrong, described
from klamm.decoders.shown.words import NULL, hidden, meaning, scalar, sized
from klamm.decoders.spans import TAGGED, Span

Line = list[tuple[str, str]]

SHOWN = 10  # elements of an array of structs
LISTED = 100  # characters of an array of numbers or texts
ROW = 8  # bytes beside a field
AROUND = 16  # bytes in a row about a failure

PLAIN, DIM, NAME, TEXT, SPECIAL = "", "dim", "cyan", "green", "magenta"
TITLE, GOOD, BAD = "bold", "green", "bold red"


class View(NamedTuple):
    """The options by which the user chooses what is shown."""

    full: bool = False
    secrets: bool = False
    every_element: bool = False  # of arrays; `full` has them too


def lines(message: Message, view: View) -> Iterator[Line]:
    """Size, header and body; where reading failed, the bytes around it."""
    piece = message.piece
    hidden = [] if view.secrets else secrets(message)
    tree = _Tree(piece.data, piece.end, view, message.api.name, message.failure, hidden)
    if piece.sized:
        size = int.from_bytes(piece.data[piece.start - 4 : piece.start], "big")
        missing = f"  {piece.missing} bytes are missing" if piece.missing else ""
        line: Line = [("size", NAME), (": ", DIM), (str(size), PLAIN), (missing, BAD)]
        yield tree.row(piece.first, piece.start, 0, line)
    yield tree.row(message.header.start, message.header.start, 0, [("header", NAME)])
    yield from tree.parts(message.header, 1)
    if message.body.parts or message.failure is None:
        empty: Line = [] if message.body.parts else [(": ", DIM), ("empty", DIM)]
        yield tree.row(message.body_start, message.body_start, 0, [("body", NAME), *empty])
        yield from tree.parts(message.body, 1)
    if message.failure is not None:
        yield from tree.failed(message, message.failure)


def payload_lines(tree: Span, data: bytes, view: View) -> Iterator[Line]:
    """The fields of a payload that is all of `data`; the reason why it ends early is among them."""
    return _Tree(data, len(data), view).parts(tree, 0)


class _Tree:
    """`api` and `failure`: of the frame whose bytes these are; `hidden`: places that are not shown."""

    def __init__(
        self,
        data: bytes,
        end: int,
        view: View,
        api: str = "",
        failure: DecodeError | None = None,
        hidden: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.data, self.end, self.view = data, end, view
        self.api, self.failure, self.hidden = api, failure, hidden
        self.digits = max(4, len(f"{self.end:x}"))

    def row(self, start: int, end: int, depth: int, line: Line) -> Line:
        if start < 0:
            return [(" " * (self.digits + 3 * ROW + 8), DIM), ("  " * depth, PLAIN), *line]
        raw = self.hex(start, min(end, start + ROW))
        more = " .." if end - start > ROW else "   "
        beside = f"  {start:0{self.digits}x}  {raw:<{3 * ROW - 1}}{more}  "
        return [(beside, DIM), ("  " * depth, PLAIN), *line]

    def hex(self, start: int, end: int) -> str:
        covered = [(first, last) for first, last in self.hidden if first < end and start < last]
        if not covered:
            return self.data[start:end].hex(" ")
        return " ".join(
            "**" if any(first <= pos < last for first, last in covered) else f"{self.data[pos]:02x}"
            for pos in range(start, end)
        )

    def parts(self, span: Span, depth: int) -> Iterator[Line]:
        every = self.view.full or self.view.every_element or not _is_element(span.parts[:1])
        most = len(span.parts) if every else SHOWN
        kept, left = span.parts[:most], span.parts[most:]
        if left and left[-1].end < 0:  # where reading failed is never cut off
            left, last = left[:-1], left[-1:]
        else:
            last = []
        for part in kept:
            yield from self.part(part, depth)
        if left:
            line: Line = [(f"... {len(left)} more", DIM)]
            errors = Counter(code for part in left for code in _errors(part))
            if errors:
                named = ", ".join(f"{count} x {error_name(code)}" for code, count in errors.most_common())
                line.append((f", with errors: {named}", BAD))
            yield self.row(left[0].start, left[0].start, depth, line)
        for part in last:
            yield from self.part(part, depth)

    def part(self, span: Span, depth: int) -> Iterator[Line]:
        if span.name == TAGGED and not span.parts and span.end >= 0 and not self.view.full:
            return
        secret = span.field is not None and span.field.mark == SECRET and not self.view.secrets
        if span.end < 0 and not span.parts and not span.value:
            yield self.row(span.start, self.end, depth, [(span.name, NAME), *self.stopped(span)])
            return
        line = [(hidden(span.value), SPECIAL)] if secret else self.value_line(span)
        colon = [(": ", DIM)] if line else []
        if span.end < 0 and not span.parts:
            line += self.stopped(span)
        end = span.own_end if span.own_end >= 0 else self.end
        yield self.row(span.start, end, depth, [(span.name, _style(span)), *colon, *line])
        if self.view.full:
            for start in range(span.start + ROW, end, ROW):
                yield self.row(start, min(end, start + ROW), depth, [])
        if not secret:
            yield from self.parts(span, depth + 1)

    def stopped(self, span: Span) -> Line:
        return [("  <- " + self.failure.reason, BAD)] if self.failure is not None else []

    def value_line(self, span: Span) -> Line:
        f, value, full = span.field, span.value, self.view.full
        if f is None:
            if span.name == TAGGED:
                return [(str(len(span.parts)), PLAIN)]
            if isinstance(value, Wrong):
                return [(value, BAD)]
            if isinstance(value, Entry):
                return [(described(value, full), PLAIN)]
            if isinstance(value, Opened):
                return [(str(value), PLAIN)]
            return [(sized(value, full), PLAIN)] if isinstance(value, bytes) else []
        if f.kind == "struct":
            return [(NULL, DIM)] if value is None and span.end >= 0 else []
        if f.kind == "array":
            return self.array(span, f)
        return self.scalar(value, f)

    def scalar(self, value: object, f: Field) -> Line:
        text = scalar(value, f.kind, self.view.full)
        if value is None:
            return [(text, DIM)]
        if isinstance(value, int) and not isinstance(value, bool):
            explanation = meaning(f.name, value, self.api, f.mark)
            if f.mark == ERROR:
                return [(f"{text} {explanation}", BAD if value else GOOD)]
            return [(text, PLAIN), (f" {explanation}" if explanation else "", SPECIAL)]
        return [(text, TEXT if f.kind == "string" else PLAIN)]

    def array(self, span: Span, f: Field) -> Line:
        if span.end < 0 and span.parts:
            return []
        if span.value is None:
            return [(NULL, DIM)]
        if not span.value:
            return [("empty", DIM)]
        if isinstance(f.of, str):
            full = self.view.full
            return [(_listed([scalar(value, f.of, full) for value in span.value], full), PLAIN)]
        return [(f"{len(span.value)} element{'' if len(span.value) == 1 else 's'}", PLAIN)]

    def failed(self, message: Message, failure: DecodeError) -> Iterator[Line]:
        in_header = failure.api != message.api.name
        first = message.piece.start if in_header else message.body_start
        at = first + failure.offset
        part = "header" if in_header else "body"
        where = f"{failure.path or part} at byte {at} (0x{at:x}), {failure.offset} into the {part}"
        yield []
        yield [(f"  {message} cannot be read: {where}: {failure.reason}", BAD)]
        row = at - at % AROUND
        for start in range(max(message.piece.first, row - AROUND), min(self.end, row + 2 * AROUND), AROUND):
            start -= start % AROUND
            begin = max(start, message.piece.first)
            gap = "   " * (begin - start)
            view = self.hex(begin, min(self.end, start + AROUND))
            yield [(f"  {start:0{self.digits}x}  ", DIM), (gap + view, PLAIN)]
            if start == row:
                yield [(" " * (self.digits + 4 + 3 * (at - row)) + "^^", BAD)]
        if at == self.end and at == row:
            yield [(f"  {row:0{self.digits}x}  ", DIM), ("^^ the end", BAD)]


def _style(span: Span) -> str:
    if span.field is not None or span.name == TAGGED:
        return NAME
    return DIM if span.name.startswith("[") else TITLE


def _is_element(parts: list[Span]) -> bool:
    return bool(parts) and parts[0].field is None and parts[0].name.startswith("[")


def _errors(span: Span) -> Iterator[int]:
    if span.field is not None and span.field.mark == ERROR and span.value:
        yield span.value
    for part in span.parts:
        yield from _errors(part)


def secrets(message: Message) -> list[tuple[int, int]]:
    """The positions of secrets: from, to. Behind a failure any byte may be one, if the layout has any."""
    found = list(_secrets(message.body, message.piece.end))
    fields = layout(message.api.key, message.version, message.side).fields
    if message.failure is not None and marked(fields, message.version, frozenset({SECRET})):
        found.append((message.body_start + message.failure.offset, message.piece.end))
    return found


def _secrets(span: Span, end: int) -> Iterator[tuple[int, int]]:
    """A secret that was not read to its end may go on to the end."""
    if span.field is not None and span.field.mark == SECRET:
        yield span.start, span.end if span.end >= 0 else end
    for part in span.parts:
        yield from _secrets(part, end)


def _listed(texts: list[str], full: bool) -> str:
    kept, room = 0, LISTED
    while kept < len(texts) and (full or room - len(texts[kept]) - 2 >= 0 or kept == 0):
        room -= len(texts[kept]) + 2
        kept += 1
    more = f", ... {len(texts) - kept} more" if kept < len(texts) else ""
    return f"[{', '.join(texts[:kept])}{more}]"

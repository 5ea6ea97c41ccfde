"""Exchanges of a capture as a file for other tools: those that the list shows, and more than it can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from klamm.captures.captured import Captured
from klamm.captures.ended import Ended
from klamm.captures.exports.cutting import cut, origin_of
from klamm.captures.exports.exporting import Selection
from klamm.captures.exports.packet_file import PacketFile
from klamm.captures.frames import Framed
from klamm.captures.storage.reading import Segment, read
from klamm.captures.storage.writing import write_file
from klamm.client.types import Body
from klamm.dashboards.captured import as_object
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.noise import Hidden
from klamm.dashboards.web.source import Wish
from klamm.proxy.control.exchange import body
from klamm.proxy.metrics.snapshot import product_version
from klamm.rules.expressions import Expression, parse
from klamm.rules.expressions.work import OFFLINE
from klamm.rules.frame import Frame

MOST_BYTES = 512 << 20
Form = Literal["jsonl", "pcapng", "arrow"]
Tell = Callable[[int, int], None]  # exchanges and bytes so far; what it raises ends the export


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """The form of the file, and its exchanges as a page's list has them (source.Wish)."""

    form: Form
    where: str | None = None
    since: float | None = None
    until: float | None = None
    hide: tuple[str, ...] = ()


class Made(Struct, frozen=True):
    """`notes`: parts of the capture that could not be read, and more to know about the file."""

    exchanges: int
    bytes: int
    notes: list[str]


class TooLarge(Exception):
    """The file would have more than MOST_BYTES."""

    def __init__(self) -> None:
        super().__init__(
            f"the file would have more than {MOST_BYTES >> 20} MiB: choose fewer exchanges by a filter or a "
            "time, or use klamm export or klamm show -o, which have no such limit"
        )


def export(source: Captures, wanted: Wanted, path: Path, tell: Tell) -> Made:
    """Writes the file. Not for the loop: it takes as long as reading the capture. Raises ExpressionError,
    TooLarge, OSError, and what `tell` raises.
    """
    chosen = _Chosen(source, wanted, tell)
    notes = WRITERS[wanted.form](chosen, path)
    unjudged = 0 if chosen.where is None else chosen.where.unjudged
    if unjudged:
        notes.append(f"{unjudged:,} frames left out: the filter takes too much work on them")
    return Made(chosen.exchanges, path.stat().st_size, [*chosen.ended.problems, *notes])


class _Chosen:
    """The exchanges of the file, counted as they are read; and the rows of a part of the capture."""

    def __init__(self, source: Captures, wanted: Wanted, tell: Tell) -> None:
        wish = Wish(wanted.where, since=wanted.since, until=wanted.until, hide=wanted.hide)
        self.where: Expression | None = None if wanted.where is None else parse(wanted.where, OFFLINE)
        self.exchanges = self.bytes = 0
        self.ended: Ended = source.ended(wish, self.where)
        self._source, self._wish, self._tell = source, wish, tell
        self._first_ns: int | None = None
        self._last_ns = 0

    def __iter__(self) -> Iterator[Framed]:
        hidden = Hidden(self._wish.hide)
        for one in self._source.chosen(self.ended, self._wish, self.where):
            if hidden.hides(one.request, one.response):
                continue
            self.exchanges += 1
            first, last = one.exchange.first.time_ns, one.exchange.last.time_ns
            self._first_ns = first if self._first_ns is None else min(self._first_ns, first)
            self._last_ns = max(self._last_ns, last)
            self._tell(self.exchanges, self.bytes)
            yield one

    def rows(self) -> Iterator[Captured]:
        """Of the exchanges and their connections, from the first of them to the last."""
        selection = Selection(self)
        if self._first_ns is None:
            return
        since_ns, until_ns = (None, None) if self._is_all() else (self._first_ns, self._last_ns + 1)
        yield from cut(read(self._source.paths, since_ns=since_ns, until_ns=until_ns), selection)

    def grow(self, size: int) -> None:
        """The file has so many bytes more. Raises TooLarge."""
        self.bytes += size
        self._tell(self.exchanges, self.bytes)
        if self.bytes > MOST_BYTES:
            raise TooLarge

    def segments(self) -> list[Segment]:
        return read(self._source.paths).segments()

    def _is_all(self) -> bool:
        return self._wish == Wish()


def _json_lines(chosen: _Chosen, path: Path) -> list[str]:
    with open(path, "xb") as file:
        for one in chosen:
            _put(msgspec.json.encode(as_object(one, _values)) + b"\n", file, chosen)
    return []


def _packets(chosen: _Chosen, path: Path) -> list[str]:
    packets = PacketFile(f"klamm {product_version()}")
    with open(path, "xb") as file:
        for block in packets.blocks(chosen.rows()):
            _put(block, file, chosen)
    return [hint] if (hint := packets.hint()) else []


def _segment(chosen: _Chosen, path: Path) -> list[str]:
    def counted() -> Iterator[Captured]:
        for row in chosen.rows():
            chosen.grow(len(row.frame or b"") + len(row.forwarded or b""))
            yield row

    write_file(path, counted(), origin_of(chosen.segments()))
    return []


WRITERS: Mapping[Form, Callable[[_Chosen, Path], list[str]]] = {
    "jsonl": _json_lines, "pcapng": _packets, "arrow": _segment,
}  # fmt: skip


def _put(data: bytes, file: IO[bytes], chosen: _Chosen) -> None:
    file.write(data)
    chosen.grow(len(data))


def _values(frame: Frame, _: Captured) -> Body:
    return body(frame, raw=False)

"""Errors in the responses of a capture, as clients were told them: with those that rules put there.

Most responses repeat one before them but for offsets and times, and are not decoded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.captures.captured import Captured
from klamm.captures.frames import Framing, columns
from klamm.captures.streams.cutting import filled
from klamm.decoders import API, layout
from klamm.decoders.compile import UNREADABLE, Locate, Path, locate
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, all_fields, marked
from klamm.rules.frame import Frame
from klamm.rules.plan import flat

if TYPE_CHECKING:
    import pyarrow as pa

# Beside the columns of Summing.
WANTED = ("kind", "side", "api_key", "api_version", "frame", "blanks", "forwarded", "forwarded_blanks")
KINDS, MEMOS = 4096, 4  # of responses whose memos are kept: by API, version and size; and memos of each
REPEATS = 2048  # bytes; a longer response seldom comes again
CORRELATION_ID = 4  # bytes at the beginning of a response


Kind = tuple[int, int]  # API key and version


class Memo(NamedTuple):
    """Bytes that responses of one length share, and the errors that they have then."""

    unpack: Any
    constants: tuple[Any, ...]
    errors: Counter[str]


class ErrorCounts:
    """`errors`: by API key and version, then by name. `unread`: responses that klamm cannot read."""

    def __init__(self) -> None:
        self.errors: defaultdict[Kind, Counter[str]] = defaultdict(Counter)
        self.unread = 0
        self._memos: defaultdict[tuple[Kind, int], list[Memo]] = defaultdict(list)
        self._framing = Framing()

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows with the columns WANTED."""
        for _, kind, errors in self.found(batch):
            self.errors[kind].update(errors)

    def found(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Kind, Counter[str]]]:
        """The responses with errors, each by the place of its row. Rows have the columns WANTED."""
        import pyarrow.compute as pc

        is_response = pc.and_(pc.equal(batch["kind"], "frame"), pc.equal(batch["side"], "response"))
        places = pc.indices_nonzero(pc.and_(is_response, pc.is_valid(batch["frame"])))
        changed = pc.is_valid(batch["forwarded"].take(places))
        yield from self._found(batch, places.filter(pc.invert(changed)), "frame", "blanks")
        yield from self._found(batch, places.filter(changed), "forwarded", "forwarded_blanks")

    def _found(
        self, batch: pa.RecordBatch, places: pa.Array, frames: str, blanks: str
    ) -> Iterator[tuple[int, Kind, Counter[str]]]:
        """The responses with errors in the rows `places`; their bytes are in the column `frames`."""
        import pyarrow.compute as pc

        if not len(places):
            return
        blank = pc.list_value_length(batch[blanks].take(places)).to_pylist()
        kinds = zip(
            *(batch[name].take(places).to_pylist() for name in ("api_key", "api_version")), strict=True
        )
        _, ends, data = batch[frames].buffers()
        offsets = memoryview(ends).cast("B").cast("i")[batch[frames].offset :]
        memos = self._memos
        for place, kind, blanked in zip(places.to_pylist(), kinds, blank, strict=True):
            start, size = offsets[place], offsets[place + 1] - offsets[place]
            for memo in () if blanked else memos.get((kind, size), ()):
                if memo.unpack(data, start) == memo.constants:
                    errors = memo.errors
                    break
            else:
                hidden = batch[blanks][place].as_py() if blanked else []
                errors = self._read(
                    kind, bytes(data[start : start + size]), [(one["offset"], one["size"]) for one in hidden]
                )
            if errors:
                yield place, kind, errors

    def _read(self, kind: Kind, data: bytes, blanks: list[tuple[int, int]]) -> Counter[str]:
        try:
            whole = filled(data, tuple(blanks))
        except ValueError:
            self.unread += 1
            return Counter()
        row = Captured(0, "frame", None, "response", *kind, size=len(whole), frame=whole)
        frame = self._framing.frame(row)
        if frame is None:
            self.unread += 1
            return Counter()
        found = Counter(
            error_name(code)
            for column in columns(frame, _error_paths(frame.api.key, frame.version))
            for code in flat(column)
            if code
        )
        if not blanks and len(data) <= REPEATS:
            self._remember(kind, data, frame, found)
        return found

    def _remember(self, kind: Kind, data: bytes, frame: Frame, errors: Counter[str]) -> None:
        """Keeps the bytes that are equal in all responses with these errors: all but 64-bit numbers and the
        correlation id.
        """
        start = len(data) - len(frame.body)
        try:
            spans = _changing(frame.api.key, frame.version)(frame.body, 0, len(frame.body))
        except UNREADABLE:
            return
        form, pos = f">{CORRELATION_ID}x", CORRELATION_ID
        for _, first, last, _ in spans:
            form += f"{start + first - pos}s{last - first}x"
            pos = start + last
        unpack = Struct(f"{form}{len(data) - pos}s").unpack_from
        if len(self._memos) >= KINDS:
            self._memos.clear()
        known = self._memos[kind, len(data)]
        if len(known) >= MEMOS:
            known.pop()
        known.insert(0, Memo(unpack, unpack(data), errors))


@cache
def _error_paths(key: int, version: int) -> tuple[Path, ...]:
    return tuple(marked(API[key].response, version, frozenset({ERROR})))


@cache
def _changing(key: int, version: int) -> Locate:
    """64-bit numbers: offsets and times. They say nothing of the layout."""
    fields = API[key].response
    tagged = {path for path, f in all_fields(fields, version) if f.tag is not None}
    return locate(layout(key, version, "response"), tuple(_numbers(key, version, tagged)))


def _numbers(key: int, version: int, tagged: set[Path]) -> Iterator[Path]:
    for path, f in all_fields(API[key].response, version):
        if f.kind == "int64" and not any(path[:size] in tagged for size in range(1, len(path) + 1)):
            yield path

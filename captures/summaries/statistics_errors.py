"""Errors in the responses of a capture, as clients were told them: with those that rules put there.

Most responses repeat one before them but for offsets and times, and are not decoded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.captures.captured import Blanks
from klamm.captures.frames import RESPONSE_BYTES, body_of, columns
from klamm.captures.storage.arrow.decoding import column_values
from klamm.captures.streams.cutting import filled
from klamm.decoders import API, layout
from klamm.decoders.compile import UNREADABLE, Locate, Path, locate
from klamm.decoders.error_codes import error_name
from klamm.decoders.headers import answered_version
from klamm.decoders.schema import ERROR, all_fields, marked
from klamm.rules.plan import flat

if TYPE_CHECKING:
    import pyarrow as pa

# Beside the columns of Summing.
WANTED = ("kind", "side", "api_key", "api_version", "frame", "blanks", "forwarded", "forwarded_blanks")
FORMS, KNOWN = 4, 16_384  # forms of responses of one API, version and size; and responses of all forms
REPEATS = 2048  # bytes; a longer response seldom comes again
CORRELATION_ID = 4  # bytes at the beginning of a response
NONE = Counter[str]()  # errors


Kind = tuple[int, int]  # API key and version


class Form(NamedTuple):
    """Takes the bytes out of a response that do not change from one to the next: all but 64-bit numbers and
    the correlation id. `errors`: by these bytes.
    """

    unpack: Callable[[Any, int], tuple[Any, ...]]
    errors: dict[tuple[Any, ...], Counter[str]]


class ErrorCounts:
    """`errors`: by API key and version, then by name. `unread`: responses that klamm cannot read."""

    def __init__(self) -> None:
        self.errors: defaultdict[Kind, Counter[str]] = defaultdict(Counter)
        self.unread = 0
        self._forms: defaultdict[tuple[Kind, int], dict[str, Form]] = defaultdict(dict)
        self._known = 0

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
        if not len(places):
            return
        hidden = column_values(batch[blanks].take(places))
        kinds = zip(
            *(batch[name].take(places).to_pylist() for name in ("api_key", "api_version")), strict=True
        )
        _, ends, data = batch[frames].buffers()
        offsets = memoryview(ends).cast("B").cast("i")[batch[frames].offset :]
        forms = self._forms
        for place, kind, blanked in zip(places.to_pylist(), kinds, hidden, strict=True):
            start, size = offsets[place], offsets[place + 1] - offsets[place]
            errors = None
            for form in () if blanked or (kind, size) not in forms else forms[kind, size].values():
                errors = form.errors.get(form.unpack(data, start))
                if errors is not None:
                    break
            if errors is None:
                errors = self._read(kind, bytes(data[start : start + size]), blanked)
            if errors:
                yield place, kind, errors

    def _read(self, kind: Kind, data: bytes, blanks: Blanks) -> Counter[str]:
        try:
            whole = filled(data, blanks)
        except ValueError:
            self.unread += 1
            return NONE
        version = answered_version(*kind, whole, RESPONSE_BYTES)
        body = body_of(whole, kind[0], version, "response") if _is_known(kind[0], version) else None
        if body is None:
            self.unread += 1
            return NONE
        found = columns(kind[0], version, "response", body, _error_paths(kind[0], version))
        codes = [code for column in found for code in flat(column) if code]
        errors = Counter(map(error_name, codes)) if codes else NONE
        if not blanks and len(data) <= REPEATS:
            self._remember(kind, version, data, body, errors)
        return errors

    def _remember(self, kind: Kind, version: int, data: bytes, body: bytes, errors: Counter[str]) -> None:
        """Keeps the bytes that are equal in all responses with these errors."""
        start = len(data) - len(body)
        try:
            spans = _changing(kind[0], version)(body, 0, len(body))
        except UNREADABLE:
            return
        shape, pos = f">{CORRELATION_ID}x", CORRELATION_ID
        for _, first, last, _ in spans:
            shape += f"{start + first - pos}s{last - first}x"
            pos = start + last
        shape += f"{len(data) - pos}s"
        if self._known >= KNOWN:
            self._forms.clear()
            self._known = 0
        forms = self._forms[kind, len(data)]
        if shape not in forms:
            if len(forms) >= FORMS:
                self._known -= len(forms.pop(next(iter(forms))).errors)
            forms[shape] = Form(Struct(shape).unpack_from, {})
        form = forms[shape]
        form.errors[form.unpack(data, 0)] = errors
        self._known += 1


@cache
def _is_known(key: int, version: int) -> bool:
    api = API.get(key)
    return api is not None and version in api.versions


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

"""The names of topic ids, from the answers of a capture that have both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from klamm.captures.captured import Captured
from klamm.captures.frames import NAMING, Framing
from klamm.captures.storage.arrow.decoding import column_values
from klamm.captures.storage.reading import read
from klamm.captures.streams.cutting import filled

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Reading

WANTED = ("side", "api_key", "api_version", "frame", "blanks")
CORRELATION_ID = 4  # bytes, in which answers differ that are else the same


class TopicNames:
    """The names of topics in captures. Files that have changed are read again. Several threads may use it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths, self._lock = paths, Lock()
        self._read: list[tuple[str, int, int]] = []
        self._names: Mapping[bytes, str] = {}

    def now(self) -> Mapping[bytes, str]:
        """By id."""
        with self._lock:
            reading = read(self._paths)
            there = [one.as_it_is() for one in reading.segments()]
            if there != self._read:
                self._names, self._read = topic_names(reading), there
            return self._names


def topic_names(reading: Reading) -> dict[bytes, str]:
    """By id. Equal answers are read once."""
    framing, known = Framing(), set[tuple[int, int, int]]()
    for batch in reading.batches(WANTED, NAMING):
        found = _answers(batch)
        columns = (column_values(found[name]) for name in ("api_key", "api_version", "frame", "blanks"))
        for key, version, data, blanks in zip(*columns, strict=True):
            form = key, version, hash((data or b"")[CORRELATION_ID:])
            if form not in known:
                known.add(form)
                _learn(framing, key, version, data, blanks)
    return framing.topics


def _answers(batch: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    naming = pc.is_in(batch["api_key"], value_set=pa.array(sorted(NAMING), pa.int16()))
    return batch.filter(pc.and_kleene(naming, pc.equal(batch["side"], "response")))


def _learn(framing: Framing, key: int, version: int, data: bytes | None, blanks: Any) -> None:
    try:
        whole = None if data is None else filled(data, blanks)
    except ValueError:
        return
    row = Captured(0, "frame", None, "response", key, version, frame=whole)
    frame = framing.frame(row)
    if frame is not None:
        framing.learn(frame)

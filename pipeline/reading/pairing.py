"""Pairs requests with their responses where both stand in one part of a capture: Spark then need not bring
them together.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from klamm.pipeline.bodies.arrays import Numbers

KEYS = ("capture", "connection", "exchange", "side", "fate", "awaits", "time_ns")  # columns of segments
NONE = -1
NEVER = np.iinfo(np.int64).min


class Pairs(NamedTuple):
    """Rows by their places: requests that are whole with these responses (NONE: none is due), and what is
    left. `last_response_ns`: for each row, when the latest response to earlier requests came; NEVER:
    there was none.
    """

    requests: Numbers
    responses: Numbers
    left: Numbers
    last_response_ns: Numbers


def pairs_of(frames: pa.RecordBatch) -> Pairs:
    """Of frames with at least the columns KEYS. Behind a request stands its response, and then what was
    withheld of such. Not whole is what has no number, and what klamm answered though the broker may, too.
    """
    times = frames.column("time_ns").to_numpy()
    connections, exchanges = _connections(frames), frames.column("exchange").to_numpy()
    is_response, is_withheld = _is(frames, "side", "response"), _is(frames, "fate", "withheld")
    order = np.lexsort((times, is_withheld, is_response, exchanges, connections))
    connection, exchange, response, withheld = (
        column[order] for column in (connections, exchanges, is_response, is_withheld)
    )
    numbered, made = exchange >= 0, _is(frames, "fate", "made")[order]
    awaits = frames.column("awaits").to_numpy(zero_copy_only=False)[order]
    same = (connection[1:] == connection[:-1]) & (exchange[1:] == exchange[:-1]) & numbered[1:]
    begins, goes_on = np.append(True, ~same), np.append(same, False)
    may_come_again = ~withheld & _behind(made)
    answered = goes_on & ~response & _behind(response & ~withheld) & ~may_come_again
    whole = begins & ~response & numbered & (answered | (~goes_on & ~awaits))
    responses = np.where(answered, np.append(order[1:], NONE), NONE)
    last_response_ns = np.empty_like(times)
    last_response_ns[order] = _latest_before(connection, np.where(response & numbered, times[order], NEVER))
    left = ~whole[begins][np.cumsum(begins) - 1]
    return Pairs(order[whole], responses[whole], order[left], last_response_ns)


def _behind(column: Any) -> Any:
    """The value of the next row, False behind the last."""
    return np.append(column[1:], False)


def _latest_before(connection: Numbers, times: Numbers) -> Numbers:
    """The latest time among the rows before each on its connection."""
    latest = np.full_like(times, NEVER)
    for first, end in pairwise([0, *np.flatnonzero(np.diff(connection)) + 1, len(connection)]):
        latest[first + 1 : end] = np.maximum.accumulate(times[first : end - 1])
    return latest


def _connections(frames: pa.RecordBatch) -> Numbers:
    """A number for each, of all captures."""
    number, capture = frames.column("connection").to_numpy(), frames.column("capture")
    found: Numbers = number * len(capture.dictionary) + capture.indices.to_numpy()
    return found


def _is(frames: pa.RecordBatch, name: str, text: str) -> Any:
    """Where a column of codes has this text."""
    column = frames.column(name)
    return column.indices.to_numpy() == column.dictionary.index(text).as_py()

"""Turns the swept fields of frames into columns of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klamm.decoders.compile import Path
from klamm.decoders.schema import ERROR, GROUP, TOPIC, TOPIC_ID
from klamm.pipeline.bodies.arrays import Bytes, Flags, Numbers
from klamm.pipeline.bodies.naming import MARKS, deciders_of, marks_of
from klamm.pipeline.bodies.sweeping import EMPTY, Column, one_of, texts_at, where
from klamm.pipeline.bodies.swept_frames import SweptFrames
from klamm.rules.json_form import uuid_text
from klamm.rules.parts import NIL

TEXTS = pa.list_(pa.string())
TYPES = {
    "topics": TEXTS,
    "topic_ids": TEXTS,
    "groups": TEXTS,
    "errors": pa.list_(pa.struct([("code", pa.int16()), ("name", pa.string()), ("count", pa.int32())])),
}
Columns = dict[str, pa.Array]


def with_names(topics: pa.Array, ids: pa.Array, names: Mapping[str, str]) -> pa.Array:
    """Topics, and behind them those of the ids; an id stays whose name is not known."""
    if not len(ids.flatten()):
        return topics
    coded = ids.flatten().dictionary_encode()
    named = pa.array([names.get(one, one) for one in coded.dictionary.to_pylist()], pa.string())
    texts = pa.concat_arrays([topics.flatten(), named.take(coded.indices)]).dictionary_encode()
    of = np.concatenate([pc.list_parent_indices(column).to_numpy() for column in (topics, ids)])
    is_told = topics.is_valid().to_numpy(zero_copy_only=False)
    return _lists(of, texts.indices.to_numpy(), texts.dictionary, np.ones(len(topics), np.bool_), ~is_told)


def names(frames: SweptFrames) -> Columns:
    """The columns for frames that are not unusual. Frames with errors, and with names that are not UTF-8, are
    unusual too.
    """
    marks, data, odd = marks_of(*frames.key), frames.data, frames.swept.odd
    at = {path: frames.swept.values.get(path, EMPTY) for path in marks}
    of_mark = {mark: [path for path, (one, _) in marks.items() if one == mark] for mark in MARKS}
    beside = {path[:-1]: at[path] for path in of_mark[TOPIC]}
    for path in of_mark[ERROR]:
        odd[at[path].of[at[path].values != 0]] = True
    columns = {
        "topics": [where(at[path], at[path].values > 0) for path in of_mark[TOPIC]],
        "topic_ids": [_unnamed(data, at[path], beside.get(path[:-1])) for path in of_mark[TOPIC_ID]],
        "groups": [_groups(frames, path, at[path]) for path in of_mark[GROUP]],
    }
    texts = {name: _texts(data, some, odd, READ[name]) for name, some in columns.items()}
    found = {name: _lists(*some, ~odd) for name, some in texts.items()}
    none = pa.array(np.zeros(np.count_nonzero(~odd) + 1, np.int32))
    return found | {"errors": pa.ListArray.from_arrays(none, pa.array([], TYPES["errors"].value_type))}


def _groups(frames: SweptFrames, path: Path, names: Column) -> Column:
    """The names that are not null, of the bodies in which they are groups."""
    there = names.values >= 0
    if path in (deciders := deciders_of(*frames.key)):
        by, wanted = deciders[path]
        column = frames.swept.values.get(by, EMPTY)
        groups = np.zeros(len(frames.swept.odd), np.bool_)
        groups[column.of[column.values == wanted]] = True
        there &= groups[names.of]
    return where(names, there)


def _unnamed(data: Bytes, ids: Column, names: Column | None) -> Column:
    """The ids that are not all zeros, and have no name beside them."""
    places = np.minimum(ids.starts[:, None] + np.arange(len(NIL)), len(data) - 1)
    is_given = data[places].any(axis=1)
    return where(ids, is_given if names is None else is_given & (names.values <= 0))


def _texts(
    data: Bytes, columns: Sequence[Column], odd: Flags, read: Callable[[bytes], str | None]
) -> tuple[Numbers, Numbers, pa.Array]:
    """The body and the text of each value, in the order of the columns. Bodies with names that are not UTF-8
    become unusual.
    """
    there = [EMPTY, *(where(column, ~odd[column.of]) for column in columns)]
    of = one_of(there).of
    coded = pa.concat_arrays([texts_at(data, column) for column in there]).dictionary_encode()
    codes, texts = coded.indices.to_numpy(), [read(value) for value in coded.dictionary.to_pylist()]
    is_text = np.array([text is not None for text in texts], np.bool_)[codes]
    odd[of[~is_text]] = True
    return of[is_text], codes[is_text], pa.array(texts, pa.string())


def _lists(
    of: Numbers, codes: Numbers, texts: pa.Array, wanted: Flags, null: Flags | None = None
) -> pa.Array:
    """For each wanted body its texts, each once, in their order."""
    of, codes = of[wanted[of]], codes[wanted[of]]
    order = np.argsort(of, kind="stable")
    of, codes = of[order], codes[order]
    _, first = np.unique(of * (len(texts) + 1) + codes, return_index=True)
    first.sort()
    ends = np.searchsorted(of[first], np.append(np.flatnonzero(wanted), len(wanted)))
    mask = None if null is None else pa.array(null)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts.take(pa.array(codes[first])), mask=mask)


def _name(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


READ: dict[str, Callable[[bytes], str | None]] = {"topics": _name, "groups": _name, "topic_ids": uuid_text}

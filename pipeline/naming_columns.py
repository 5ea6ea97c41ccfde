"""What frames name, as columns: swept up where many have one layout, and one by one where they are odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klamm.captures.frames import CLIENT_ID, REQUEST_BYTES, RESPONSE_BYTES, header_version
from klamm.decoders import API, layout
from klamm.decoders.headers import API_VERSIONS
from klamm.decoders.schema import ERROR, GROUP, TOPIC, TOPIC_ID, Side
from klamm.pipeline.arrays import Bytes, Flags, Numbers
from klamm.pipeline.bodies import Bodies, rows_of
from klamm.pipeline.naming import MARKS, marks_of
from klamm.pipeline.sweeping import FRAME, NULL, WIDEST, Column, Frames, one_of, sweep
from klamm.rules.json_form import uuid_text
from klamm.rules.parts import NIL

LEAST = 200  # frames of one layout: fewer are not worth the steps
TEXTS = pa.list_(pa.string())
TYPES = {
    "topics": TEXTS,
    "topic_ids": TEXTS,
    "groups": TEXTS,
    "errors": pa.list_(pa.struct([("code", pa.int16()), ("name", pa.string()), ("count", pa.int32())])),
}
Columns = dict[str, pa.Array]


def names(frames: pa.RecordBatch, slowly: Bodies) -> Columns:
    """Of frames as segments have them; null where they cannot be read. `slowly` reads one by one."""
    places, found = [], []
    is_left = np.ones(frames.num_rows, np.bool_)
    data = frames.column("frame").buffers()[2]
    for key, version, side, rows in _alike(frames) if data is not None and data.size >= WIDEST else ():
        columns, odd = _swept(frames, rows, key, version, side)
        places.append(rows[~odd])
        found.append(columns)
        is_left[rows[~odd]] = False
    left = np.flatnonzero(is_left)
    told = slowly.columns(rows_of(frames.take(pa.array(left)))) if len(left) else {}
    places.append(left)
    found.append({name: pa.array(told.get(name, []), kind) for name, kind in TYPES.items()})
    order = pa.array(np.argsort(np.concatenate(places)))
    return {name: pa.concat_arrays([some[name] for some in found]).take(order) for name in TYPES}


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


def _alike(frames: pa.RecordBatch) -> Iterator[tuple[int, int, Side, Numbers]]:
    """Rows with frames of one layout, where there are many."""
    key, version = (frames.column(name).to_numpy().astype(np.int64) for name in ("api_key", "api_version"))
    kind, side = frames.column("kind"), frames.column("side")
    is_frame = kind.indices.to_numpy() == kind.dictionary.index("frame").as_py()
    is_frame &= frames.column("frame").is_valid().to_numpy(zero_copy_only=False)
    is_frame &= (key >= 0) & (version >= 0)
    codes = side.indices.fill_null(NULL).to_numpy()
    for code, of in enumerate(side.dictionary.to_pylist()):
        here = np.flatnonzero(is_frame & (codes == code))
        layouts, which = np.unique(key[here] << 16 | version[here], return_inverse=True)
        for nth in np.flatnonzero(np.bincount(which) >= LEAST) if len(here) else ():
            api, of_version = API.get(int(layouts[nth]) >> 16), int(layouts[nth]) & 0xFFFF
            refuses = of == "response" and api is not None and api.key == API_VERSIONS
            if api is not None and of_version in api.versions and not refuses:
                yield api.key, of_version, of, here[which == nth]


def _swept(
    frames: pa.RecordBatch, rows: Numbers, key: int, version: int, side: Side
) -> tuple[Columns, Flags]:
    """Of those of this layout, without those that are odd."""
    marks = marks_of(key, version, side)
    bodies, odd = _bodies(frames, rows, header_version(key, version, side), side)
    found, is_odd = sweep(layout(key, version, side), tuple(marks), bodies)
    odd |= is_odd
    at = dict(zip(marks, found, strict=True))
    of_mark = {mark: [path for path, (one, _) in marks.items() if one == mark] for mark in MARKS}
    beside = {path[:-1]: at[path] for path in of_mark[TOPIC]}
    for path in of_mark[ERROR]:
        odd[at[path].of[at[path].values != 0]] = True
    columns = {
        "topics": [_where(at[path], at[path].values > 0) for path in of_mark[TOPIC]],
        "topic_ids": [_unnamed(bodies.data, at[path], beside.get(path[:-1])) for path in of_mark[TOPIC_ID]],
        "groups": [_where(at[path], at[path].values >= 0) for path in of_mark[GROUP]],
    }
    texts = {name: _texts(bodies.data, some, odd, READ[name]) for name, some in columns.items()}
    told = {name: _lists(*some, ~odd) for name, some in texts.items()}
    ends = pa.array(np.zeros(np.count_nonzero(~odd) + 1, np.int32))
    told["errors"] = pa.ListArray.from_arrays(ends, pa.array([], TYPES["errors"].value_type))
    return told, odd


def _bodies(frames: pa.RecordBatch, rows: Numbers, version: int, side: Side) -> tuple[Frames, Flags]:
    """`version` of the header. Odd are those that end in their header, or have tagged fields there."""
    column = frames.column("frame")
    _, offsets, bytes_ = column.buffers()
    offsets = np.frombuffer(offsets, np.int32)[column.offset :].astype(np.int64)
    begins, ends, data = offsets[rows], offsets[rows + 1], np.frombuffer(bytes_, np.uint8)
    starts = begins + (REQUEST_BYTES if side == "request" else RESPONSE_BYTES)
    if side == "request" and version:
        high, low = (data[np.minimum(starts + byte, len(data) - 1)] for byte in (0, 1))
        size = high.astype(np.int8).astype(np.int64) * 256 + low
        starts += CLIENT_ID.size + np.maximum(size, 0)
    odd = np.zeros(len(rows), np.bool_)
    if version == (2 if side == "request" else 1):
        odd |= data[np.minimum(starts, len(data) - 1)] != 0
        starts += 1
    odd |= starts > ends
    at, size = _blanks(frames.column("blanks").take(pa.array(rows)), ends - begins, odd)
    return Frames(data, begins, starts, ends, at, size), odd


def _blanks(blanks: pa.ListArray, sizes: Numbers, odd: Flags) -> tuple[Numbers, Numbers]:
    """As `Frames` has them. Odd are frames into which theirs do not fit."""
    flat = blanks.flatten()
    of = np.repeat(np.arange(len(blanks)), blanks.value_lengths().fill_null(0).to_numpy())
    at, size = (flat.field(place).to_numpy().astype(np.int64) for place in (0, 1))
    before = np.cumsum(size) - size
    first = np.searchsorted(of, of)
    stops = at - (before - before[first])  # in the frame without them
    previous = np.where(np.arange(len(of)) == first, 0, np.append(0, stops[:-1]))
    fits = (previous <= stops) & (stops <= sizes[of]) & (size >= 0)
    odd[of[~fits]] = True
    is_left = ~odd[of]
    return (of * FRAME + at)[is_left], size[is_left]


def _where(column: Column, holds: Flags) -> Column:
    return Column(*(numbers[holds] for numbers in column))


def _unnamed(data: Bytes, ids: Column, names: Column | None) -> Column:
    """Those that are not all zeros, and have no name beside them."""
    places = np.minimum(ids.starts[:, None] + np.arange(len(NIL)), len(data) - 1)
    is_given = data[places].any(axis=1)
    return _where(ids, is_given if names is None else is_given & (names.values <= 0))


def _texts(
    data: Bytes, columns: Sequence[Column], odd: Flags, read: Callable[[bytes], str | None]
) -> tuple[Numbers, Numbers, pa.Array]:
    """Of which body, and which of the texts, in the order of the columns. Who has what is no text is odd."""
    of, starts, sizes = one_of(columns)
    there = ~odd[of]
    of, starts, sizes = of[there], starts[there], sizes[there]
    ends = np.cumsum(sizes)
    places = np.repeat(starts - ends + sizes, sizes) + np.arange(sizes.sum())
    offsets = pa.array(np.append(0, ends).astype(np.int32)).buffers()[1]
    taken = pa.py_buffer(np.ascontiguousarray(data[places]))
    coded = pa.Array.from_buffers(pa.binary(), len(of), [None, offsets, taken]).dictionary_encode()
    codes, texts = coded.indices.to_numpy(), [read(value) for value in coded.dictionary.to_pylist()]
    is_text = np.array([text is not None for text in texts], np.bool_)[codes]
    odd[of[~is_text]] = True
    return of[is_text], codes[is_text], pa.array(texts, pa.string())


def _lists(
    of: Numbers, codes: Numbers, texts: pa.Array, wanted: Flags, null: Flags | None = None
) -> pa.Array:
    """Of each body that is wanted, each of its texts once, in their order."""
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

"""Frames by their layouts, and what is swept up of the bodies of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from klamm.captures.frames import CLIENT_ID, REQUEST_BYTES, RESPONSE_BYTES, header_version
from klamm.decoders import API, layout
from klamm.decoders.compile import Path
from klamm.decoders.headers import API_VERSIONS
from klamm.decoders.schema import Side
from klamm.pipeline.bodies.arrays import Bytes, Flags, Numbers
from klamm.pipeline.bodies.sweeping import FRAME, NULL, WIDEST, Frames, Swept, sweep

LEAST = 200  # frames of one layout: fewer are not worth the steps
Key = tuple[int, int, Side]  # of a layout: of an API, its version, and the side
Paths = Callable[[int, int, Side], Collection[Path] | None]  # of a layout; None: all


@dataclass(frozen=True, slots=True)
class SweptFrames:
    """Frames of one layout, in `rows` of a batch. Their bytes are in `data`."""

    key: Key
    rows: Numbers
    data: Bytes
    swept: Swept


def swept_frames(frames: pa.RecordBatch, paths: Paths) -> Iterator[SweptFrames]:
    """Groups the frames of a batch by layout. Layouts with few frames are left out."""
    data = frames.column("frame").buffers()[2]
    if data is None or data.size < WIDEST:
        return
    for key, rows in _alike(frames):
        bodies, odd = _bodies(frames, rows, header_version(*key), key[2])
        swept = sweep(layout(*key), paths(*key), bodies)
        swept.odd[odd] = True
        yield SweptFrames(key, rows, bodies.data, swept)


def _alike(frames: pa.RecordBatch) -> Iterator[tuple[Key, Numbers]]:
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
                yield (api.key, of_version, of), here[which == nth]


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
    """The blanks in the form of `Frames`. A frame whose blanks do not fit becomes odd."""
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

"""Decodes bodies into columns: many of one layout at once, and unusual ones one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klamm.decoders import layout
from klamm.decoders.compile import Path
from klamm.decoders.schema import Side
from klamm.pipeline.bodies import variants
from klamm.pipeline.bodies.naming import wanted_of
from klamm.pipeline.bodies.naming_columns import TYPES, names, with_names
from klamm.pipeline.bodies.one_by_one import NAMED, SENT, STORED, Bodies, as_text, rows_of
from klamm.pipeline.bodies.swept_frames import SweptFrames, swept_frames
from klamm.pipeline.schemas import BODY, UNDECODABLE, VARIANT

KINDS = TYPES | {BODY: pa.string(), VARIANT: variants.TYPE}


class Decoding:
    """Decodes these columns. With VARIANT, BODY holds the unusual bodies only. `typed`: bodies are structs,
    and `content`: with fields that only the records have. `topic_names`: by id; then `topics` have those of
    `topic_ids` as well. `errors` are those that clients were told: of what klamm sent in the place of a
    response; all else is of the frame that came.
    """

    def __init__(
        self,
        columns: Collection[str],
        typed: bool = False,
        content: bool = False,
        topic_names: Mapping[str, str] | None = None,
    ) -> None:
        self._has_names, self._has_variants = not {*NAMED}.isdisjoint(columns), VARIANT in columns
        self._made = [*(NAMED if self._has_names else ()), *((BODY, VARIANT) if self._has_variants else ())]
        self._slowly = Bodies(frozenset(self._made), False) if self._made else None
        singly = {BODY, UNDECODABLE}.intersection(columns).difference(self._made)
        self._singly = Bodies(frozenset(singly), typed, content) if singly else None
        self._topic_names = topic_names
        self._sent = Bodies(frozenset({"errors"}), False) if "errors" in columns else None

    def columns(self, frames: pa.RecordBatch) -> dict[str, Any]:
        """Lists, or arrays."""
        found: dict[str, Any] = {} if self._slowly is None else self._swept(frames, self._slowly)
        if self._has_names and self._topic_names is not None:
            found["topics"] = with_names(found["topics"], found["topic_ids"], self._topic_names)
        if self._sent is not None:
            found["errors"] = self._told(frames, found["errors"], self._sent)
        return found | (self._singly.columns(rows_of(frames)) if self._singly else {})

    def _told(self, frames: pa.RecordBatch, errors: pa.Array, sent: Bodies) -> pa.Array:
        """The errors, with those of what klamm sent in the place of responses."""
        changed = pc.and_(pc.is_valid(frames["forwarded"]), pc.equal(frames["side"], "response"))
        places = np.flatnonzero(changed.fill_null(False).to_numpy(zero_copy_only=False))
        if not len(places):
            return errors
        rows = frames.take(pa.array(places))
        went = pa.RecordBatch.from_pydict({name: rows[SENT.get(name, name)] for name in STORED})
        told = sent.columns(rows_of(went))["errors"]
        order = np.arange(len(errors))
        order[places] = len(errors) + np.arange(len(places))
        return pa.concat_arrays([errors, array(told, KINDS["errors"])]).take(pa.array(order))

    def _swept(self, frames: pa.RecordBatch, slowly: Bodies) -> dict[str, pa.Array]:
        places, found = [], []
        is_left = np.ones(frames.num_rows, np.bool_)
        for some in swept_frames(frames, self._paths):
            found.append(self._columns(some))
            places.append(some.rows[~some.swept.odd])
            is_left[places[-1]] = False
        left = np.flatnonzero(is_left)
        if len(left) or not found:
            values = slowly.columns(rows_of(frames.take(pa.array(left))))
            found.append({name: array(each, KINDS[name]) for name, each in values.items()})
            places.append(left)
        order = pa.array(np.argsort(np.concatenate(places)))
        columns = {
            name: [
                some[name] if name in some else pa.nulls(len(of), KINDS[name])
                for some, of in zip(found, places, strict=True)
            ]
            for name in self._made
        }
        return {name: pa.concat_arrays(parts).take(order) for name, parts in columns.items()}

    def _columns(self, some: SweptFrames) -> dict[str, pa.Array]:
        """The columns of bodies that are not unusual."""
        found = names(some) if self._has_names else {}
        if self._has_variants:
            found[VARIANT] = variants.variants(layout(*some.key), some.swept, some.data)
        return found

    def _paths(self, key: int, version: int, side: Side) -> Collection[Path] | None:
        return None if self._has_variants else wanted_of(key, version, side)


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of values that may hold strings that Arrow does not take."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array(as_text(values), kind)

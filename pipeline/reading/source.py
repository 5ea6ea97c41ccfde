"""The Data Source `klamm`: captures as the table `frames`, for batches and for streams.

    spark.read.format("klamm").load("captures/")
    spark.readStream.format("klamm").load("captures/")

Options: `paths`, several of them as a JSON list; `api`, an API's name, and `side`: only these frames, with
`body` as a struct in the wire table's names and not as JSON; `content=true`: with what only the records
themselves tell. Columns that a given schema leaves out are not made, and without `topics`, `topic_ids`,
`groups`, `errors` and `body` no frame is decoded. Conditions on `time`, `api` and `api_key`, and those
that name clients, brokers and the like, skip segments by what these say of themselves, and frames are left
out by them before they are decoded; Spark judges what is left.

A stream gives each frame once across restarts: its offset tells how many batches of each segment were read.
Folders are read on the executors, so they must see them; for object stores see tables/reading.py.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from klamm.captures.storage.segments import COLUMNS
from klamm.decoders import API
from klamm.decoders.schema import Api, Side
from klamm.pipeline.bodies.wire_types import body_type
from klamm.pipeline.reading.filters import SOURCES, Filters, api_key, ns
from klamm.pipeline.reading.parts import Part, Wanted, opening, parts, runs, segments
from klamm.pipeline.schemas import FRAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from klamm.pipeline.reading.frame_rows import Asked

OPERATORS = {
    EqualTo: "==",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    In: "in",
}
SAYS_DAMAGE = "kind"  # damage is a row of the kind "lost", found when it is read
NAMES_ONE = ("==", "in")  # an API is known by its key, whose order is another


class Klamm(DataSource):
    """Captures."""

    @classmethod
    def name(cls) -> str:
        return "klamm"

    def schema(self) -> str:
        chosen = _chosen(self.options)
        if chosen is None:
            return FRAMES.ddl
        body = body_type(*chosen, self.options.get("content") == "true")
        return FRAMES.ddl.replace("body string", f"body {body}")

    def reader(self, schema: StructType) -> Reader:
        return Reader(_paths(self.options), schema, _chosen(self.options))

    def streamReader(self, schema: StructType) -> Stream:
        return Stream(_paths(self.options), schema, _chosen(self.options))


class Slice(InputPartition):
    """A part of a capture as Spark hands it to an executor."""

    def __init__(self, part: Part) -> None:
        self.part = part


class _Asked:
    """The state that both kinds of reader share."""

    def __init__(self, paths: list[str], schema: StructType, chosen: tuple[Api, Side] | None) -> None:
        self._paths, self._schema, self._typed = paths, schema, chosen is not None
        self._filters = [] if chosen is None else frames_of([chosen[0]], chosen[1])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        return rows(self._schema, self._filters, self._typed, partition.part)


class Reader(_Asked, DataSourceReader):
    """Reads all rows that exist when the query is planned."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Gives each filter back: rows that surely do not match are left out, and Spark does the rest."""
        for one in filters:
            operator = OPERATORS.get(type(one))
            column = ".".join(getattr(one, "attribute", ()))
            if operator and column in SOURCES and (column != "api" or operator in NAMES_ONE):
                self._filters.append((column, operator, getattr(one, "value", None)))
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        return [Slice(part) for part in parts(self._paths, wanted(self._filters))]


class Stream(_Asked, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is {segment: {"batches": read so far, "ended": no more will come}}."""

    _target: dict[str, Any] | None = None  # of a run that reads the frames that were there when it began

    def initialOffset(self) -> dict[str, Any]:
        return {}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._there({})

    def latestOffset(self, start: dict[str, Any], limit: Any = None) -> dict[str, Any]:
        return self._there(start) if self._target is None else self._target

    def _there(self, start: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, fault in segments(self._paths):
            before = start.get(str(path))
            if before is not None and before["ended"]:
                found[str(path)] = before
            elif not fault:
                opened, fault = opening(path)
                if opened is not None:
                    ended = opened.statistics is not None or bool(opened.fault)
                    found[str(path)] = {"batches": len(opened.spans), "ended": ended}
                elif path.exists():
                    found[str(path)] = {"batches": 0, "ended": True}
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Slice(part) for path, there in end.items() for part in _new(path, start.get(path), there)]


def _new(path: str, before: Mapping[str, Any] | None, there: Mapping[str, Any]) -> Iterator[Part]:
    first = before["batches"] if before else 0
    stop = there["batches"]
    ends = there["ended"] and not (before and before["ended"])
    if stop <= first and not ends:
        return
    opened, fault = opening(Path(path))
    if ends and (opened is None or opened.fault):
        yield Part(path, fault=fault if opened is None else f"{opened.fault}; {stop} batches were read")
    if stop > first:
        size = opened.path.stat().st_size // len(opened.spans) if opened and opened.spans else 0
        yield from runs(Path(path), [first, stop - 1], size)


def frames_of(apis: Sequence[Api], side: Side) -> list[tuple[str, str, Any]]:
    """Frames of these APIs and one side."""
    return [("api_key", "in", tuple(api.key for api in apis)), ("side", "==", side), ("kind", "==", "frame")]


def rows(
    schema: StructType, filters: Filters, typed: bool, part: Part, names: Mapping[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """On an executor: a part's rows of `frames`, with the columns of this schema."""
    from klamm.pipeline.reading.frame_rows import read

    return read(part, asked(schema, filters, typed, topic_names=names))


def asked(
    schema: StructType,
    filters: Filters,
    typed: bool = False,
    also: Sequence[str] = (),
    topic_names: Mapping[str, str] | None = None,
) -> Asked:
    """On an executor: what is to be read. `also`: columns of segments that are needed, too. `topic_names`: as
    `Asked` has them.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    from klamm.pipeline.reading.frame_rows import Asked
    from klamm.pipeline.reading.header_filters import mask

    _settle()
    looks_at = (*also, *(SOURCES[column] for column, _, _ in filters))
    keeps = mask(filters) if filters else None
    faults = all(
        column == "kind" and "lost" in ([value] if how == "==" else value) for column, how, value in filters
    )
    columns, keys = to_arrow_schema(schema, timezone="UTC"), wanted(filters).api_keys
    return Asked(columns, keeps, looks_at, typed, faults, keys, topic_names)


@cache
def _settle() -> None:
    """Spark lets its Python workers look for garbage after each task, which takes longer than many a task:
    what is loaded by now is none. pyarrow loads pandas, if it is there, as soon as it makes an array.
    """
    import pyarrow as pa

    pa.array([None])
    gc.collect()
    gc.freeze()


def wanted(filters: Filters) -> Wanted:
    """The filters by which segments can be skipped."""
    since_ns = before_ns = keys = None
    texts = []
    for column, operator, value in filters:
        if column == "time" and operator in (">", ">=", "=="):
            since_ns = max(since_ns or 0, ns(value))
        if column == "time" and operator in ("<", "<=", "=="):
            before_ns = min(before_ns or 1 << 62, ns(value) + 1000)
        if column in ("api", "api_key") and operator in NAMES_ONE:
            named = value if operator == "in" else [value]
            found = frozenset(api_key(one) for one in named)
            keys = found if keys is None else keys & found
        elif operator in NAMES_ONE and COLUMNS[SOURCES[column]] == "codes" and column != SAYS_DAMAGE:
            texts.append((SOURCES[column], tuple(value) if operator == "in" else (value,)))
    return Wanted(since_ns, before_ns, keys, tuple(texts))


def _paths(options: Mapping[str, str]) -> list[str]:
    found: list[str] = json.loads(options["paths"]) if "paths" in options else []
    return [*found, *([options["path"]] if "path" in options else [])]


def _chosen(options: Mapping[str, str]) -> tuple[Api, Side] | None:
    if "api" not in options:
        return None
    api, side = API.get(options["api"]), options.get("side", "request")
    if api is not None and side == "request":
        return api, "request"
    if api is not None and side == "response":
        return api, "response"
    raise ValueError(f"the option api={options['api']!r}, side={side!r} names no API's request or response")

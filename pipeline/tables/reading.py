"""Frames out of captures, as the tables are made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from pyspark.sql.types import StructType

from klamm.captures.storage.segments import SEALED
from klamm.decoders import API
from klamm.decoders.error_codes import ERRORS
from klamm.decoders.schema import Side
from klamm.pipeline.bodies.wire_types import body_type
from klamm.pipeline.reading.filters import Filters
from klamm.pipeline.reading.parts import Part, parts
from klamm.pipeline.reading.source import asked, frames_of, rows, wanted
from klamm.pipeline.schemas import FRAMES, TABLES, VARIANT, WHERE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

TASKS = "spark.sql.leafNodeDefaultParallelism"  # of a read, where it is set; else each part is one
KEY = ["capture", "connection", "exchange"]  # equal in a request and its response
TYPES = {column.name: column.type for column in FRAMES.columns} | {VARIANT: "variant"}
NAMES = "map(" + ", ".join(f"{error.code}, '{error.name}'" for error in ERRORS) + ")"
Names = Mapping[str, str] | None
Apis = str | Sequence[str]  # one, or several
Read = Callable[[Part], Iterator["pa.RecordBatch"]]  # on an executor
HEADER = (*(column.name for column in WHERE), "exchange", "client_id", "time", "version")


class Source:
    """Where frames come from. No column is read that is not asked for.

    Not by the Data Source `klamm`, which reads the same: Spark starts Python anew for each step of planning
    one, and there are some thirty reads in a run over all tables. URLs (s3a://, hdfs://, file://) are read by
    Spark's own file systems, sealed segments only. `some`: these parts, in place of paths.
    """

    def __init__(self, spark: SparkSession, paths: Sequence[str], some: Sequence[Part] | None = None) -> None:
        named = [str(path) for path in paths]
        self.spark = spark
        self._urls = [path for path in named if "://" in path]
        local = [path for path in named if "://" not in path]
        if some is None:
            some = parts(local) if local or not self._urls else []
        self._all = some

    def frames(self, *columns: str, filters: Filters = ()) -> DataFrame:
        """Rows for which all of the filters hold, as the Data Source has them."""
        return self._read(_ddl(columns), filters, False)

    def bodies(
        self, api: Apis, side: Side, content: bool = False, body: str = "", filters: Filters = ()
    ) -> DataFrame:
        """Frames of one API and side, with `body` as a struct. `body`: what is wanted of it, as a type;
        several APIs may have that in common.
        """
        apis = [API[api]] if isinstance(api, str) else [API[one] for one in api]
        fields = [f"{name} {TYPES[name]}" for name in HEADER]
        ddl = ", ".join([*fields, f"body {body or body_type(apis[0], side, content)}"])
        return self._read(ddl, [*frames_of(apis, side), *filters], True)

    def exchanges(
        self,
        columns: Sequence[str],
        of_each: Sequence[str],
        filters: Filters = (),
        names: Names = None,
    ) -> tuple[DataFrame, DataFrame]:
        """Frames in two: exchanges whose halves stand in one part of a segment, a row for each, with what is
        `of_each` half in `request` and `response`; and the frames that are left. `heard` of both: when the
        last response to the requests before had come, as far as the part tells. What Spark has to fetch is
        all left, for it is fetched but once. `names`: of topic ids, told among the `topics`.
        """
        frame, half = _ddl([*columns, *of_each]), f"struct<{_ddl(of_each)}>"
        pair = f"{_ddl(columns)}, request {half}, response {half}, heard timestamp"
        of_frames = _schema(frame)
        whole = self._here(pair, filters, partial(_whole, of_frames, of_each, filters, names))
        left = self._here(f"{frame}, heard timestamp", filters, partial(_left, of_frames, filters, names))
        for there in self._there(frame, partial(rows, of_frames, filters, False, names=names)):
            left = left.unionByName(there, allowMissingColumns=True)
        return whole, left

    def _read(self, ddl: str, filters: Filters, typed: bool) -> DataFrame:
        read = partial(rows, _schema(ddl), filters, typed)
        found = [*self._there(ddl, read), self._here(ddl, filters, read)]
        return reduce(lambda one, other: one.union(other), found)

    def _here(self, ddl: str, filters: Filters, read: Read) -> DataFrame:
        keys = wanted(filters).api_keys
        found = [part for part in self._all if keys is None or keys & (part.api_keys or keys)] or [Part("")]
        tasks = self.spark.conf.get(TASKS, None)
        slices = len(found) if tasks is None else min(len(found), int(tasks))
        return self.spark.range(0, len(found), 1, slices).mapInArrow(partial(_parts, found, read), ddl)

    def _there(self, ddl: str, read: Read) -> list[DataFrame]:
        """The rows of segments that Spark has to fetch, if there are any."""
        if not self._urls:
            return []
        files = self.spark.read.format("binaryFile").option("pathGlobFilter", f"*{SEALED}").load(self._urls)
        return [files.select("path", "content").mapInArrow(partial(_unpack, read), ddl)]


def _ddl(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def _schema(ddl: str) -> StructType:
    return cast(StructType, StructType.fromDDL(ddl))


def _whole(
    schema: StructType, of_each: Sequence[str], filters: Filters, names: Names, part: Part
) -> Iterator[pa.RecordBatch]:
    """On an executor."""
    from klamm.pipeline.reading.exchange_rows import whole
    from klamm.pipeline.reading.pairing import KEYS

    return whole(part, asked(schema, filters, also=KEYS, topic_names=names), of_each)


def _left(schema: StructType, filters: Filters, names: Names, part: Part) -> Iterator[pa.RecordBatch]:
    """On an executor."""
    from klamm.pipeline.reading.exchange_rows import left
    from klamm.pipeline.reading.pairing import KEYS

    return left(part, asked(schema, filters, also=KEYS, topic_names=names))


def _parts(parts: list[Part], read: Read, places: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of the parts with these numbers."""
    for batch in places:
        for place in batch.column("id").to_pylist():
            yield from read(parts[place])


def _unpack(read: Read, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of segments that Spark has fetched, read as files, one at a time."""
    with TemporaryDirectory(prefix="klamm-") as folder:
        for batch in files:
            for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
                file = Path(folder, PurePosixPath(path.as_py()).name)
                file.write_bytes(content.as_buffer())
                for part in parts([str(file)]):
                    yield from read(part)
                file.unlink()


def uuid_text(column: Column) -> Column:
    """The uuid as Kafka prints it; null for the uuid of zeros, which means none."""
    from pyspark.sql import functions as F

    text = F.rtrim(F.translate(F.base64(column), "+/", "-_"), F.lit("="))
    return F.when(column != F.lit(bytes(16)), text)


def error_text(code: Column) -> Column:
    """Kafka's name of an error code."""
    from pyspark.sql import functions as F

    return F.coalesce(F.expr(NAMES)[code.cast("int")], F.concat(F.lit("ERROR_"), code.cast("string")))


def ms(start: Column, end: Column) -> Column:
    """Between two times, in ms."""
    from pyspark.sql import functions as F

    return (F.unix_micros(end) - F.unix_micros(start)) / 1000.0


def columns(table_rows: DataFrame, table: str) -> DataFrame:
    """The columns of a table, in their order and types."""
    from pyspark.sql import functions as F

    return table_rows.select(*[F.col(one.name).cast(one.type) for one in TABLES[table].columns])


def with_nulls(rows: DataFrame, table: str) -> DataFrame:
    """The columns of a table that these rows lack, too."""
    from pyspark.sql import functions as F

    missing = [one for one in TABLES[table].columns if one.name not in rows.columns]
    return rows.withColumns({one.name: F.lit(None).cast(one.type) for one in missing})


def answered(requests: DataFrame, responses: DataFrame, on: Sequence[str] = ()) -> DataFrame:
    """Requests with their responses, where there are any: those of the response have `response_time`, and no
    column in common with the requests but the key and `on`.
    """
    from pyspark.sql import functions as F

    found = requests.join(responses, [*KEY, *on], "left")
    return found.withColumn("answered", F.col("response_time").isNotNull()).withColumn(
        "latency_ms", ms(F.col("time"), F.col("response_time"))
    )

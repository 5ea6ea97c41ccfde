"""Tables of some of the traffic only: of chosen exchanges, or of the latest time.

What names things for the rest of a connection or capture is there all the same: topic ids have their names,
and clients their software, wherever these were told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from klamm.decoders.schema import Side
from klamm.pipeline.reading.filters import Filters
from klamm.pipeline.sql import condition
from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.cluster import NAMING
from klamm.pipeline.tables.quick import AtHand
from klamm.pipeline.tables.reading import KEY, Apis, Names, Source
from klamm.rules.expressions import Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TELLING = {*NAMING, "ApiVersions", "SaslHandshake"}
Choose = Callable[["DataFrame"], "DataFrame"]


class Chosen(Source):
    """Frames that `choose` leaves, of those with the columns KEY."""

    def __init__(self, spark: SparkSession, paths: Sequence[str], choose: Choose) -> None:
        super().__init__(spark, paths)
        self._choose = choose

    def frames(self, *columns: str, filters: Filters = ()) -> DataFrame:
        wanted = dict.fromkeys((*columns, *KEY))
        return self._choose(super().frames(*wanted, filters=filters)).select(*columns)

    def bodies(
        self, api: Apis, side: Side, content: bool = False, body: str = "", filters: Filters = ()
    ) -> DataFrame:
        found = super().bodies(api, side, content, body, filters)
        return found if _tells(api) else self._choose(found)

    def exchanges(
        self, columns: Sequence[str], of_each: Sequence[str], filters: Filters = (), names: Names = None
    ) -> tuple[DataFrame, DataFrame]:
        whole, left = super().exchanges(columns, of_each, filters, names)
        return self._choose(whole), self._choose(left)


class Since(Source):
    """Frames from a time on."""

    def __init__(self, spark: SparkSession, paths: Sequence[str], time: datetime) -> None:
        super().__init__(spark, paths)
        self._since = ("time", ">=", time)

    def frames(self, *columns: str, filters: Filters = ()) -> DataFrame:
        return super().frames(*columns, filters=(*filters, self._since))

    def bodies(
        self, api: Apis, side: Side, content: bool = False, body: str = "", filters: Filters = ()
    ) -> DataFrame:
        return super().bodies(api, side, content, body, filters if _tells(api) else (*filters, self._since))

    def exchanges(
        self, columns: Sequence[str], of_each: Sequence[str], filters: Filters = (), names: Names = None
    ) -> tuple[DataFrame, DataFrame]:
        return super().exchanges(columns, of_each, (*filters, self._since), names)


def _tells(api: Apis) -> bool:
    return ({api} if isinstance(api, str) else {*api}) <= TELLING


def tables_of(spark: SparkSession, paths: Sequence[str], small: bool, source: Source | None = None) -> Tables:
    """The tables of all captures, or of a source; each is made once."""
    kind = AtHand if small else Tables
    return kind(spark, paths, bodies=False, persist=True, source=source)


def chosen(spark: SparkSession, paths: Sequence[str], small: bool, expression: Expression) -> Tables:
    """The tables of the exchanges for which this holds, and the other events of their connections. Raises
    ExpressionError where columns cannot express it.
    """
    from pyspark.sql import functions as F

    whole = Tables(spark, paths)
    found = whole.exchanges.where(condition(expression, whole.names)).select(*KEY)
    keys = found.localCheckpoint() if small else found.persist()
    besides = keys.select(*KEY[:2]).distinct().select(*KEY[:2], F.lit(None).cast("long").alias(KEY[2]))
    wanted = keys.unionByName(besides).select(*(F.col(name).alias(f"wanted_{name}") for name in KEY))

    def choose(frames: DataFrame) -> DataFrame:
        same = [F.col(name).eqNullSafe(F.col(f"wanted_{name}")) for name in KEY]
        joined = frames.join(F.broadcast(wanted) if small else wanted, same, "left")
        is_gap = F.col("connection").isNull() & F.col("exchange").isNull()
        return joined.where(F.col("wanted_capture").isNotNull() | is_gap).select(*frames.columns)

    return tables_of(spark, paths, small, Chosen(spark, paths, choose))


def since(spark: SparkSession, paths: Sequence[str], small: bool, time: datetime) -> Tables:
    """The tables from this time on."""
    return tables_of(spark, paths, small, Since(spark, paths, time))

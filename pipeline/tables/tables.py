"""Captures as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from klamm.pipeline.schemas import FRAMES
from klamm.pipeline.tables import cluster, exchanges, groups, partitions, shares, transactions
from klamm.pipeline.tables.reading import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Made = TypeVar("Made")


class once(cached_property[Made]):
    """A cached_property that is made once, also where several threads ask for it."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        super().__init__(make)
        self._making = RLock()

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Made:  # type: ignore[override]
        with self._making:
            made: Made = super().__get__(instance, owner)
            return made


class Tables:
    """Each table as a DataFrame, with the columns that schemas.py says.

    `bodies`: `exchanges` has them; else they are null there, and only `exchanges_of` decodes them. `persist`:
    a table is kept once it is made. `source`: where frames come from, in place of paths.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: str | Sequence[str],
        bodies: bool = True,
        persist: bool = False,
        source: Source | None = None,
    ) -> None:
        self.spark = spark
        self._source = source or Source(spark, [paths] if isinstance(paths, str) else paths)
        self._bodies, self._persist = bodies, persist

    @property
    def frames(self) -> DataFrame:
        """All columns: every body is decoded. `some_frames` reads less."""
        return self._source.frames(*(column.name for column in FRAMES.columns))

    def some_frames(self, *columns: str) -> DataFrame:
        """These columns of `frames`."""
        return self._source.frames(*columns)

    @once
    def topic_names(self) -> DataFrame:
        """One row with one column, `names`: a map from topic ids, as Kafka prints them, to names."""
        return self._kept(cluster.topic_names(self._source))

    @once
    def names(self) -> Mapping[str, str]:
        """The same map in Python: this runs a job of Spark."""
        (row,) = self.topic_names.collect()
        return row["names"] or {}

    @once
    def exchanges(self) -> DataFrame:
        wanted = exchanges.ALL if self._bodies else tuple(set(exchanges.ALL) - set(exchanges.BODIES))
        return self._kept(exchanges.exchanges(self._source, lambda: self.names, wanted))

    def some_exchanges(self, *columns: str) -> DataFrame:
        """These columns of `exchanges`; only `topics`, `groups`, `errors` and bodies are decoded for."""
        return exchanges.exchanges(self._source, lambda: self.names, columns).select(*columns)

    def exchanges_of(self, *apis: str) -> DataFrame:
        """Exchanges of these APIs, with their bodies."""
        return exchanges.exchanges(self._source, lambda: self.names, apis=apis)

    @once
    def produce(self) -> DataFrame:
        return self._kept(partitions.produce(self._source, self.topic_names))

    @once
    def fetch(self) -> DataFrame:
        return self._kept(partitions.fetch(self._source, self.topic_names))

    @once
    def batches(self) -> DataFrame:
        return self._kept(partitions.batches(self._source, self.topic_names))

    @once
    def groups(self) -> DataFrame:
        return self._kept(groups.groups(self._source, self.topic_names))

    @once
    def commits(self) -> DataFrame:
        return self._kept(groups.commits(self._source, self.topic_names))

    @once
    def offsets(self) -> DataFrame:
        return self._kept(groups.offsets(self._source, self.topic_names))

    @once
    def shares(self) -> DataFrame:
        return self._kept(shares.shares(self._source, self.topic_names))

    @once
    def transactions(self) -> DataFrame:
        return self._kept(transactions.transactions(self._source))

    @once
    def metadata(self) -> DataFrame:
        return self._kept(cluster.metadata(self._source))

    @once
    def connections(self) -> DataFrame:
        return self._kept(cluster.connections(self._source))

    def _kept(self, table: DataFrame) -> DataFrame:
        return table.persist() if self._persist else table

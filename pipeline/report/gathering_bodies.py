"""Sums up the bodies that do not end as their layouts do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from klamm.pipeline.schemas import UNDECODABLE

if TYPE_CHECKING:
    from klamm.pipeline.tables import Tables

MOST = 40  # rows that a page has


@dataclass(frozen=True, slots=True)
class OddBodies:
    """Bodies of one layout between a client and a broker; `reason`: the most frequent one."""

    api: str
    version: int
    side: str
    cluster: str
    broker: str
    client_id: str | None
    count: int
    reason: str


def gather_odd_bodies(tables: Tables, found: list[OddBodies]) -> None:
    """The most frequent ones, and one more than a page has if there are so many. Reads every body that the
    capture has.
    """
    from pyspark.sql import functions as F

    of = ("api", "version", "side", "cluster", "broker", "client_id")
    odd = tables.some_frames(*of, UNDECODABLE).where(F.col(UNDECODABLE).isNotNull())
    rows = odd.groupBy(*of).agg(F.count(F.lit(1)).alias("count"), F.mode(UNDECODABLE))
    found += [OddBodies(*row) for row in rows.orderBy(F.desc("count"), *of).limit(MOST + 1).collect()]

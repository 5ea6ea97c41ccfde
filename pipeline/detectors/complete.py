"""What gaps and jumps may be told of: connections of which the capture has every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def complete(rows: DataFrame, tables: Tables) -> DataFrame:
    """Without the rows of connections that lost frames: what is missing there would pass for silence."""
    lossy = tables.connections.where("lost > 0").select("capture", "connection")
    return rows.join(lossy, ["capture", "connection"], "left_anti")

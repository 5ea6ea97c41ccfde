"""Connections of which the capture has every frame: only these show gaps and jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def complete(rows: DataFrame, tables: Tables) -> DataFrame:
    """Leaves out connections that lost frames: missing frames would look like silence."""
    lossy = tables.connections.where("lost > 0").select("capture", "connection")
    return rows.join(lossy, ["capture", "connection"], "left_anti")

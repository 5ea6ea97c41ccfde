"""Producers that take another transactional id each time, so that nothing fences those before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding
from klamm.pipeline.detectors.lives import LASTING, SHARE, in_turn, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """How many ids of a client are in use at a time, on average, against how many it had in all. Kafka
    Streams has many too, which begin together, and last.
    """
    from pyspark.sql import functions as F

    done = tables.transactions.where(F.col("transactional_id").isNotNull() & (F.col("error") == "NONE"))
    rows = in_turn(done, "transactional_id", F.col("api") == "InitProducerId", thresholds)
    return finding(rows, told("transactional ids"))


DETECTOR = Detector(
    name="transactional_id_churn",
    title="A new transactional id each time",
    severity="medium",
    settings=("transactional.id", "transactional.id.expiration.ms"),
    advice=(
        "Give each instance one transactional.id that it has again after a restart. One that is new each "
        "time fences nobody: what a crashed instance left open blocks readers until "
        "transaction.timeout.ms, and coordinators keep each id for transactional.id.expiration.ms, seven "
        "days."
    ),
    find=find,
    source="KIP-98: the transactional id is the identity of a producer over restarts; KIP-447",
    thresholds={
        "ids": Threshold(10, "transactional ids of a client", "rule of thumb: more than restarts make"),
        "share": SHARE,
        "lasting_s": LASTING,
    },
)

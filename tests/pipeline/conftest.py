"""One Spark session for all tests of the pipeline, and one capture of many clients side by side."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.spark import session
from klamm.pipeline.tables import Tables, quick
from tests.pipeline import ground
from tests.pipeline.ground import Played


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores of this machine, as small captures are best read."""
    made = session("local[2]", **quick.SETTINGS, **quick.BRIEF_JVM)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """All misbehaving clients beside the healthy load, captured; the cluster is gone when this is there."""
    folder = tmp_path_factory.mktemp("played") / "ground"
    return ground.played(folder, ground.names(), seconds=20, with_packets=True)


@pytest.fixture(scope="session")
def tables(spark: SparkSession, played: Played) -> Tables:
    """Of that capture."""
    return quick.AtHand(spark, str(played.capture), bodies=False)

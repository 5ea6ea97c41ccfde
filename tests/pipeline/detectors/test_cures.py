"""A client that does as its detector advises is named by it no more."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.detectors.finding import findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.tables.quick import AtHand
from tests.pipeline import ground
from tests.pipeline.confusion import Matrix
from tests.pipeline.ground import Ended

SECONDS = 20.0
WORK = 20  # exchanges, at least: a client that does nothing is cured of all
CURABLE = ground.curable()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cured") / "ground"


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, Ended]:
    """All cured clients side by side, captured; the cluster is gone when this is there."""
    with ground.ground(folder) as made:
        return made.play(CURABLE, SECONDS, cured=True)


@pytest.fixture(scope="module")
def tables(ended: dict[str, Ended], folder: Path, spark: SparkSession) -> AtHand:
    return AtHand(spark, str(folder / "capture"), bodies=False)


@pytest.fixture(scope="module")
def matrix(tables: AtHand) -> Matrix:
    found = findings(tables, DETECTORS)
    assert found.failed == {}
    return Matrix.of(found.found)


@pytest.fixture(scope="module")
def exchanges(tables: AtHand) -> Mapping[str, int]:
    """By client id."""
    rows = tables.exchanges.groupBy("client_id").count().collect()
    return {row["client_id"] or "": row["count"] for row in rows}


@pytest.mark.brokers
@pytest.mark.parametrize("name", CURABLE)
def test_who_does_as_the_advice_says_is_named_no_more(
    name: str, matrix: Matrix, exchanges: Mapping[str, int], ended: dict[str, Ended]
) -> None:
    assert ended[name].code == 0, ended[name].tail
    client_id = ground.misbehaviour(name).CLIENT_ID
    assert sum(count for who, count in exchanges.items() if who.startswith(client_id)) >= WORK
    assert [one.what for one in matrix.named.get(name, {}).get(name, [])] == []


@pytest.mark.brokers
def test_they_have_nothing_else_instead(matrix: Matrix) -> None:
    found = [one for of in matrix.named.values() for some in of.values() for one in some]
    assert [f"{one.detector} names {one.client_id or one.subject}: {one.what}" for one in found] == []

"""Detectors name the same clients in imported packets as in klamm's own capture of the same traffic."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.detectors.finding import Finding, findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.tables.quick import AtHand
from tests.e2e.klamm_process import COMMAND
from tests.pipeline import ground
from tests.pipeline.confusion import Matrix
from tests.pipeline.ground import Played

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def imported(played: Played, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "capture"
    command = [str(COMMAND), "import", str(played.packets), "-o", str(folder), "--records", "hash"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def matrix(spark: SparkSession, imported: Path, played: Played) -> Matrix:
    found = findings(AtHand(spark, str(imported), bodies=False), DETECTORS)
    assert (found.failed, dict(found.more)) == ({}, {})
    return Matrix.of(_with_klamms_names(one, played.brokers) for one in found.found)


def _with_klamms_names(one: Finding, brokers: dict[str, str]) -> Finding:
    """An import knows brokers by their addresses."""
    what, _, name = (one.subject or "").partition(" ")
    return one if what != "broker" else replace(one, subject=f"broker {brokers[name]}")


@pytest.mark.parametrize("name", ground.names())
def test_a_client_is_named_by_its_own_detector(name: str, matrix: Matrix) -> None:
    assert name in matrix.named.get(name, {})


def test_nobody_is_named_for_what_they_do_not_do(matrix: Matrix) -> None:
    assert matrix.wrong() == []

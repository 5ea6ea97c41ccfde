"""Detectors name the clients that misbehave, and nobody else.

KLAMM_WRITE_DOCS=1 pytest -m long tests/pipeline/detectors/test_detectors.py
writes docs/detectors-confusion.md.
"""

import os
import re

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.detectors.finding import Findings, findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.schemas import TABLES
from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.quick import AtHand
from tests.brokers.jars import ROOT
from tests.brokers.kraft import VERSION
from tests.pipeline import ground, healthy
from tests.pipeline.confusion import DOCUMENT, Matrix, document
from tests.pipeline.detectors import (
    test_detectors_connections,
    test_detectors_consumers,
    test_detectors_producers,
)
from tests.pipeline.ground import Played
from tools.detectors_doc import PAGE, page

LONG_S = 600.0
ROLLED = "The brokers were restarted one by one meanwhile."
NAMES = [detector.name for detector in DETECTORS]
EDGES = (test_detectors_connections, test_detectors_consumers, test_detectors_producers)


@pytest.fixture(scope="module")
def found(tables: Tables) -> Findings:
    return findings(tables, DETECTORS)


@pytest.fixture(scope="module")
def matrix(found: Findings) -> Matrix:
    return Matrix.of(found.found)


def test_every_detector_has_a_client_that_sets_it_off() -> None:
    assert sorted(NAMES) == ground.names(), "each detector has a client in tests/pipeline/misbehaviour"


def test_every_detector_has_clients_at_its_thresholds_and_just_below() -> None:
    written = [case.__name__ for module in EDGES for case in module.CASES]
    assert sorted(written) == NAMES, "each detector has a function in CASES of a test_detectors_*.py"


def test_the_page_of_detectors_is_what_they_say_now() -> None:
    assert page() == PAGE.read_text(), "detectors changed; run: make docs"


def test_a_detector_that_needs_the_content_of_records_says_so() -> None:
    blank = [column.name for column in TABLES["batches"].columns if "content is blank" in column.null]
    assert len(blank) == 3
    asked = re.compile(rf'"({"|".join(blank)})"')
    for name in NAMES:
        (file,) = (ROOT / "pipeline" / "detectors").glob(f"*/{name}.py")
        text = file.read_text()
        section = PAGE.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert bool(asked.search(text)) is ("--capture-records" in section), name


def test_the_page_of_whom_they_name_has_them_all() -> None:
    if os.environ.get("KLAMM_WRITE_DOCS"):
        pytest.skip("the page is written at the end of this run")
    text = DOCUMENT.read_text()
    missing = [name for name in NAMES if f"| {name} | named |" not in text]
    assert missing == [], 'write the page anew: CONTRIBUTING.md, "Add a detector", has the command'


@pytest.mark.brokers
def test_healthy_clients_do_their_work_beside_the_others(played: Played) -> None:
    assert {name: played.ended[name] for name in healthy.COMMANDS if played.ended[name].code != 0} == {}
    assert played.problems == []


@pytest.mark.brokers
def test_no_detector_fails(found: Findings) -> None:
    assert (found.failed, dict(found.more)) == ({}, {})


@pytest.mark.brokers
@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_named_by_its_own_detector(name: str, matrix: Matrix, played: Played) -> None:
    naming = sorted(matrix.named.get(name, {}))
    assert name in naming, played.ended[name].tail


@pytest.mark.brokers
def test_nobody_is_named_for_what_they_do_not_do(matrix: Matrix) -> None:
    assert matrix.wrong() == []


@pytest.mark.long
@pytest.mark.brokers
@pytest.mark.timeout(3000)
def test_ten_minutes_with_a_rolling_restart_name_the_same(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    played = ground.played(tmp_path_factory.mktemp("long") / "ground", ground.names(), LONG_S, roll=True)
    assert {name: played.ended[name] for name in healthy.COMMANDS if played.ended[name].code != 0} == {}
    tables = AtHand(spark, str(played.capture), bodies=False)
    found = findings(tables, DETECTORS)
    matrix = Matrix.of(found.found)
    assert found.failed == {}
    assert matrix.wrong() == []
    assert [name for name in NAMES if name not in matrix.named.get(name, {})] == []
    if os.environ.get("KLAMM_WRITE_DOCS"):
        requests, clients = tables.exchanges.selectExpr("count(*)", "count(distinct client_id)").first() or (
            0,
            0,
        )
        named = {
            "seconds": LONG_S,
            "kafka": VERSION,
            "requests": requests,
            "clients": clients,
            "rolled": ROLLED,
        }
        DOCUMENT.write_text(document(matrix, NAMES, **named))

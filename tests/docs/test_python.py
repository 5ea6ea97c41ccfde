"""Every program of a page in Python runs."""

from __future__ import annotations

import io
import threading
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import SparkSession

from klamm.client.front import Front, in_front_of
from tests.client.mock_cluster import mock_cluster
from tests.docs.blocks import Block, blocks

GROUPS = count()
HERE = "tests/docs/test_python.py::"
SPARK = HERE + "test_a_program_for_spark_runs"
FIXTURE = HERE + "test_a_program_with_the_fixture_runs"

# How a program begins, after its page, and the test that runs it.
PROGRAMS: dict[str, str] = {
    "docs/admin-api.md: from klamm.client": HERE + "test_the_client_of_the_admin_api_runs",
    "docs/analyze.md: import duckdb": "tests/pipeline/test_tables_command.py"
    "::test_duckdb_and_pandas_read_the_tables_of_a_capture_and_later_what_is_new",
    "docs/expressions.md: from klamm.pipeline": SPARK,
    "docs/pipeline.md: from pyspark": SPARK,
    "docs/pipeline.md: sent = ": SPARK,
    "docs/pipeline.md: tables.exchanges_of": SPARK,
    "docs/pipeline.md: from klamm.pipeline": SPARK,
    "docs/pipeline.md: spark.read": SPARK,
    'docs/rules.md: """hurry': "tests/rules/file/test_rule_file_docs.py::test_the_plugin_of_the_page_is_one",
    "docs/testing.md: def test_an_order": FIXTURE,
    "docs/testing.md: with klamm.delay": FIXTURE,
    "docs/testing.md: klamm.wait_for": FIXTURE,
    "docs/testing.md: @pytest.fixture": "tests/client/test_pytest_plugin.py"
    "::test_the_cluster_may_be_a_fixture_of_any_scope_with_options_for_klamm",
    "docs/testing.md: from klamm.client": HERE + "test_the_test_case_of_unittest_runs",
}


def program(block: Block) -> str | None:
    """The test that runs a block."""
    key = f"{block.page}: {block.text.splitlines()[0]}"
    return next((test for begins, test in PROGRAMS.items() if key.startswith(begins)), None)


def of(test: str) -> list[Block]:
    return [block for block in blocks() if block.language == "python" and program(block) == test]


def run(text: str, **names: Any) -> dict[str, Any]:
    """Run a program with these names; all names that there are afterwards."""
    exec(compile(text, "page", "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize("block", of(SPARK), ids=lambda block: block.where)
def test_a_program_for_spark_runs(
    block: Block, spark: SparkSession, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The programs of a page know the names of its first one."""
    monkeypatch.chdir(files)
    names = run(of(SPARK)[1].text) if block is not of(SPARK)[1] else {}
    before = set(names)
    left = run(block.text, **names)
    assert block is of(SPARK)[1] or set(left) >= before


class Shop:
    """The shop of the page."""

    def __init__(self, bootstrap: str) -> None:
        self.client = Producer({"bootstrap.servers": bootstrap, "client.id": "shop", "log_level": 0})

    def place(self, order: str) -> None:
        self.client.produce("orders", order.encode())
        assert self.client.flush(20) == 0


@contextmanager
def billing(bootstrap: str) -> Iterator[None]:
    """A consumer that fetches and commits, in a group of its own: a mock group stalls when one has left."""
    over = threading.Event()
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": f"billing-{next(GROUPS)}",
        "client.id": "billing",
        "log_level": 0,
    }
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100})

    def consume() -> None:
        consumer.subscribe(["orders"])
        while not over.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as klamm:
        yield klamm


@pytest.mark.parametrize("block", of(FIXTURE), ids=lambda block: block.where)
def test_a_program_with_the_fixture_runs(block: Block, front: Front) -> None:
    front.begin()
    Shop(front.bootstrap).place("coffee")
    with billing(front.bootstrap):
        names = run(block.text, klamm=front, Shop=Shop)
        for name in [name for name in names if name.startswith("test_")]:
            names[name](front)


def test_the_test_case_of_unittest_runs() -> None:
    (block,) = of(HERE + "test_the_test_case_of_unittest_runs")
    with mock_cluster() as bootstrap:
        case = run(block.text.replace("localhost:9092", bootstrap), unittest=unittest)["Orders"]
        case.test_it = lambda self: Shop(self.klamm.bootstrap).place("tea")
        done = unittest.TextTestRunner(io.StringIO()).run(
            unittest.defaultTestLoader.loadTestsFromTestCase(case)
        )
    assert (done.testsRun, done.wasSuccessful()) == (1, True), done.errors


class Enough(Exception):
    """The program has printed something."""


def test_the_client_of_the_admin_api_runs(front: Front) -> None:
    (block,) = of(HERE + "test_the_client_of_the_admin_api_runs")
    printed = []

    def once(line: Any) -> None:
        printed.append(line)
        raise Enough

    with billing(front.bootstrap), pytest.raises(Enough):
        run(block.text.replace("127.0.0.1:19091", front.admin), print=once)
    assert printed[0].api == "Fetch"

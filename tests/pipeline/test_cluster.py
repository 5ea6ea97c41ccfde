"""A standalone cluster of Spark, a master and two workers: its tables are those of one machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.schemas import TABLES
from tests.brokers.processes import Process, free_ports, wait_for
from tests.captures.rows import in_time, written
from tests.pipeline.test_tables import talks

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
LOOPBACK = "127.0.0.1"
WORKERS = 2
NAMES = [name for name in TABLES if name != "findings"]
DIGESTS = """
import sys
from klamm.pipeline.spark import session
from klamm.pipeline.tables import Tables
from tests.pipeline.test_cluster import NAMES, digest
spark = session(sys.argv[1], **{"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1",
    "spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "4"})
tables = Tables(spark, sys.argv[2])
for name in NAMES:
    print(name, digest(getattr(tables, name)))
workers = {row[0] for row in spark.range(0, 40, 1, 40).mapInArrow(where, "pid long").collect()}
print("workers", len(workers) > 1)
""".replace("for name in NAMES", """
def where(batches):
    import os, pyarrow as pa
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"pid": [os.getppid()]})

for name in NAMES""", 1)  # fmt: skip


def digest(table: object) -> str:
    """Of all its rows in an order of their own."""
    import hashlib

    from pyspark.sql import functions as F

    assert hasattr(table, "dtypes")
    as_text = {name: F.to_json(name) for name, kind in table.dtypes if kind == "variant"}
    rows = sorted(map(repr, table.withColumns(as_text).collect()))  # type: ignore[attr-defined]
    return f"{len(rows)}-{hashlib.sha256(repr(rows).encode()).hexdigest()}"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Its URL; two workers with a core each have joined it."""
    port, page = free_ports(), free_ports()
    url = f"spark://{LOOPBACK}:{port}"
    env = {**os.environ, "SPARK_LOCAL_IP": LOOPBACK, "SPARK_WORKER_DIR": str(tmp_path / "work")}
    java = [SPARK_CLASS, "org.apache.spark.deploy"]
    commands = [
        [
            java[0],
            f"{java[1]}.master.Master",
            "--host",
            LOOPBACK,
            "--port",
            str(port),
            "--webui-port",
            str(page),
        ],
        *[
            [
                java[0],
                f"{java[1]}.worker.Worker",
                "--host",
                LOOPBACK,
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                "700m",
                url,
            ]
            for _ in range(WORKERS)
        ],
    ]
    started: list[Process] = []
    try:
        for number, command in enumerate(commands):
            started.append(Process(command, tmp_path / f"{number}.log", env))
        wait_for(
            lambda: (tmp_path / "0.log").read_text().count("Registering worker") == WORKERS,
            "two workers of Spark",
            started,
            timeout_s=120,
        )
        yield url
    finally:
        for process in reversed(started):
            process.kill()


@pytest.mark.long
def test_tables_of_a_cluster_are_those_of_one_machine(
    spark: SparkSession, master: str, tmp_path: Path
) -> None:
    from klamm.pipeline.tables import Tables

    capture = written(tmp_path / "a.arrow", in_time(*talks()))
    written(tmp_path / "b.arrow", in_time(*talks()))
    tables = Tables(spark, str(capture.parent / "a.arrow"))
    here = [f"{name} {digest(getattr(tables, name))}" for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, master, str(capture)], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [*here, "workers True"]

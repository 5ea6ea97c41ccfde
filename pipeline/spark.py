"""A Spark session that reads captures; where Spark or Java is not there, what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.settings.extras import installing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17  # of Spark 4
SETTINGS = {
    "spark.app.name": "klamm",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # slow: asks Java for each column
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "64",
    "spark.log.level": "ERROR",
}


class SparkMissing(RuntimeError):
    """pyspark or a Java that it runs on is not there."""


def session(master: str | None = None, **settings: str) -> SparkSession:
    """`master`: Spark's own URL; all cores of this machine by default. A session that runs is used as it is.

    Its captures are read by `spark.read.format("klamm")`. Settings of the caller go before these, and these
    before spark-defaults.conf.
    """
    made = start(master, **settings)
    register(made)
    return made


def register(spark: SparkSession) -> None:
    """Captures can be read by `format("klamm")`. It takes Spark a second."""
    from klamm.pipeline.reading.source import Klamm

    spark.dataSource.register(Klamm)


def start(master: str | None = None, **settings: str) -> SparkSession:
    """A session that does not know the format "klamm" yet."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise SparkMissing(f"pyspark is not installed: {installing('spark')}") from None

    if master is not None and master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    check_java()
    url = master or "local[*]"
    builder = SparkSession.builder.master(url)
    if url.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else it is whatever `python3` is
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> None:
    """Raises SparkMissing unless a Java that Spark runs on is there."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    need = f"Spark needs Java {LEAST_JAVA} or newer: install it (Debian: openjdk-17-jre-headless)"
    if java is None:
        raise SparkMissing(f"no Java is on the path. {need}, or set JAVA_HOME")
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    except OSError as wrong:
        raise SparkMissing(f"{java} does not run: {wrong.strerror}. {need}, or set JAVA_HOME") from None
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < LEAST_JAVA:
        found = output.splitlines()[0] if output else "nothing"
        raise SparkMissing(f"{java} says {found!r}. {need}, and set JAVA_HOME to it")

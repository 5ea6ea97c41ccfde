"""`klamm analyze --tables`: the tables of captures as Parquet."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from klamm.cli.analyze.progress import Step
from klamm.cli.saying import WrongWord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # Spark reads and writes what begins so


def check_captures(paths: Sequence[str]) -> None:
    """Raises WrongWord for captures that klamm cannot read in this process."""
    for path in paths:
        if REMOTE.match(path):
            raise WrongWord(f"--tables reads captures of this machine, and {path} is Spark's to read")


def make_folder(folder: str) -> None:
    """Makes the folder of the tables, unless it is a URL. Raises OSError where it cannot be written to."""
    if REMOTE.match(folder):
        return
    os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def write_tables(spark: SparkSession, paths: Sequence[str], folder: str, step: Step) -> Mapping[str, int]:
    """Writes what is new in the captures; gives the rows of each table. Raises WrongWord where the folder has
    other tables.
    """
    from klamm.pipeline.tables.store import write

    here = [os.path.realpath(path) for path in paths]  # Spark's current folder may be another
    there = folder if REMOTE.match(folder) else os.path.abspath(folder)

    def on_table(done: int, of: int) -> None:
        step("writing tables", done, of)

    try:
        return write(spark, here, there, bodies="json", on_table=on_table)
    except ValueError as wrong:
        raise WrongWord(f"--tables {folder}: {wrong}") from None


def told(written: Mapping[str, int]) -> str:
    """How many rows of which tables were written."""
    rows = [f"{count:,} {name}" for name, count in written.items() if count]
    return ", ".join(rows) or "nothing new"

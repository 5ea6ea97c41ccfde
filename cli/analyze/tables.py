"""`klamm analyze --tables`: the tables of captures as Parquet."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from klamm.cli.analyze.progress import Step
from klamm.cli.saying import WrongWord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_tables(paths: Sequence[str], folder: str) -> None:
    """Makes the folder, unless it is a URL. Raises WrongWord for captures that klamm cannot read in this
    process, OSError for a folder that cannot be written to.
    """
    for path in paths:
        if "://" in path:
            raise WrongWord(f"--tables reads captures of this machine, and {path} is Spark's to read")
    if "://" in folder:
        return
    os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def write_tables(spark: SparkSession, paths: Sequence[str], folder: str, step: Step) -> Mapping[str, int]:
    """Writes what is new in the captures; gives the rows of each table. Raises WrongWord where the folder has
    other tables.
    """
    from klamm.pipeline.tables.store import write

    here = [os.path.realpath(path) for path in paths]  # the same segments, whatever the current folder is
    try:
        return write(
            spark, here, folder, bodies="json", on_table=lambda done, of: step("writing tables", done, of)
        )
    except ValueError as wrong:
        raise WrongWord(f"--tables {folder}: {wrong}") from None


def told(written: Mapping[str, int]) -> str:
    """How many rows of which tables were written."""
    rows = [f"{count:,} {name}" for name, count in written.items() if count]
    return ", ".join(rows) or "nothing new"

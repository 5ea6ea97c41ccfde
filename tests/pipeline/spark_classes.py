"""Spark's classes as a JVM has them in memory (CDS): to load them from jars takes it half of its start."""

import os
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.brokers.jars import MADE, digest_of, made_once
from tests.captures.rows import Talk, written
from tests.e2e.klamm_process import COMMAND

SOME = "commit_per_record,metadata_storm,slow_polling,tiny_batches"  # detectors, for much of Spark


def archive() -> Path:
    """The file of the classes. A JVM without it starts slowly, and says nothing."""
    found = find_spec("pyspark")
    folders = [] if found is None or found.origin is None else [Path(found.origin).parent / "jars"]
    return MADE / f"{digest_of(folders)}.jsa"


def options() -> dict[str, str]:
    """The environment in which Spark's JVMs read that file."""
    return {"SPARK_SUBMIT_OPTS": f"-XX:SharedArchiveFile={archive()}"}


def make() -> None:
    """Make the file, unless it is there."""
    made_once(archive(), _write)


def _write(part: Path) -> None:
    """Write the classes that an analysis loads. Java does so at its end; then nobody holds its output."""
    env = {**os.environ, "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={part}"}
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder, "20231114T221320Z-a-000001.arrow"), Talk().produce().heartbeat(27).rows)
        command = [str(COMMAND), "analyze", folder, "--only", SOME, "--json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    if not part.exists():
        raise RuntimeError(f"no archive of the classes of Spark\n{done.stdout}{done.stderr}")

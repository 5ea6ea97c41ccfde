"""Record batches that Kafka's own classes wrote, and what those classes read in ours."""

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from klamm.decoders.records import UNKNOWN, Batch, Record
from tests.brokers.jars import compiled, java

NEWEST, WRITES_ALL = "4.3.1", "3.9.1"  # the newest Kafka reads magic 0 and 1, and writes 2 only

Holds = dict[str, Any]  # content of a records field, as Records.java prints it


def written(kafka: str, seed: int, *magics: int) -> list[tuple[bytes, Holds]]:
    """Batches of every codec, type of timestamps and kind, each with what Kafka reads in it."""
    lines = _run(kafka, "", "write", str(seed), ",".join(map(str, magics)))
    return [(bytes.fromhex(line.pop("hex")), line) for line in lines]


def read(kafka: str, fields: Iterable[bytes]) -> list[Holds]:
    """Kafka's reading of each: "batches" and "valid_bytes", or "error"."""
    return _run(kafka, "".join(f"{data.hex()}\n" for data in fields), "read")


def as_kafka(batch: Batch, records: list[Record]) -> Holds:
    """Our batch in the form that Kafka prints; Kafka counts no messages, and looks inside for the first."""
    values = {**batch._asdict(), "size": batch.size, "crc_ok": batch.crc_ok}
    for ours in ("data", "start", "end", "base_timestamp", "has_delete_horizon"):
        del values[ours]
    values["delete_horizon"] = batch.base_timestamp if batch.has_delete_horizon else None
    if batch.magic < 2:
        values["record_count"] = None
    if batch.base_offset == UNKNOWN:
        values["base_offset"] = records[0].offset
    values["records"] = [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        }
        for record in records
    ]
    return values


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _run(kafka: str, fed: str, *arguments: str) -> list[dict[str, Any]]:
    source = (Path(__file__).resolve().parent / "Records.java").read_text()
    if kafka == WRITES_ALL:
        source = source.replace("common.record.internal.", "common.record.")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "Records.java")
        program.write_text(source)
        classes = compiled(f"oracle-{kafka}", program)
    # Damaged sizes make Kafka allocate as much.
    command = java(f"oracle-{kafka}", "Records", *arguments, heap_mb=6144, classes=classes)
    done = subprocess.run(command, input=fed, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"Records.java failed on Kafka {kafka}:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]

"""Exchanges as a capture and as packets, the same bytes in both: for klamm, and for tshark.

Produce 7 and Fetch 10, of one partition, with one uncompressed v2 batch each: versions that tshark 4.0 reads
to the end. Four connections.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from struct import Struct
from typing import Any

from benchmarks.traffic import frames
from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.storage.segments import origin
from klamm.captures.storage.stored import stored
from klamm.captures.storage.writing import Writer, write_file
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders import encode

PROGRAM = Path(sys.executable).with_name("klamm")
VERSION = {frames.PRODUCE: 7, frames.FETCH: 10}
CONNECTIONS = 4
BEGUN_NS, GAP_NS = 1_700_000_000 * 10**9, 50_000  # between two frames
_HEADER = Struct(">hhih")


@dataclass(frozen=True, slots=True)
class Shape:
    """`records_bytes`: of the batches, in turn."""

    name: str
    records_bytes: tuple[int, ...]
    exchanges: int


SHAPES = (
    Shape("100 B", (80,), 60_000),
    Shape("1 KB", (1024,), 30_000),
    Shape("16 KB", (16 * 1024,), 8_000),
    Shape("mix", (80, 80, 80, 80, 80, 80, 1024, 1024, 1024, 16 * 1024), 20_000),
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """`size_bytes`: on the wire, of frames and their size fields."""

    capture: Path
    packets: Path
    exchanges: int
    size_bytes: int


def write(shape: Shape, exchanges: int, folder: Path) -> Traffic:
    """A segment with records kept, and what `klamm export` makes of it."""
    folder.mkdir()
    capture, packets = folder / "capture.arrow", folder / "packets.pcapng"
    sizes: list[int] = []
    write_file(capture, _rows(shape, exchanges, sizes), origin("keep"))
    command = [str(PROGRAM), "export", str(capture), "-o", str(packets)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Traffic(capture, packets, exchanges, sum(sizes))


def segments(shape: Shape, size_bytes: int, folder: Path) -> Traffic:
    """A capture of about so many bytes in the segments that `klamm run` makes; without packets."""
    sizes: list[int] = []
    writer = Writer(folder, origin("keep"))
    exchanges = 2 * size_bytes // (2 * (sum(shape.records_bytes) // len(shape.records_bytes) + 100))
    rows = _rows(shape, exchanges, sizes)
    while some := list(islice(rows, 256)):
        writer.write([stored(row) for row in some])
    writer.seal()
    return Traffic(folder, folder, exchanges, sum(sizes))


def _rows(shape: Shape, exchanges: int, sizes: list[int]) -> Iterator[Captured]:
    readers, keeping = [], Keeping("keep")
    for number in range(CONNECTIONS):
        connection = CapturedConnection(
            "bench", number, "bench", "127.0.0.1:9092", f"127.0.0.1:{40_000 + number}"
        )
        yield Captured(BEGUN_NS, "opened", connection)
        readers.append(ConnectionReader(connection, keeping))
    batches = cycle([frames.record_batch(size) for size in shape.records_bytes])
    for number in range(exchanges):
        reader = readers[number % CONNECTIONS]
        request, response = _exchange(number, next(batches))
        sizes += (len(request), len(response))
        now_ns = BEGUN_NS + 2 * number * GAP_NS
        yield from reader.feed("request", request, now_ns)
        yield from reader.feed("response", response, now_ns + GAP_NS)


def _exchange(number: int, batch: bytes) -> tuple[bytes, bytes]:
    """Produce and Fetch take turns on each connection."""
    key = (frames.PRODUCE, frames.FETCH)[number // CONNECTIONS % 2]
    request, response = (_produce if key == frames.PRODUCE else _fetch)(number, batch)
    client_id = frames.CLIENT_ID.encode()
    header = _HEADER.pack(key, VERSION[key], number, len(client_id)) + client_id
    return (
        frames.frame(header + encode(request, key, VERSION[key], "request")),
        frames.frame(number.to_bytes(4, "big") + encode(response, key, VERSION[key], "response")),
    )


def _produce(offset: int, batch: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    partition = {"index": 0, "records": batch}
    done = {"index": 0, "error_code": 0, "base_offset": offset, "log_start_offset": 0}
    return (
        {
            "transactional_id": None,
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [{"name": frames.TOPIC, "partition_data": [partition]}],
        },
        {"responses": [{"name": frames.TOPIC, "partition_responses": [done]}], "throttle_time_ms": 0},
    )


def _fetch(offset: int, batch: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": len(batch)}
    got = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": offset + 1000,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "records": frames.at_offset(batch, offset),
    }
    return (
        {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "isolation_level": 0,
            "session_id": 0,
            "topics": [{"topic": frames.TOPIC, "partitions": [partition]}],
            "forgotten_topics_data": [],
        },
        {
            "throttle_time_ms": 0,
            "error_code": 0,
            "session_id": 0,
            "responses": [{"topic": frames.TOPIC, "partitions": [got]}],
        },
    )

"""The traffic: for each API and size a blob of requests and one of responses, made before all measuring.

All frames of a blob have one size: whoever counts bytes knows how many frames came, and answers with a slice
of the other blob. Offsets differ from frame to frame, as in life; correlation ids run from 0 to `cycle - 1`
and begin again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.traffic import frames

API_NAMES = {frames.PRODUCE: "Produce", frames.FETCH: "Fetch"}
MAX_IN_FLIGHT = 16
_CYCLE_FRAMES = 4096
_CYCLE_BYTES = 8 << 20
_HEAD_BYTES = 60

RARE_EVERY, RARE_TIMEOUT_MS = 200, 29_999
WATCHED_CYCLE = 20 * RARE_EVERY

LARGE_BYTES = 100_000_000
LARGE_STALL_S = 0.3
# size of the records in bytes, connections, requests in flight on each
SHAPES = ((200, 1, 1), (200, 4, 16), (16 * 1024, 4, 4), (1_000_000, 2, 2), (LARGE_BYTES, 1, 1))


@dataclass(frozen=True, slots=True)
class Blobs:
    """Frames of one API and size; a slice of up to MAX_IN_FLIGHT frames may begin at any frame of the cycle.

    The receiver of large records first waits `stall_s`, so that a proxy that buffers without bound is seen.
    """

    key: int
    version: int
    size_bytes: int
    stall_s: float
    cycle: int
    requests: bytes
    request_bytes: int
    responses: bytes
    response_bytes: int

    @property
    def head(self) -> bytes:
        """How the first request begins, but for its correlation id; no two blobs begin alike."""
        return recognise(self.requests[: min(_HEAD_BYTES, self.request_bytes)])


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table."""

    blobs: Blobs
    connections: int
    in_flight: int

    def __str__(self) -> str:
        return _name(self.blobs.key, self.blobs.size_bytes, self.connections, self.in_flight)

    @property
    def api(self) -> str:
        return API_NAMES[self.blobs.key]

    @property
    def one_at_a_time(self) -> bool:
        return self.connections == self.in_flight == 1


def recognise(beginning: bytes) -> bytes:
    return beginning[:8] + beginning[12:_HEAD_BYTES]


def size_text(size_bytes: int) -> str:
    """200 B, 16 KiB, 1 MB."""
    for divisor, unit in ((1_000_000, "MB"), (1024, "KiB")):
        if size_bytes % divisor == 0:
            return f"{size_bytes // divisor} {unit}"
    return f"{size_bytes} B"


def _name(key: int, size_bytes: int, connections: int, in_flight: int) -> str:
    return f"{API_NAMES[key]} {size_text(size_bytes)} {connections} x {in_flight}"


NAMES = tuple(_name(key, *shape) for shape in SHAPES for key in API_NAMES)


def fill(key: int, version: int, batch: bytes) -> Blobs:
    """The blobs of Produce or Fetch frames that carry `batch`."""
    size_bytes = len(batch)
    large = size_bytes == LARGE_BYTES
    cycle = max(1, min(_CYCLE_FRAMES, _CYCLE_BYTES // size_bytes))
    ids = [i % cycle for i in range(1 if large else cycle + MAX_IN_FLIGHT - 1)]
    if key == frames.PRODUCE:
        requests = [frames.produce_request(i, batch, version=version) for i in ids]
        responses = [frames.produce_response(i, i, version) for i in ids]
    else:
        requests = [frames.fetch_request(i, i, size_bytes, version) for i in ids]
        responses = [frames.fetch_response(i, i, batch) for i in ids]
    return Blobs(
        key, version, size_bytes, LARGE_STALL_S if large else 0.0, cycle,
        b"".join(requests), len(requests[0]), b"".join(responses), len(responses[0]),
    )  # fmt: skip


def watched() -> list[Workload]:
    """Produce of 1 KB, of which one in RARE_EVERY has another timeout: what a filter looks for."""
    batch = frames.record_batch(1024)
    ids = [i % WATCHED_CYCLE for i in range(WATCHED_CYCLE + MAX_IN_FLIGHT - 1)]
    requests = [
        frames.produce_request(i, batch, 30_000 if (i + 1) % RARE_EVERY else RARE_TIMEOUT_MS) for i in ids
    ]
    responses = [frames.produce_response(i, base_offset=i) for i in ids]
    blobs = Blobs(
        frames.PRODUCE, frames.VERSION[frames.PRODUCE], len(batch), 0.0, WATCHED_CYCLE,
        b"".join(requests), len(requests[0]), b"".join(responses), len(responses[0]),
    )  # fmt: skip
    return [Workload(blobs, 4, 16)]


def prepare(
    part: str = "",
    versions: Mapping[int, int] = frames.VERSION,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
) -> list[Workload]:
    """Produce and Fetch of each shape whose name has `part` in it; `versions` by API key."""
    chosen = [(key, *shape) for shape in shapes for key in API_NAMES if part in _name(key, *shape)]
    batches = {size_bytes: frames.record_batch(size_bytes) for size_bytes in {row[1] for row in chosen}}
    kinds = {row[:2] for row in chosen}
    blobs = {(key, size): fill(key, versions[key], batches[size]) for key, size in kinds}
    return [Workload(blobs[row[:2]], *row[2:]) for row in chosen]

"""How many cores klamm takes: so much for each request, so much for each byte; and how near that is to other
loads than those from which it was taken.
"""

from dataclasses import replace
from statistics import mean, median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import measure, proxies
from benchmarks.measure import Slices
from benchmarks.peers import COMPILED_FULL, KLAMM_FULL
from benchmarks.traffic import workloads
from benchmarks.traffic.workloads import Workload

PEERS = (KLAMM_FULL, COMPILED_FULL)
# size of the records in bytes, connections, requests in flight on each
FROM = ((200, 64, 1), (1_000_000, 4, 1))
CHECKED = ((1024, 32, 1), (16 * 1024, 16, 1), (16 * 1024, 16, 4))


class Cost(NamedTuple):
    """CPU seconds, bytes on the wire (of requests and responses), of one exchange."""

    cpu_s: float
    wire_bytes: float


class Formula(NamedTuple):
    """CPU seconds."""

    each_request: float
    each_byte: float

    def of(self, wire_bytes: float) -> float:
        """Of an exchange of this size."""
        return self.each_request + self.each_byte * wire_bytes


def formula(small: Cost, large: Cost) -> Formula:
    """The line through two loads."""
    each_byte = (large.cpu_s - small.cpu_s) / (large.wire_bytes - small.wire_bytes)
    return Formula(small.cpu_s - each_byte * small.wire_bytes, each_byte)


def run(console: Console, rounds: int) -> tuple[dict[str, Any], bool]:
    """The results for JSON, and whether a klamm could not be measured. Raises Lost."""
    rows = workloads.prepare(shapes=(*FROM, *CHECKED))
    blobs = list({id(row.blobs): row.blobs for row in rows}.values())
    pace = replace(measure.FULL, rounds=rounds)
    with proxies.started(console, list(PEERS), blobs, proxies.cpus()) as ground:
        slices, _ = measure.run(rows, ground.peers, ground.broker_pid, pace, console.print)
        names = [peer.name for peer in ground.peers]
    found = [_sized(name, rows, slices) for name in names]
    console.print(_table(found))
    return {"rows": found, "absent": ground.absent}, bool(ground.absent)


def _sized(name: str, rows: list[Workload], slices: Slices) -> dict[str, Any]:
    small, large = (_cost(name, shape, rows, slices) for shape in FROM)
    made = formula(small, large)
    checks = []
    for shape in CHECKED:
        cost = _cost(name, shape, rows, slices)
        told = f"{workloads.size_text(shape[0])} {shape[1]} x {shape[2]}"
        checks.append({"load": told, "ratio": made.of(cost.wire_bytes) / cost.cpu_s})
    return {
        "proxy": name,
        "core_of_1000_requests_a_second": made.each_request * 1000,
        "core_of_1_MB_a_second": made.each_byte * 1e6,
        "checked": checks,
    }


def _cost(name: str, shape: tuple[int, int, int], rows: list[Workload], slices: Slices) -> Cost:
    """Of an exchange, half of them Produce and half Fetch: medians over the rounds."""
    chosen = [row for row in rows if (row.blobs.size_bytes, row.connections, row.in_flight) == shape]
    cpu = [median(one.proxy_cpu_s / one.frames for one in slices[row, name]) for row in chosen]
    return Cost(mean(cpu), mean(row.blobs.request_bytes + row.blobs.response_bytes for row in chosen))


def _table(found: list[dict[str, Any]]) -> Table:
    """Cores, and what the formula says of other loads, as a multiple of what was measured."""
    table = Table("proxy", "1,000 requests/s", "1 MB/s", *(one["load"] for one in found[0]["checked"]))
    for row in found:
        cores = (row["core_of_1000_requests_a_second"], row["core_of_1_MB_a_second"])
        ratios = (f"{one['ratio']:.2f}x" for one in row["checked"])
        table.add_row(row["proxy"], *(f"{core:.5f} cores" for core in cores), *ratios)
    return table

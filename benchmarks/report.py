"""The results as rows of ratios to HAProxy: a table for people, JSON for programs."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from benchmarks.measure import Memory, Slices
from benchmarks.others import HAPROXY
from benchmarks.peers import (
    ALL_MATCH,
    ALL_WATCHED,
    CAPTURED,
    COMPILED_FULL,
    COMPILED_HEADER,
    DIRECT,
    FEW_WATCHED,
    HEADER_RULE,
    KLAMM_FULL,
    KLAMM_HEADER,
    KLAMMS,
    OTHER_RULES,
)
from benchmarks.traffic.client import Slice
from benchmarks.traffic.workloads import LARGE_BYTES, Workload, size_text

MIB = 1 << 20
REST_LIMIT, GROWTH_LIMIT = 64 * MIB, 16 * MIB
_SMALL = {COMPILED_HEADER: 1.15, COMPILED_FULL: 1.25}
_PIPELINED = {KLAMM_HEADER: 1.4, KLAMM_FULL: 1.7, **_SMALL}
_OF_16_KIB = {KLAMM_HEADER: 1.05, KLAMM_FULL: 1.1, COMPILED_HEADER: 1.0, COMPILED_FULL: 1.0}
_OF_1_MB = {KLAMM_HEADER: 1.05, KLAMM_FULL: 1.1, COMPILED_HEADER: 0.9, COMPILED_FULL: 0.9}
BESIDE_KLAMM = {  # of klamm without rules and listeners
    OTHER_RULES: 1.05,
    HEADER_RULE: 2.0,
    FEW_WATCHED: 1.05,
    ALL_WATCHED: 1.25,
    ALL_MATCH: 1.25,
    CAPTURED: 1.5,
}
SECURE = {KLAMM_FULL: 1.25, COMPILED_FULL: 1.25}  # of HAProxy, TLS on both sides
_ADDED_P50 = {KLAMM_HEADER: 1.3, KLAMM_FULL: 1.3}

Measure = Callable[[Slice, Slice], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number taken from a slice, and from the slice without a proxy in the same round."""

    name: str
    unit: str
    take: Measure


CPU_PER_REQUEST = Metric(
    "cpu_per_request", "us/request", lambda took, _: took.proxy_cpu_s / took.frames * 1e6
)
CPU_PER_GIB = Metric("cpu_per_gib", "s/GiB", lambda took, _: took.proxy_cpu_s / took.wire_bytes * (1 << 30))
ADDED_P50 = Metric("added_p50", "us", lambda took, direct: (took.p50_s - direct.p50_s) * 1e6)
ADDED_P99 = Metric("added_p99", "us", lambda took, direct: (took.p99_s - direct.p99_s) * 1e6)
ADDED_P999 = Metric("added_p99.9", "us", lambda took, direct: (took.p999_s - direct.p999_s) * 1e6)


@dataclass(frozen=True, slots=True)
class Spread:
    """Over the rounds: the median, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


@dataclass(slots=True)
class Row:
    """One metric of one workload: by peer its value, its ratio to HAProxy in each round, its target ratio."""

    api: str
    size_bytes: int
    connections: int
    in_flight: int
    metric: str
    unit: str
    values: dict[str, Spread] = field(default_factory=dict)
    ratios: dict[str, Spread] = field(default_factory=dict)
    targets: dict[str, float] = field(default_factory=dict)


def _metrics(workload: Workload) -> list[tuple[Metric, dict[str, float]]]:
    """The figures of a workload, with the targets."""
    if workload.blobs.size_bytes == LARGE_BYTES:
        return [(CPU_PER_GIB, {})]
    if workload.blobs.size_bytes >= 16 * 1024:
        return [(CPU_PER_GIB, _OF_1_MB if workload.blobs.size_bytes > 16 * 1024 else _OF_16_KIB)]
    if workload.one_at_a_time:
        return [(CPU_PER_REQUEST, _SMALL), (ADDED_P50, _ADDED_P50), (ADDED_P99, {}), (ADDED_P999, {})]
    return [(CPU_PER_REQUEST, _PIPELINED)]


def rows(slices: Slices, base: str = HAPROXY, targets: dict[str, float] | None = None) -> list[Row]:
    """Ratios are to `base`; `targets` None: to HAProxy, by workload."""
    found = []
    proxies = [name for name in dict.fromkeys(name for _, name in slices) if name != DIRECT]
    for workload in dict.fromkeys(workload for workload, _ in slices):
        shape = (workload.api, workload.blobs.size_bytes, workload.connections, workload.in_flight)
        for metric, usual in _metrics(workload):
            aims = usual if targets is None else targets
            row = Row(*shape, metric.name, metric.unit, targets=aims)
            direct = slices[workload, DIRECT]
            pairs = {name: zip(slices[workload, name], direct, strict=True) for name in proxies}
            taken = {name: [metric.take(*pair) for pair in paired] for name, paired in pairs.items()}
            for name, values in taken.items():
                row.values[name] = Spread.of(values)
                if base in taken:
                    ratios = [v / of for v, of in zip(values, taken[base], strict=True) if of > 0]
                    if ratios:
                        row.ratios[name] = Spread.of(ratios)
            found.append(row)
    return found


def loads(slices: Slices) -> list[dict[str, Any]]:
    """How fast it went, and how busy both cores were: proxy and generator CPU per second of the clock."""
    return [
        {
            "api": workload.api,
            "size_bytes": workload.blobs.size_bytes,
            "connections": workload.connections,
            "in_flight": workload.in_flight,
            "peer": name,
            "frames_per_s": statistics.median(took.frames / took.wall_s for took in taken),
            "frames_per_read": statistics.median(took.frames / took.reads for took in taken),
            "proxy_busy": statistics.median(took.proxy_cpu_s / took.wall_s for took in taken),
            "generator_busy": statistics.median(took.generator_cpu_s / took.wall_s for took in taken),
            "p50_us": statistics.median(took.p50_s for took in taken) * 1e6,
            "p99_us": statistics.median(took.p99_s for took in taken) * 1e6,
        }
        for (workload, name), taken in slices.items()
    ]


def memory_rows(memory: dict[str, Memory]) -> list[dict[str, Any]]:
    return [{"peer": name, **asdict(used), "growth": used.growth} for name, used in memory.items()]


def cpu_table(found: list[Row], base: str = HAPROXY) -> Table:
    proxies = list(found[0].values)
    beside = f", and x {base} (least-greatest of the rounds)" if base in proxies else ""
    table = Table(title=f"Cost of the proxies: median{beside}")
    for heading in ("API", "records", "conns x in flight", "measure"):
        table.add_column(heading)
    for name in proxies:
        table.add_column(name, justify="right")
    for row in found:
        cells: list[Text | str] = [row.api, size_text(row.size_bytes), f"{row.connections} x {row.in_flight}"]
        cells.append(f"{row.metric.replace('_', ' ')}, {row.unit}")
        table.add_row(*cells, *(_cell(row, name) for name in proxies))
    return table


def _cell(row: Row, name: str) -> Text:
    value = Text(f"{row.values[name].median:.3g}")
    if name not in row.ratios or (name not in row.targets and row.ratios[name] == Spread(1.0, 1.0, 1.0)):
        return value
    ratio = row.ratios[name]
    value.append(f"  {ratio.median:.2f}x", style="bold")
    value.append(f" ({ratio.low:.2f}-{ratio.high:.2f})", style="dim")
    if name in row.targets:
        met = ratio.median <= row.targets[name]
        value.append(f" {'<=' if met else 'not <='} {row.targets[name]}", style="green" if met else "red")
    return value


def memory_table(memory: dict[str, Memory]) -> Table:
    table = Table(title="Resident memory in MiB")
    for heading in ("proxy", "at rest", "before 100 MB frames", "most during them", "growth over rest"):
        table.add_column(heading, justify="left" if heading == "proxy" else "right")
    for name, used in memory.items():
        limits = {0: REST_LIMIT, 3: GROWTH_LIMIT} if name in KLAMMS else {}
        cells = []
        for column, size_bytes in enumerate((used.rest, used.before, used.peak, used.growth)):
            limit = limits.get(column)
            met = limit is None or size_bytes <= limit
            note = f" {'<=' if met else 'not <='} {limit // MIB}" if limit else ""
            style = "" if limit is None else "green" if met else "red"
            cells.append(Text(f"{size_bytes / MIB:.1f}{note}", style=style))
        table.add_row(name, *cells)
    return table


def calls_table(found: list[dict[str, Any]]) -> Table:
    table = Table(title="System calls of the proxies, by exchange")
    for heading in ("API", "records", "conns x in flight"):
        table.add_column(heading)
    for name in found[0]["values"]:
        table.add_column(name, justify="right")
    for row in found:
        shape = [row["api"], size_text(row["size_bytes"]), f"{row['connections']} x {row['in_flight']}"]
        table.add_row(*shape, *(f"{value:.3g}" for value in row["values"].values()))
    return table


def load_table(found: list[dict[str, Any]]) -> Table:
    table = Table(
        title="Was the generator the bottleneck? Requests per second, and the share of a core in use"
    )
    for heading in ("API", "records", "conns x in flight", "peer"):
        table.add_column(heading)
    for heading in ("requests/s", "responses per read", "proxy busy", "generator busy"):
        table.add_column(heading, justify="right")
    for load in found:
        table.add_row(
            load["api"],
            size_text(load["size_bytes"]),
            f"{load['connections']} x {load['in_flight']}",
            load["peer"],
            f"{load['frames_per_s']:,.0f}",
            f"{load['frames_per_read']:.3g}",
            f"{load['proxy_busy']:.0%}",
            f"{load['generator_busy']:.0%}",
        )
    return table

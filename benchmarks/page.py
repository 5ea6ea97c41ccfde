"""Writes docs/peers.md: what `python -m benchmarks peers` has measured."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.others import COMMAND, HAPROXY, ROOT
from benchmarks.peers import BESIDE, DIRECT
from benchmarks.traffic.workloads import size_text

PAGE = ROOT / "docs" / "peers.md"
MIB = 1 << 20
CPU = ("cpu_per_request", "cpu_per_gib")
MEASURED = [name for name in BESIDE if name != DIRECT]
HEAD = f"""\
# Beside other proxies

This page compares the CPU time, the latency, the system calls and the memory of klamm and of other proxies:
Kroxylicious, Toxiproxy, HAProxy, and pumps, which carry bytes and read none.
`{COMMAND}` brings what it needs, measures all of them in turns within one run, and writes this page.
[benchmarks/README.md](../benchmarks/README.md) says what each is, and how CPU and latency are measured.

`c-pump` is the floor: no proxy that copies bytes can take less. Toxiproxy, HAProxy and the pumps know nothing
of Kafka: brokers have to advertise the proxy's address. klamm and Kroxylicious replace the addresses in
answers. `klamm-full` and `compiled-full` also count each request by client, topic and error, with its
latency; `compiled-header` counts by API and client. `kroxylicious` has no filter; `kroxylicious-reading` has
one that takes every request and every answer, decoded, and forwards it as it is.

Kroxylicious is 0.12.0, the newest at Maven Central. It closes connections with versions above those of
Kafka 4.0, so all proxies carry Produce 12 and Fetch 17. It runs in Java: it gets 3 s before each row to
compile what it runs, the others 0.15 s.
"""


def write(result: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    PAGE.write_text(page(result, machine))


def page(result: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """`result` of proxies.run, as JSON has it."""
    there = [name for name in MEASURED if name not in result["absent"]]
    where = f"{machine['cpus']} cores of {machine['cpu']}, Python {machine['python']}"
    when = f"Measured on {machine['time'][:10]}, {where}: {result['pace']['rounds']} rounds by turns."
    parts = [HEAD, when, *(f"Not measured: `{name}`: {why}." for name, why in result["absent"].items())]
    rows = result["rows"]
    cpu = [row for row in rows if row["metric"] in CPU]
    added = [row for row in rows if row["metric"] not in CPU]
    parts += [
        "## CPU",
        "Of the proxy's process: the median, and in brackets as a multiple of HAProxy's in the same round.",
        _table(["", *map(_code, there)], (_cpu(row, there) for row in cpu)),
        "## Latency that is added",
        "200 B, one in flight: a percentile through the proxy, less the direct one of the same round.",
        _table(["", *map(_code, there)], (_values(row, there) for row in added)),
        "## System calls",
        "By exchange, all threads of the proxy, counted by perf in a stretch of its own after all rounds.",
        _calls(result, there),
        "## Memory, and the time until it answers",
        "At rest, and what comes to it while frames of 100 MB pass to a client that waits 0.3 s first.",
        _table(["", "at rest", "growth", "answers after"], _memory(result, there)),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _code(name: str) -> str:
    return f"`{name}`"


def _name(row: Mapping[str, Any]) -> str:
    flight = row["connections"] * row["in_flight"]
    return f"{row['api']}, {size_text(row['size_bytes'])}, {flight} in flight"


def _cpu(row: Mapping[str, Any], there: Iterable[str]) -> list[str]:
    cells = [f"{_name(row)}, {_unit(row)}"]
    for name in there:
        ratio = row["ratios"].get(name) if name != HAPROXY else None
        times = f" ({ratio['median']:.2f}x)" if ratio else ""
        cells.append(f"{row['values'][name]['median']:.3g}{times}")
    return cells


def _unit(row: Mapping[str, Any]) -> str:
    return str(row["unit"]).replace("us", "µs")


def _values(row: Mapping[str, Any], there: Iterable[str]) -> list[str]:
    what = f"{row['api']}, {row['metric'].removeprefix('added_')}, {_unit(row)}"
    return [what, *(f"{row['values'][name]['median']:.3g}" for name in there)]


def _calls(result: Mapping[str, Any], there: list[str]) -> str:
    if not result["system_calls"]:
        return f"Not counted: {result['system_calls_uncounted']}."
    rows = ([_name(row), *(f"{row['values'][name]:.2f}" for name in there)] for row in result["system_calls"])
    return _table(["", *map(_code, there)], rows)


def _memory(result: Mapping[str, Any], there: Iterable[str]) -> Iterable[list[str]]:
    used = {row["peer"]: row for row in result["memory_bytes"]}
    for name in there:
        rest, growth = (f"{used[name][what] / MIB:.1f} MiB" for what in ("rest", "growth"))
        yield [_code(name), rest, growth, f"{result['answers_after_s'][name]:.2f} s"]


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

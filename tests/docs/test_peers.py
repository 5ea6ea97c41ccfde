"""docs/peers.md is what `make bench-peers` writes; docs/compared.md says where each of its rows is from."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from benchmarks.others import TOXIPROXY
from benchmarks.page import HEAD, MEASURED, PAGE, page
from tests.brokers.jars import ROOT
from tests.named import missing

MACHINE = {"time": "2026-11-28T12:00:00Z", "cpu": "a CPU", "cpus": 2, "python": "3.11.2"}


def spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median, "high": median}


def row(metric: str, unit: str, **shape: Any) -> dict[str, Any]:
    there = [name for name in MEASURED if name != TOXIPROXY]
    values = {name: spread(10.0 + place) for place, name in enumerate(there)}
    ratios = {name: spread(1.5) for name in there}
    shape = {"api": "Produce", "size_bytes": 200, "connections": 4, "in_flight": 16, **shape}
    return {**shape, "metric": metric, "unit": unit, "values": values, "ratios": ratios}


RESULT = {
    "pace": {"rounds": 7},
    "absent": {TOXIPROXY: "it is not there"},
    "rows": [row("cpu_per_request", "us/request"), row("added_p99", "us", connections=1, in_flight=1)],
    "memory_bytes": [{"peer": name, "rest": 3 << 20, "growth": 1 << 19} for name in MEASURED],
    "answers_after_s": dict.fromkeys(MEASURED, 0.25),
    "system_calls": [],
    "system_calls_uncounted": "perf is not installed",
}
CALLS = {
    **{"api": "Fetch", "size_bytes": 200, "connections": 1, "in_flight": 1},
    "values": {name: 6.0 + place / 2 for place, name in enumerate(MEASURED)},
}


def test_the_page_has_what_was_measured_and_why_a_proxy_was_not() -> None:
    lines = page(RESULT, MACHINE).splitlines()
    assert "Not measured: `toxiproxy`: it is not there." in lines
    assert any("2 cores of a CPU" in line and line.endswith("7 rounds by turns.") for line in lines)
    cpu = next(line for line in lines if line.startswith("| Produce, 200 B, 64 in flight, µs/request |"))
    assert cpu.split(" | ")[1:4] == ["10 (1.50x)", "11 (1.50x)", "12"]
    assert any(line.startswith("| Produce, p99, µs | 10 | 11 |") for line in lines)
    assert "| `haproxy` | 3.0 MiB | 0.5 MiB | 0.25 s |" in lines
    assert "Not counted: perf is not installed." in lines
    counted = page(RESULT | {"system_calls": [CALLS]}, MACHINE)
    assert "\n| Fetch, 200 B, 1 in flight | 6.00 | 6.50 | 7.00 |" in counted


def test_the_page_in_docs_was_written_by_the_command_and_has_each_proxy() -> None:
    text = PAGE.read_text()
    assert text.startswith(HEAD.rstrip())
    missing_ones = set(re.findall(r"^Not measured: `([a-z-]+)`", text, re.MULTILINE))
    heads = next(line for line in text.splitlines() if line.startswith("|  | `"))
    assert re.findall(r"`([a-z-]+)`", heads) == [name for name in MEASURED if name not in missing_ones]
    assert re.search(r"^bench-peers:", (ROOT / "Makefile").read_text(), re.MULTILINE)


class Fact(NamedTuple):
    who: str
    source: str


def facts() -> Iterator[Fact]:
    for line in (ROOT / "docs" / "compared.md").read_text().splitlines():
        cells = line.strip("|").split(" | ")
        if line.startswith("| ") and len(cells) == 3 and cells[2].strip() != "source":
            yield Fact(cells[0].strip(), cells[2].strip())


@pytest.mark.parametrize("fact", [*facts()], ids=lambda fact: fact.who)
def test_each_row_that_compares_has_a_source_and_klamms_are_tests(fact: Fact) -> None:
    assert fact.source
    tests = re.findall(r"`(tests/[^`]+)`", fact.source)
    assert (fact.who == "klamm") == bool(tests)
    assert missing(tests) == set()

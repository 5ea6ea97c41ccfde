"""Lines that stay: one per moment where there is no terminal, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.quantiles import quantile
from klamm.dashboards.terminal.sections import FAINT, HEADING
from klamm.dashboards.terminal.window import Counters, Row, window
from klamm.decoders.text import printable


def line(previous: Counters | None, current: Counters) -> str:
    """The traffic between two answers of /v1/counters in one line of text."""
    now = window(previous, current)
    parts = [
        f"{figures.clock(current['now'] - current['started_at']):>5}",
        f"{figures.rate(now.total.requests / now.seconds)} req/s",
        f"{figures.size(now.total.request_bytes / now.seconds)} in/s",
        f"{figures.size(now.total.response_bytes / now.seconds)} out/s",
        f"p99 {_quantile(now.total, current['bounds_s'], 0.99)}",
        f"{sum(each['open'] for each in current['connections'])} connections",
    ]
    errors: Counter[str] = Counter()
    for row in now.errors:
        errors[row.name] += row.count
    said = ", ".join(f"{count} {name}" for name, count in errors.most_common() if count)
    return "  ".join(parts) + (f"  errors: {said}" if said else "")


def summary(last: Counters) -> RenderableType:
    """Everything since klamm's start: totals, each API, each error, and klamm's own time."""
    ever = window(None, last)
    bounds, own_bounds = last["bounds_s"], last["own_bounds_s"]
    table = Table.grid(padding=(0, 2, 0, 0))
    for heading in ("API", "requests", "in", "out", "p50", "p99", "errors"):
        table.add_column(justify="left" if heading == "API" else "right", no_wrap=True)
    table.add_row(
        *(Text(heading, HEADING) for heading in ("API", "requests", "in", "out", "p50", "p99", "errors"))
    )
    for row in ever.apis:
        table.add_row(
            Text(row.name),
            Text(figures.count(row.requests)),
            Text(figures.size(row.request_bytes)),
            Text(figures.size(row.response_bytes)),
            Text(_quantile(row, bounds, 0.5)),
            Text(_quantile(row, bounds, 0.99)),
            Text(
                figures.count(row.errors) if row.errors else figures.NOTHING, "red" if row.errors else FAINT
            ),
        )
    totals = (
        f"In {_span(ever.seconds)} klamm passed on {figures.count(ever.total.requests)} requests"
        f" of {len(ever.clients)} clients on {len(ever.topics)} topics:"
        f" {figures.size(ever.total.request_bytes)} in, {figures.size(ever.total.response_bytes)} out."
    )
    lines: list[RenderableType] = [Text(totals, "bold"), Text(), table, Text()]
    if ever.errors:
        errors = Table.grid(padding=(0, 2, 0, 0))
        errors.add_column(justify="left")
        errors.add_column(justify="right")
        errors.add_column()
        errors.add_row(Text("Kafka error", HEADING), Text("times", HEADING), Text("whose", HEADING))
        for error in ever.errors:
            errors.add_row(
                Text(error.name, "red"),
                Text(figures.count(error.ever)),
                Text(f"{error.api} of {printable(error.whose())}"),
            )
        lines += [errors, Text()]
    p50 = _quantile(ever.own, own_bounds, 0.5)
    p99 = _quantile(ever.own, own_bounds, 0.99)
    lines.append(Text(f"klamm's own time: p50 {p50}, p99 {p99}. Problems met: {_problems(last)}."))
    return Group(*lines)


def _problems(last: Counters) -> str:
    """How many of each kind, and with which APIs."""
    kinds: dict[str, Counter[str]] = {}
    for row in last["problems"]:
        kinds.setdefault(row["kind"], Counter())[row["api"]] += row["count"]
    told = [f"{kind} {apis.total()}{_with(sorted(filter(None, apis)))}" for kind, apis in kinds.items()]
    return printable(", ".join(sorted(told))) or "none"


def _with(apis: list[str]) -> str:
    return f" ({', '.join(apis)})" if apis else ""


def _quantile(row: Row, bounds_s: Sequence[float], share: float) -> str:
    return figures.quantile(quantile(row.buckets, bounds_s, row.total_s, share))


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else figures.clock(seconds)

"""The first lines of a screen: clusters, what flows, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.quantiles import quantile
from klamm.dashboards.terminal.sections import ALARM, FAINT, HEADING
from klamm.dashboards.terminal.window import Counters, Window


def head(
    window: Window, current: Counters, width: int, bars: str, page: str = "", hint: str = ""
) -> Iterator[Table]:
    """Three lines; `bars` are past rates. Beside the title stand the time since the start, the address of the
    inspector (`page`), and `hint`; where not all of these fit, the address goes before the others.
    """
    total, seconds = window.total, window.seconds
    uptime = f"up {figures.clock(current['now'] - current['started_at'])}"
    title = _title(current)
    beside = [(uptime, page, hint), *([(page, hint), (page,)] if page else [])]
    texts = ["  ".join(filter(None, words)) for words in beside]
    fitting = next((text for text in texts if title.cell_len + len(text) < width), texts[-1])
    yield _ends(title, Text(fitting, FAINT, justify="right"))

    flow = Text()
    for value, unit in (
        (figures.rate(total.requests / seconds), "req/s"),
        (figures.size(total.request_bytes / seconds), "in/s"),
        (figures.size(total.response_bytes / seconds), "out/s"),
        (figures.count(sum(each["open"] for each in current["connections"])), "conn"),
        (figures.count(sum(each["count"] for each in current["in_flight"])), "in flight"),
        (figures.rate(total.errors / seconds), "err/s"),
    ):
        flow.append(value, ALARM if unit == "err/s" and total.errors else "bold")
        flow.append(f" {unit}  ", FAINT)
    yield _ends(flow, Text(bars[-max(width - flow.cell_len - 1, 0) :], "cyan", justify="right"))

    own = window.own
    times = Text()
    for who, row, scale in (
        ("brokers", total, current["bounds_s"]),
        (own.name, own, current["own_bounds_s"]),
    ):
        p50, p99 = (quantile(row.buckets, scale, row.total_s, share) for share in (0.5, 0.99))
        times.append(f"{who} ", FAINT)
        times.append(f"p50 {figures.quantile(p50)}  p99 {figures.quantile(p99)}    ", "bold")
    dropped = current["log_dropped"]
    lost = f"{figures.count(dropped)} log lines dropped" if dropped else ""
    yield _ends(times, Text(lost, "yellow", justify="right"))


def _title(current: Counters) -> Text:
    title = Text(f"klamm {current['version']}", HEADING)
    for cluster in current["clusters"]:
        title.append("   ")
        title.append("● ", "green" if cluster["ready"] else ALARM)
        title.append(cluster["name"], "bold")
        if not cluster["ready"]:
            title.append(f"  not ready: {cluster['reason']}  {cluster['listening']}", ALARM)
            continue
        up = [node["up"] is not False for node in cluster["nodes"] if node["kind"] == "broker"]
        brokers = "broker" if len(up) == 1 else "brokers"
        if all(up):
            title.append(f"  {len(up)} {brokers}", FAINT)
        else:
            title.append(f"  {sum(up)}/{len(up)} {brokers}", ALARM)
        title.append(f"  {cluster['listening']}", FAINT)
    return title


def _ends(left: Text, right: Text) -> Table:
    """A line: `left` cut where it meets `right`."""
    line = Table.grid(expand=True)
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(width=right.cell_len, no_wrap=True)
    line.add_row(left, right)
    return line

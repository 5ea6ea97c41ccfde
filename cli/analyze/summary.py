"""Prints the result of `klamm analyze` on a terminal: the traffic, then findings, the gravest first."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from klamm.pipeline.detectors.finding import Finding
from klamm.pipeline.report import wording
from klamm.pipeline.report.comparison import ABSENT, GONE, NEW, STILL, Comparison
from klamm.pipeline.report.report import Group, Report

STATES = {GONE: "green", ABSENT: "yellow", NEW: "red", STILL: "bold"}
STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold cyan"}
FAINT = "bright_black"
SHOWN = 5  # findings of one detector
INDENT = 2


def print_summary(report: Report, console: Console, comparison: Comparison | None = None) -> None:
    """Lines to be copied are not wrapped."""
    console.print(Text(", ".join(map(wording.plain, report.captures)), "bold"), soft_wrap=True)
    _print(Text(report.span()), 0, console)
    _print(Text("; ".join(_amounts(report))), 0, console)
    for note in report.notes():
        _print(Text(note, "yellow"), 0, console)
    if comparison is not None:
        _print_comparison(comparison, console)
    for group in report.groups():
        print_group(report, group, console)
    console.print()
    _print(Text(report.looked(), FAINT), 0, console)


def _print_comparison(comparison: Comparison, console: Console) -> None:
    """A line for each finding: what became of it, whose it is, and how often it came."""
    console.print()
    _print(Text.assemble(("compared with ", "bold"), comparison.about()), 0, console)
    _print(Text(comparison.counts()), 0, console)
    for note in comparison.notes():
        _print(Text(note, "yellow"), 0, console)
    for pair in comparison.pairs:
        one = pair.finding
        text = Text.assemble(
            (f"{pair.state:12}", STATES[pair.state]), (f"{one.severity:8}", STYLES[one.severity])
        )
        text.append(f"{one.detector}  ").append(wording.who(one), "bold").append(f"  {pair.often()}", FAINT)
        _print(text, INDENT, console)


def print_group(report: Report, group: Group, console: Console) -> None:
    console.print()
    console.print(_title(group))
    day = wording.day(report.traffic.first_us)
    for one in group.findings[:SHOWN]:
        show = report.show(one, one.evidence[0]) if one.evidence else ""
        print_finding(one, show, day, console)
    more = len(group.findings) - SHOWN
    if more > 0:
        _print(Text(f"and {more:,} more: --json and --html have them", FAINT), INDENT, console)
    if group.detector.settings:
        _print(Text.assemble(("change ", "green"), ", ".join(group.detector.settings)), INDENT, console)
    _print(Text(group.detector.advice), 2 * INDENT, console)


def print_finding(one: Finding, show: str, day: str, console: Console) -> None:
    """The client, the problem, its time and frequency; and the command that shows it."""
    _print(Text(wording.who(one), "bold"), INDENT, console)
    _print(Text(wording.plain(one.what)), 2 * INDENT, console)
    often = f"{wording.count(one.count, 'time')}, {wording.when(one.first_us, one.last_us, day)}"
    _print(Text(often, FAINT), 2 * INDENT, console)
    if show:
        console.print(Text(" " * 2 * INDENT + show, "cyan"), soft_wrap=True)


def _title(group: Group) -> Text:
    text = Text.assemble((group.severity, STYLES[group.severity]), "  ", (group.detector.title, "bold"))
    return text.append(f"  {group.detector.name}", FAINT)


def _print(text: Text, columns: int, console: Console) -> None:
    """In lines that begin at this column."""
    for line in text.wrap(console, max(20, console.width - columns)):
        line.rstrip()
        console.print(Text(" " * columns).append_text(line), soft_wrap=True)


def _amounts(report: Report) -> Iterator[str]:
    traffic, count = report.traffic, wording.count
    if traffic.captures > 1:
        yield count(traffic.captures, "capture")
    yield (
        f"{count(traffic.exchanges, 'exchange')} of {count(traffic.clients, 'client id')} in "
        f"{count(traffic.connections, 'connection')} to {count(traffic.nodes, 'broker')}"
    )
    yield f"{wording.size(traffic.request_bytes)} sent, {wording.size(traffic.response_bytes)} received"
    yield f"{count(traffic.errors, 'error')}, {traffic.unanswered:,} unanswered"

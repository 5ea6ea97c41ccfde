"""The tables of the frame: each a list of columns, and a function from a window to rows of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.quantiles import quantile
from klamm.dashboards.terminal.window import Counters, Row, Window
from klamm.decoders.text import printable

HEADING = "bold cyan"
FAINT = "bright_black"
ALARM = "bold red"

NAME = 10  # cells that a longer name gets at least, before numbers are shown

Cells = list[Text]


@dataclass(frozen=True, slots=True)
class Column:
    """`width` in cells, aligned right; None takes what is left, aligned left. Where there is no room, columns
    of the lowest `rank` are left out first.
    """

    heading: str
    width: int | None
    left: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """`columns[0].heading` is the title. `rows` are in order of interest; the frame shows what fits."""

    columns: tuple[Column, ...]
    rows: list[Cells]

    def table(self, most: int, width: int) -> Table:
        """At most `most` rows; where some do not fit, the last one counts them. Columns that leave names
        no room in `width` cells are left out.
        """
        table = Table.grid(padding=(0, 1, 0, 0), expand=True)
        longest = max((cells[0].cell_len for cells in self.rows), default=0)
        fitting = fitted(self.columns, longest, width)
        columns = [self.columns[index] for index in fitting]
        for column in columns:
            if column.width is None:
                table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
            else:
                justify: JustifyMethod = "left" if column.left else "right"
                table.add_column(width=column.width, justify=justify, no_wrap=True, overflow="ellipsis")
        table.add_row(
            *(Text(column.heading, HEADING if not n else FAINT) for n, column in enumerate(columns))
        )
        shown = self.rows if len(self.rows) <= most else self.rows[: most - 1]
        for cells in shown:
            table.add_row(*(cells[index] for index in fitting))
        if len(shown) < len(self.rows):
            table.add_row(Text(f"and {len(self.rows) - len(shown)} more", FAINT))
        return table


def fitted(columns: Sequence[Column], longest: int, width: int, name: int = NAME) -> list[int]:
    """The places of the columns that are shown in `width` cells; `longest` is the widest name, and `name` the
    cells that such a name gets at least.
    """
    wanted = min(max(len(columns[0].heading), longest), name)
    kept = list(range(len(columns)))
    while len(kept) > 1 and wanted + sum(1 + (columns[index].width or 0) for index in kept[1:]) > width:
        kept.remove(min(kept[1:], key=lambda index: columns[index].rank))
    return kept


@dataclass(frozen=True, slots=True)
class Fitted:
    """A section as a table of at most `most` rows, as wide as the place where it stands."""

    section: Section
    most: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.section.table(self.most, options.max_width)


Draw = Callable[[Window, Counters], Section]

RATE = Column("req/s", 7, rank=7)
ERRORS = Column("err/s", 6, rank=6)
P50, P99 = Column("p50", 7, rank=3), Column("p99", 7, rank=5)
IN, OUT = Column("in/s", 7, rank=1), Column("out/s", 7, rank=2)


def apis(window: Window, current: Counters) -> Section:
    """Each API with all there is about it."""
    columns = (Column("API", None), RATE, IN, OUT, P50, P99, ERRORS)
    return Section(columns, [_traffic(row, window, current) for row in window.apis])


def versions(window: Window, current: Counters) -> Section:
    """Each API version of a part of the traffic."""
    columns = (Column("VERSION", None), RATE, IN, OUT, P50, P99, ERRORS)
    return Section(columns, [_traffic(row, window, current) for row in window.versions])


def apis_with_shape(window: Window, current: Counters) -> Section:
    """The same with the distribution of latencies, fast on the left: one bar for each bucket."""
    bounds = current["bounds_s"]
    scale = f"{figures.duration(bounds[0])} … {figures.duration(bounds[-1])}"
    columns = (
        Column("API", None),
        RATE,
        IN,
        OUT,
        P50,
        P99,
        Column(scale, len(bounds) + 1, left=True),
        ERRORS,
    )
    rows = []
    for row in window.apis:
        *cells, errors = _traffic(row, window, current)
        rows.append([*cells, Text(figures.bars(row.buckets), "cyan"), errors])
    return Section(columns, rows)


def clients(window: Window, current: Counters) -> Section:
    """Each client id."""
    columns = (Column("CLIENT", None), RATE, IN, OUT, P50, P99, ERRORS)
    return Section(columns, [_traffic(row, window, current) for row in window.clients])


def topics(window: Window, current: Counters) -> Section:
    """Each topic; bytes are not known by topic."""
    columns = (Column("TOPIC", None), RATE, P99, ERRORS)
    rows = []
    for row in window.topics:
        name, requests, _, _, _, p99, errors = _traffic(row, window, current)
        rows.append([name, requests, p99, errors])
    return Section(columns, rows or [_instead(columns, _unless_full(current))])


def brokers(window: Window, current: Counters) -> Section:
    """Each broker with its open connections."""
    many = len(current["clusters"]) > 1
    connections = {
        f"{each['cluster']}/{each['broker']}" if many else each["broker"]: each["open"]
        for each in current["connections"]
    }
    columns = (Column("BROKER", None), RATE, P99, Column("conn", 5, rank=4), ERRORS)
    rows = []
    for row in window.brokers:
        name, requests, _, _, _, p99, errors = _traffic(row, window, current)
        rows.append([name, requests, p99, _number(connections.get(row.name, 0)), errors])
    return Section(columns, rows)


def errors(window: Window, current: Counters) -> Section:
    """Each Kafka error of an API: now and ever, whose, and about what."""
    columns = (Column("ERROR", None), Column("/s", 6, rank=1), Column("total", 7))
    rows = []
    for row in window.errors:
        line = Text(row.name, "red" if row.count else FAINT)
        line.append(f"  {row.api}", "" if row.count else FAINT)
        line.append(f"  {printable(row.whose())}", FAINT)
        rows.append([line, _rate(row.count / window.seconds), _number(row.ever)])
    return Section(columns, rows or [_instead(columns, _unless_full(current))])


def problems(_: Window, current: Counters) -> Section:
    """Frames that klamm could not read or would not pass, since the start."""
    columns = (Column("PROBLEM", None), Column("total", 7))
    found: Counter[str] = Counter()
    for row in current["problems"]:
        found[f"{row['kind']}  {row['api'] or row['broker']}".rstrip()] += row["count"]
    rows = [
        [Text(name, "yellow"), _number(count)]
        for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if count
    ]
    return Section(columns, rows or [_instead(columns, "none")])


def software(_: Window, current: Counters) -> Section:
    """The libraries that clients name, and the connections of each since the start."""
    columns = (Column("CLIENT SOFTWARE", None), Column("connections", 11))
    rows = [
        [_name(f"{row['name']} {row['version']}".strip()), _number(row["count"])]
        for row in sorted(current["software"], key=lambda row: (-row["count"], row["name"], row["version"]))
    ]
    return Section(columns, rows or [_instead(columns, "none said so yet")])


def _unless_full(current: Counters) -> str:
    return "none" if current["metering"] == "full" else "not metered"


def _instead(columns: Sequence[Column], text: str) -> Cells:
    return [Text(text, FAINT), *(Text() for _ in columns[1:])]


def _traffic(row: Row, window: Window, current: Counters) -> Cells:
    bounds = current["bounds_s"]
    return [
        _name(row.name, "" if row.requests else FAINT),
        _rate(row.requests / window.seconds),
        _faint_nothing(figures.size(row.request_bytes / window.seconds)),
        _faint_nothing(figures.size(row.response_bytes / window.seconds)),
        _latency(row, bounds, 0.5),
        _latency(row, bounds, 0.99),
        _rate(row.errors / window.seconds, ALARM),
    ]


def _latency(row: Row, bounds: Sequence[float], share: float) -> Text:
    return _faint_nothing(figures.quantile(quantile(row.buckets, bounds, row.total_s, share)))


def _rate(per_second: float, style: str = "bold") -> Text:
    return _faint_nothing(figures.rate(per_second), style)


def _number(number: int) -> Text:
    return Text(figures.count(number), "" if number else FAINT)


def _faint_nothing(text: str, style: str = "") -> Text:
    return Text(text, FAINT if text == figures.NOTHING else style)


def _name(text: str, style: str = "") -> Text:
    return Text(printable(text), style)

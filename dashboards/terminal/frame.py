"""One picture of klamm, fitted to the terminal: tables below, or from 120 columns beside, each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.dashboards.terminal import figures, sections
from klamm.dashboards.terminal.chart import chart
from klamm.dashboards.terminal.head import head as head_of
from klamm.dashboards.terminal.sections import ALARM, FAINT, HEADING, Draw, Fitted, Section
from klamm.dashboards.terminal.window import Counters, Window, window

WIDE = 120  # columns from which tables stand beside each other

CHART_LINES = (4, 12)  # at least, at most
ROOMY = 30  # lines from which bands are set apart, and there is a footnote

# Bands from top to bottom, columns from left to right, and the rows that a band gets first.
NARROW_BANDS: tuple[tuple[tuple[Draw, ...], int], ...] = (
    ((sections.apis,), 6),
    ((sections.clients,), 4),
    ((sections.topics, sections.brokers), 4),
    ((sections.errors,), 3),
)
WIDE_BANDS: tuple[tuple[tuple[Draw, ...], int], ...] = (
    ((sections.apis_with_shape, sections.brokers), 8),
    ((sections.clients, sections.topics), 6),
    ((sections.errors, sections.software, sections.problems), 4),
)
NARROW_SHARES = {1: (1,), 2: (5, 4)}
WIDE_SHARES = {2: (5, 3), 3: (2, 1, 1)}

FOOTNOTE = "latencies of clients, topics and brokers leave out long polls (Fetch, JoinGroup, SyncGroup)"
WIDE_FOOTNOTE = f"total and connections count since klamm began; {FOOTNOTE}"


def frame(
    previous: Counters | None,
    current: Counters,
    rates: Sequence[float] = (),
    notice: str = "",
    page: str = "",
) -> RenderableType:
    """The changes from `previous` to `current`, answers of /v1/counters; without `previous`, since the start.
    `rates` are past requests a second, oldest first, for the bars; `notice` takes the place of the last line.
    `page` is the address of the inspector.
    """
    return _Frame(window(previous, current), current, rates, notice, page)


@dataclass(frozen=True, slots=True)
class _Frame:
    window: Window
    current: Counters
    rates: Sequence[float]
    notice: str
    page: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width, height = options.max_width, options.height or options.size.height
        wide = width >= WIDE
        bands = [
            ([draw(self.window, self.current) for draw in draws], first)
            for draws, first in (WIDE_BANDS if wide else NARROW_BANDS)
        ]
        bars = "" if options.ascii_only else figures.bars(self.rates)
        head = list(head_of(self.window, self.current, width, bars, self.page, "Ctrl-C ends"))
        airy = height >= ROOMY
        note = self.notice or (WIDE_FOOTNOTE if wide else FOOTNOTE)
        foot = Text(note, ALARM if self.notice else FAINT, no_wrap=True, overflow="ellipsis")
        last = 1 if airy or self.notice else 0
        room = height - len(head) - last - len(bands) * (2 if airy else 1)
        rows = _shared(room, [(max(len(section.rows) for section in band), first) for band, first in bands])
        lines: list[RenderableType] = [*head]
        for (band, _), most in zip(bands, rows, strict=True):
            if airy:
                lines.append(Text())
            lines.append(_beside(band, (WIDE_SHARES if wide else NARROW_SHARES)[len(band)], most))
        left = room - sum(rows)
        if left >= CHART_LINES[0] + 2 and self.rates and not options.ascii_only:
            high = min(left - 2, CHART_LINES[1])
            lines += [Text(), Text("REQUESTS A SECOND", HEADING), *chart(self.rates, width, high)]
            left -= high + 2
        yield Group(*lines, *[Text()] * left, *[foot] * last)


def _beside(band: Sequence[Section], shares: Sequence[int], most: int) -> RenderableType:
    row = Table.grid(padding=(0, 2, 0, 0), expand=True, pad_edge=False)
    for share in shares:
        row.add_column(ratio=share)
    row.add_row(*(Fitted(section, most) for section in band))
    return row


def _shared(room: int, wishes: Sequence[tuple[int, int]]) -> list[int]:
    """Rows for each band. A wish is (all that it has, what it gets first); the rest is given one by one.

    No band gets less than one.
    """
    rows = [min(wish, first) for wish, first in wishes]
    while sum(rows) > room and max(rows) > 1:
        rows[rows.index(max(rows))] -= 1
    while sum(rows) < room and any(row < wish for row, (wish, _) in zip(rows, wishes, strict=True)):
        for band, (wish, _) in enumerate(wishes):
            if rows[band] < wish and sum(rows) < room:
                rows[band] += 1
    return rows

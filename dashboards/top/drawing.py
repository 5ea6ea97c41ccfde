"""The screen: the head, a line of tables, the rows or a page, and a last line with keys or a notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.head import head
from klamm.dashboards.terminal.sections import ALARM, FAINT, HEADING, fitted
from klamm.dashboards.top.data import Data
from klamm.dashboards.top.expressions import of_row
from klamm.dashboards.top.pages import page
from klamm.dashboards.top.state import EXCHANGE, TOPIC, Order, Shown, State, chosen
from klamm.dashboards.top.tables import TABLES, Field, Item, order_of, rows
from klamm.decoders.text import printable

NARROWEST, LOWEST = 40, 10
HEAD = 4  # lines: three of the head, and the names of the tables
FOOT = 1
LONGEST = 40  # cells of a name that count for the width of columns
NAMES = 16  # cells that names keep, before other columns get more than they need
APART = 8  # more cells between columns, at most, where there is room
NOTHING = Shown((), 1, (), Order(""))

KEYS_OF_TABLES = "enter open  ? help  q quit  / filter  <> sort  r reverse  space freeze"
KEYS_OF_PAGES = "esc back  ? help  q quit  up down scroll  x exchanges  space freeze"


def whole(state: State, data: Data, console: Console) -> RenderableType:
    """The head and all rows of the table, as wide as the console is."""
    width = max(console.width, NARROWEST)
    top = head(data.window, data.current, width, "")
    count = len(rows(state, data))
    lines, _ = _list(state, data, width, max(count, 1) + 1, plain=True)
    return Group(*top, Text(), *lines)


class Screen(NamedTuple):
    """A picture, and what a key needs to know of it."""

    picture: RenderableType
    shown: Shown


def screen(state: State, data: Data | None, console: Console, notice: str = "") -> Screen:
    """As large as the console is now. `notice` takes the place of the keys."""
    width, height = console.size
    if width < NARROWEST or height < LOWEST:
        small = f"{width}x{height} is too small: klamm top needs {NARROWEST}x{LOWEST}"
        return Screen(Text(small), NOTHING)
    if data is None:
        return Screen(Text(printable(notice or "waiting for klamm")), NOTHING)
    room = height - HEAD - FOOT
    bars = "" if console.options.ascii_only else figures.bars(data.rates)
    top: list[RenderableType] = [
        *head(data.window, data.current, width, bars),
        _tabs(state, data, width),
    ]
    if state.lists:
        body, shown = _list(state, data, width, room)
    else:
        body, shown = _page(state, data, console, room)
    return Screen(Group(*top, *body, _last(state, notice)), shown)


def _tabs(state: State, data: Data, width: int) -> Text:
    """The names of the tables, as far as there is room, and on the right what limits the view."""
    said = []
    if state.frozen:
        said.append("FROZEN")
    limit = state.where if state.table == EXCHANGE else state.words
    if limit:
        said.append(f"filter: {printable(limit)}")
    if state.table == EXCHANGE and data.left_out:
        said.append(f"{figures.count(data.left_out)} left out")
    right = "  ".join(said)
    whole = sum(len(table.title) + 3 for table in TABLES.values()) + len(right) < width
    text = Text(no_wrap=True, overflow="ellipsis")
    for number, (name, table) in enumerate(TABLES.items(), 1):
        here = name == state.table
        text.append(f"{number}", FAINT)
        if whole or here:
            text.append(f"{'[' if here else ' '}{table.title}{']' if here else ' '}", "bold" if here else "")
        else:
            text.append(" ")
    if right:
        text.append(" ")
        text.append(right, "bold yellow")
    return text


def _list(
    state: State, data: Data, width: int, room: int, plain: bool = False
) -> tuple[list[RenderableType], Shown]:
    """`plain`: no row is chosen."""
    table, order = TABLES[state.table], order_of(state)
    items = rows(state, data)
    heading = len(table.fields[0].column.heading) + 1  # with its mark
    longest = max((cell_len(printable(str(item.values["name"]))) for item in items), default=0)
    columns = [field.column for field in table.fields]
    kept = fitted(columns, max(heading, min(longest, LONGEST)), width, table.name)
    fields = [table.fields[place] for place in kept]
    headings = [field.column.heading for field in fields]
    shown = Shown([item.key for item in items], max(room - 1, 1), headings, order)
    at = chosen(state, shown)
    if at is not None:
        shown = replace(shown, where=of_row(state.table, items[at].key, data.many))
    sizes = _sizes(fields, items, longest, width)
    first = max(0, min((at or 0) - room // 2, len(items) - (room - 1)))
    lines: list[RenderableType] = [_headings(fields, order, sizes)]
    for place, item in enumerate(items[first : first + room - 1], first):
        lines.append(_line(item, fields, sizes, place == at and not plain))
    if not items:
        lines.append(Text(_empty(state, data), FAINT, no_wrap=True, overflow="ellipsis"))
    return lines + [Text()] * (room - len(lines)), shown


def _sizes(fields: Sequence[Field], items: Sequence[Item], longest: int, width: int) -> list[int]:
    """The cells of each column. What the names do not need goes to columns with longer texts, those of the
    highest rank first, and then between all of them.
    """
    sizes = [field.column.width or 0 for field in fields]
    sizes[0] = width - sum(1 + size for size in sizes[1:])
    for place in sorted(range(1, len(fields)), key=lambda place: -fields[place].column.rank):
        spare = sizes[0] - max(NAMES, min(longest, LONGEST))
        more = max(0, min(spare, _wanted(fields[place], items) - sizes[place]))
        sizes[place] += more
        sizes[0] -= more
    apart = max(0, min(APART, (sizes[0] - max(LONGEST, longest)) // max(1, len(fields) - 1)))
    sizes[1:] = [size + apart for size in sizes[1:]]
    sizes[0] = min(sizes[0] - apart * (len(fields) - 1), max(LONGEST, longest))
    return sizes


def _wanted(field: Field, items: Sequence[Item]) -> int:
    """The cells that its texts would need, as far as it may have them."""
    texts = (cell_len(field.shown(item, field.most)) for item in items) if field.most else ()
    return min(field.most, max(texts, default=0))


def _headings(fields: Sequence[Field], order: Order, sizes: Sequence[int]) -> Text:
    """The heading by which rows are sorted has a mark."""
    line = Text(no_wrap=True)
    for place, (field, size) in enumerate(zip(fields, sizes, strict=True)):
        column, heading = field.column, field.column.heading
        style = HEADING if not place else FAINT
        if heading == order.heading:
            mark = "▼" if field.down != order.turned else "▲"
            heading, style = heading[: size - 1] + mark, "bold"
        line.append(("" if not place else " ") + _sized(heading, size, place == 0 or column.left), style)
    return line


def _line(item: Item, fields: Sequence[Field], sizes: Sequence[int], is_chosen: bool) -> Text:
    line = Text(no_wrap=True, style="reverse" if is_chosen else "")
    idle = not item.values.get("rate", 1)
    for place, (field, size) in enumerate(zip(fields, sizes, strict=True)):
        text = field.shown(item, size)
        style = FAINT if text in ("", "0", figures.NOTHING) or (idle and not place) else field.style
        if text == "DOWN":
            style = ALARM
        cell = _sized(text, size, place == 0 or field.column.left)
        line.append(("" if not place else " ") + cell, "" if is_chosen else style)
    return line


def _sized(text: str, size: int, left: bool) -> str:
    """Exactly so many cells; what is cut off is an ellipsis."""
    width = cell_len(text)
    if width > size:
        return set_cell_size(text, size - 1) + "…"
    return text + " " * (size - width) if left else " " * (size - width) + text


def _empty(state: State, data: Data) -> str:
    if state.frozen:
        return "nothing was here when the view was frozen; space lets it go on"
    if state.table == EXCHANGE:
        return "none yet" + (" for which this expression holds" if state.where else "")
    if state.words:
        return f"no name has {state.words!r} in it"
    return "not metered: klamm runs with --metering header" if _unmetered(state, data) else "none yet"


def _unmetered(state: State, data: Data) -> bool:
    return state.table == TOPIC and data.current["metering"] != "full"


def _page(state: State, data: Data, console: Console, room: int) -> tuple[list[RenderableType], Shown]:
    lines: list[list[Segment]] = console.render_lines(page(state, data), pad=False)
    below = max(len(lines) - room, 0)
    first = min(state.scroll, below)
    body: list[RenderableType] = [Segments([*line, Segment.line()]) for line in lines[first : first + room]]
    where = of_row(state.table, state.detail, data.many) if state.detail is not None else ""
    shown = Shown((), room - 1, (), Order(""), where, below)
    return [*body, *[Text()] * (room - len(body))], shown


def _last(state: State, notice: str) -> Text:
    if state.typed is not None:
        kind = "expression" if state.table == EXCHANGE else "filter"
        line = Text(f"{kind}: ", "bold", no_wrap=True, overflow="ellipsis")
        return line.append(printable(state.typed), "").append("█", "")
    if notice:
        return Text(printable(notice), ALARM, no_wrap=True, overflow="ellipsis")
    keys = KEYS_OF_TABLES if state.lists else KEYS_OF_PAGES
    return Text(keys, FAINT, no_wrap=True, overflow="ellipsis")

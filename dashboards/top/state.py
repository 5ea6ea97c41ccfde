"""The state of the screen: the table that is shown, and the row that is chosen. `press` gives the state after
a key. Nothing here draws or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

API, CLIENT, TOPIC, BROKER = "api", "client_id", "topic", "broker"
CONNECTION, ERROR, EXCHANGE = "connection", "error", "exchange"
TABLES = (API, CLIENT, TOPIC, BROKER, CONNECTION, ERROR, EXCHANGE)
HELP, OVERVIEW = "help", "overview"
MOST_TYPED = 500


@dataclass(frozen=True, slots=True)
class Order:
    """The heading of a column, and whether its usual direction is turned round."""

    heading: str
    turned: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The contents of the screen: the keys of all rows in their order, how many fit, the headings, the order,
    the expression for the exchanges of the chosen row (empty where there is none), and the lines of a page
    that are below the screen.
    """

    rows: Sequence[str]
    page: int
    headings: Sequence[str]
    order: Order
    where: str = ""
    below: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """`detail`: the key of the row whose page is shown; `page`: help or overview, over everything else.
    `typed`: the filter that is being typed. `words` filter names, `where` the exchanges. `before`: where Esc
    leads. `place` is the chosen row's place, for the time after it has gone.
    """

    table: str = API
    orders: Mapping[str, Order] = field(default_factory=dict)
    chosen: str | None = None
    place: int = 0
    words: str = ""
    where: str = ""
    typed: str | None = None
    detail: str | None = None
    page: str = ""
    scroll: int = 0
    frozen: bool = False
    over: bool = False
    before: State | None = None

    @property
    def lists(self) -> bool:
        """Whether a table is shown."""
        return self.detail is None and not self.page


Move = Callable[[State, Shown], State]


def chosen(state: State, shown: Shown) -> int | None:
    """The place of the chosen row; None where there are no rows."""
    if not shown.rows:
        return None
    if state.chosen in shown.rows:
        return shown.rows.index(state.chosen)
    return min(state.place, len(shown.rows) - 1)


def press(state: State, key: str, shown: Shown) -> State:
    """The state after a key."""
    if state.typed is not None:
        return _type(state, key)
    move = KEYS.get(key)
    return state if move is None else move(state, shown)


def _type(state: State, key: str) -> State:
    typed = state.typed or ""
    if key == "esc":
        return replace(state, typed=None)
    if key == "enter":
        done = replace(state, typed=None, chosen=None, place=0)
        words = typed.strip()
        return replace(done, where=words) if state.table == EXCHANGE else replace(done, words=words)
    if key == "clear":
        return replace(state, typed="")
    if key == "backspace":
        return replace(state, typed=typed[:-1])
    return replace(state, typed=(typed + key)[:MOST_TYPED]) if len(key) == 1 else state


def _to(table: str) -> Move:
    def move(state: State, _: Shown) -> State:
        words = state.words if table == state.table else ""
        return State(table, state.orders, words=words, where=state.where, frozen=state.frozen)

    return move


def _by(step: Callable[[Shown], int]) -> Move:
    def move(state: State, shown: Shown) -> State:
        if not state.lists:
            return replace(state, scroll=max(0, min(shown.below, state.scroll + step(shown))))
        at = chosen(state, shown)
        if at is None:
            return state
        place = max(0, min(len(shown.rows) - 1, at + step(shown)))
        return replace(state, chosen=shown.rows[place], place=place)

    return move


def _sort_by(step: int) -> Move:
    def move(state: State, shown: Shown) -> State:
        if not state.lists:
            return state
        headings = list(shown.headings)
        at = headings.index(shown.order.heading) if shown.order.heading in headings else 0
        order = Order(headings[(at + step) % len(headings)])
        return replace(state, orders={**state.orders, state.table: order})

    return move


def _turn(state: State, shown: Shown) -> State:
    if not state.lists:
        return state
    order = replace(shown.order, turned=not shown.order.turned)
    return replace(state, orders={**state.orders, state.table: order})


def _enter(state: State, shown: Shown) -> State:
    at = chosen(state, shown)
    if not state.lists or at is None:
        return state
    if state.table == ERROR:
        return _exchanges(state, shown)
    key = shown.rows[at]
    here = replace(state, chosen=key, place=at)
    return replace(here, detail=key, scroll=0, before=here)


def _exchanges(state: State, shown: Shown) -> State:
    if not shown.where or state.page or state.table == EXCHANGE:
        return state
    at = chosen(state, shown)
    here = state if at is None or not state.lists else replace(state, chosen=shown.rows[at], place=at)
    return State(EXCHANGE, state.orders, where=shown.where, frozen=state.frozen, before=here)


def _back(state: State, _: Shown) -> State:
    if state.before is not None:
        return replace(state.before, frozen=state.frozen, orders=state.orders)
    if state.table == EXCHANGE:
        return replace(state, where="", chosen=None, place=0)
    return replace(state, words="", chosen=None, place=0)


def _page(page: str) -> Move:
    def move(state: State, _: Shown) -> State:
        if state.page == page and state.before is not None:
            return _back(state, _)
        before = state.before if state.page else state
        return replace(state, page=page, scroll=0, before=before)

    return move


def _filter(state: State, _: Shown) -> State:
    return (
        replace(state, typed=state.where if state.table == EXCHANGE else state.words)
        if state.lists
        else state
    )


def _freeze(state: State, _: Shown) -> State:
    return replace(state, frozen=not state.frozen)


def _quit(state: State, _: Shown) -> State:
    return replace(state, over=True)


FAR = 1 << 30

# Keys, what they do, and the words for it in the help.
BINDINGS: tuple[tuple[tuple[str, ...], Move, str], ...] = (
    (("1", "a"), _to(API), "APIs"),
    (("2", "c"), _to(CLIENT), "clients, by client id"),
    (("3", "t"), _to(TOPIC), "topics"),
    (("4", "b"), _to(BROKER), "brokers"),
    (("5", "n"), _to(CONNECTION), "connections"),
    (("6", "e"), _to(ERROR), "Kafka errors"),
    (("7",), _to(EXCHANGE), "exchanges, as they happen"),
    (("i",), _page(OVERVIEW), "overview: clusters and their nodes, client software, problems, rules"),
    (("up", "k"), _by(lambda shown: -1), "up"),
    (("down", "j"), _by(lambda shown: 1), "down"),
    (("page up",), _by(lambda shown: -shown.page), "a page up"),
    (("page down",), _by(lambda shown: shown.page), "a page down"),
    (("home", "g"), _by(lambda shown: -FAR), "to the first row"),
    (("end", "G"), _by(lambda shown: FAR), "to the last row"),
    (("right", ">"), _sort_by(1), "sort by the next column"),
    (("left", "<"), _sort_by(-1), "sort by the column before"),
    (("r",), _turn, "reverse the order"),
    (("enter",), _enter, "what is behind the chosen row; of an error: its exchanges"),
    (("x",), _exchanges, "the exchanges of the chosen row, as they happen"),
    (("esc", "backspace"), _back, "back; in a table: no filter"),
    (("/",), _filter, "filter names; exchanges by an expression, as `klamm tail` takes it"),
    ((" ",), _freeze, "freeze, and go on"),
    (("?", "h"), _page(HELP), "this page"),
    (("q",), _quit, "quit"),
)
KEYS: Mapping[str, Move] = {key: move for keys, move, _ in BINDINGS for key in keys}

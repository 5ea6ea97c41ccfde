"""The bytes of terminals as keys, and what keys make of the state of `klamm top`."""

import pytest

from klamm.dashboards.top.keys import Keys
from klamm.dashboards.top.state import (
    API,
    CLIENT,
    ERROR,
    EXCHANGE,
    HELP,
    OVERVIEW,
    TOPIC,
    Order,
    Shown,
    State,
    press,
)

ROWS = Shown(["a", "b", "c", "d"], 2, ["NAME", "req/s", "p99"], Order("req/s"), "api == Fetch")


def after(state: State, *keys: str, shown: Shown = ROWS) -> State:
    for key in keys:
        state = press(state, key, shown)
    return state


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[5~q", ["page up", "q"]),
        (b"\r\x7f\x15", ["enter", "backspace", "clear"]),
        ("é漢".encode(), ["é", "漢"]),
        (b"\x1b[38;5;1m\x00x", ["x"]),
        (b"\x1bq", ["esc", "q"]),
        (b"\xff", ["�"]),
    ],
)
def test_bytes_are_keys_however_they_are_cut(typed: bytes, keys: list[str]) -> None:
    assert Keys().read(typed) == keys
    apart = Keys()
    assert [key for byte in typed for key in apart.read(bytes([byte]))] + apart.end() == keys


def test_esc_is_a_key_when_nothing_follows() -> None:
    keys = Keys()
    assert keys.read(b"\x1b") == []
    assert keys.waits
    assert keys.end() == ["esc"]
    assert not keys.waits


def test_a_sequence_without_an_end_is_no_key() -> None:
    keys = Keys()
    assert keys.read(b"\x1b[") == []
    assert keys.end() == []


def test_the_chosen_row_is_followed_wherever_it_goes() -> None:
    state = after(State(), "down", "down")
    assert (state.chosen, state.place) == ("c", 2)
    moved = Shown(["c", "a", "b"], 2, ROWS.headings, ROWS.order)
    assert press(state, "down", moved).chosen == "a"
    gone = Shown(["a", "b"], 2, ROWS.headings, ROWS.order)
    assert press(state, "enter", gone).detail == "b"
    assert press(state, "enter", Shown([], 2, ROWS.headings, ROWS.order)) == state


def test_pages_and_ends() -> None:
    assert after(State(), "page down").chosen == "c"
    assert after(State(), "end", "page up").chosen == "b"
    assert after(State(), "G", "g").chosen == "a"


def test_columns_are_sorted_by_in_turn_and_reversed() -> None:
    state = after(State(), "right")
    assert state.orders == {API: Order("p99")}
    last = Shown(ROWS.rows, 2, ROWS.headings, Order("p99"))
    assert press(state, ">", last).orders == {API: Order("NAME")}
    assert press(state, "<", last).orders == {API: Order("req/s")}
    assert press(state, "r", last).orders == {API: Order("p99", True)}


def test_each_table_keeps_its_order_and_loses_its_filter() -> None:
    state = after(State(), "r", "/", "x", "enter", "2")
    assert (state.table, state.words) == (CLIENT, "")
    assert state.orders == {API: Order("req/s", True)}
    assert after(state, "t").table == TOPIC


def test_a_filter_is_typed_changed_and_given_up() -> None:
    typing = after(State(), "/", "q", " ", "1", "backspace")
    assert typing.typed == "q "
    assert not typing.over
    assert after(typing, "enter").words == "q"
    assert after(typing, "esc").words == ""
    assert after(typing, "clear", "up", "z", "enter").words == "z"
    assert after(after(typing, "enter"), "/").typed == "q"
    assert after(after(typing, "enter"), "esc").words == ""


def test_enter_goes_in_and_esc_comes_back() -> None:
    inside = after(State(), "down", "enter")
    assert (inside.detail, inside.lists) == ("b", False)
    assert after(inside, "esc").chosen == "b"
    exchanges = after(inside, "x")
    assert (exchanges.table, exchanges.where) == (EXCHANGE, "api == Fetch")
    assert after(exchanges, "esc").detail == "b"
    assert after(exchanges, "esc", "esc").lists


def test_an_error_leads_to_its_exchanges() -> None:
    state = after(State(ERROR), "enter")
    assert (state.table, state.where) == (EXCHANGE, "api == Fetch")
    assert after(state, "esc").table == ERROR


def test_a_page_scrolls_as_far_as_it_goes() -> None:
    page = Shown([], 10, [], Order(""), below=5)
    state = after(State(), "?")
    assert state.page == HELP
    assert after(state, "down", "down", shown=page).scroll == 2
    assert after(state, "end", "up", shown=page).scroll == 4
    assert after(state, "i").page == OVERVIEW
    assert after(state, "i", "esc").lists
    assert after(state, "?").lists


def test_freezing_goes_along_into_everything() -> None:
    state = after(State(), " ")
    assert state.frozen
    for keys in (("2",), ("enter",), ("enter", "esc"), ("x",), ("x", "esc"), ("?",)):
        assert after(state, *keys).frozen
    assert not after(state, "enter", " ", "esc").frozen


def test_q_ends_it_and_what_is_no_key_does_nothing() -> None:
    assert after(State(), "q").over
    assert after(State(), "ß") == State()

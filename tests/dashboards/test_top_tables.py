"""The tables and pages of `klamm top`, of invented traffic."""

import dataclasses
import re
import shlex
from io import StringIO
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from klamm.client.types import Connection, Exchange
from klamm.dashboards.top.app import wants_connections
from klamm.dashboards.top.data import Connections, Data, Seen
from klamm.dashboards.top.drawing import screen, whole
from klamm.dashboards.top.expressions import of_row
from klamm.dashboards.top.state import (
    API,
    BROKER,
    CLIENT,
    CONNECTION,
    ERROR,
    EXCHANGE,
    HELP,
    OVERVIEW,
    TABLES,
    TOPIC,
    Order,
    State,
)
from klamm.dashboards.top.tables import natural, outcome, rows
from klamm.rules.expressions import parse
from tests.dashboards.fake_state import FakeState, answer, of_many_clients, two_answers

LONG = "UNKNOWN_TOPIC_OR_PARTITION response withheld by klamm"
HOSTILE = "\x1b]0;owned\x07[bold red]x[/]\u202e"


def connection(number: int, client_id: str | None, sent: int) -> Connection:
    return Connection(number, "demo", "1", f"10.0.0.{number}:5", client_id, 100.0, 1, sent, 2 * sent)


def exchange(client_id: str, errors: dict[str, int]) -> Exchange:
    return Exchange(
        200.5, "demo", "1", "10.0.0.1:5", "Fetch", 16, client_id, "broker", 10, 20, 1.5, errors=errors
    )


def data(hostile: str = "orders-service") -> Data:
    before = Connections(200.0, {1: connection(1, hostile, 1000)})
    now = Connections(202.0, {1: connection(1, hostile, 3000), 2: connection(2, None, 5)})
    seen = [Seen(1, exchange(hostile, {})), Seen(2, exchange("b", {"NOT_COORDINATOR": 2}))]
    return Data(*two_answers(), (1.0, 2.0), now, before, seen, 7)


def wide() -> Data:
    """Names, addresses and errors that a narrow screen cuts."""
    of = data()
    clients = "orders-service", "billing-service", "shop", "reporting"
    one = replace(
        exchange("a", {}), api="ConsumerGroupHeartbeat", version=1, topics={"orders-of-the-shop": []}
    )
    failed = replace(one, errors={"UNKNOWN_TOPIC_OR_PARTITION": 1}, fates={"response": "withheld"})
    return Data(None, answer(of_many_clients(*clients)), (), of.connections, exchanges=[Seen(1, failed)])


def lines(state: State, of: Data, width: int = 80, height: int = 24, notice: str = "") -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, color_system=None)
    console.print(screen(state, of, console, notice).picture, end="")
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().rstrip("\n").split("\n")]


def names(state: State, of: Data) -> list[str]:
    return [str(item.values["name"]) for item in rows(state, of)]


def test_rows_are_sorted_by_any_column_both_ways() -> None:
    assert names(State(), data())[:2] == ["Produce", "Fetch"]
    by = {"out/s": "Fetch", "p99": "Fetch", "err/s": "Metadata", "API": "Fetch"}
    for heading, first in by.items():
        found = names(State(orders={API: Order(heading)}), data())
        turned = names(State(orders={API: Order(heading, True)}), data())
        assert sorted(found) == sorted(turned)
        if heading == "API":
            assert found == sorted(found) == turned[::-1]
        else:
            assert found[0] == first
            assert turned[0] != first


def test_what_is_not_known_is_last_in_both_directions() -> None:
    for turned in (False, True):
        state = State(CONNECTION, {CONNECTION: Order("in/s", turned)})
        assert names(state, data()) == ["orders-service", "(no client id)"]


def test_numbers_in_names_are_compared_as_numbers() -> None:
    assert sorted(["b-10", "b-9", "a", "b-0010", "9" * 5000], key=natural) == [
        "9" * 5000,
        "a",
        "b-9",
        "b-10",
        "b-0010",
    ]


def test_a_filter_looks_into_names_without_regard_to_case() -> None:
    assert set(names(State(CLIENT, words="BILL"), data())) == {"billing-1", "billing-2"}
    assert names(State(CONNECTION, words="10.0.0.2"), data()) == ["(no client id)"]
    assert any("no name has 'zz' in it" in line for line in lines(State(CLIENT, words="zz"), data()))


def test_a_broker_that_is_down_is_listed_without_traffic() -> None:
    state = FakeState()
    found = rows(State(BROKER), Data(None, answer(state)))
    assert [item.values["up"] for item in found] == [True, True, False]
    assert any(
        line.startswith("3 ") and "DOWN" in line for line in lines(State(BROKER), Data(None, answer(state)))
    )


@pytest.mark.parametrize(
    ("clients", "whose"),
    [
        ("one two", "one, two on a, b, c and 2 more"),
        ("four five", "four, five on a, b and 3 more"),
        ("app-1 app-2 app-3 app-4", "app-1 and 3 more on a and 4 more"),
        ("orders-service-of-the-shop b", "orders-service-of-the-shop and 1 more on a and 4 more"),
    ],
)
def test_the_errors_name_as_many_clients_as_there_is_room_for_and_count_the_others(
    clients: str, whose: str
) -> None:
    (error,) = rows(State(ERROR), Data(None, answer(of_many_clients(*clients.split()))))
    assert error.values["whose"] == whose


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (200, 60), (60, 16), (40, 10)])
@pytest.mark.parametrize("table", TABLES)
def test_every_table_fills_every_size_and_never_exceeds_it(table: str, size: tuple[int, int]) -> None:
    drawn = lines(State(table), data(), *size)
    assert len(drawn) == size[1]
    assert max(map(len, drawn)) <= size[0]
    assert "▼" in drawn[4] or "▲" in drawn[4] or size[0] < 80


@pytest.mark.parametrize("table", sorted(set(TABLES) - {ERROR}))  # an error leads to its exchanges
def test_every_row_has_a_page(table: str) -> None:
    for item in rows(State(table), data()):
        drawn = lines(State(table, detail=item.key), data(), 80, 50)
        assert len(drawn) == 50
        assert max(map(len, drawn)) <= 80
        if table in (API, CLIENT, TOPIC, BROKER):
            assert drawn[4].split(" ", 1)[1] == item.key


def test_the_page_of_a_client_is_about_nothing_else() -> None:
    text = "\n".join(lines(State(CLIENT, detail="billing-1"), data(), 100, 60)[4:])
    assert "Fetch v16" in text
    assert "OffsetCommit v9" in text
    assert "REBALANCE_IN_PROGRESS" in text
    assert "Produce" not in text
    assert "x lists its exchanges: klamm tail 'client_id == \"billing-1\"'" in text


def test_a_hint_leads_to_the_same_klamm_when_it_is_pasted() -> None:
    options = " --admin 127.0.0.1:19291 --token-file 'my token'"
    of, client = dataclasses.replace(data(), options=options), 'client_id == "it\'s"'
    for table, where in ((CLIENT, client), (CONNECTION, "connection == 1"), (EXCHANGE, "connection == 0")):
        key = "it's" if table == CLIENT else "1"
        text = "".join(lines(State(table, detail=key), of, 160, 60)[4:])
        words = shlex.split(text[text.index("klamm tail") :].partition("my token'")[0] + "my token'")
        verbose = ["-v"] if table == EXCHANGE else []
        assert words == ["klamm", "tail", *verbose, where, *shlex.split(options)]


def test_the_page_of_a_topic_has_its_apis_and_errors() -> None:
    text = "\n".join(lines(State(TOPIC, detail="orders"), data(), 100, 60)[4:])
    assert "Produce" in text
    assert "Fetch" in text
    assert "NOT_LEADER_OR_FOLLOWER" in text
    assert "UNKNOWN_TOPIC_OR_PARTITION" not in text


def test_pages_scroll() -> None:
    top, below = (lines(State(page=HELP, scroll=scroll), data()) for scroll in (0, 3))
    assert below[4] == top[7]
    assert lines(State(page=HELP, scroll=10**6), data())[-2] != ""
    assert any("3  " in line and "DOWN" in line for line in lines(State(page=OVERVIEW), data()))


def test_the_last_line_has_keys_what_is_typed_or_a_notice() -> None:
    assert all("? help  q quit" in lines(State(), data(), width)[-1] for width in (40, 80))
    assert lines(State(typed="ab"), data())[-1] == "filter: ab█"
    assert lines(State(), data(), notice="no klamm answers")[-1] == "no klamm answers"


def test_too_small_a_terminal_says_so() -> None:
    assert lines(State(), data(), 39, 24) == ["39x24 is too small: klamm top needs", "40x10"]


@pytest.mark.parametrize("table", TABLES)
def test_names_from_the_wire_cannot_write_to_the_terminal(table: str) -> None:
    state = FakeState()
    state.stats.of_requests("demo", "1", HOSTILE, "Fetch", 16).errors[3] = 1
    state.stats.of_topic("demo", HOSTILE, "Fetch").errors[3] = 1
    state.stats.client_software("demo", HOSTILE, HOSTILE)
    known = data(HOSTILE)
    of = Data(None, answer(state), (), known.connections, known.connections_before, known.exchanges)
    states = [
        State(table),
        State(table, page=OVERVIEW),
        State(table, words=HOSTILE, where=HOSTILE, typed=HOSTILE),
    ]
    states += [State(table, detail=item.key) for item in rows(State(table), of) if table != ERROR]
    for each in states:
        text = "\n".join(lines(each, of, 200, 60, notice=HOSTILE))
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_keys_sort_by_columns_that_are_shown(table: str, width: int) -> None:
    console = Console(file=StringIO(), width=width, height=24, color_system=None)
    shown = screen(State(table), data(), console).shown
    assert len(shown.headings) > 1
    for heading in shown.headings:
        head = lines(State(table, orders={table: Order(heading)}), data(), width)[4]
        assert re.search(rf"(^| ){re.escape(heading)}[▲▼]", head), heading


@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_wide_screen_cuts_nothing_that_it_has_room_for(table: str) -> None:
    drawn = lines(State(table), wide(), 200)[4:-1]
    assert max(map(len, drawn)) > 110
    assert "…" not in "".join(drawn)
    for narrow in lines(State(table), wide(), 80)[4:-1]:
        assert len(narrow) <= 80
    if table == ERROR:
        whose = "orders-service, billing-service, shop and 1 more on a, b, c and 2 more"
        assert any(whose in line for line in drawn)
    if table == EXCHANGE:
        assert any("ConsumerGroupHeartbeat v1" in line and LONG in line for line in drawn)
    assert max(len(gap) for gap in re.findall(" +", drawn[1])) < 70


def test_one_frame_has_all_rows_whatever_the_height() -> None:
    console = Console(file=StringIO(), width=80, height=5, color_system=None)
    console.print(whole(State(), data(), console))
    assert isinstance(console.file, StringIO)
    assert {line.split()[0] for line in console.file.getvalue().splitlines()[5:]} == set(
        names(State(), data())
    )


@pytest.mark.parametrize("table", sorted(set(TABLES) - {EXCHANGE}))
@pytest.mark.parametrize("many", [False, True])
def test_the_expression_of_a_row_is_one_of_klamm(table: str, many: bool) -> None:
    keys = {API: "Fetch", CONNECTION: "12", ERROR: "Fetch NOT_LEADER_OR_FOLLOWER"}
    key = keys.get(table, ("demo/" if many else "") + HOSTILE + '"\\')
    parse(of_row(table, key, many)).apis()


def test_connections_are_asked_for_while_they_are_shown() -> None:
    wanted = [State(CONNECTION), State(CLIENT, detail="a"), State(BROKER, detail="1")]
    assert all(map(wants_connections, wanted))
    assert not any(wants_connections(State(table)) for table in set(TABLES) - {CONNECTION})


def test_a_client_without_an_id_has_an_expression() -> None:
    assert of_row(CLIENT, "(no client id)", False) == "client_id is None"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"fates": {"request": "withheld"}}, "request withheld by klamm"),
        ({"fates": {"response": "withheld"}}, "response withheld by klamm"),
        ({"fates": {"request": "withheld", "response": "made"}, "origin": "klamm"}, "(by klamm)"),
        ({"fates": {"response": "rewritten"}, "origin": "klamm"}, "(by klamm)"),
        ({"unanswered": "drained", "waited_ms": 1234.5}, "no answer in 1,234.5 ms: drained"),
        ({}, ""),
    ],
)
def test_what_klamm_did_to_an_exchange_is_told_beside_its_errors(told: dict[str, Any], words: str) -> None:
    assert outcome(replace(exchange("a", {}), **told)) == words
    assert outcome(replace(exchange("a", {"NONE_SUCH": 2}), **told)) == f"2 NONE_SUCH {words}".rstrip()

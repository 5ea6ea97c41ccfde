"""The pictures of the terminal view, letter by letter where it is small, line by line where it is large."""

from collections.abc import Sequence
from io import StringIO

import pytest
from rich.console import Console

from klamm.dashboards.terminal.frame import frame
from klamm.dashboards.terminal.window import Counters
from tests.dashboards.fake_state import FakeState, answer, of_many_clients, two_answers

PAGE = "http://127.0.0.1:19090/"
SMALL = """\
klamm 0.1.0   ● demo  2/3 brokers  127.0.0.1:19092          up 0:30  Ctrl-C ends
510 req/s  594 kB in/s  965 kB out/s  12 conn  7 in flight  5.0 err/s       ▂▄▆█
brokers p50 1.96 ms  p99 < 10 ms    klamm itself p50 17 µs  p99 50 µs
API                                 req/s    in/s   out/s     p50     p99  err/s
Produce                               430  585 kB 38.1 kB 1.97 ms < 10 ms    1.8
Fetch                                  70 8.52 kB  924 kB 46.7 ms <500 ms    1.2
OffsetCommit                          4.0   600 B   320 B  < 5 ms < 10 ms      –
Metadata                              3.0   220 B 1.90 kB <2.5 ms <2.5 ms    2.0
ListOffsets                           2.0   180 B   240 B <2.5 ms <2.5 ms      –
Heartbeat                             1.0    70 B    20 B  < 1 ms <2.5 ms      –
CLIENT                              req/s    in/s   out/s     p50     p99  err/s
legacy-importer                       310 80.6 kB 27.3 kB 1.89 ms 4.97 ms      –
orders-service                        121  504 kB 11.7 kB 2.20 ms < 10 ms    1.8
billing-1                              35 4.27 kB  480 kB  < 5 ms < 10 ms      –
and 3 more
TOPIC                  req/s     p99  err/s  BROKER   req/s     p99  conn  err/s
imports                  310 4.97 ms      –  1          174 4.99 ms     4    1.8
orders                   183 < 10 ms    1.8  2          169 5.00 ms     4    1.8
payments                  14 <2.5 ms    1.2  3          167 < 10 ms     4    1.4
no-such-topic            2.0 <2.5 ms    2.0
ERROR                                                                 /s   total
UNKNOWN_TOPIC_OR_PARTITION  Metadata  reporting on no-such-topic     2.0      60
NOT_LEADER_OR_FOLLOWER  Produce  orders-service on orders            1.8      62
and 2 more"""


def lines(
    width: int,
    height: int,
    previous: Counters | None,
    current: Counters,
    rates: Sequence[float] = (),
    notice: str = "",
    page: str = "",
) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, color_system=None)
    console.print(frame(previous, current, rates, notice, page))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().split("\n")[:-1]]


def test_a_small_terminal_has_room_for_all_that_matters() -> None:
    assert "\n".join(lines(80, 24, *two_answers(), rates=[10, 20, 30, 40])) == SMALL


@pytest.mark.parametrize(
    ("width", "beside"),
    [
        (80, PAGE),
        (91, f"{PAGE}  Ctrl-C ends"),
        (120, f"up 0:30  {PAGE}  Ctrl-C ends"),
        (40, PAGE),
    ],
)
def test_the_address_of_the_inspector_is_there_at_any_width(width: int, beside: str) -> None:
    assert lines(width, 24, *two_answers(), page=PAGE)[0].endswith(beside)


def test_a_wide_terminal_shows_tables_beside_each_other_and_the_shape_of_latency() -> None:
    drawn = lines(140, 50, *two_answers(), rates=[100.0, 200.0])
    headings = [line.split() for line in drawn if line[:1].isupper()]
    assert (
        headings[0]
        == "API req/s in/s out/s p50 p99 100 µs … 60.0 s err/s BROKER req/s p99 conn err/s".split()
    )
    assert any(line.startswith("CLIENT ") and " TOPIC " in line for line in drawn)
    assert any(
        line.startswith("ERROR ") and " CLIENT SOFTWARE " in line and " PROBLEM " in line for line in drawn
    )
    fetch = next(line for line in drawn if line.startswith("Fetch "))
    produce = next(line for line in drawn if line.startswith("Produce "))
    assert fetch.index("█") > produce.index("█")  # slower is further right
    assert "REQUESTS A SECOND" in drawn
    assert "and" not in [line.split()[0] for line in drawn if line]


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (80, 60), (100, 30), (120, 24), (140, 50), (250, 80), (60, 16)]
)
def test_every_size_is_filled_and_never_exceeded(width: int, height: int) -> None:
    drawn = lines(width, height, *two_answers(), rates=[1.0] * 300)
    assert len(drawn) == height
    assert max(len(line) for line in drawn) <= width


@pytest.mark.parametrize(("width", "height"), [(60, 24), (50, 24), (40, 24), (20, 24), (16, 24)])
def test_a_narrow_terminal_drops_numbers_before_names(width: int, height: int) -> None:
    drawn = lines(width, height, *two_answers())
    (produce,) = [line for line in drawn if line.split()[:1] == ["Produce"]]
    assert "430" in produce or width < 20
    assert any(line.startswith("legacy-imp") for line in drawn)
    heading = next(line for line in drawn if line.startswith("API"))
    left = heading.split()[1:]
    assert left == [word for word in ("req/s", "in/s", "out/s", "p50", "p99", "err/s") if word in left]
    assert ("in/s" in left) == (width >= 60)
    assert max(map(len, drawn)) <= width


@pytest.mark.parametrize(("width", "height"), [(40, 10), (20, 5)])
def test_headings_of_a_tiny_terminal_are_whole(width: int, height: int) -> None:
    names = {line.split()[0] for line in lines(width, height, *two_answers())[3:]}
    assert {"API", "CLIENT", "TOPIC", "ERROR"} <= names


@pytest.mark.parametrize("width", [120, 140])
def test_the_connections_of_client_software_are_told_to_be_all_since_the_start(width: int) -> None:
    drawn = lines(width, 50, *two_answers())
    heading = next(line for line in drawn if line.startswith("ERROR "))
    assert heading.split()[3:6] == ["CLIENT", "SOFTWARE", "connections"]
    assert drawn[-1].startswith("total and connections count since klamm began; ")


def test_an_error_that_many_clients_get_says_how_many_more_there_are() -> None:
    drawn = lines(140, 24, None, answer(of_many_clients("a", "b", "c", "d")))
    assert any("NOT_COORDINATOR  Heartbeat  a, b, c and 1 more on" in line for line in drawn)


def test_what_does_not_fit_is_counted() -> None:
    state = FakeState()
    for number in range(50):
        state.stats.of_requests("demo", "1", f"client-{number}", "Fetch", 16).requests = 1
    state.run(1)
    drawn = lines(80, 24, None, answer(state))
    clients = drawn[next(n for n, line in enumerate(drawn) if line.startswith("CLIENT")) + 1 :]
    hidden = next(line for line in clients if line.startswith("and "))
    assert int(hidden.split()[1]) + clients.index(hidden) == 56


def test_a_cluster_that_is_not_ready_is_the_first_thing_seen() -> None:
    state = FakeState()
    state.ready = False
    assert "not ready: kafka-1:9092 refuses connections" in lines(120, 24, None, answer(state))[0]


def test_header_metering_says_why_there_are_no_topics_and_no_errors() -> None:
    drawn = "\n".join(lines(80, 24, None, answer(FakeState("header"))))
    assert drawn.count("not metered") == 2
    assert "none" not in drawn


def test_before_any_traffic_it_is_empty_and_whole() -> None:
    drawn = lines(80, 24, None, answer(FakeState()))
    assert drawn[1].startswith("– req/s  – in/s  – out/s")
    assert len(drawn) == 24


def test_a_notice_is_the_last_line_at_any_height() -> None:
    for height in (24, 50):
        assert lines(80, height, *two_answers(), notice="no answer")[-1] == "no answer"


def test_client_ids_and_topics_cannot_write_to_the_terminal() -> None:
    state = FakeState()
    hostile = "\x1b]0;owned\x07[bold red]x[/]"
    state.stats.of_requests("demo", "1", hostile, "Fetch", 16).errors[3] = 1
    state.stats.of_topic("demo", hostile, "Fetch").errors[3] = 1
    state.stats.client_software("demo", hostile, hostile)
    text = "\n".join(lines(200, 60, None, answer(state)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]x[/]" in text

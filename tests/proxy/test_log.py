"""The log: order, bounds, rates, and lines that no client can forge."""

import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy import config
from klamm.proxy.config_types import OutputFile
from klamm.proxy.log.event_log import EventLog, open_log
from klamm.proxy.log.lines import Entry, console_line, json_line

PRODUCE: dict[str, Any] = {
    "api": "Produce",
    "version": 13,
    "client_id": "orders-svc",
    "connection": 7,
    "broker": "2",
    "topics": {"orders": [0, 3]},
    "errors": [("orders", 0), ("orders", 6)],
    "request_bytes": 16204,
    "response_bytes": 87,
    "latency_ns": 4_123_456,
}


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Gate(io.BytesIO):
    """An output that writes nothing until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.opened = threading.Event(), threading.Event()

    def write(self, data: Any) -> int:
        self.reached.set()
        assert self.opened.wait(10)
        return super().write(data)


def logged(*calls: Callable[[EventLog], None], clock: Clock | None = None) -> list[dict[str, Any]]:
    """The lines that the calls wrote, as JSON."""
    output = io.BytesIO()
    log = EventLog(output, json_line, clock or Clock())
    for call in calls:
        call(log)
    log.close()
    return [json.loads(line) for line in output.getvalue().splitlines()]


def console(kind: str, fields: dict[str, Any], message: str = "", colour: bool = False) -> str:
    """A console line without its time."""
    return console_line(Entry(Clock.now, kind, "warning", message, fields), colour).decode().partition(" ")[2]


def bad_size(log: EventLog) -> None:
    log.event("bad_size", "too big", "warning", connection=7)


def test_an_event_is_one_json_object() -> None:
    assert logged(lambda log: log.event("listening", "ready", cluster="kafka", ports=[1, 2])) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "event": "listening",
            "level": "info",
            "message": "ready",
            "cluster": "kafka",
            "ports": [1, 2],
        }
    ]


def test_an_exchange_is_one_json_object_with_names_of_errors_and_milliseconds() -> None:
    (line,) = logged(lambda log: log.exchange(PRODUCE))
    assert line == {
        "time": "2023-11-14T22:13:20.000Z",
        "event": "exchange",
        **{key: value for key, value in PRODUCE.items() if key != "latency_ns"},
        "errors": {"NOT_LEADER_OR_FOLLOWER": 1},
        "latency_ms": 4.123,
    }


def test_an_exchange_without_errors_says_nothing_of_them() -> None:
    (line,) = logged(lambda log: log.exchange({**PRODUCE, "errors": [(None, 0)]}))
    assert "errors" not in line


def test_an_exchange_is_one_line_on_a_console() -> None:
    assert console("exchange", PRODUCE) == (
        "Produce v13 client=orders-svc broker=2 orders[0,3] 16.2kB -> 87B 4.1ms NOT_LEADER_OR_FOLLOWER\n"
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"response_bytes": None, "latency_ns": 0, "errors": []}, "orders[0,3] 16.2kB 0.00ms"),
        ({"group": "billing", "errors": []}, "group=billing orders[0,3] 16.2kB -> 87B 4.1ms"),
        ({"topics": {"a": []}, "errors": {}}, "a 16.2kB -> 87B 4.1ms"),
        ({"topics": {"a": list(range(9))}, "errors": {}}, "a[0,1,2,3,4,5,+3] 16.2kB -> 87B 4.1ms"),
        (
            {"topics": dict.fromkeys("abcdefgh", ()), "errors": {}},
            "a b c d e f +2 topics 16.2kB -> 87B 4.1ms",
        ),
        ({"errors": [("a", 6), ("b", 6), (None, 32766)]}, "4.1ms NOT_LEADER_OR_FOLLOWER x2 ERROR_32766"),
        (
            {"response_bytes": None, "latency_ns": None, "errors": [], "unanswered": "reset by client"}
            | {"waited_ns": 30_012_345_678},
            "orders[0,3] 16.2kB no answer in 30,012.3 ms: reset by client",
        ),
        ({"request_bytes": 3_400_000, "latency_ns": 2_500_000_000, "errors": []}, "3.4MB -> 87B 2.50s"),
    ],
)
def test_an_exchange_shows_what_there_is(changed: dict[str, Any], expected: str) -> None:
    assert console("exchange", {**PRODUCE, **changed}).endswith(expected + "\n")


def test_values_of_several_parts_are_yaml_on_a_console() -> None:
    fields = {"sent": {"broker": "2", "count": 3}, "brokers": [1, 2], "ready": True, "rack": None}
    line = console("applied", fields, "rules changed")
    assert line.endswith("sent={broker: 2, count: 3} brokers=[1, 2] ready=true rack=null\n")


def test_what_the_message_of_a_change_has_is_not_told_again_on_a_console() -> None:
    fields = {"change": "POST /v1/rules", "by": "ada (127.0.0.1)", "sent": {"drop": True}}
    line = console("changed", fields, "POST /v1/rules by ada (127.0.0.1)")
    assert line.endswith("POST /v1/rules by ada (127.0.0.1) event=changed sent={drop: true}\n")


def test_an_event_on_a_console_ends_with_its_fields() -> None:
    line = console("bad_size", {"connection": 7, "api": "Fetch"}, "the client announces 9 GB")
    assert line == "warning the client announces 9 GB event=bad_size connection=7 api=Fetch\n"


def test_colours_are_only_there_on_demand() -> None:
    assert "\x1b" not in console("exchange", PRODUCE)
    assert "\x1b[31mNOT_LEADER_OR_FOLLOWER\x1b[0m" in console("exchange", PRODUCE, colour=True)


EVIL = "a\n\r\x1b[2J\x9b2J\x7f\u202e\u2028\udcff\x00"


def test_text_of_a_client_neither_ends_a_line_nor_reaches_the_terminal_as_a_command() -> None:
    fields = {**PRODUCE, "client_id": EVIL, "topics": {EVIL: [1]}, "group": EVIL}
    text = console("exchange", fields) + console("bad_size", {"client_id": EVIL}, EVIL)
    assert text.count("\n") == 2
    assert text.replace("\n", "").isprintable()
    assert r'client="a\n\r\x1b[2J\x9b2J\x7f\u202e\u2028\udcff\x00"' in text
    line = json_line(Entry(Clock.now, "exchange", "info", "", fields))
    assert line.decode().strip("\n").isprintable()


@given(st.text(st.characters(codec=None, categories=None)))
def test_a_line_is_a_line_whatever_a_client_calls_itself(text: str) -> None:
    fields = {**PRODUCE, "client_id": text, "topics": {text: [0]}}
    for line in (json_line(Entry(0.0, "exchange", "info", "", fields)), console("exchange", fields).encode()):
        assert line.endswith(b"\n")
        assert len(line.decode().splitlines()) == 1
        assert not set(line[:-1]) & {*range(32), 127}


@given(st.text())
def test_json_gives_back_the_text_of_a_client(text: str) -> None:
    line = json_line(Entry(0.0, "exchange", "info", "", {**PRODUCE, "client_id": text}))
    assert json.loads(line)["client_id"] == text


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("", 'client="" '),
        ("my app", 'client="my app" '),
        ("a broker=9", 'client="a broker=9" '),
        ('a" x="', 'client="a\\" x=\\"" '),
        ('a\\" broker=9 x="', 'client="a\\\\\\" broker=9 x=\\"" '),
        ("a\x1b b", 'client="a\\x1b b" '),
        ("x" * 500, "client=" + "x" * 200 + "... "),
    ],
)
def test_text_that_looks_like_more_than_one_thing_is_quoted(client: str, expected: str) -> None:
    assert expected in console("exchange", {**PRODUCE, "client_id": client})


def test_lines_keep_the_order_of_the_calls() -> None:
    lines = logged(*[lambda log, n=n: log.event("n", "", n=n) for n in range(1000)])
    assert [line["n"] for line in lines] == list(range(1000))


def test_a_warning_is_written_once_a_minute_and_then_with_the_number_of_the_suppressed_ones() -> None:
    clock = Clock()

    def later(seconds: float) -> Callable[[EventLog], None]:
        return lambda _: setattr(clock, "now", clock.now + seconds)

    lines = logged(
        bad_size, bad_size, later(59), bad_size, later(2), bad_size, later(61), bad_size, clock=clock
    )
    assert [line.get("suppressed") for line in lines] == [None, 2, None]


def test_kinds_and_what_they_are_about_have_limits_of_their_own() -> None:
    def unreachable(node: int) -> Callable[[EventLog], None]:
        return lambda log: log.event("unreachable", "", "error", per=node, node=node)

    lines = logged(bad_size, unreachable(1), unreachable(2), unreachable(1))
    assert [line.get("node") for line in lines] == [None, 1, 2, 1]


def test_clusters_have_limits_of_their_own() -> None:
    def wants_sasl(cluster: str) -> Callable[[EventLog], None]:
        return lambda log: log.event("sasl", "it wants SASL", "warning", cluster=cluster)

    lines = logged(wants_sasl("orders"), wants_sasl("billing"), wants_sasl("orders"))
    assert [(line["cluster"], line.get("suppressed")) for line in lines] == [
        ("orders", None),
        ("billing", None),
        ("orders", 1),
    ]


def test_what_was_suppressed_last_is_said_at_the_end() -> None:
    lines = logged(bad_size, bad_size, bad_size)
    assert [(line["message"], line.get("suppressed")) for line in lines] == [
        ("too big", None),
        ("2 more of this kind, the last 0 s ago: too big", 2),
    ]


def test_what_was_suppressed_and_is_told_later_says_how_long_ago_it_was() -> None:
    clock = Clock()

    def later(log: EventLog) -> None:
        clock.now += 57

    def settle(log: EventLog) -> None:
        clock.now += 4
        log.settle()

    lines = logged(bad_size, bad_size, later, settle, clock=clock)
    assert [line["message"] for line in lines] == [
        "too big",
        "1 more of this kind, the last 61 s ago: too big",
    ]


def test_a_problem_that_is_over_is_told_as_such_last_and_at_once_when_it_comes_again() -> None:
    def failed(log: EventLog) -> None:
        log.event("failed", "no space", "error", per="disk")

    def recovered(log: EventLog) -> None:
        log.event("recovered", "written again", ends="failed")

    lines = logged(failed, failed, failed, recovered, failed)
    assert [(line["event"], line.get("suppressed")) for line in lines] == [
        ("failed", None),
        ("failed", 2),
        ("recovered", None),
        ("failed", None),
    ]


@pytest.mark.parametrize(("per", "told"), [(1, [1]), (None, [1, 2])])
def test_an_end_is_about_one_thing_or_about_all_of_a_kind(per: int | None, told: list[int]) -> None:
    def down(node: int) -> Callable[[EventLog], None]:
        return lambda log: log.event("down", "", "warning", per=node, node=node, cluster="a")

    def up(log: EventLog) -> None:
        log.event("up", "", per=per, ends="down", cluster="a")

    lines = logged(down(1), down(2), down(1), down(2), up)
    before_it = [line["node"] for line in lines[: [line["event"] for line in lines].index("up")][2:]]
    assert before_it == told


def test_information_is_never_suppressed() -> None:
    assert len(logged(*[lambda log: log.event("topology", "a node moved")] * 5)) == 5


def test_limits_that_clients_could_multiply_are_bounded() -> None:
    lines = logged(*[lambda log, n=n: log.event("k", "", "warning", per=n) for n in range(3000)])
    assert len(lines) == 1024 + 1 + 1
    assert lines[-1]["suppressed"] == 3000 - 1025


def test_limits_of_a_minute_ago_give_way_to_new_ones_and_their_numbers_are_said() -> None:
    output, clock = io.BytesIO(), Clock()
    log = EventLog(output, json_line, clock)
    for n in range(1024):
        for _ in range(2):
            log.event("k", "old", "warning", per=n)
    clock.now += 61
    log.event("k", "new", "warning", per="one")
    log.event("k", "new", "warning", per="another")
    log.close()
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line["message"] for line in lines].count("new") == 2
    assert [line.get("suppressed") for line in lines].count(1) == 1024


def test_a_full_queue_drops_and_counts_and_says_so() -> None:
    gate = Gate()
    log = EventLog(gate, json_line, Clock(), capacity=10)
    log.event("first", "")
    assert gate.reached.wait(10)
    for number in range(25):
        log.event("n", "", n=number)
    assert log.dropped == 15
    gate.opened.set()
    log.close()
    lines = [json.loads(line) for line in gate.getvalue().splitlines()]
    assert [line["n"] for line in lines if line["event"] == "n"] == list(range(10))
    assert [line["dropped"] for line in lines if line["event"] == "log_dropped"] == [15]


def test_an_output_that_fails_is_counted_and_stops_nothing() -> None:
    output = io.BytesIO()
    output.close()
    log = EventLog(output, json_line, Clock())
    log.event("a", "")
    log.close()
    assert log.dropped == 1


def test_after_close_lines_are_dropped_and_closing_twice_is_fine() -> None:
    log = EventLog(io.BytesIO(), json_line, Clock())
    log.close()
    log.event("late", "")
    log.close()
    assert log.dropped == 1


def test_a_line_that_cannot_be_formatted_is_replaced_by_one_that_says_so() -> None:
    lines = logged(lambda log: log.exchange({"errors": 7}), lambda log: log.event("next", ""))
    assert [line["event"] for line in lines] == ["log_failed", "next"]


@pytest.mark.parametrize("form", ["json", "auto", "console"])
def test_a_file_is_appended_to_in_the_format_that_was_asked_for(tmp_path: Path, form: Any) -> None:
    path = tmp_path / "klamm.log"
    path.write_bytes(b"before\n")
    log = open_log(config.Log(format=form, file=OutputFile(str(path))))
    log.event("a", "b")
    log.close()
    before, line = path.read_bytes().splitlines()
    assert before == b"before"
    assert line.startswith(b"{") == (form != "console")


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        open_log(config.Log(file=OutputFile(str(tmp_path / "no" / "klamm.log"))))


def hit(rule: str, number: int) -> Callable[[EventLog], None]:
    return lambda log: log.event("rule", "seen", per=rule, each=True, rule=rule, number=number)


def test_events_that_deserve_a_line_each_have_one_up_to_a_hundred_a_second_and_the_rest_is_counted() -> None:
    clock = Clock()

    def later(log: EventLog) -> None:
        clock.now += 1

    hits = [hit("a", number) for number in range(130)]
    lines = logged(*hits, *(hit("b", number) for number in range(10)), later, hit("a", 130), clock=clock)
    of_a = [line for line in lines if line["rule"] == "a"]
    assert [line["number"] for line in of_a] == [*range(100), 130]
    assert [line.get("suppressed") for line in of_a] == [None] * 100 + [30]
    assert [line["number"] for line in lines if line["rule"] == "b"] == list(range(10))
    assert {line["level"] for line in lines} == {"info"}


def test_what_was_left_out_of_a_second_is_said_soon_after_it_though_nothing_follows() -> None:
    clock = Clock()
    output = io.BytesIO()
    log = EventLog(output, json_line, clock)
    for number in range(105):
        hit("a", number)(log)
    log.settle()  # the second is not over
    clock.now += 1
    log.settle()
    log.settle()
    hit("a", 105)(log)
    log.close()
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [(line["number"], line.get("suppressed")) for line in lines[100:]] == [(104, 4), (105, None)]


def test_what_was_left_out_last_is_said_at_the_end() -> None:
    lines = logged(*(hit("a", number) for number in range(102)))
    assert [(line["number"], line.get("suppressed")) for line in lines[100:]] == [(101, 1)]


def test_without_a_file_lines_go_to_standard_error_and_are_json_where_it_is_no_terminal(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(2, "wb", buffering=0, closefd=False) as output:
        monkeypatch.setattr("sys.stderr", Mock(buffer=output))
        log = open_log(config.Log())
        log.event("a", "b")
        log.close()
    out, err = capfdbinary.readouterr()
    assert (out, json.loads(err)["event"]) == (b"", "a")

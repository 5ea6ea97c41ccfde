"""The lines that stay."""

from io import StringIO

from rich.console import Console

from klamm.dashboards.terminal.summary import line, summary
from tests.dashboards.fake_state import FakeState, answer, of_many_clients, two_answers

SUMMARY = """\
In 30 s klamm passed on 15,300 requests of 6 clients on 4 topics: 17.8 MB in, 28.9 MB out.

API           requests       in      out      p50      p99  errors
Produce         12,900  17.5 MB  1.14 MB  1.96 ms  5.46 ms      62
Fetch            2,100   256 kB  27.7 MB  46.5 ms   476 ms      16
OffsetCommit       120  18.0 kB  9.60 kB  2.98 ms  < 10 ms       –
Metadata            90  6.60 kB  57.0 kB  1.65 ms   < 5 ms      60
ListOffsets         60  5.40 kB  7.20 kB  1.25 ms  2.47 ms       –
Heartbeat           30  2.10 kB    600 B  <2.5 ms   < 5 ms       2

Kafka error                 times  whose
NOT_LEADER_OR_FOLLOWER         62  Produce of orders-service on orders
UNKNOWN_TOPIC_OR_PARTITION     60  Metadata of reporting on no-such-topic
OFFSET_OUT_OF_RANGE            16  Fetch of reporting on payments
REBALANCE_IN_PROGRESS           2  Heartbeat of billing-1

klamm's own time: p50 17 µs, p99 50 µs. Problems met: body does not decode 1 (Fetch).
"""


def printed(counters: dict[str, object]) -> str:
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(summary(counters))
    assert isinstance(console.file, StringIO)
    return "\n".join(text.rstrip() for text in console.file.getvalue().split("\n"))


def test_a_moment_is_one_line() -> None:
    assert line(*two_answers()) == (
        " 0:30  510 req/s  594 kB in/s  965 kB out/s  p99 < 10 ms  12 connections"
        "  errors: 10 UNKNOWN_TOPIC_OR_PARTITION, 9 NOT_LEADER_OR_FOLLOWER, 6 OFFSET_OUT_OF_RANGE"
    )


def test_the_summary_is_of_everything_since_the_start() -> None:
    assert printed(two_answers()[1]) == SUMMARY


def test_the_summary_says_how_many_clients_of_an_error_it_does_not_name() -> None:
    counters = answer(of_many_clients(*(f"app-{number}" for number in range(1, 10))))
    text = "NOT_COORDINATOR     45  Heartbeat of app-1, app-2, app-3 and 6 more on a, b, c and 2 more\n"
    assert text in printed(counters)


def test_a_summary_of_nothing_is_no_error() -> None:
    assert "passed on 0 requests of 0 clients" in printed(answer(FakeState()))

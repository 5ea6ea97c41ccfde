"""The judge of a soak finds what it is there for."""

from collections.abc import Callable

import pytest

from tests.soak.judge import Stored, acknowledged, consumed, copied, grown, log, never_back, produced

SENT = {"one": ["a", "b", "c"], "other": ["x"]}
STORED = [Stored(0, 0, "a"), Stored(1, 0, "x"), Stored(0, 1, "b"), Stored(0, 2, "c")]
COPIES = [Stored(0, at, where) for at, where in enumerate(("0/0", "1/0", "0/1", "0/2"))]
RESULT = {"acknowledged": 3, "failed": []}


def test_nothing_is_told_where_all_is_well() -> None:
    assert list(produced(STORED, SENT)) == []
    assert list(copied(STORED, COPIES)) == []
    assert list(acknowledged("one", 3, [RESULT])) == []
    assert list(consumed("reader", {"a", "b"}, [{"fingerprints": ["a", "b", "a"]}])) == []
    assert list(never_back([(0, {"0": 4}), (1, {"0": 4, "1": 2}), (2, {"1": 3})])) == []


Spoil = Callable[[list[Stored]], list[Stored]]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda rows: rows[1:], "records of one: 1 of 3 are lost: a"),
        (lambda rows: [*rows, Stored(0, 3, "c")], "records of one: 1 of 3 are there more than once: c"),
        (lambda rows: [*rows, Stored(0, 3, "?")], "1 records that nobody sent: ?"),
        (
            lambda rows: [rows[2], rows[0], *rows[1:2], rows[3]],
            "record 0 of one stands behind a later one in partition 0",
        ),
    ],
)
def test_what_is_wrong_with_records_is_told(spoil: Spoil, told: str) -> None:
    assert list(produced(spoil(list(STORED)), SENT)) == [told]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda rows: rows[1:], "copies: 1 of 4 are lost: 0/0"),
        (lambda rows: [*rows, rows[0]], "copies: 1 of 4 are there more than once: 0/0"),
        (lambda rows: [*rows, Stored(0, 9, "aborted")], "1 records of aborted transactions can be read"),
        (lambda rows: [*rows, Stored(0, 9, "7/7")], "1 copies of nothing: 7/7"),
    ],
)
def test_what_is_wrong_with_copies_is_told(spoil: Spoil, told: str) -> None:
    assert list(copied(STORED, spoil(list(COPIES)))) == [told]


def test_what_clients_say_is_looked_at() -> None:
    assert list(acknowledged("one", 3, [{"acknowledged": 2, "failed": [1]}])) == [
        "producer one: [(2, [1])], in place of 3 records and none failed"
    ]
    assert list(acknowledged("one", 3, [])) == [
        "producer one: it said nothing, in place of 3 records and none failed"
    ]
    assert list(consumed("reader", {"a", "b"}, [{"fingerprints": ["a", "z"]}])) == [
        "consumer reader: 1 records missing, 1 that nobody sent"
    ]
    assert list(consumed("reader", {"a"}, [])) == ["consumer reader: it said no result"]


def test_a_commit_that_goes_back_is_told() -> None:
    samples = [(0.0, {"orders-0": 4}), (2.0, {"orders-0": 3})]
    assert list(never_back(samples)) == ["the commit of orders-0 went back from 4 to 3 after 2 s"]


def test_memory_that_grows_is_told() -> None:
    assert list(grown(100, 110)) == []
    assert list(grown(100, 111)) == ["klamm's memory grew from 100 to 111 bytes"]


def test_klamms_log_is_counted_and_what_it_could_not_read_is_told() -> None:
    lines = ['{"level": "warning", "event": "broker_unreachable"}', '{"level": "info", "event": "changed"}']
    lines += ['{"level": "warning", "event": "undecodable"}', "Traceback (most recent call last):", "  x"]
    assert log(lines) == ({"broker_unreachable": 1, "undecodable": 1}, lines[2:4])

"""The exchanges of a capture for which an expression holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from klamm.captures.captured import Captured
from klamm.captures.choosing import TELL_S, Choosing, chosen, in_batches
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.frames import Framing
from klamm.rules.expressions import parse
from tests.captures.rows import Talk, connection, in_time


def found(rows: list[Captured], where: str | None = None) -> list[int]:
    """The numbers of the exchanges for which it holds."""
    expression = None if where is None else parse(where)
    return [one.exchange.first.exchange for one in chosen(exchanges(rows), expression)]


def work() -> list[Captured]:
    """0 Metadata, 1 Produce, 2 Fetch by topic id, 3 Heartbeat that fails, 4 Produce that wants no answer."""
    return Talk().metadata().produce().fetch().heartbeat(27).produce(acks=0).rows


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ('topic == "orders"', [0, 1, 2, 4]),
        ("error != NONE", [3]),
        ("error == REBALANCE_IN_PROGRESS", [3]),
        ("latency_ms > 3", [2]),
        ("acks == -1", [1]),
        ("request.acks == 0", [4]),
        ('client_id == "app" and api == Fetch', [2]),
        ('client == "10.0.0.7" and broker == "1" and side == "response"', [0, 1, 2, 3]),
        ('group == "billing"', [3]),
        ('topic == "nothing"', []),
    ],
)
def test_an_expression_chooses_as_it_does_in_rules(where: str, numbers: list[int]) -> None:
    assert found(work(), where) == numbers


def test_without_an_expression_every_exchange_is_chosen() -> None:
    assert found(work()) == [0, 1, 2, 3, 4]


def test_a_topic_id_has_a_name_from_the_answer_on_that_tells_it() -> None:
    before, after = Talk().fetch().metadata(), Talk().metadata().fetch()
    assert found(before.rows, 'topic == "orders" and api == Fetch') == []
    assert found(after.rows, 'topic == "orders" and api == Fetch') == [1]


def test_names_are_known_on_all_connections() -> None:
    asking = Talk().metadata()
    fetching = Talk(of=connection(2), now_ms=10).fetch()
    assert found(in_time(asking, fetching), 'topic == "orders" and api == Fetch') == [0]


def test_what_was_kept_as_its_size_only_is_shown_but_not_chosen() -> None:
    rows = [row._replace(frame=None) for row in Talk().heartbeat().rows]
    [framed] = chosen(exchanges(rows))
    assert (framed.request, framed.response) == (None, None)
    assert found(rows, "api == Heartbeat") == []


def test_an_api_versions_request_of_an_unknown_version_is_found_by_its_refusal() -> None:
    refused = Talk().exchange("ApiVersions", 0, {}, {"error_code": 35, "api_keys": []}).rows
    rows = [
        row._replace(api_version=5, frame=row.frame if row.side == "response" else None) for row in refused
    ]
    for where in (
        "error == UNSUPPORTED_VERSION",
        "api == ApiVersions",
        'client_id == "app"',
        "connection == 1",
    ):
        assert found(rows, where) == [0]


def test_a_response_whose_request_is_missing_is_chosen_by_itself() -> None:
    response = Talk().heartbeat(27).rows[1]
    assert found([response], "error == REBALANCE_IN_PROGRESS") == [0]
    assert found([response], "latency_ms > 0") == []


def test_an_answer_to_too_new_an_api_versions_request_is_in_the_oldest_layout() -> None:
    talk = Talk()
    number = talk.request("ApiVersions", 4, {})
    talk.response("ApiVersions", 0, {"error_code": 35}, number, api_version=4)
    [framed] = chosen(exchanges(talk.rows), parse("error == UNSUPPORTED_VERSION"))
    assert framed.response is not None
    assert framed.response.version == 0


@pytest.mark.parametrize(
    "where",
    [
        'client_id == "app"', 'client_id != "app"', 'client_id == "other"', "connection == 2",
        'broker == "2"', 'client == "10.0.0.8"', "client_port > 50000", "version >= 12",
        'api == Heartbeat and client_id == "other"', "api == ApiVersions and version == 0",
        'side == "request" and api in (Produce, Fetch)',
        'principal == "User:app"', "error != NONE", "latency_ms > 3", "size > 40", "request.acks == 0",
    ],
)  # fmt: skip
def test_what_is_known_of_headers_changes_no_choice(where: str) -> None:
    """Beside an expression that is the same but for a part that always holds, and reads the body's size."""
    one = Talk().metadata().produce().fetch().heartbeat(27).produce(acks=0).heartbeat()
    other = Talk(connection(2, "2", "10.0.0.8:50001"), "other", 3.0).heartbeat().fetch().produce().heartbeat()
    refused = (
        Talk(connection(3), "new").exchange("ApiVersions", 0, {}, {"error_code": 35, "api_keys": []}).rows
    )
    new = [
        row._replace(api_version=5, frame=row.frame if row.side == "response" else None) for row in refused
    ]
    small = Talk(connection(4), "small").heartbeat()
    unkept = [row._replace(frame=None) for row in small.rows]
    rows = [*in_time(one, other, small), *new, *unkept, *new, *in_time(one, other)]
    found, same = (
        [one.exchange for one in chosen(exchanges(rows), parse(text))]
        for text in (where, f"({where}) and size >= 0")
    )
    assert found == same
    assert len(found) < len(list(exchanges(rows)))


def test_no_frame_is_made_where_headers_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Exchange]()
    framed = Framing.exchange
    monkeypatch.setattr(Framing, "exchange", lambda self, one: made.append(one) or framed(self, one))
    rows = Talk().heartbeat().heartbeat().metadata().metadata().rows
    found = Choosing(parse('client_id == "nobody"'))
    assert [found.framed(one) for one in exchanges(rows)] == [None] * 4
    assert [one.first.api_key for one in made] == [3, 3]  # answers to Metadata tell names of topics


def test_what_is_chosen_comes_in_lists_and_nothing_is_told_too() -> None:
    rows = list(exchanges(Talk().heartbeat().heartbeat().heartbeat().heartbeat().heartbeat().rows))
    assert [len(some) for some in in_batches(rows, lambda one: one, 2)] == [2, 2, 1]

    def clock() -> Iterator[float]:
        return (TELL_S * number for number in count())

    ticks = clock()
    slow = in_batches(rows, lambda one: one if one is rows[3] else None, 2, lambda: next(ticks))
    assert [len(some) for some in slow] == [0, 0, 0, 1, 0, 0]

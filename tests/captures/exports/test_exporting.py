"""Exports of one end's view of the connections, and of some exchanges."""

from __future__ import annotations

from klamm.captures.captured import Captured
from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.captures.exports.exporting import Selection, seen_by
from klamm.rules.expressions import parse
from tests.captures.rows import Talk, connection, in_time, lost


def request(fate: str, **of_row: object) -> Captured:
    return Talk().heartbeat().rows[0]._replace(fate=fate, frame=b"original", size=8, **of_row)  # type: ignore[arg-type]


def response(fate: str, **of_row: object) -> Captured:
    return request(fate, side="response", **of_row)


def views(row: Captured) -> tuple[list[bytes | None], list[bytes | None]]:
    """The frames that the client saw, and those that the broker saw."""
    client, broker = ([seen.frame for seen in seen_by(who, [row])] for who in ("client", "broker"))
    return client, broker


def test_both_ends_see_what_passed() -> None:
    assert views(request("passed")) == views(response("passed")) == ([b"original"], [b"original"])


def test_what_was_withheld_is_seen_by_who_said_it() -> None:
    assert views(request("withheld")) == ([b"original"], [])
    assert views(response("withheld")) == ([], [b"original"])


def test_what_klamm_made_is_seen_by_who_got_it() -> None:
    assert views(request("made")) == ([], [b"original"])
    assert views(response("made")) == ([b"original"], [])


def test_what_was_rewritten_is_seen_in_two_forms() -> None:
    assert views(request("rewritten", forwarded=b"other")) == ([b"original"], [b"other"])
    assert views(response("rewritten", forwarded=b"other")) == ([b"other"], [b"original"])
    (seen,) = seen_by("client", [response("rewritten", forwarded=b"other", forwarded_blanks=((0, 2),))])
    assert (seen.size, seen.blanks) == (5, ((0, 2),))


def test_of_a_rewritten_frame_that_was_not_kept_the_original_stands_there() -> None:
    assert views(response("rewritten")) == ([b"original"], [b"original"])


def test_connections_and_losses_are_seen_by_both() -> None:
    rows = [*Talk().opened().closed().rows, lost(3)]
    assert list(seen_by("client", rows)) == list(seen_by("broker", rows)) == rows


def test_a_selection_has_the_rows_of_its_exchanges_in_their_order() -> None:
    first = Talk(connection(1)).opened().heartbeat().metadata().heartbeat(25).closed()
    second = Talk(connection(2, client="10.0.0.8:1")).opened().metadata().closed()
    rows = in_time(first, second)
    selection = Selection(chosen(exchanges(rows), parse("error == UNKNOWN_MEMBER_ID")))
    assert list(selection.of(rows)) == [first.rows[0], *first.rows[5:]]


def test_a_selection_remembers_any_exchange_of_a_long_connection() -> None:
    talk = Talk()
    for number in range(100):
        talk.heartbeat(25 if number % 9 == 0 else 0)
    selection = Selection(chosen(exchanges(talk.rows), parse("error != NONE")))
    assert {row.exchange for row in selection.of(talk.rows)} == set(range(0, 100, 9))


def test_a_selection_knows_a_response_whose_request_is_missing_by_its_time() -> None:
    rows = [
        row._replace(exchange=-1) for row in Talk().heartbeat().heartbeat().rows if row.side == "response"
    ]
    selection = Selection(chosen(exchanges(rows[1:])))
    assert list(selection.of(rows)) == rows[1:]

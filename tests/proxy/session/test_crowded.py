"""A client is not read while too many of its requests wait, and is read again once they are answered."""

from klamm.proxy.session.effects import ReadClient
from klamm.proxy.session.session import Session
from tests.proxy.traffic import ADVERTISE, Exchanged, exchange, ground

MOST = 3000  # bytes of pending requests, which count 100 each


def equal(count: int) -> list[Exchanged]:
    return [
        exchange("Heartbeat", 4, {"group_id": "g", "member_id": "m"}, {"error_code": 0}, number)
        for number in range(count)
    ]


def test_a_client_is_read_on_although_a_request_came_in_part_with_many_equal_ones() -> None:
    at = ground()
    at.crowd.pending = MOST
    session = Session(at, "1", ADVERTISE)
    made = equal(60)
    session.from_client(b"".join(one.request for one in made[:40]), 0)
    second = b"".join(one.request for one in made[40:])
    effects = session.from_client(second[:-1], 1)
    assert ReadClient(False) in effects
    answers = session.from_broker(b"".join(one.answer or b"" for one in made[:-1]), 2)
    assert session.pending() == 1
    assert not isinstance(answers, bytes)
    assert ReadClient(True) in answers


def test_the_rest_of_a_request_is_read_on_where_all_that_came_before_it_are_answered() -> None:
    at = ground()
    at.crowd.pending = MOST
    session = Session(at, "1", ADVERTISE)
    made = equal(40)
    requests = b"".join(one.request for one in made)
    session.from_client(requests[:-2], 0)
    session.from_broker(b"".join(one.answer or b"" for one in made[:-1]), 1)
    assert session.from_client(requests[-2:-1], 2) == requests[-2:-1]

"""The first bytes of a request that are kept go on with the rest of that request."""

import pytest

from klamm.proxy.session.effects import Send
from klamm.proxy.session.session import Session
from klamm.rules.plan import ListenerWish, Wishes
from tests.proxy.control.test_watching import Heard
from tests.proxy.ruling.ruled import ruled
from tests.proxy.traffic import ADVERTISE, produce


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_request_whose_header_came_in_part_waits_for_no_more_than_itself(cut: int) -> None:
    wishes = Wishes("full", frozenset(), (ListenerWish(None, Heard(bodies=True)),))
    session = Session(ruled(wishes=wishes), "1", ADVERTISE)
    large, small = produce(9, 1, size=1000).request, produce(9, 2, size=10).request
    assert session.from_client(large, 0) is large
    assert session.from_client(small[:cut], 1) == []
    assert session.from_client(small[cut:], 2) == [Send("broker", small)]

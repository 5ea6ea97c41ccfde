"""Rules that are gone for a while: the next request under rules is read, whatever came meanwhile."""

import pytest

from klamm.proxy.session.session import Session
from tests.proxy.ruling.ruled import act, engine_of, rule, ruled
from tests.proxy.traffic import ADVERTISE, produce


@pytest.mark.parametrize("cut", [18, 25, 30, 33])
def test_a_request_in_two_reads_between_two_rules_does_not_stand_for_the_next_one(cut: int) -> None:
    counting = rule(act("count"), api="Produce")
    at = ruled(counting)
    engine = engine_of(at)
    session = Session(at, "1", ADVERTISE, "10.0.0.7:50000")
    session.from_client(produce(7, 1).request, 0)
    engine.load([], 1)
    for part in (produce(7, 2).request[:cut], produce(7, 2).request[cut:]):
        session.from_client(part, 2)
    engine.load([counting], 3)
    session.from_client(produce(7, 3, acks=0, topic="payments").request, 4)
    assert session.pending() == 2
    topics = {counters.topic: counters.requests for counters in at.stats.topics.values()}
    assert topics == {"orders": 2, "payments": 1}

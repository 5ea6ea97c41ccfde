"""Rules that go and come while a frame is under way: none acts on a frame that it does not concern."""

import pytest

from klamm.proxy.session.session import Session
from tests.proxy.ruling.ruled import Talk, act, engine_of, rule, ruled
from tests.proxy.traffic import ADVERTISE, metadata, produce


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


def test_a_rule_that_goes_while_its_answer_comes_does_not_act_on_the_next_answer() -> None:
    at = ruled(rule(act("error", 41), api="Produce", side="response"))
    first, second = produce(7, 1), metadata(9, 2)
    assert first.answer is not None
    assert second.answer is not None
    talk = Talk(at)
    talk.client(first)
    talk.broker(first.answer[:20])
    engine_of(at).load([rule(act("count"), api="Metadata", side="response")], 1)
    talk.client(second)
    assert talk.broker(first.answer[20:]).client == first.answer
    plain = Talk(ruled())
    plain.client(second)
    assert talk.broker(second.answer).client == plain.broker(second.answer).client

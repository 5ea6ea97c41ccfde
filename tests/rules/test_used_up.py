"""A rule that has hit as often as it may: connections are on the fast path again, and its matches count."""

from klamm.rules.rule import Moment, When
from tests.proxy.ruling.ruled import Talk, act, engine_of, rule, ruled
from tests.proxy.traffic import exchange

BEAT = {"group_id": "g", "member_id": "m"}


def beat(number: int) -> bytes:
    return exchange("Heartbeat", 4, BEAT, None, number).request


def test_a_read_like_the_one_before_goes_on_as_it_is_and_the_rule_counts_its_matches() -> None:
    once = rule(act("error", 27), api="Heartbeat", name="once", when=When(times=1))
    twice = rule(act("error", 6), api="Heartbeat", name="twice", when=When(times=2))
    at = ruled(once, twice)
    talk, engine = Talk(at), engine_of(at)
    for number in range(1, 4):
        assert talk.client(beat(number)).broker == b""
    for number in range(4, 8):
        data = beat(number)
        assert talk.session.from_client(data, 0) is data
        assert (talk.session.requests.steady is not None) or number == 4
    assert [(each.hits, each.matches) for each in engine.counted_rules] == [(1, 7), (2, 7)]


def test_a_rule_that_is_reset_hits_again() -> None:
    at = ruled(rule(act("error", 27), api="Heartbeat", name="once", when=When(times=1)))
    talk, engine = Talk(at), engine_of(at)
    assert talk.client(beat(1)).broker == b""
    assert talk.client(beat(2), beat(3)).broker == beat(2) + beat(3)
    engine.by_name["once"].reset(0)
    assert talk.client(beat(4)).broker == b""


def test_a_rule_that_may_hit_each_client_so_often_is_not_used_up_by_one() -> None:
    at = ruled(rule(act("error", 27), api="Heartbeat", name="each", when=When(times=1, per="client")))
    one, other = Talk(at), Talk(at)
    assert one.client(beat(1)).broker == b""
    assert one.client(beat(2)).broker == beat(2)
    other_beat = exchange("Heartbeat", 4, BEAT, None, 1, client_id="other").request
    assert other.client(other_beat).broker == b""


def test_a_rule_whose_time_is_over_counts_no_more_matches() -> None:
    when = When(times=1, until=Moment(5_000_000), since="start")
    at = ruled(rule(act("error", 27), api="Heartbeat", name="once", when=when))
    talk, (once,) = Talk(at), engine_of(at).counted_rules
    for number, now in enumerate((1_000_000, 2_000_000, 9_000_000, 9_500_000), 1):
        talk.client(beat(number), now=now)
    assert (once.hits, once.matches) == (1, 2)

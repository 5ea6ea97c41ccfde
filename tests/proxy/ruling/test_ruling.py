"""The bytes of a connection under rules: places, order and lengths, however the bytes are cut."""

from random import Random
from typing import Any

import pytest

from klamm.decoders import decode
from klamm.proxy.session.effects import Cut, Event, Hold, Silence
from klamm.rules.expressions import parse
from klamm.rules.frame import Frame
from klamm.rules.glob import Glob
from klamm.rules.orders import FOREVER, OnAnswer, Raw, Shape
from klamm.rules.rule import Action, When
from tests.proxy.ruling.ruled import Talk, act, engine_of, frames, rule, ruled
from tests.proxy.traffic import at_random, byte_by_byte, exchange, fetch, kinds, metadata, produce, whole

cuts = pytest.mark.parametrize(
    "cut", [whole, byte_by_byte, at_random(Random(3), 90)], ids=["whole", "bytes", "random"]
)
MS = 1_000_000


def ids(data: bytes) -> list[int]:
    """Correlation ids of responses."""
    return [int.from_bytes(frame[4:8], "big") for frame in frames(data)]


def codes(data: bytes, version: int = 9) -> list[int]:
    """The first error of each Produce response."""
    found = []
    for frame in frames(data):
        (topic,) = decode(frame[9:], 0, version, "response")["responses"]
        found.append(topic["partition_responses"][0]["error_code"])
    return found


@cuts
def test_an_answer_that_klamm_makes_waits_for_those_before_it(cut: Any) -> None:
    talk = Talk(ruled(rule(act("error", 6), api="Produce", when=When(nth=(2,)))))
    one, two, three, four = (produce(9, number) for number in (1, 2, 3, 4))
    assert talk.client(one, two, three, cut=cut).broker == one.request + three.request
    assert talk.outcome.client == b""
    assert ids(talk.broker(one, cut=cut).client) == [1, 2]
    assert ids(talk.broker(three, cut=cut).client) == [3]
    assert talk.client(four, cut=cut).broker == four.request
    talk.broker(four, cut=cut)
    assert codes(talk.outcome.client) == [0, 6, 0, 0]


@cuts
def test_the_first_request_behind_kerberos_gets_its_answer_though_the_last_token_has_none(cut: Any) -> None:
    talk = Talk(ruled(rule(act("error", 6), api="Produce")))
    first, last = b"\0\0\0\x08\x60\x82secret", b"\0\0\0\x0a\5\4\4\xffsecret"
    talk.client(first, cut=cut)
    assert talk.broker(first, cut=cut).client == first
    assert talk.client(last, cut=cut).broker == last
    assert codes(talk.client(produce(9, 1), cut=cut).client) == [6]


@cuts
def test_a_request_that_gets_no_answer_is_refused_without_one(cut: Any) -> None:
    talk = Talk(ruled(rule(act("error", 6), api="Produce", when=When(times=1))))
    silent, answered = produce(9, 1, acks=0), produce(9, 2)
    assert talk.client(silent, answered, cut=cut).broker == answered.request
    assert talk.broker(answered, cut=cut).client == answered.answer


@cuts
def test_an_edit_of_the_request_has_its_length_and_keeps_its_place(cut: Any) -> None:
    talk = Talk(
        ruled(rule(act("set", {"topic_data.name": "another-topic"}), api="Produce", topic=Glob("orders")))
    )
    one, two = produce(9, 1), fetch(12, 2)
    sent = frames(talk.client(one, two, one, cut=cut).broker)
    assert [len(frame) - len(one.request) for frame in sent] == [7, len(two.request) - len(one.request), 7]
    assert sent[1] == two.request
    assert decode(sent[0][18:], 0, 9, "request")["topic_data"][0]["name"] == "another-topic"
    assert sent[0][4:18] == one.request[4:18]


def test_a_request_that_a_rule_leaves_as_it_is_goes_on_as_the_same_object() -> None:
    """Else a capture would get its bytes twice."""
    at = ruled(rule(act("error", 6), api="Fetch", topic=Glob("orders")))
    talk, one = Talk(at), fetch(12, 1)
    many = one.request + fetch(12, 2).request
    assert talk.session.from_client(one.request, 0) is one.request
    assert talk.session.from_client(many, 0) is many
    answers = talk.broker(one, fetch(12, 1), fetch(12, 2)).client
    assert ids(answers) == [1, 1, 2]
    for frame in frames(answers):
        (topic,) = decode(frame[9:], 1, 12, "response")["responses"]
        assert [part["error_code"] for part in topic["partitions"]] == [6]


@cuts
def test_a_topic_is_known_by_its_id(cut: Any) -> None:
    talk = Talk(ruled(rule(act("error", 6), api="Produce", topic=Glob("orders"))))
    talk.client(produce(13, 1), cut=cut)
    assert codes(talk.outcome.client, 13) == [6]


@cuts
def test_acks_that_a_rule_takes_away_are_made_up_for(cut: Any) -> None:
    talk = Talk(ruled(rule(act("set", {"acks": "0"}), api="Produce")))
    one, two = fetch(12, 1), produce(9, 2)
    assert len(frames(talk.client(one, two, cut=cut).broker)) == 2
    assert ids(talk.broker(one, cut=cut).client) == [1, 2]


@cuts
def test_acks_are_made_up_for_where_the_request_names_no_partition(cut: Any) -> None:
    talk = Talk(ruled(rule(act("set", {"acks": "0"}), api="Produce")))
    empty = exchange("Produce", 9, {"acks": 1, "topic_data": []}, {"responses": []})
    assert len(frames(talk.client(empty, cut=cut).broker)) == 1
    assert talk.outcome.client == empty.answer


@cuts
def test_an_answer_that_only_klamm_asked_for_is_not_heard(cut: Any) -> None:
    talk = Talk(ruled(rule(act("set", {"acks": "1"}), api="Produce")))
    silent, after = produce(9, 1, acks=0), fetch(12, 2)
    talk.client(silent, after, cut=cut)
    talk.broker(produce(9, 1), after, cut=cut)
    assert talk.outcome.client == after.answer


@cuts
def test_a_request_sent_twice_is_answered_once(cut: Any) -> None:
    at = ruled(
        rule(act("duplicate"), api="Produce", when=When(nth=(2,))),
        rule(act("count"), side="response", api="Produce"),
    )
    talk = Talk(at)
    one, two, three = (produce(9, number) for number in (1, 2, 3))
    assert talk.client(one, two, three, cut=cut).broker == one.request + two.request * 2 + three.request
    assert talk.broker(one, two, two, three, cut=cut).client == b"".join(
        e.answer or b"" for e in (one, two, three)
    )
    assert engine_of(at).by_name["count"].hits == 3


def test_a_second_answer_too_large_to_be_held_ends_the_connection() -> None:
    talk = Talk(ruled(rule(act("duplicate")), held_limit=500))
    one = fetch(4, 1, size=2000)
    talk.client(one)
    talk.broker(one, one)
    assert talk.ended
    assert talk.outcome.client == one.answer


@cuts
def test_a_dropped_answer_stalls_those_behind_it(cut: Any) -> None:
    talk = Talk(ruled(rule(act("drop", sent=True), api="Produce", when=When(nth=(2,)))))
    every = [produce(9, number) for number in (1, 2, 3)]
    assert len(frames(talk.client(*every, cut=cut).broker)) == 3
    talk.broker(*every, cut=cut)
    assert talk.outcome.events == (Hold("client", FOREVER),)
    assert ids(talk.outcome.client) == [1, 3]  # the third behind the hold


@cuts
def test_a_dropped_request_stalls_what_is_answered_behind_it(cut: Any) -> None:
    talk = Talk(ruled(rule(act("drop"), api="Produce", when=When(nth=(1,)))))
    one, two = produce(9, 1), produce(9, 2)
    assert talk.client(one, two, cut=cut).broker == two.request
    assert talk.outcome.events == (Hold("client", FOREVER),)
    assert talk.broker(two, cut=cut).client == two.answer


@pytest.mark.parametrize(("when", "received"), [("after", 0), ("answered", None), ("mid frame", "half")])
@cuts
def test_a_connection_is_cut_in_the_middle_of_an_answer(cut: Any, when: str, received: Any) -> None:
    talk = Talk(ruled(rule(act("disconnect", when), api="Fetch")))
    one, two = produce(9, 1), fetch(12, 2)
    talk.client(one, two, cut=cut)
    talk.broker(one, two, cut=cut)
    assert one.answer is not None
    assert two.answer is not None
    count = 4 + (len(two.answer) - 9) // 2 if received == "half" else received
    assert talk.outcome.client == one.answer + two.answer[:count]
    assert talk.outcome.events == (Cut("client", "rst"),)


@cuts
def test_a_connection_without_answers_is_cut_behind_its_request(cut: Any) -> None:
    talk = Talk(ruled(rule(act("disconnect"), api="Produce")))
    silent = produce(9, 1, acks=0)
    assert talk.client(silent, produce(9, 2), cut=cut).broker == silent.request
    assert talk.outcome.events == (Cut("broker", "rst"),)


def test_a_delay_counts_from_when_an_answer_or_a_request_came() -> None:
    talk = Talk(
        ruled(
            rule(act("delay", 5 * MS), api="Produce"), rule(act("delay", 3 * MS, of="request"), api="Fetch")
        )
    )
    one, two = produce(9, 1), fetch(12, 2)
    talk.client(one, two, now=MS)
    half = len(one.answer or b"") // 2
    talk.broker((one.answer or b"")[:half], now=10 * MS)
    talk.broker((one.answer or b"")[half:], now=12 * MS)
    assert talk.outcome.events == (Hold("broker", 4 * MS), Hold("client", 15 * MS))


LARGE = 1_000_000  # bytes


@pytest.mark.parametrize(
    ("does", "kept"),
    [
        (act("delay", 5 * MS), False),
        (act("disconnect"), False),
        (act("throttle", 5 * MS), False),
        (act("corrupt", "truncate"), False),
        (act("error", 6, applied=True), True),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_a_request_is_kept_until_its_answer_comes_only_where_that_needs_it(does: Action, kept: bool) -> None:
    talk = Talk(ruled(rule(does, api="Produce")))
    talk.client(produce(9, 1, size=LARGE))
    assert (talk.session.connection.pending.weight > LARGE) == kept


def test_a_request_is_kept_where_rules_look_at_answers() -> None:
    answers = rule(act("error", 6), api="Produce", side="response", name="answers")
    talk = Talk(ruled(rule(act("delay", 5 * MS), api="Produce"), answers))
    talk.client(produce(9, 1, size=LARGE))
    assert talk.session.connection.pending.weight > LARGE


@pytest.mark.parametrize(
    ("where", "acts"),
    [
        ("transactional_id is None", True),
        ("transactional_id == 'x'", False),  # null: unknown
        ("not transactional_id == 'x'", False),
        ("acks == 1", False),
    ],
)
def test_a_rule_acts_where_its_expression_is_true_and_not_where_it_is_unknown(where: str, acts: bool) -> None:
    at, one = ruled(rule(act("error", 6), api="Produce", where=parse(where))), produce(9, 1)
    assert Talk(at).client(one).broker == (b"" if acts else one.request)
    assert engine_of(at).failed == []


def test_a_delay_that_a_rule_adds_to_an_answer_is_not_in_the_latency() -> None:
    at = ruled(rule(act("delay", 70 * MS), api="Produce"))
    talk, one = Talk(at), produce(9, 1)
    talk.client(one, now=0)
    assert Hold("client", 75 * MS) in talk.broker(one, now=5 * MS).events
    assert at.stats.requests["test", "1", "app", "Produce", 9].latency.total_ns == 5 * MS


@cuts
def test_a_response_is_matched_once_however_it_comes(cut: Any) -> None:
    at = ruled(rule(act("error", 5), api="Metadata", side="response", when=When(nth=(2,)), name="second"))
    talk = Talk(at)
    for number in (1, 2, 3):
        talk.client(metadata(9, number), cut=cut)
        talk.broker(metadata(9, number), cut=cut)
    rows = [
        decode(frame[9:], 3, 9, "response")["topics"][0]["error_code"]
        for frame in frames(talk.outcome.client)
    ]
    assert rows == [0, 5, 0]
    assert engine_of(at).by_name["second"].matches == 3


@cuts
def test_a_request_too_large_for_rules_passes_and_is_said_once(cut: Any) -> None:
    at = ruled(rule(act("error", 6), api="Produce", topic=Glob("orders")), held_limit=300)
    talk, large, small = Talk(at), produce(9, 1, size=1000), produce(9, 2)
    assert talk.client(large, small, cut=cut).broker == large.request
    assert kinds(talk.outcome.events) == [(Event, "too_large_for_rules")]
    assert codes(talk.broker(large, cut=cut).client) == [0, 6]


@cuts
def test_a_response_too_large_for_rules_passes_and_is_said_once(cut: Any) -> None:
    talk, large = (
        Talk(ruled(rule(act("error", 6), api="Fetch", topic=Glob("orders")), held_limit=300)),
        fetch(4, 1, 1000),
    )
    talk.client(large, cut=cut)
    assert talk.broker(large, cut=cut).client == large.answer
    assert kinds(talk.outcome.events) == [(Event, "too_large_for_rules")]


@cuts
def test_rules_that_change_apply_to_the_next_frame(cut: Any) -> None:
    at = ruled(rule(act("count")))
    talk, one = Talk(at), produce(9, 1)
    assert talk.client(one, cut=cut).broker == one.request
    engine_of(at).load([rule(act("error", 6))], 0)
    assert talk.client(one, cut=cut).broker == b""
    engine_of(at).load([], 0)
    assert talk.client(one, cut=cut).broker == one.request
    talk.broker(one, one, cut=cut)
    assert codes(talk.outcome.client) == [0, 6, 0]


def test_rules_that_change_while_a_request_comes_forget_what_was_decided_of_it() -> None:
    at = ruled(rule(act("error", 6), topic=Glob("orders")))
    talk, one = Talk(at), produce(9, 1)
    talk.client(one.request[:40])
    engine_of(at).load([rule(act("count"))], 0)
    assert talk.client(one.request[40:]).broker == one.request
    engine_of(at).load([rule(act("error", 7))], 0)
    talk.client(one)
    talk.broker(one)
    assert codes(talk.outcome.client) == [0, 7]


@cuts
def test_a_stream_is_shaped_from_a_frame_on(cut: Any) -> None:
    talk = Talk(ruled(rule(act("bandwidth", 100), api="Fetch")))
    talk.client(produce(9, 1), fetch(12, 2), cut=cut)
    talk.broker(produce(9, 1), cut=cut)
    (shape,) = talk.outcome.events
    assert (shape.to, shape.traits) == ("client", Shape("response", bytes_per_s=100))


def test_a_stream_keeps_its_shape_when_the_rule_has_ended() -> None:
    at = ruled(rule(act("bandwidth", 100), api="Fetch"))
    talk = Talk(at)
    talk.client(fetch(12, 1))
    talk.broker(fetch(12, 1))
    engine_of(at).load([], 0)
    talk.client(fetch(12, 2))
    talk.broker(fetch(12, 2))
    assert [event.traits for event in talk.outcome.events] == [Shape("response", bytes_per_s=100)]


@pytest.mark.parametrize(
    ("name", "fields", "effects"),
    [
        ("refuse", (), [Cut("client", "rst")]),
        ("down", (), [Cut("client", "rst")]),
        ("disconnect", ("after", "fin"), [Cut("client", "fin")]),
        ("disconnect", ("before",), [Cut("client", "rst")]),
        ("reset", (7 * MS,), [Hold("client", 12 * MS), Cut("client", "rst")]),
        ("stall", (), [Silence(0)]),
        ("blackhole", (9,), [Silence(9)]),
    ],
)
def test_connections_are_met_as_they_open(name: str, fields: Any, effects: Any) -> None:
    at = ruled(rule(act(name, *fields), event="connect", broker=frozenset({"1"})))
    assert Talk(at).session.connecting(5 * MS) == effects


def test_connections_to_other_brokers_open() -> None:
    at = ruled(rule(act("down"), event="connect", broker=frozenset({"2"})))
    assert Talk(at).session.connecting(0) == []


class Broken:
    """A plugin."""

    name, sides = "broken", ("request", "response")

    def __init__(self, how: Any) -> None:
        self.how = how

    def act(self, frame: Frame, draw: Any) -> Any:
        return self.how(frame)


def failing(frame: Frame) -> Any:
    raise KeyError("nothing")


@cuts
@pytest.mark.parametrize("how", [failing, lambda frame: [OnAnswer(failing)], lambda frame: None])
def test_an_action_that_fails_changes_nothing_and_is_said(cut: Any, how: Any) -> None:
    at = ruled(rule(Broken(how)))  # type: ignore[arg-type]
    talk, one = Talk(at), produce(9, 1)
    assert talk.client(one, cut=cut).broker == one.request
    assert talk.broker(one, cut=cut).client == one.answer
    ((name, _),) = engine_of(at).failed
    assert name == "broken"
    assert engine_of(at).by_name["broken"].failures == 1


@cuts
def test_a_raw_body_goes_as_it_is_with_its_length(cut: Any) -> None:
    talk = Talk(ruled(rule(Broken(lambda frame: [Raw(b"anything")]), side="response")))  # type: ignore[arg-type]
    one = produce(9, 1)
    talk.client(one, cut=cut)
    assert talk.broker(one, cut=cut).client == b"\0\0\0\x0d\0\0\0\1\0anything"


@cuts
def test_an_api_that_nobody_knows_is_left_alone(cut: Any) -> None:
    talk = Talk(ruled(rule(act("error", 6)), allow_unknown_apis=True))
    unknown = b"\0\0\0\x0f\x27\x11\0\0\0\0\0\5\0\3apphi"
    assert talk.client(unknown, cut=cut).broker == unknown
    assert talk.broker(b"\0\0\0\6\0\0\0\5ok", cut=cut).client == b"\0\0\0\6\0\0\0\5ok"


@cuts
def test_a_throttle_takes_its_place_in_an_answer_of_any_length(cut: Any) -> None:
    talk = Talk(ruled(rule(act("throttle", 250 * MS))))
    beat = exchange("Heartbeat", 4, {"group_id": "g"}, {"error_code": 0}, 1)
    talk.client(beat, cut=cut)
    (frame,) = frames(talk.broker(beat, cut=cut).client)
    assert decode(frame[9:], 12, 4, "response")["throttle_time_ms"] == 250

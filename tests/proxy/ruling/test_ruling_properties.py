"""Any rules, any traffic, any chunking: what holds whatever they are."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import read_request_header, request_header_version, response_frame
from klamm.decoders.schema import ALL, Versions
from klamm.proxy.session import effects
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.glob import Glob
from klamm.rules.orders import FOREVER
from klamm.rules.rule import Action, Rule, When
from tests.proxy.ruling.ruled import Talk, act, engine_of, frames, ruled
from tests.proxy.traffic import (
    BROKERS,
    TOPIC_ID,
    Cutting,
    Exchanged,
    api_versions,
    at_random,
    byte_by_byte,
    exchange,
    metadata,
    whole,
)
from tests.rules.acting import batch_of

MS = 1_000_000
SEEDS = range(400)
pytestmark = pytest.mark.sampled(100)
seeds = pytest.mark.parametrize("seed", SEEDS)
BATCH = batch_of(b"one", b"\0\0\0\0\7two")
SIDES = "request", "request", "response"
KEYS = frozenset[int](), frozenset({0}), frozenset({1}), frozenset({3}), frozenset({0, 12})
EVERY = {0, 1, 3, 8, 12, 18}  # keys of the traffic
EVERYDAY = {0, 1, 8, 12}  # others come where a rule is about them
TOPICS = None, None, None, Glob("orders"), Glob("topic-*"), Glob("!orders")
PER = "rule", "connection", "client", "topic", "group"


def acts() -> list[Action]:
    """All, fresh: some remember."""
    return [
    act("error", 6), act("error", 6, applied=True), act("error", 41), act("delay", MS),
    act("pause"), act("capture"), act("delay", MS, of="request"),
    act("delay", MS, distribution="exponential"), act("drop"),
    act("drop", sent=True), act("blackhole"), act("disconnect", "before"), act("disconnect", "after"),
    act("disconnect", "answered"), act("disconnect", "mid frame"), act("disconnect", "after", "fin"),
    act("down"), act("bandwidth", 1000), act("slicer", 10, 3, MS, side="both"), act("limit_data", 10_000),
    act("slow_close", MS), act("packet_loss", 0.1), act("throttle", MS), act("rate", 1.0),
    act("rate", bytes=10, per="topic"), act("block"), act("block", "reset"), act("block", "silent"),
    act("deny"), act("require", acks=("all",), compression=("gzip",)), act("duplicate"),
    act("duplicate", records=True), act("count"), act("log"), act("clamp", "Produce", Versions(0, 7)),
    act("hide", "Fetch"), act("stale_metadata"),
    act("stale_metadata", missing_brokers=(1,), missing_topics=("topic-1",)),
    *(act("corrupt", what, 3) for what in ("crc", "records", "value", "schema id")),
    act("set", {"acks": "1"}), act("set", {"acks": "0"}),
    act("set", {"topics.partitions.leader_id": "-1"}), act("set", {"timeout_ms": "=acks + 100"}),
    ]  # fmt: skip


def test_every_action_on_frames_is_tried() -> None:
    on_frames = {name for name, each in ACTIONS.items() if set(each.sides) & {"request", "response"}}
    assert {each.name for each in acts()} == on_frames


def any_rule(random: Random, number: int) -> Rule:
    """One that could stand in a file."""
    one: Callable[[Any], Any] = random.choice
    side = one(SIDES)
    chosen = random.sample(acts(), random.randint(1, 2))
    do = [each for each in chosen if side in each.sides] or [act("count")]
    only = {api for each in do for api in getattr(each, "apis", ())}
    when = When(
        chance=one([1.0, 1.0, 0.5]), times=one([None, None, 1, 2]), every=one([1, 1, 2]),
        nth=one([(), (), (2, 3)]), per=one(PER),
    )  # fmt: skip
    return Rule(
        f"rule {number}", tuple(do), keys=frozenset(API[name].key for name in only) or one(KEYS),
        versions=one([ALL, ALL, Versions(4, 99)]), side=side, topic=one(TOPICS),
        partition=one([frozenset(), frozenset(), frozenset({0})]), group=one([None] * 5 + [Glob("g")]),
        client=one([None, None, Glob("app"), Glob("other")]), broker=one([frozenset(), frozenset({"1"})]),
        when=when, dry=random.random() < 0.1,
    )  # fmt: skip


def produced(version: int, number: int, acks: int = -1) -> Exchanged:
    """A Produce and its answer, with records that can be read."""
    named = {"topic_id": TOPIC_ID} if version >= 13 else {"name": "orders"}
    rows = [{"index": index, "records": BATCH} for index in (0, 1)]
    asked = {"acks": acks, "topic_data": [{**named, "partition_data": rows}]}
    answers = [{"index": index} for index in (0, 1)]
    response = {"responses": [{**named, "partition_responses": answers}]} if acks else None
    return exchange("Produce", version, asked, response, number)


def fetched(version: int, number: int, endpoints: bool = False) -> Exchanged:
    named = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "orders"}
    asked = {"topics": [{**named, "partitions": [{"partition": 0}, {"partition": 1}]}]}
    rows = [{"partition_index": index, "records": BATCH} for index in (0, 1)]
    more = {"node_endpoints": BROKERS} if endpoints else {}
    return exchange("Fetch", version, asked, {"responses": [{**named, "partitions": rows}], **more}, number)


def committed(number: int) -> Exchanged:
    rows = [{"partition_index": 0}]
    topics = [{"name": "orders", "partitions": rows}, {"name": "topic-1", "partitions": rows}]
    return exchange("OffsetCommit", 8, {"group_id": "g", "topics": topics}, {"topics": topics}, number)


KINDS: list[Callable[[int], Exchanged]] = [
    lambda number: produced(9, number),
    lambda number: produced(13, number),
    lambda number: produced(3, number, acks=0),
    lambda number: produced(9, number, acks=0),
    lambda number: produced(8, number),
    lambda number: fetched(4, number),
    lambda number: fetched(12, number),
    lambda number: fetched(16, number, endpoints=True),
    lambda number: metadata(1, number),
    lambda number: metadata(12, number),
    lambda number: api_versions(3, [(0, 0, 13), (1, 4, 18)], number),
    lambda number: exchange("Heartbeat", 4, {"group_id": "g"}, {"error_code": 0}, number),
    committed,
]
CUTS: list[Callable[[Random], Cutting]] = [
    lambda random: whole,
    lambda random: byte_by_byte,
    lambda random: at_random(random, random.randint(1, 400)),
]


class Played(NamedTuple):
    """A conversation, what the broker got of it, and the rules it was under."""

    exchanges: list[Exchanged]
    talk: Talk
    sent: list[bytes]
    engine: Engine


def play(seed: int, cut: Cutting | None = None, rules: bool = True) -> Played:
    """Runs of requests, each answered by a broker that answers what it gets, in its order."""
    random = Random(seed)
    given = [any_rule(random, number) for number in range(random.randint(1, 4))]
    kinds = random.sample(KINDS, random.randint(1, 4))
    kinds += [
        make for make in KINDS if any(key_of(make(1).request) in rule.keys - EVERYDAY for rule in given)
    ]
    exchanges = [random.choice(kinds)(number) for number in range(1, random.randint(2, 10))]
    batch = random.randint(1, 8)
    cut = cut or random.choice(CUTS)(random)
    at = ruled(*(given if rules else []))
    talk = Talk(at)
    sent: list[bytes] = []
    for start in range(0, len(exchanges), batch):
        fresh = frames(talk.client(*exchanges[start : start + batch], cut=cut).broker)
        sent += fresh
        talk.broker(*answers_to(fresh, exchanges), cut=cut)
    return Played(exchanges, talk, sent, engine_of(at))


def number_of(frame: bytes, side: str) -> int:
    """Its correlation id, which counts the exchanges from 1."""
    at = 8 if side == "request" else 4
    return int.from_bytes(frame[at : at + 4], "big")


def key_of(request: bytes) -> int:
    return int.from_bytes(request[4:6], "big")


def answers_to(requests: list[bytes], exchanges: list[Exchanged]) -> Iterator[bytes]:
    """A broker's answers: none to Produce with acks=0, also where a rule has changed the acks."""
    for request in requests:
        one = exchanges[number_of(request, "request") - 1]
        if key_of(request) or acks_of(request):
            yield one.answer or unasked(request)


def acks_of(request: bytes) -> int:
    """The acks of a Produce request, as the broker reads them."""
    version = int.from_bytes(request[6:8], "big")
    header = read_request_header(request[4:], request_header_version(API[0], version))
    return int(decode(request[4 + header.size :], 0, version, "request")["acks"])


def unasked(request: bytes) -> bytes:
    """The answer to a Produce that wanted none, before a rule changed its acks."""
    version = int.from_bytes(request[6:8], "big")
    body = encode({}, 0, version, "response")
    return response_frame(API[0], version, number_of(request, "request"), body)


def stalled(talk: Talk) -> bool:
    return talk.ended or effects.Hold("client", FOREVER) in talk.outcome.events


def client_answers(talk: Talk) -> list[bytes]:
    """The answers; the last one may be cut short where the connection ended."""
    data, pos = talk.outcome.client, 0
    if not talk.ended:
        return frames(data)
    while (end := pos + 4 + int.from_bytes(data[pos : pos + 4], "big")) <= len(data) and pos + 4 <= len(data):
        pos = end
    return frames(data[:pos])


def observes(act: Action) -> bool:
    return act.name in ("count", "log")


@seeds
def test_every_request_is_answered_once_in_order_or_the_connection_ends_or_stalls(seed: int) -> None:
    exchanges, talk, sent, engine = play(seed)
    assert engine.failed == []
    order = [number_of(frame, "request") for frame in sent]
    assert order == sorted(order)
    twice = any(act.name == "duplicate" for counted in engine.counted_rules for act in counted.rule.do)
    assert all(order.count(number) <= 1 + twice for number in order)
    answered = [number_of(frame, "response") for frame in client_answers(talk)]
    assert answered == sorted(set(answered))
    due = [number for number, one in enumerate(exchanges, 1) if one.answer is not None]
    assert set(answered) <= set(due)
    if not stalled(talk):
        assert answered == due
        assert talk.session.pending() == 0


@seeds
def test_frames_that_no_rule_touches_are_the_same_bytes(seed: int) -> None:
    exchanges, talk, sent, engine = play(seed)
    plain = play(seed, rules=False)
    touching = [
        t for t in engine.counted_rules if t.hits and not t.rule.dry and not all(map(observes, t.rule.do))
    ]
    if not touching:
        assert (sent, talk.outcome.client) == (plain.sent, plain.talk.outcome.client)
    keys = {key for counted in touching for key in counted.rule.keys or EVERY}
    for request in sent:
        if key_of(request) not in keys:
            assert request == exchanges[number_of(request, "request") - 1].request
    given = {number_of(frame, "response"): frame for frame in client_answers(plain.talk)}
    for answer in client_answers(talk):
        number = number_of(answer, "response")
        if key_of(exchanges[number - 1].request) not in keys:
            assert answer == given[number]


@seeds
def test_the_cuts_of_a_stream_change_nothing(seed: int) -> None:
    once, again = play(seed, whole), play(seed)
    assert again.sent == once.sent
    assert again.talk.outcome.client == once.talk.outcome.client
    assert effects_by_side(again.talk) == effects_by_side(once.talk)
    counted, counted_again = (
        [(t.matches, t.hits) for t in each.engine.counted_rules] for each in (once, again)
    )
    if not once.talk.ended:  # or else of what came after the end in one read
        assert counted == counted_again


def effects_by_side(talk: Talk) -> dict[Any, list[Any]]:
    """Effects by where they go, without what cannot be compared: the numbers drawn for a shape."""
    found: dict[Any, list[Any]] = {}
    for event in talk.outcome.events:
        directed = isinstance(event, effects.Hold | effects.Cut | effects.Shape)
        where = event.to if directed else type(event)
        found.setdefault(where, []).append(event.traits if isinstance(event, effects.Shape) else event)
    return found


def test_these_rules_do_everything_that_rules_can_do() -> None:
    counted_rules = [counted for seed in SEEDS for counted in play(seed).engine.counted_rules]
    acted = {act.name for counted in counted_rules if counted.hits for act in counted.rule.do}
    connecting = {name for name, kind in ACTIONS.items() if tuple(kind.sides) == ("connect",)}
    rare = {name for name, kind in ACTIONS.items() if getattr(kind, "apis", ())}  # for few of the frames
    assert acted | rare == set(ACTIONS) - connecting

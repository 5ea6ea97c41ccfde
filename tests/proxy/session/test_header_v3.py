"""Request header v3 (KIP-1313): a connection's first request tells who asks. No released Kafka has it, so a
made-up "5.0" stands in: its Heartbeat 5 and a new API use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.bodies import body_of
from klamm.captures.streams.kept import Kept
from klamm.decoders import API, body, encode
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Versions, api, int16, string
from klamm.pipeline.sql.words import Asked, of_exchange
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Exchange
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import Topology
from klamm.proxy.session.session import Session
from klamm.rules.engine import Engine
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.names import EXCHANGE
from klamm.rules.frame import Frame
from klamm.rules.glob import Glob
from klamm.rules.plan import Planner, Wishes
from klamm.rules.rule import Rule
from tests.proxy.ruling.ruled import act, rule

INSTANCE = UUID("00112233-4455-6677-8899-aabbccddeeff").bytes
TEXT = "ABEiM0RVZneImaq7zN3u_w"  # the same as Kafka prints it
BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}


@pytest.fixture(autouse=True)
def kafka_5(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tables of a release that does not exist: a row of Heartbeat changed, and one API more."""
    heartbeat = replace(
        API["Heartbeat"], versions=Versions(0, 5), request_headers=((3, Versions(5, 5)),)
    )  # fmt: skip
    mirror = api(
        201, "MirrorTopics", versions="0", flexible="0+", request_headers={3: "0+"},
        request=[string("cluster_id")], response=[int16("error_code")],
    )  # fmt: skip
    monkeypatch.setattr(API, "_by_key", {**API._by_key, 12: heartbeat, 201: mirror})
    monkeypatch.setattr(API, "_by_name", {**API._by_name, "heartbeat": heartbeat, "mirrortopics": mirror})
    yield
    for cached in (body.layout, body._reader, body._writer, body_of):
        cached.cache_clear()


def beat(number: int, version: int = 5, client_id: str | None = None, instance: bytes | None = None) -> bytes:
    tags = [] if instance is None else [(0, instance)]
    body = encode(BEAT, 12, version, "request")
    return request_frame(API["Heartbeat"], version, number, client_id, body, tags)


def answer(number: int, version: int = 5) -> bytes:
    values = {"throttle_time_ms": 0, "error_code": 0}
    return response_frame(API["Heartbeat"], version, number, encode(values, 12, version, "response"))


def context(*rules: Rule, logged: bool = False) -> ClusterContext:
    engine = Engine(1)
    engine.load(rules, 0)
    wishes = Wishes(logged=None if logged else frozenset())
    return ClusterContext("test", Planner(wishes), Topology(20000, 20100), Stats(), engine=engine)


def counted(at: ClusterContext) -> dict[tuple[str, int], int]:
    return {(each.client_id, each.version): each.requests for each in at.stats.requests.values()}


def test_the_client_id_of_the_first_request_is_that_of_all() -> None:
    at = context()
    first, other = Session(at, "1", "klamm"), Session(at, "1", "klamm")
    frames = [beat(1, client_id="app", instance=INSTANCE), beat(2), beat(3) + beat(4)]
    assert all(first.from_client(frame, 0) is frame for frame in frames)
    assert first.from_broker(sent := b"".join(map(answer, range(1, 5))), 0) is sent
    assert other.from_client(frame := beat(1), 0) is frame  # it never told one
    assert counted(at) == {("app", 5): 4, ("", 5): 1}
    assert at.stats.instances == {("test", "app"): 1}


def test_a_request_of_an_older_header_without_a_client_id_has_none() -> None:
    at = context()
    session = Session(at, "1", "klamm")
    session.from_client(beat(1, client_id="app", instance=INSTANCE), 0)
    session.from_client(beat(2, version=4), 0)
    assert counted(at) == {("app", 5): 1, ("", 4): 1}


def test_the_client_id_may_come_with_an_older_header() -> None:
    at = context()
    session = Session(at, "1", "klamm")
    session.from_client(beat(1, version=4, client_id="app"), 0)
    session.from_client(beat(2), 0)
    assert counted(at) == {("app", 4): 1, ("app", 5): 1}


def test_an_api_of_the_new_release_passes_and_is_counted() -> None:
    at = context()
    session = Session(at, "1", "klamm")
    made = encode({"cluster_id": "other"}, "MirrorTopics", 0, "request")
    frame = request_frame(API["MirrorTopics"], 0, 1, "app", made, [(0, INSTANCE)])
    assert session.from_client(frame, 0) is frame
    assert [(each.api, each.client_id) for each in at.stats.requests.values()] == [("MirrorTopics", "app")]


@pytest.mark.parametrize("pattern", ["app", TEXT, "10.0.0.7"])
def test_a_rule_is_for_a_client_id_an_instance_id_or_an_address(pattern: str) -> None:
    at = context(rule(act("error", 27), api="Heartbeat", client=Glob(pattern)))
    session = Session(at, "1", "klamm", "10.0.0.7:5000")
    frames = [beat(1, client_id="app", instance=INSTANCE), beat(2)]
    assert all(session.from_client(frame, 0) is not frame for frame in frames)
    (engine,) = [at.engine]
    assert engine is not None
    assert engine.counted_rules[0].hits == 2
    stranger = Session(at, "1", "klamm", "10.0.0.8:5000")
    assert stranger.from_client(frame := beat(1, client_id="b", instance=bytes(15) + b"1"), 0) is frame


def test_the_log_tells_the_instance() -> None:
    session = Session(context(logged=True), "1", "klamm")
    session.from_client(beat(1, client_id="app", instance=INSTANCE), 0)
    session.from_client(beat(2), 0)
    effects = session.from_broker(answer(1) + answer(2), 0)
    exchanges = [effect.fields for effect in effects if isinstance(effect, Exchange)]
    assert [(one["client_id"], one["client_instance_id"]) for one in exchanges] == [("app", TEXT)] * 2


def test_an_expression_asks_for_the_instance() -> None:
    at = context()
    peer = Engine(1).peer("test", "1", "10.0.0.7:5000")
    frame = Frame(API["Heartbeat"], 5, "request", b"", "app", peer, 0)
    assert EXCHANGE["client_instance_id"].of(frame) is None
    peer.instance_id = TEXT
    assert EXCHANGE["client_instance_id"].of(frame) == TEXT
    assert at.stats.instances == {}


def test_a_capture_has_the_client_id_of_the_first_request() -> None:
    kept = Kept(Keeping())
    for frame in (beat(1, client_id="app", instance=INSTANCE), beat(2)):
        found = kept.request(frame, 4, len(frame), len(frame) - 4, 12 << 16 | 5)
        assert found[:2] == ("app", True)


def test_the_tables_say_that_they_do_not_know_the_size_of_such_a_body() -> None:
    with pytest.raises(ExpressionError, match="header of version 3"):
        of_exchange("request_size", Asked(API["Heartbeat"], 5, "request", 5), 1)
    of_exchange("request_size", Asked(API["Heartbeat"], 4, "request", 4), 1)

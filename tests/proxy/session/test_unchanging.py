"""A session whose clients keep the brokers' addresses: it reads as before, and no byte changes."""

from __future__ import annotations

from random import Random
from typing import Literal

import pytest

from klamm.decoders import API
from klamm.decoders.headers import request_frame, response_frame
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Close
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.opaque import OpaqueSession
from klamm.proxy.session.rewriting.topology import NodeKey, Topology
from klamm.rules.plan import Planner, Wishes
from tests.proxy.session.test_session import LARGE, mixed
from tests.proxy.traffic import (
    BROKERS,
    Cutting,
    Exchanged,
    api_versions,
    at_random,
    byte_by_byte,
    metadata,
    play,
    produce,
    whole,
)

Metering = Literal["header", "full"]


def context(metering: Metering = "full") -> ClusterContext:
    planner = Planner(Wishes(metering)).unchanging()
    return ClusterContext("test", planner, Topology(20000, 20100), Stats())


@pytest.mark.parametrize("metering", ["header", "full"])
@pytest.mark.parametrize("cut", [whole, byte_by_byte, at_random(Random(1)), at_random(Random(2), 3000)])
def test_every_byte_goes_on_as_it_came(metering: Metering, cut: Cutting) -> None:
    outcome = play(mixed(), cut, context(metering))
    assert outcome.broker == b"".join(one.request for one in mixed())
    assert outcome.client == b"".join(one.answer or b"" for one in mixed())
    assert outcome.events == ()


@pytest.mark.parametrize(("name", "version", "made"), LARGE)
def test_no_address_in_a_large_answer_is_blanked(name: str, version: int, made: object) -> None:
    one: Exchanged = made()  # type: ignore[operator]
    for cut in (at_random(Random(1), 70_000), whole):
        outcome = play([one, produce(9, 1)], cut, context())
        assert outcome.client == (one.answer or b"") + (produce(9, 1).answer or b"")
        assert outcome.events == ()


@pytest.mark.parametrize("metering", ["header", "full"])
@pytest.mark.parametrize("version", [0, 5, 12])
def test_the_brokers_are_learned_from_metadata(metering: Metering, version: int) -> None:
    at = context(metering)
    play([metadata(version)], at_random(Random(3), 40), at)
    found = {key: (node.host, node.port) for key, node in at.topology.nodes.items()}
    assert found == {NodeKey("broker", row["node_id"]): (row["host"], row["port"]) for row in BROKERS}


@pytest.mark.parametrize("name", ["Metadata", "Fetch"])
def test_a_version_that_klamm_does_not_know_passes_though_its_answer_has_addresses(name: str) -> None:
    api = API[name]
    version = api.versions.last + 1
    request = request_frame(api, version, 1, "app", b"xxxx")
    answer = response_frame(api, version, 1, b"\0kafka-9.internal")
    outcome = play([Exchanged(request, answer)], byte_by_byte, context())
    assert (outcome.broker, outcome.client) == (request, answer)
    assert [event.kind for event in outcome.events] == ["unknown_version"]
    assert not any(isinstance(event, Close) for event in outcome.events)


def test_all_versions_are_offered() -> None:
    offered = api_versions(3, [(3, 0, 99), (10000, 0, 0), (18, 0, 99)])
    assert play([offered], whole, context()).client == offered.answer


def test_errors_and_topics_are_counted_as_before() -> None:
    before, now = ClusterContext("test", Planner(Wishes()), Topology(20000, 20100), Stats()), context()
    for at in (before, now):
        play([produce(12, 1), produce(12, 2, endpoints=True), produce(12, 3)], whole, at)
    counted = [
        {key: (each.requests, dict(each.errors)) for key, each in at.stats.requests.items()}
        for at in (before, now)
    ]
    assert counted[0] == counted[1]
    assert any(errors for _, errors in counted[0].values())


def test_its_planner_follows_the_wishes() -> None:
    planner = Planner(Wishes("header"))
    unchanging = planner.unchanging()
    assert not unchanging.plan(0, 9).logged
    revision = unchanging.revision
    planner.wish(Wishes("full", None))
    assert unchanging.plan(0, 9).logged
    assert unchanging.revision > revision
    assert planner.unchanging() is unchanging


def test_bytes_that_klamm_cannot_read_go_on_and_are_counted() -> None:
    at = context()
    session = OpaqueSession(at, "1", "10.0.0.1:1")
    hello, answer = b"\x16\x03\x01\2\0\1", b"\x16\x03\x03" + bytes(90)
    assert session.requests.receive(hello, 0) is hello
    assert session.responses.receive(answer, 0) is answer
    assert session.responses.receive(answer, 0) is answer
    assert at.stats.opaque == {("test", "1", "client"): 6, ("test", "1", "broker"): 186}
    assert session.client_closed() == session.broker_closed() == []
    assert session.pending() == 0
    assert at.stats.requests == {}

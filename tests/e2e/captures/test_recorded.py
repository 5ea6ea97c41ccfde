"""Recorded traffic of real clients and brokers, through the session in every chunking."""

from __future__ import annotations

import subprocess
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, decode
from klamm.decoders.headers import REQUEST, response_header_version
from klamm.decoders.schema import HOST, PORT, all_fields
from klamm.proxy.session.session import Session
from klamm.rules.plan import Wishes
from tests.brokers.kraft import Cluster
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.captures.recorder import Event, recorders
from tests.e2e.klamm_process import klamm_in_front_of
from tests.proxy.traffic import ADVERTISE, Outcome, Recorder, at_random, byte_by_byte, ground, whole

pytestmark = pytest.mark.brokers

TOPIC = "recorded"
STEPS: list[dict[str, Any]] = [
    {"do": "produce", "topic": TOPIC, "acks": "all", "seed": "a", "count": 300},
    {"do": "produce", "topic": TOPIC, "acks": "0", "seed": "b", "count": 50},
    {"do": "consume", "topic": TOPIC, "group": "recorded-{}", "count": 300},
    {"do": "administrate", "topic": "made-recorded-{}", "replication_factor": 2, "count": 1},
]


@pytest.fixture(scope="module")
def recorded(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[list[Event]]:
    """The connections of two clients, as the brokers saw them: klamm sends them on unchanged."""
    topics.create(kafka.bootstrap(), TOPIC, topics.spread())
    addresses = [kafka.address(node_id) for node_id in (1, 2, 3)]
    with recorders(addresses) as made:
        maps = []
        for (host, port), recorder in zip(addresses, made, strict=True):
            maps += ["--map", f"{host}:{port}=127.0.0.1:{recorder.port}"]
        log = tmp_path_factory.mktemp("recorded") / "klamm.log"
        with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, *maps) as klamm:
            for client in ("librdkafka", "java"):
                steps = [
                    {
                        key: value.format(client) if isinstance(value, str) else value
                        for key, value in step.items()
                    }
                    for step in STEPS
                ]
                command = programs.command(client, klamm.bootstrap, *steps)
                subprocess.run(command, check=True, timeout=120, capture_output=True)
        return [events for recorder in made for events in recorder.connections if events]


def replay(events: list[Event], cut: Any, wishes: Wishes) -> Outcome:
    at = ground(wishes)
    session = Session(at, "1", ADVERTISE)
    outcome = Outcome()
    edge = Recorder(session, at, outcome)
    for who, data in events:
        for piece in cut(data):
            if who == "client":
                edge.take("broker", session.from_client(piece, 0), piece)
            else:
                edge.take("client", session.from_broker(piece, 0), piece)
    return outcome


def test_any_chunking_gives_the_same_bytes_events_and_closes(recorded: list[list[Event]]) -> None:
    assert len(recorded) > 10
    wishes = Wishes("full", None)
    for events in recorded:
        expected = replay(events, whole, wishes)
        cuts = [at_random(Random(seed), most) for seed, most in enumerate((2, 9, 60, 500, 5000, 50_000))]
        for cut in (byte_by_byte, *cuts):
            assert replay(events, cut, wishes) == expected


def frames(stream: bytes) -> list[bytes]:
    found, pos = [], 0
    while pos < len(stream):
        size = int.from_bytes(stream[pos : pos + 4], "big") + 4
        found.append(stream[pos : pos + size])
        pos += size
    return found


def without_addresses(values: Any) -> Any:
    if isinstance(values, list):
        return [without_addresses(value) for value in values]
    if isinstance(values, dict):
        return {key: without_addresses(value) for key, value in values.items() if key not in ("host", "port")}
    return values


def test_only_addresses_and_the_api_versions_cut_differ(recorded: list[list[Event]]) -> None:
    compared, changed = 0, set()
    for events in recorded:
        outcome = replay(events, whole, Wishes())
        asked = frames(b"".join(data for who, data in events if who == "client"))
        assert outcome.broker == b"".join(asked)
        headers = [REQUEST.unpack_from(frame) for frame in asked]
        expecting = [
            (key, version)
            for (_, key, version, _), frame in zip(headers, asked, strict=True)
            if answered(key, version, frame)
        ]
        before = frames(b"".join(data for who, data in events if who == "broker"))
        after = frames(outcome.client)
        assert len(before) == len(after)
        for (key, version), theirs, ours in zip(expecting, before, after, strict=False):
            compared += 1
            if theirs == ours:
                continue
            api = API[key]
            changed.add(api.name)
            assert theirs[4:8] == ours[4:8]
            start = 9 if response_header_version(api, version) else 8
            was, now = (decode(frame[start:], key, version, "response") for frame in (theirs, ours))
            if api.name == "ApiVersions":
                assert {**was, "api_keys": 0} == {**now, "api_keys": 0}
                assert all(row in was["api_keys"] for row in now["api_keys"])
            else:
                assert {f.mark for _, f in all_fields(api.response, version)} >= {HOST, PORT}
                assert without_addresses(was) == without_addresses(now)
    assert compared > 100
    assert changed >= {"Metadata", "FindCoordinator"}


def answered(key: int, version: int, frame: bytes) -> bool:
    """Does the broker answer? Not a Produce with acks=0."""
    api = API[key]
    if api.name != "Produce":
        return True
    client_id = int.from_bytes(frame[12:14], "big", signed=True)
    body = 14 + max(client_id, 0) + (1 if version in api.flexible else 0)
    return bool(decode(frame[body:], key, version, "request")["acks"])

"""Every place where addresses travel, in responses of real brokers: rewritten, and nothing else changed.

Each question goes twice: to a broker itself and to klamm's listener for it. The answer through klamm must be,
byte for byte, the broker's own with the addresses replaced.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from klamm.decoders import API, decode, encode
from tests.e2e.conversation import Conversation, ask
from tests.e2e.paths import OTHER, QUORUM, TOPIC, Paths, addresses, drawn_as, one_record

pytestmark = pytest.mark.brokers

ATTEMPTS = 10
ILLEGAL_SASL_STATE = 34

Question = Callable[[Paths, int], dict[str, Any]]


def _produce(paths: Paths, version: int) -> dict[str, Any]:
    name = {"topic_id": paths.topic_id} if version >= 13 else {"name": TOPIC}
    partition = {"index": 0, "records": one_record()}
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [{**name, "partition_data": [partition]}]}


def _fetch(paths: Paths, version: int) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    return {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": [{"topic_id": paths.topic_id, "partitions": [partition]}],
    }


class Place(NamedTuple):
    """A response that carries addresses: where they are (`path`), whom to ask and what."""

    api: str
    versions: range
    path: str
    ask: tuple[str, int]
    question: Question


PLACES = [
    Place(
        "Metadata",
        range(0, 14),
        "brokers[]",
        ("broker", 1),
        lambda paths, version: {"topics": [{"name": TOPIC}]},
    ),
    Place(
        "FindCoordinator",
        range(0, 4),
        "top level",
        ("broker", 1),
        lambda paths, version: {"key": "some-group"},
    ),
    Place(
        "FindCoordinator",
        range(4, 7),
        "coordinators[]",
        ("broker", 1),
        lambda paths, version: {"key_type": 0, "coordinator_keys": ["some-group", "another-group", "third"]},
    ),
    Place(
        "DescribeCluster",
        range(0, 3),
        "brokers[] of brokers",
        ("broker", 1),
        lambda paths, version: {"endpoint_type": 1} if version else {},
    ),
    Place(
        "DescribeCluster",
        range(1, 3),
        "brokers[] of controllers",
        ("controller", 1),
        lambda paths, version: {"endpoint_type": 2},
    ),
    Place("Produce", range(10, 14), "node_endpoints[], tag 0", ("broker", OTHER), _produce),
    Place("Fetch", range(16, 19), "node_endpoints[], tag 0", ("broker", OTHER), _fetch),
]
CASES = [
    pytest.param(place, version, id=f"{place.api}-{version}-{place.path}")
    for place in PLACES
    for version in place.versions
]


@pytest.mark.parametrize(("place", "version"), CASES)
def test_only_the_addresses_of_a_response_change(
    place: Place, version: int, paths: Paths, seen_rewritten: list[str]
) -> None:
    values = place.question(paths, version)
    with Conversation(paths.direct[place.ask]) as direct, Conversation(paths.through[place.ask]) as through:
        for _ in range(ATTEMPTS):  # the cluster's answer may change between the two requests
            original = direct.ask_bytes(place.api, version, values)
            received = through.ask_bytes(place.api, version, values)
            sent, passed = (decode(body, place.api, version, "response") for body in (original, received))
            endpoints = set(addresses(sent))
            assert endpoints, f"the broker's answer holds no address: {sent}"
            assert set(addresses(passed)) <= set(paths.through.values())
            expected = encode(drawn_as(passed, paths.replace(sent)), place.api, version, "response")
            if received == expected:
                break
            time.sleep(0.5)
    assert received == expected
    seen_rewritten.append(f"{place.api} {version}: {place.path}: {paths.arrows(endpoints)}")


def test_a_request_behind_a_sasl_handshake_that_brokers_refuse_is_rewritten_too(paths: Paths) -> None:
    """Tokens without a header would follow one that they take."""
    with Conversation(paths.through["broker", 1]) as through:
        assert through.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})["error_code"] == ILLEGAL_SASL_STATE
        found = set(addresses(through.ask("Metadata", 1, {"topics": [{"name": TOPIC}]})))
    assert found
    assert found <= set(paths.through.values())


def test_the_listeners_of_controllers_in_describe_quorum_are_rewritten(
    paths: Paths, seen_rewritten: list[str]
) -> None:
    direct = ask(paths.direct["broker", 1], "DescribeQuorum", 2, QUORUM)
    through = ask(paths.through["broker", 1], "DescribeQuorum", 2, QUORUM)
    assert set(addresses(direct)) == {paths.direct["controller", 1]}
    assert through["nodes"] == paths.replace(direct)["nodes"]
    seen_rewritten.append(f"DescribeQuorum 2: nodes[].listeners[]: {paths.arrows(set(addresses(direct)))}")


def test_api_versions_differ_only_by_what_klamm_does_not_know(paths: Paths) -> None:
    end = ("broker", 1)
    for version in range(5):
        direct, through = (ask(way[end], "ApiVersions", version, {}) for way in (paths.direct, paths.through))
        offered = {row["api_key"]: row for row in direct.pop("api_keys")}
        passed = {row["api_key"]: row for row in through.pop("api_keys")}
        assert passed.keys() == {key for key in offered if key in API}
        for key, row in passed.items():
            assert row["min_version"] == offered[key]["min_version"]
            assert row["max_version"] <= offered[key]["max_version"]
        assert through == direct

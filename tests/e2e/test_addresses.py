"""Every place where addresses travel, in responses of real brokers: rewritten, and nothing else changed.

Each question goes twice: to a broker itself and to klamm's listener for it. The answer through klamm must be,
byte for byte, the broker's own with the addresses replaced.
"""

import uuid
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, NamedTuple

import pytest
from crc32c import crc32c

from klamm.decoders import API, decode, encode
from tests.brokers.kraft import Cluster
from tests.e2e import topics
from tests.e2e.conversation import Conversation, ask
from tests.e2e.klamm_process import Klamm

pytestmark = pytest.mark.brokers

Address = tuple[str, int]
TOPIC = "led-elsewhere"
LEADER, OTHER = 3, 2


class Paths(NamedTuple):
    """The ways to each endpoint: `direct` and `through` klamm, by (kind, node id); and the topic's id."""

    direct: dict[tuple[str, int], Address]
    through: dict[tuple[str, int], Address]
    topic_id: Any

    def replace(self, value: Any) -> Any:
        """`value` with every direct address replaced by that through klamm."""
        table = {self.direct[end]: self.through[end] for end in self.direct}
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        if not isinstance(value, dict):
            return value
        replaced = {name: self.replace(item) for name, item in value.items()}
        if address := table.get((value.get("host", ""), value.get("port", -1))):
            replaced["host"], replaced["port"] = address
        return replaced


def _addresses(value: Any) -> Iterator[Address]:
    if isinstance(value, list):
        for item in value:
            yield from _addresses(item)
    elif isinstance(value, dict):
        if value.get("host"):
            yield value["host"], value["port"]
        for item in value.values():
            yield from _addresses(item)


@pytest.fixture(scope="module")
def paths(kafka: Cluster, klamm: Klamm) -> Paths:
    """A topic whose leader moved from OTHER to LEADER, and the addresses of all endpoints."""
    topics.create(kafka.bootstrap(), TOPIC, [[OTHER]])
    topics.move(kafka.bootstrap(), TOPIC, 0, [LEADER])
    metadata = ask(klamm.address, "Metadata", 12, {"topics": [{"name": TOPIC}]})
    through = {("broker", node["node_id"]): (node["host"], node["port"]) for node in metadata["brokers"]}
    quorum = ask(klamm.address, "DescribeQuorum", 2, QUORUM)
    listener = quorum["nodes"][0]["listeners"][0]
    through["controller", 1] = listener["host"], listener["port"]
    direct = {("broker", node_id): kafka.address(node_id) for node_id in (1, 2, 3)}
    direct["controller", 1] = "127.0.0.1", kafka.controller_port
    return Paths(direct, through, metadata["topics"][0]["topic_id"])


QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
Question = Callable[[Paths, int], dict[str, Any]]


def _records() -> bytes:
    """A batch (magic 2) of one record: no key, b"value", no headers. Small varints are twice their value."""
    record = bytes([11 * 2, 0, 0, 0, 1, 5 * 2, *b"value", 0])
    counted = Struct(">hiqqqhii").pack(0, 0, 1, 1, -1, -1, -1, 1) + record
    return Struct(">qiibI").pack(0, len(counted) + 9, -1, 2, crc32c(counted)) + counted


def _produce(paths: Paths, version: int) -> dict[str, Any]:
    name = {"topic_id": paths.topic_id} if version >= 13 else {"name": TOPIC}
    partition = {"index": 0, "records": _records()}
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
        lambda paths, version: {"endpoint_type": 1},
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
        original = direct.ask_bytes(place.api, version, values)
        received = through.ask_bytes(place.api, version, values)
    sent = decode(original, place.api, version, "response")
    addresses = set(_addresses(sent))
    assert addresses, f"the broker's answer holds no address: {sent}"
    assert received == encode(paths.replace(sent), place.api, version, "response")
    assert set(_addresses(decode(received, place.api, version, "response"))) <= set(paths.through.values())
    seen_rewritten.append(f"{place.api} {version}: {place.path}: {_arrows(addresses, paths)}")


def _arrows(addresses: set[Address], paths: Paths) -> str:
    names = {address: end for end, address in paths.direct.items()}
    ways = sorted((*address, *paths.through[names[address]]) for address in addresses)
    return ", ".join(f"{host}:{port} -> {own}:{own_port}" for host, port, own, own_port in ways)


def test_the_listeners_of_controllers_in_describe_quorum_are_rewritten(
    paths: Paths, seen_rewritten: list[str]
) -> None:
    direct = ask(paths.direct["broker", 1], "DescribeQuorum", 2, QUORUM)
    through = ask(paths.through["broker", 1], "DescribeQuorum", 2, QUORUM)
    assert set(_addresses(direct)) == {paths.direct["controller", 1]}
    assert through["nodes"] == paths.replace(direct)["nodes"]
    seen_rewritten.append(f"DescribeQuorum 2: nodes[].listeners[]: {_arrows(set(_addresses(direct)), paths)}")


SHARE = [(api, version) for api in ("ShareFetch", "ShareAcknowledge") for version in (1, 2)]


@pytest.mark.parametrize(("api", "version"), SHARE)
def test_the_node_endpoints_of_share_groups_are_rewritten(
    api: str, version: int, paths: Paths, seen_rewritten: list[str]
) -> None:
    sent, received = (
        _share(way["broker", OTHER], api, version, paths.topic_id) for way in (paths.direct, paths.through)
    )
    assert set(_addresses(decode(sent, api, version, "response"))) == {paths.direct["broker", LEADER]}
    assert received == encode(paths.replace(decode(sent, api, version, "response")), api, version, "response")
    seen_rewritten.append(
        f"{api} {version}: node_endpoints[]: {_arrows({paths.direct['broker', LEADER]}, paths)}"
    )


def _share(address: Address, api: str, version: int, topic_id: Any) -> bytes:
    """Open a share session with a broker that does not lead the partition; ShareAcknowledge goes on in it."""
    member = {"group_id": "share-by-hand", "member_id": str(uuid.uuid4())}
    limits = {"max_wait_ms": 100, "min_bytes": 0, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
    wanted = {"topics": [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}]}
    with Conversation(address) as conversation:
        opened = conversation.ask_bytes(
            "ShareFetch", version, {**member, **limits, **wanted, "share_session_epoch": 0}
        )
        if api == "ShareFetch":
            return opened
        batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
        partition = {"partition_index": 0, "acknowledgement_batches": [batch]}
        done = {"topics": [{"topic_id": topic_id, "partitions": [partition]}]}
        return conversation.ask_bytes(
            "ShareAcknowledge", version, {**member, **done, "share_session_epoch": 1}
        )


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

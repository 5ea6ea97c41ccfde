"""Kafka's promises about a connection, through klamm: versions, the order of answers, sizes, throttling."""

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import answered_version, request_frame
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.e2e.contracts.contracts import (
    Address,
    Talk,
    api_versions,
    ask,
    batch,
    create,
    fetch,
    fetched,
    produce,
)
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.e2e.paths import Paths

pytestmark = pytest.mark.brokers

ORDERED, THROTTLED = "contracts-ordered", "contracts-throttled"
UNSUPPORTED_VERSION = 35
ANSWERED = (1, 9, 12)
CORE: list[tuple[str, dict[str, int], str]] = [
    ("Produce", {"acks": 1}, "responses"),
    ("Fetch", {}, "responses"),
    ("ListOffsets", {"replica_id": -1}, "topics"),
]


@pytest.fixture(scope="module")
def leader(kafka: Cluster, paths: Paths) -> Address:
    """Broker 1 through klamm, which leads these topics."""
    leader = paths.through["broker", 1]
    for topic in (ORDERED, THROTTLED):
        create(kafka.bootstrap(), leader, topic)
    return leader


@pytest.fixture(scope="module")
def provoked(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    """A klamm that has to meet problems here."""
    log = tmp_path_factory.mktemp("provoked") / "klamm.log"
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, foreseen=["truncated"]) as klamm:
        yield klamm


def test_answers_come_in_the_order_of_requests_also_behind_one_that_waits(leader: Address) -> None:
    with Talk(leader) as talk:
        waiting = talk.send("Fetch", 12, fetch(ORDERED, 0, max_wait_ms=300, min_bytes=1))
        quick = [talk.send("Metadata", version, {"topics": []}) for version in ANSWERED]
        assert fetched(talk.answer("Fetch", 12, waiting))["records"] == b""
        for correlation_id, version in zip(quick, ANSWERED, strict=True):
            talk.answer("Metadata", version, correlation_id)


@pytest.mark.parametrize("correlation_id", [0, -1, 2**31 - 1])
def test_the_correlation_id_comes_back_as_it_was(correlation_id: int, klamm: Klamm) -> None:
    with Talk(klamm.address) as talk:
        for _ in range(2):
            talk.correlation_id = correlation_id - 1 if correlation_id >= 0 else -2
            talk.send("Metadata", 1, {"topics": []})
            assert struct.unpack(">i", talk.frame()[:4]) == (correlation_id,)


def test_a_request_larger_than_the_broker_takes_closes_the_connection(
    provoked: Klamm, kafka: Cluster
) -> None:
    limit = int(kafka.settings["socket.request.max.bytes"])
    with Talk(provoked.address) as talk:
        talk.socket.sendall(struct.pack(">ihhihh", limit + 1, 0, 3, 1, -1, -1))
        assert talk.closed()


def test_an_api_versions_request_of_an_unknown_version_is_answered_in_layout_0_and_a_lower_one_works(
    provoked: Klamm,
) -> None:
    with Talk(provoked.address) as talk:
        talk.socket.sendall(struct.pack(">ihhih", 10, 18, 99, 7, -1))
        refused = talk.frame()
        assert refused[:4] == struct.pack(">i", 7)
        answer = decode(refused[4:], "ApiVersions", 0, "response")
        (own,) = answer["api_keys"]
        assert (answer["error_code"], own["api_key"]) == (UNSUPPORTED_VERSION, API["ApiVersions"].key)
        lower = own["max_version"]  # of klamm; an older broker refuses it too, with its own
        while (answer := unsure(talk, lower))["error_code"] == UNSUPPORTED_VERSION:
            (own,) = [key for key in answer["api_keys"] if key["api_key"] == API["ApiVersions"].key]
            assert own["max_version"] < lower
            lower = own["max_version"]
        assert answer["error_code"] == 0


def unsure(talk: Talk, version: int) -> dict[str, Any]:
    """The answer to ApiVersions, in layout 0 where this version is refused."""
    asked = {"client_software_name": "tests", "client_software_version": "1"}
    body = encode(asked, "ApiVersions", version, "request")
    talk.socket.sendall(request_frame(API["ApiVersions"], version, 8, "app", body))
    body = talk.frame()[4:]
    return decode(body, "ApiVersions", answered_version(API["ApiVersions"].key, version, body), "response")


def test_the_versions_that_are_told_stay_the_same_and_each_is_taken(klamm: Klamm) -> None:
    """For the APIs of the core reference. Brokers of 4.x tell Produce 0-2 too, and refuse them."""
    with Talk(klamm.address) as talk:
        first, second = (api_versions(talk, version) for version in (0, 3))
        ranges = {key["api_key"]: (key["min_version"], key["max_version"]) for key in first["api_keys"]}
        again = {key["api_key"]: (key["min_version"], key["max_version"]) for key in second["api_keys"]}
        assert ranges == again
        for version in range(ranges[API["Metadata"].key][1] + 1):
            assert talk.ask("Metadata", version, {"topics": []})["brokers"]
        for name, values, list_name in CORE:
            least, most = ranges[API[name].key]
            for version in range(max(least, 3) if name == "Produce" else least, most + 1):
                assert talk.ask(name, version, values)[list_name] == []
        for version in range(ranges[API["ApiVersions"].key][1] + 1):
            assert api_versions(talk, version)["api_keys"]


def test_versions_0_to_2_of_produce_are_told_and_refused(klamm: Klamm) -> None:
    with Talk(klamm.address) as talk:
        oldest = {key["api_key"]: key["min_version"] for key in api_versions(talk, 3)["api_keys"]}
    assert oldest[API["Produce"].key] == 0
    for version in range(3):
        with Talk(klamm.address) as talk, pytest.raises((ConnectionError, EOFError)):
            talk.ask("Produce", version, {"acks": 1})


@pytest.fixture
def limited(kafka: Cluster, paths: Paths) -> Iterator[str]:
    """A client id that may use next to none of a broker's time."""
    client_id, node = "contracts-limited", paths.through["broker", 1]

    def quota(**op: object) -> None:
        entry = {
            "entity": [{"entity_type": "client-id", "entity_name": client_id}],
            "ops": [{"key": "request_percentage", "value": 0.0, "remove": False, **op}],
        }
        assert ask(node, "AlterClientQuotas", 1, {"entries": [entry]})["entries"][0]["error_code"] == 0

    quota(value=0.001)
    yield client_id
    quota(remove=True)


def test_a_throttled_client_is_told_so_and_its_connection_muted(limited: str, leader: Address) -> None:
    def throttled() -> int:
        return int(talk.ask("Metadata", 12, {"topics": []})["throttle_time_ms"])

    with Talk(leader, limited) as talk:
        told_ms = wait_for(throttled, "the quota", timeout_s=10)
        began = time.monotonic()
        again_ms = throttled()
        waited_ms = (time.monotonic() - began) * 1000
        data = produce(THROTTLED, batch([b"x"]))
        assert again_ms > 0
        assert talk.ask("Produce", 9, data)["throttle_time_ms"] > 0
        assert talk.ask("Fetch", 12, fetch(THROTTLED, 0))["throttle_time_ms"] > 0
    assert waited_ms > 0.8 * told_ms
    with Talk(leader) as talk:
        assert talk.ask("Produce", 9, data)["throttle_time_ms"] == 0
